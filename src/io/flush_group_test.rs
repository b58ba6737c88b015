use std::rc::Rc;

use super::*;
use crate::io::sim::{Fault, FaultEffect, OperationKind, SimDisk, SimDiskOptions, SimRuntime};
use crate::io::{AlignedBuffer, Durability, TaskClass, spawn};

async fn open_group() -> FlushGroup {
    directory::create_all(Path::new("/data")).await.unwrap();
    directory::sync(Path::new("/")).await.unwrap();
    FlushGroup::open(Path::new("/data/.lock")).await.unwrap()
}

async fn write_many(count: usize) -> (Rc<FlushGroup>, Vec<io::Result<()>>) {
    let group = Rc::new(open_group().await);
    let write = |number: usize| {
        let group = Rc::clone(&group);
        spawn(TaskClass::Background, async move {
            let path = PathBuf::from(format!("/data/{number}"));
            group.write_file(&path, b"whole").await
        })
    };
    let tasks: Vec<_> = (0..count).map(write).collect();
    let mut outcomes = Vec::new();
    for task in tasks {
        outcomes.push(task.await);
    }
    (group, outcomes)
}

async fn whole_files(count: usize) -> usize {
    let mut whole = 0;
    for number in 0..count {
        let path = PathBuf::from(format!("/data/{number}"));
        let read = directory::read_file(&path, 100).await;
        whole += usize::from(read.is_ok_and(|bytes| bytes == b"whole"));
    }
    whole
}

/// The limit and one past it: up to it nobody flushes the file system. The one past it takes
/// three rounds: its bytes; then the names of the others, who were done with their bytes meanwhile;
/// then its own name, which it has put in place while that round was under way.
#[test]
fn what_was_answered_survives_a_power_cut_with_few_rounds() {
    for (count, rounds_max) in [(1, 0), (FLUSHES_ALONE_MAX, 0), (FLUSHES_ALONE_MAX + 1, 3)] {
        let disk = SimDisk::new(SimDiskOptions::default(), 7);
        let rounds = SimRuntime::new(&disk, 7).block_on(async move {
            let (group, outcomes) = write_many(count).await;
            assert!(outcomes.iter().all(Result::is_ok));
            group.rounds()
        });
        let rounds = rounds.unwrap();
        assert!(rounds <= rounds_max, "{count} files took {rounds} rounds");
        assert_eq!(
            rounds > 0,
            rounds_max > 0,
            "{count} files took {rounds} rounds"
        );
        disk.power_cut(9);
        let whole = SimRuntime::new(&disk, 8).block_on(whole_files(count));
        assert_eq!(whole.unwrap(), count);
    }
}

#[test]
fn hundreds_of_files_take_a_handful_of_rounds() {
    let disk = SimDisk::new(SimDiskOptions::default(), 3);
    let rounds = SimRuntime::new(&disk, 3).block_on(async {
        let (group, outcomes) = write_many(500).await;
        assert!(outcomes.iter().all(Result::is_ok));
        group.rounds()
    });
    let rounds = rounds.unwrap();
    assert!((1..=8).contains(&rounds), "{rounds}");
    disk.power_cut(9);
    let whole = SimRuntime::new(&disk, 4).block_on(whole_files(500));
    assert_eq!(whole.unwrap(), 500);
}

fn fail_next(disk: &SimDisk, kind: OperationKind, path_part: &str) {
    disk.arm(Fault {
        kind,
        path_part: path_part.to_owned(),
        skip: 0,
        count: 1,
        effect: FaultEffect::Eio,
    });
}

/// A file that holds a block which nobody has flushed.
async fn written(path: &str) -> File {
    let options = OpenOptions {
        write: true,
        create: true,
        ..OpenOptions::default()
    };
    let file = File::open(Path::new(path), options).await.unwrap();
    let mut block = AlignedBuffer::zeroed(4096);
    block.fill(7);
    file.write_at(0, block, Durability::Written)
        .await
        .0
        .unwrap();
    file
}

/// Flushes of all these files at once.
async fn flush_many(group: &Rc<FlushGroup>, files: Vec<File>) -> Vec<io::Result<()>> {
    let flush = |file: File| {
        let group = Rc::clone(group);
        let flushing = async move { group.file(&file).await };
        spawn(TaskClass::Background, flushing)
    };
    let tasks: Vec<_> = files.into_iter().map(flush).collect();
    let mut outcomes = Vec::new();
    for task in tasks {
        outcomes.push(task.await);
    }
    outcomes
}

/// A round that fails may have lost what its callers wrote: each hears that of its own file, and
/// those who hear nothing have lost nothing.
#[test]
fn a_failed_round_fails_for_those_whose_files_lost_something() {
    let mut whole = 0;
    for seed in 0..20 {
        let disk = SimDisk::new(SimDiskOptions::default(), seed);
        let armed = disk.clone();
        let ran = SimRuntime::new(&disk, seed).block_on(async move {
            let group = Rc::new(open_group().await);
            let mut files = Vec::new();
            for number in 0..40 {
                files.push(written(&format!("/data/{number}")).await);
            }
            directory::sync(Path::new("/data")).await.unwrap();
            fail_next(&armed, OperationKind::SyncFilesystem, "");
            let outcomes = flush_many(&group, files).await;
            assert_eq!(group.rounds(), 1);
            outcomes
        });
        let outcomes = ran.unwrap();
        assert!(outcomes.iter().any(Result::is_err));
        disk.power_cut(seed);
        for (number, outcome) in outcomes.iter().enumerate() {
            if outcome.is_ok() {
                whole += 1;
                let path = format!("/data/{number}");
                assert_eq!(disk.contents(&path).unwrap(), [7; 4096]);
            }
        }
    }
    assert!(whole > 0);
}

/// The flush of a file failed for a process that is gone, and only that process was told: the next
/// one's first round fails, and nothing of the next one is lost.
#[test]
fn what_failed_for_a_process_that_is_gone_fails_for_nobody_later() {
    let disk = SimDisk::new(SimDiskOptions::default(), 4);
    let armed = disk.clone();
    let gone = SimRuntime::new(&disk, 4).block_on(async move {
        let _group = open_group().await;
        let file = written("/data/file").await;
        fail_next(&armed, OperationKind::Flush, "file");
        file.sync_all().await.unwrap_err();
    });
    gone.unwrap();
    let next = SimRuntime::new(&disk, 5).block_on(async {
        let (group, outcomes) = write_many(40).await;
        assert!(outcomes.iter().all(Result::is_ok), "{outcomes:?}");
        assert_eq!(group.rounds(), 1, "the round that failed");
    });
    next.unwrap();
    disk.power_cut(9);
    let whole = SimRuntime::new(&disk, 6).block_on(whole_files(40));
    assert_eq!(whole.unwrap(), 40);
}

/// The kernel tells each descriptor of a file what the file lost, but a program that flushes the
/// file system only once: whoever asks late must not take part in a round.
#[test]
fn after_a_failed_round_each_flushes_its_own_file_and_hears_of_it() {
    for seed in 0..50 {
        let disk = SimDisk::new(SimDiskOptions::default(), seed);
        let armed = disk.clone();
        let ran = SimRuntime::new(&disk, seed).block_on(async move {
            let group = open_group().await;
            let lost = written("/data/lost").await;
            fail_next(&armed, OperationKind::SyncFilesystem, "");
            assert_eq!(group.everything().await, Flushed::Nothing);
            assert_eq!(group.everything().await, Flushed::Nothing);
            group.file(&lost).await.unwrap_err();
            let kept = written("/data/kept").await;
            group.file(&kept).await.unwrap();
            group.names(Path::new("/data")).await.unwrap();
            assert_eq!(group.rounds(), 1);
        });
        ran.unwrap();
        disk.power_cut(seed);
        assert_eq!(disk.contents("/data/kept").unwrap(), [7; 4096]);
    }
}

/// Another shard's round, or an operator's `sync -f`, may be told first.
#[test]
fn a_group_hears_what_others_were_told_before_it() {
    let disk = SimDisk::new(SimDiskOptions::default(), 1);
    let armed = disk.clone();
    let ran = SimRuntime::new(&disk, 1).block_on(async move {
        let group = open_group().await;
        let other = FlushGroup::open(Path::new("/data/.lock")).await.unwrap();
        let file = written("/data/file").await;
        fail_next(&armed, OperationKind::Flush, "file");
        file.sync_all().await.unwrap_err();
        assert_eq!(other.everything().await, Flushed::Nothing);
        let late = FlushGroup::open(Path::new("/data/.lock")).await.unwrap();
        assert_eq!(late.everything().await, Flushed::Everything);
        assert_eq!(group.everything().await, Flushed::Nothing);
    });
    ran.unwrap();
}

/// A failed flush of one file: the file system would tell it again in a round, to others.
#[test]
fn a_failed_flush_of_one_file_fails_for_no_other() {
    let disk = SimDisk::new(SimDiskOptions::default(), 2);
    let armed = disk.clone();
    let ran = SimRuntime::new(&disk, 2).block_on(async move {
        let group = open_group().await;
        let (bad, good) = (written("/data/bad").await, written("/data/good").await);
        fail_next(&armed, OperationKind::Flush, "bad");
        group.file(&bad).await.unwrap_err();
        group.file(&good).await.unwrap();
        assert_eq!(group.everything().await, Flushed::Nothing);
    });
    ran.unwrap();
}

/// The leader of a round goes away while the kernel flushes: what the kernel says is said once and
/// to nobody, so whoever waits for that round flushes what it wrote itself.
#[test]
fn a_round_whose_leader_went_away_is_a_failed_one() {
    let disk = SimDisk::new(SimDiskOptions::default(), 3);
    let ran = SimRuntime::new(&disk, 3).block_on(async move {
        let group = Rc::new(open_group().await);
        let mut leader = Box::pin(group.everything());
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        for _ in 0..2 {
            assert!(leader.as_mut().poll(&mut context).is_pending());
            yield_now().await;
        }
        let follower = Rc::clone(&group);
        let follower = spawn(
            TaskClass::Background,
            async move { follower.everything().await },
        );
        yield_now().await;
        drop(leader);
        assert_eq!(follower.await, Flushed::Nothing);
        assert_eq!(group.everything().await, Flushed::Nothing);
    });
    ran.unwrap();
}
