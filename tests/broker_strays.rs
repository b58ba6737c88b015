//! Folders that a deleted topic, or a crash, has left in the data directory.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod broker;

use std::path::Path;

use broker::{Harness, HarnessOptions};
use coreline::base::ids::Uuid;
use coreline::log::format::file_names::PARTITION_METADATA;
use coreline::log::format::partition_metadata;

fn names(folder: &Path, with: &str) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<_> = names.filter(|name| name.contains(with)).collect();
    names.sort();
    names
}

fn put_folder(folder: &Path, name: &str, topic_id: Uuid) {
    std::fs::create_dir(folder.join(name)).unwrap();
    let metadata = partition_metadata::encode(topic_id);
    std::fs::write(folder.join(name).join(PARTITION_METADATA), metadata).unwrap();
}

#[test]
fn strays_are_renamed_and_kept_and_the_own_folders_are_not() {
    let options = HarnessOptions::default();
    let mut harness = Harness::start(options.clone());
    let own = harness.create_topic("own", 2);
    harness.restart_after(&options, |folder| {
        put_folder(folder, "gone-0", Uuid([9; 16]));
        put_folder(folder, "own-7", own);
        std::fs::remove_dir_all(folder.join("own-1")).unwrap();
        put_folder(folder, "own-1", Uuid([8; 16]));
        std::fs::create_dir(folder.join("begun-3")).unwrap();
        std::fs::create_dir(folder.join("begun-4")).unwrap();
        std::fs::write(folder.join("begun-4/partition.metadata.tmp"), "v").unwrap();
        std::fs::create_dir(folder.join("not a partition")).unwrap();
    });
    harness.restart_after(&options, |folder| {
        assert_eq!(names(folder, "begun"), [""; 0], "nothing was in them");
        assert_eq!(names(folder, "not a"), ["not a partition"]);
        let strays = names(folder, "-stray");
        for (name, start) in strays.iter().zip(["gone-0.", "own-1.", "own-7."]) {
            assert!(
                name.starts_with(start) && name.ends_with("-stray"),
                "{name}"
            );
            assert!(folder.join(name).join(PARTITION_METADATA).exists());
        }
        assert_eq!(strays.len(), 3, "{strays:?}");
        assert_eq!(
            names(folder, "own-"),
            ["own-0", "own-1", &strays[1], &strays[2]]
        );
        let metadata = std::fs::read(folder.join("own-1").join(PARTITION_METADATA)).unwrap();
        assert_eq!(
            partition_metadata::decode(&metadata).unwrap(),
            own,
            "made anew"
        );
    });
}
