//! The executor's names over the simulated driver.

use std::path::Path;
use std::time::Duration;

use super::*;
use crate::io::buffer::AlignedBuffer;
use crate::io::file::{Durability, File, OpenOptions};
use crate::io::{TaskClass, directory, now, sleep, spawn, wall_clock};

async fn filled(path: &'static str) -> File {
    let options = OpenOptions {
        write: true,
        create: true,
        direct: true,
        ..OpenOptions::default()
    };
    let file = File::open(Path::new(path), options).await.expect("open");
    let mut buffer = AlignedBuffer::zeroed(8192);
    buffer.fill(7);
    let (written, _) = file.write_at(0, buffer, Durability::Stable).await;
    written.expect("write");
    directory::sync(Path::new("/")).await.expect("sync");
    file
}

#[test]
fn files_survive_the_process_and_the_power_when_flushed() {
    let disk = SimDisk::new(SimDiskOptions::default(), 1);
    let mut runtime = SimRuntime::new(&disk, 1);
    let kept = runtime.block_on(filled("/a")).expect("no crash");
    drop(runtime);
    assert_eq!(disk.open_count(), 0);
    drop(kept);
    disk.power_cut(1);
    let mut runtime = SimRuntime::new(&disk, 2);
    let read = async {
        let options = OpenOptions::default();
        let file = File::open(Path::new("/a"), options).await.expect("open");
        let (read, buffer) = file.read_at(4096, AlignedBuffer::zeroed(8192)).await;
        (read.expect("read"), buffer[0])
    };
    assert_eq!(runtime.block_on(read), Ok((4096, 7)));
}

#[test]
fn time_moves_by_timers_and_operations_alone() {
    let disk = SimDisk::new(SimDiskOptions::default(), 1);
    let mut runtime = SimRuntime::new(&disk, 1);
    let real = std::time::Instant::now();
    let slept = runtime.block_on(async {
        let (before, wall) = (now(), wall_clock());
        let other = spawn(TaskClass::Background, sleep(Duration::from_secs(30)));
        sleep(Duration::from_secs(3_600)).await;
        other.await;
        (now().since(before), wall_clock().0 - wall.0)
    });
    let (slept, wall) = slept.expect("no crash");
    assert!(slept >= Duration::from_secs(3_600) && slept < Duration::from_secs(3_601));
    assert!((3_600_000..3_601_000).contains(&wall));
    assert!(real.elapsed() < Duration::from_secs(60));
}

#[test]
fn a_crash_ends_the_process_between_two_steps() {
    for steps in 1..8 {
        let disk = SimDisk::new(SimDiskOptions::default(), steps);
        let mut runtime = SimRuntime::new(&disk, steps);
        disk.crash_after(steps);
        let ended = runtime.block_on(filled("/a"));
        // Open, write, sync: each is submitted and takes effect.
        assert_eq!(ended.is_err(), steps <= 6, "{steps}");
        if ended.is_err() {
            assert_eq!(runtime.block_on(async {}), Err(Crashed));
        }
        drop(runtime);
        disk.kill(steps);
        let mut runtime = SimRuntime::new(&disk, steps);
        runtime.block_on(filled("/b")).expect("a new process");
    }
}

#[test]
fn locks_wait_for_a_dead_process() {
    let disk = SimDisk::new(SimDiskOptions::default(), 3);
    let mut runtime = SimRuntime::new(&disk, 3);
    let life = async {
        let file = filled("/a").await;
        file.lock_exclusive(Duration::ZERO).await.expect("free");
        disk.crash_after(4);
        for block in 0..8 {
            let file = file.clone();
            spawn(TaskClass::Produce, async move {
                let buffer = AlignedBuffer::zeroed(4096);
                file.write_at(block * 4096, buffer, Durability::Written)
                    .await
            });
        }
        sleep(Duration::from_secs(1)).await;
    };
    assert_eq!(runtime.block_on(life), Err(Crashed));
    drop(runtime);
    disk.kill(3);
    let mut runtime = SimRuntime::new(&disk, 4);
    let waited = runtime.block_on(async {
        let options = OpenOptions {
            write: true,
            ..OpenOptions::default()
        };
        let file = File::open(Path::new("/a"), options).await.expect("open");
        let before = now();
        let limit = Duration::from_secs(5);
        file.lock_exclusive(limit).await.expect("released");
        now().since(before)
    });
    assert!(waited.expect("no crash") > Duration::from_millis(1));
}
