//! Files of a directory that was closed in order, emptied or taken away: each is named.

use std::path::Path;

use super::verify_test::{closed_life, files, verify_disk};
use crate::io;
use crate::io::sim::{SimDisk, SimRuntime};

fn write(disk: &SimDisk, path: &str, bytes: &[u8]) {
    let (path, bytes) = (Path::new(path).to_owned(), bytes.to_owned());
    let written = SimRuntime::new(disk, 0).block_on(async move {
        let written = io::directory::write_file_durably(&path, &bytes).await;
        written.unwrap();
    });
    written.unwrap();
}

fn remove(disk: &SimDisk, path: &str) {
    let path = Path::new(path).to_owned();
    let removed = SimRuntime::new(disk, 0).block_on(async move {
        io::directory::remove_file(&path).await.unwrap();
    });
    removed.unwrap();
}

/// Kafka's lock, and what says something of a killed life alone.
fn says_nothing(path: &str) -> bool {
    [
        ".lock",
        "coreline-journal",
        "coreline-retired",
        "coreline-ring",
    ]
    .iter()
    .any(|part| path.contains(part))
}

#[test]
fn each_file_that_was_emptied_is_named() {
    let disk = closed_life(5, 60);
    assert_eq!(
        verify_disk(&disk, 0).problems(),
        Vec::<&super::Problem>::new()
    );
    let before = files(&disk);
    let mut kinds = std::collections::BTreeSet::new();
    for (path, bytes) in &before {
        if bytes.is_empty() || says_nothing(path) {
            continue;
        }
        write(&disk, path, b"");
        let verified = verify_disk(&disk, 0);
        let folder = Path::new(path).parent().unwrap().display().to_string();
        let is_epochs = path.ends_with("leader-epoch-checkpoint");
        // Epochs are told where the first batch contradicts them.
        let is_told = verified.names(path) || (is_epochs && names_within(&verified, &folder));
        assert!(is_told, "{path}: {:?}", verified.problems());
        assert!(!verified.problems().is_empty(), "{path}");
        write(&disk, path, bytes);
        kinds.insert(path.rsplit(['.', '/']).next().unwrap().to_owned());
    }
    assert!(kinds.len() >= 10, "{kinds:?}");
    assert_eq!(
        verify_disk(&disk, 0).problems(),
        Vec::<&super::Problem>::new()
    );
}

fn names_within(verified: &super::verify_test::Verified, folder: &str) -> bool {
    let is_within = |problem: &&super::Problem| problem.file.starts_with(folder);
    verified.problems().iter().any(is_within)
}

#[test]
fn each_flipped_bit_of_the_indexes_checksums_is_named() {
    let disk = closed_life(6, 60);
    let of_kind: Vec<_> = files(&disk)
        .into_iter()
        .filter(|(path, _)| path.ends_with(".coreline-indexes"))
        .collect();
    assert!(of_kind.len() > 3);
    for (number, (path, bytes)) in of_kind.iter().enumerate() {
        for place in (number % 4..bytes.len()).step_by(4) {
            disk.flip_bit(path, place as u64, place as u32 % 8).unwrap();
            let verified = verify_disk(&disk, 0);
            assert!(verified.names(path), "{path} at {place}");
            disk.flip_bit(path, place as u64, place as u32 % 8).unwrap();
        }
    }
}

/// Without checksums beside them, as Apache Kafka leaves them.
#[test]
fn an_emptied_time_index_without_checksums_is_named_too() {
    let disk = closed_life(7, 60);
    let before = files(&disk);
    let mut emptied = 0;
    for path in before
        .keys()
        .filter(|path| path.ends_with(".coreline-indexes"))
    {
        remove(&disk, path);
    }
    assert_eq!(
        verify_disk(&disk, 0).problems(),
        Vec::<&super::Problem>::new()
    );
    for (path, bytes) in before
        .iter()
        .filter(|(path, _)| path.ends_with(".timeindex"))
    {
        if bytes.is_empty() {
            continue;
        }
        write(&disk, path, b"");
        assert!(verify_disk(&disk, 0).names(path), "{path}");
        write(&disk, path, bytes);
        emptied += 1;
    }
    assert!(emptied > 3, "{emptied}");
}

#[test]
fn checkpoints_that_a_clean_shutdown_writes_are_missed() {
    let disk = closed_life(8, 20);
    for name in [
        "recovery-point-offset-checkpoint",
        "log-start-offset-checkpoint",
    ] {
        let path = format!("{}/{name}", super::verify_test::DIRECTORY);
        let bytes = disk.contents(&path).unwrap();
        remove(&disk, &path);
        assert!(verify_disk(&disk, 0).names(&path), "{name}");
        write(&disk, &path, &bytes);
    }
    assert_eq!(
        verify_disk(&disk, 0).problems(),
        Vec::<&super::Problem>::new()
    );
}
