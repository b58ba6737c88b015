//! What the simulated disk promises and what it takes away.

use std::collections::BTreeSet;
use std::io::{self, ErrorKind};
use std::time::Duration;

use super::driver::SimDriver;
use super::*;
use crate::io::buffer::AlignedBuffer;
use crate::io::driver::{
    Completion, DirectoryOperation, Driver, Handle, Operation, OperationId, Wait,
};
use crate::io::file::{Durability, OpenOptions};

const SEEDS: u64 = 200;

struct Process {
    driver: SimDriver,
}

impl Process {
    fn new(disk: &SimDisk) -> Self {
        Self {
            driver: SimDriver::new(disk),
        }
    }

    fn run(&mut self, operation: Operation) -> Completion {
        self.driver.submit(OperationId(0), operation);
        let mut completed = Vec::new();
        while completed.is_empty() {
            self.driver.turn(Wait::Forever, &mut completed);
        }
        completed.remove(0).1
    }

    fn done(&mut self, operation: Operation) -> io::Result<()> {
        match self.run(operation) {
            Completion::Done(answer) | Completion::Written(answer, _) => answer,
            other => panic!("{other:?}"),
        }
    }

    fn open(&mut self, path: &str) -> Handle {
        let options = OpenOptions {
            write: true,
            create: true,
            ..OpenOptions::default()
        };
        let path = path.into();
        match self.run(Operation::Open { path, options }) {
            Completion::Opened(Ok(opened)) => opened.handle,
            other => panic!("{other:?}"),
        }
    }

    fn write(&mut self, file: Handle, position: u64, fill: u8, len: usize) -> io::Result<()> {
        self.done(write(file, position, fill, len, Durability::Written))
    }

    fn write_stable(&mut self, file: Handle, position: u64, fill: u8, len: usize) {
        let operation = write(file, position, fill, len, Durability::Stable);
        self.done(operation).expect("a stable write");
    }

    fn sync(&mut self, file: Handle) -> io::Result<()> {
        let metadata = false;
        self.done(Operation::Sync { file, metadata })
    }

    fn names(&mut self, operation: DirectoryOperation) {
        self.done(Operation::Directory(operation)).expect("names");
    }

    fn sync_root(&mut self) {
        self.names(DirectoryOperation::Sync("/".into()));
    }

    fn preallocate(&mut self, file: Handle, len: u64) -> io::Result<()> {
        let position = 0;
        self.done(Operation::Preallocate {
            file,
            position,
            len,
        })
    }
}

fn write(file: Handle, position: u64, fill: u8, len: usize, durability: Durability) -> Operation {
    let mut buffer = AlignedBuffer::zeroed(len);
    buffer.fill(fill);
    Operation::Write {
        file,
        position,
        buffer,
        durability,
    }
}

fn disk(seed: u64) -> SimDisk {
    let options = SimDiskOptions {
        total_bytes: 1 << 20,
        ..SimDiskOptions::default()
    };
    SimDisk::new(options, seed)
}

/// A disk with the durable, empty file `/a`.
fn with_file(seed: u64) -> (SimDisk, Process, Handle) {
    let disk = disk(seed);
    let mut process = Process::new(&disk);
    let file = process.open("/a");
    process.sync(file).expect("sync");
    process.sync_root();
    (disk, process, file)
}

/// What each sector of `/a` holds; every sector must be of one value.
fn sectors(disk: &SimDisk) -> Vec<u8> {
    let bytes = disk.contents("/a").expect("the file is there");
    bytes
        .chunks(512)
        .map(|sector| {
            assert!(
                sector.iter().all(|byte| *byte == sector[0]),
                "a torn sector"
            );
            sector[0]
        })
        .collect()
}

#[test]
fn an_unflushed_write_is_kept_lost_or_torn_at_sectors() {
    let (mut kept, mut lost, mut torn, mut short) = (0, 0, 0, 0);
    for seed in 0..SEEDS {
        let (disk, mut process, file) = with_file(seed);
        process.write_stable(file, 0, 1, 8192);
        process.write(file, 4096, 2, 8192).expect("write");
        disk.power_cut(seed);
        let found = sectors(&disk);
        assert_eq!(&found[..8], &[1; 8], "what was stable stays");
        assert!(found[8..16].iter().all(|value| [1, 2].contains(value)));
        assert!(found[16..].iter().all(|value| [0, 2].contains(value)));
        short += u64::from(found.len() == 16);
        match found[8..].iter().filter(|value| **value == 2).count() {
            16 => kept += 1,
            0 => lost += 1,
            _ => torn += 1,
        }
    }
    assert!(kept > 20 && lost > 20 && torn > 20 && short > 20);
}

#[test]
fn flushes_keep_what_was_complete_before_them() {
    for seed in 0..SEEDS {
        let (disk, mut process, file) = with_file(seed);
        process.write(file, 0, 1, 4096).expect("write");
        process.sync(file).expect("sync");
        process.write(file, 4096, 2, 4096).expect("write");
        process
            .done(Operation::SyncFilesystem { file })
            .expect("syncfs");
        process.write_stable(file, 8192, 3, 4096);
        disk.power_cut(seed);
        assert_eq!(sectors(&disk), [[1; 8], [2; 8], [3; 8]].concat());
    }
}

/// syncfs promises what was there when it was called, nothing that came meanwhile.
#[test]
fn a_flush_of_the_file_system_keeps_no_write_that_came_after_its_call() {
    let mut lost = 0;
    for seed in 0..SEEDS {
        let (disk, mut process, file) = with_file(seed);
        process.write(file, 0, 1, 4096).expect("write");
        let flush = Operation::SyncFilesystem { file };
        process.driver.submit(OperationId(1), flush);
        let later = write(file, 4096, 2, 4096, Durability::Written);
        process.driver.submit(OperationId(2), later);
        let mut completed = Vec::new();
        while completed.len() < 2 {
            process.driver.turn(Wait::Forever, &mut completed);
        }
        disk.power_cut(seed);
        let found = sectors(&disk);
        assert_eq!(&found[..8], &[1; 8]);
        lost += u64::from(!found[8..].contains(&2));
    }
    assert!(lost > 20);
}

#[test]
fn a_stable_write_covers_an_earlier_one_and_keeps_no_other() {
    let mut lost = 0;
    for seed in 0..SEEDS {
        let (disk, mut process, file) = with_file(seed);
        process.write(file, 0, 1, 8192).expect("write");
        process.write_stable(file, 4096, 2, 4096);
        disk.power_cut(seed);
        let found = sectors(&disk);
        assert_eq!(&found[8..], &[2; 8]);
        lost += u64::from(found[..8] == [0; 8]);
    }
    assert!(lost > 20);
}

#[test]
fn cuts_and_preallocations_are_lost_unless_flushed() {
    let (mut cut, mut reserved) = (0, 0);
    for seed in 0..SEEDS {
        let (disk, mut process, file) = with_file(seed);
        process.write_stable(file, 0, 1, 8192);
        let before = disk.available_bytes();
        let len = 4096;
        process
            .done(Operation::Truncate { file, len })
            .expect("truncate");
        process.preallocate(file, 65_536).expect("preallocate");
        disk.power_cut(seed);
        cut += u64::from(sectors(&disk).len() == 8);
        reserved += u64::from(disk.available_bytes() < before);

        let mut process = Process::new(&disk);
        let file = process.open("/a");
        process
            .done(Operation::Truncate { file, len })
            .expect("truncate");
        process.preallocate(file, 65_536).expect("preallocate");
        process.sync(file).expect("sync");
        disk.power_cut(seed);
        assert_eq!(sectors(&disk).len(), 8);
        assert_eq!(disk.available_bytes(), before + 8192 - 65_536);
    }
    assert!(cut > 20 && cut < SEEDS - 20 && reserved > 20 && reserved < SEEDS - 20);
}

#[test]
fn a_file_that_grows_over_a_cut_reads_zeros() {
    let (disk, mut process, file) = with_file(1);
    process.write_stable(file, 0, 1, 8192);
    let len = 512;
    process
        .done(Operation::Truncate { file, len })
        .expect("truncate");
    process.write_stable(file, 4096, 2, 512);
    let expected = [vec![1], vec![0; 7], vec![2]].concat();
    assert_eq!(sectors(&disk), expected);
}

#[test]
fn names_are_lost_one_by_one_unless_their_directory_is_flushed() {
    let mut seen = BTreeSet::new();
    for seed in 0..SEEDS {
        let disk = disk(seed);
        let mut process = Process::new(&disk);
        process.names(DirectoryOperation::CreateAll("/d/e".into()));
        let file = process.open("/d/e/x");
        process.sync(file).expect("sync");
        process.names(DirectoryOperation::Sync("/d/e".into()));
        process.open("/y");
        disk.power_cut(seed);
        let at_root: Vec<String> = disk.list("/").unwrap().into_iter().map(|n| n.0).collect();
        if let Ok(names) = disk.list("/d/e") {
            assert_eq!(
                names,
                [("x".to_owned(), false)],
                "its directory was flushed"
            );
        }
        seen.insert(at_root.join(","));

        let mut process = Process::new(&disk);
        process.names(DirectoryOperation::CreateAll("/f".into()));
        process.sync_root();
        disk.power_cut(seed);
        assert!(disk.list("/f").is_ok());
    }
    let expected = ["", "d", "d,y", "y"].map(str::to_owned);
    assert_eq!(seen, BTreeSet::from(expected));
}

#[test]
fn a_rename_is_one_change() {
    let mut seen = BTreeSet::new();
    for seed in 0..SEEDS {
        let (disk, mut process, file) = with_file(seed);
        process.write_stable(file, 0, 7, 512);
        let (from, to) = ("/a".into(), "/b".into());
        process.names(DirectoryOperation::Rename { from, to });
        disk.power_cut(seed);
        let names = disk.list("/").expect("the root");
        assert_eq!(names.len(), 1);
        let path = format!("/{}", names[0].0);
        assert_eq!(disk.contents(&path).expect("contents"), [7; 512]);
        seen.insert(path);
    }
    assert_eq!(seen.len(), 2);
}

#[test]
fn a_full_disk_refuses_new_blocks_only() {
    let (disk, mut process, file) = with_file(3);
    process.preallocate(file, 8192).expect("preallocate");
    disk.leave_available(Some(4096));
    process.write(file, 0, 1, 8192).expect("preallocated");
    let full = process.write(file, 8192, 1, 8192).expect_err("no room");
    assert_eq!(full.kind(), ErrorKind::StorageFull);
    process.write(file, 8192, 1, 4096).expect("the last block");
    let full = process.preallocate(file, 16_384).expect_err("no room");
    assert_eq!(full.kind(), ErrorKind::StorageFull);
    let options = OpenOptions {
        write: true,
        create: true,
        ..OpenOptions::default()
    };
    let path = "/b".into();
    let Completion::Opened(Err(full)) = process.run(Operation::Open { path, options }) else {
        panic!("a file was created without room");
    };
    assert_eq!(full.kind(), ErrorKind::StorageFull);
    disk.leave_available(None);
    process.write(file, 12_288, 1, 4096).expect("room again");
}

#[test]
fn a_failed_flush_forgets_what_it_should_have_written() {
    let mut lost = 0;
    for seed in 0..SEEDS {
        let (disk, mut process, file) = with_file(seed);
        process.write(file, 0, 1, 4096).expect("write");
        disk.arm(Fault {
            kind: OperationKind::Flush,
            path_part: "/a".into(),
            skip: 0,
            count: 1,
            effect: FaultEffect::Eio,
        });
        process.sync(file).expect_err("EIO");
        process.sync(file).expect("the pages count as clean");
        assert_eq!(sectors(&disk), [1; 8], "a reader still sees them");
        disk.power_cut(seed);
        lost += u64::from(sectors(&disk) != [1; 8]);
    }
    assert!(lost > 20);
}

#[test]
fn a_short_write_is_continued_and_a_crash_may_find_its_start() {
    for seed in 0..20 {
        let (disk, mut process, file) = with_file(seed);
        disk.arm(Fault {
            kind: OperationKind::Write,
            path_part: String::new(),
            skip: 0,
            count: 1,
            effect: FaultEffect::Short,
        });
        process.write_stable(file, 0, 1, 65_536);
        assert_eq!(disk.fault_hits(), 1);
        assert_eq!(sectors(&disk), [1; 128]);
    }
}

/// A write is under way when its process is killed; the next process looks at once and after
/// taking the lock.
fn killed_write(seed: u64) -> (bool, bool) {
    let (disk, mut process, file) = with_file(seed);
    process.done(Operation::TryLock { file }).expect("free");
    process.write_stable(file, 0, 1, 4096);
    disk.crash_after(2);
    let operation = write(file, 0, 2, 4096, Durability::Written);
    process.driver.submit(OperationId(1), operation);
    let unwound = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        process.driver.turn(Wait::Forever, &mut Vec::new());
    }));
    assert!(unwound.is_err() && disk.has_crashed());
    disk.kill(seed);
    let at_once = sectors(&disk)[0] == 2;
    let mut process = Process::new(&disk);
    let file = process.open("/a");
    let mut waits = 0;
    while process.done(Operation::TryLock { file }).is_err() {
        disk.pass_time(Duration::from_millis(1));
        waits += 1;
        assert!(waits < 60, "the lock is never released");
    }
    let locked = sectors(&disk)[0] == 2;
    disk.pass_time(Duration::from_secs(1));
    assert_eq!(
        sectors(&disk)[0] == 2,
        locked,
        "a write landed behind the lock"
    );
    (at_once, locked)
}

#[test]
fn what_a_killed_process_had_under_way_lands_late_but_not_behind_its_lock() {
    let (mut late, mut never) = (0, 0);
    for seed in 0..SEEDS {
        match killed_write(seed) {
            (false, true) => late += 1,
            (false, false) => never += 1,
            (true, _) => panic!("the write was not under way"),
        }
    }
    assert!(late > 20 && never > 20);
}

#[test]
fn damage_reaches_readers_and_storage() {
    let (disk, mut process, file) = with_file(5);
    process.write_stable(file, 0, 1, 8192);
    disk.flip_bit("/a", 4_100, 1).expect("flip");
    disk.zero_block("/a", 100).expect("zero");
    assert_eq!(disk.contents("/a").expect("contents")[4_100], 3);
    disk.power_cut(0);
    let bytes = disk.contents("/a").expect("contents");
    assert_eq!(bytes[4_100], 3);
    assert_eq!(&bytes[..4096], &[0; 4096]);
}

#[test]
fn equal_seeds_give_equal_traces() {
    let trace = |seed| {
        let (disk, mut process, file) = with_file(seed);
        for number in 0..20u8 {
            process
                .write(file, u64::from(number) * 512, number, 512)
                .expect("write");
        }
        disk.power_cut(seed);
        (disk.trace_hash(), disk.contents("/a").expect("contents"))
    };
    assert_eq!(trace(9), trace(9));
    assert_ne!(trace(9).0, trace(10).0);
}

#[test]
fn direct_descriptors_refuse_what_is_not_aligned() {
    let (disk, mut process, _) = with_file(1);
    let options = OpenOptions {
        write: true,
        direct: true,
        ..OpenOptions::default()
    };
    let path = "/a".into();
    let Completion::Opened(Ok(opened)) = process.run(Operation::Open { path, options }) else {
        panic!("the file is there");
    };
    let refused = process.write(opened.handle, 512, 1, 4096).expect_err("512");
    assert_eq!(refused.kind(), ErrorKind::InvalidInput);
    process
        .write(opened.handle, 4096, 1, 4096)
        .expect("aligned");
    assert_eq!(sectors(&disk).len(), 16);
}
