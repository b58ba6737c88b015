use super::*;
use crate::io::sim::{SimDisk, SimDiskOptions, SimRuntime};

async fn load(
    folders: &[&Path],
    node_id: BrokerId,
    random: &mut Random,
) -> Result<NodeIdentity, IdentityError> {
    let folders: Vec<PathBuf> = folders.iter().map(|folder| folder.to_path_buf()).collect();
    load_or_create(&folders, node_id, random).await
}

#[test]
fn an_identity_is_made_once_and_kept() {
    let disk = SimDisk::new(SimDiskOptions::default(), 1);
    let mut runtime = SimRuntime::new(&disk, 1);
    let lives = runtime.block_on(async {
        let folder = Path::new("/data");
        directory::create_all(folder).await.unwrap();
        let first = load(&[folder], BrokerId(3), &mut Random::new(1)).await;
        let second = load(&[folder], BrokerId(3), &mut Random::new(2)).await;
        let other = load(&[folder], BrokerId(4), &mut Random::new(2)).await;
        (first.unwrap(), second.unwrap(), other.unwrap_err())
    });
    let (first, second, other) = lives.unwrap();
    assert_eq!(first, second);
    assert!(!first.directory_ids[Path::new("/data")].is_reserved());
    assert_eq!(
        Uuid::parse(&first.cluster_id).unwrap().to_string(),
        first.cluster_id
    );
    let told = other.to_string();
    assert!(
        told.contains("Stored node id 3 doesn't match previous node id 4 in /data/meta.properties"),
        "{told}"
    );
}

/// As Kafka, which would not know either whose data it is.
#[test]
fn data_without_an_identity_is_refused() {
    for name in [
        "__cluster_metadata-0",
        "topic-7",
        "topic-7.0123-delete",
        "notes",
    ] {
        let disk = SimDisk::new(SimDiskOptions::default(), 1);
        let made = SimRuntime::new(&disk, 1).block_on(async move {
            let folder = Path::new("/data");
            directory::create_all(&folder.join(name)).await.unwrap();
            load(&[folder], BrokerId(3), &mut Random::new(1)).await
        });
        let is_data = ["__cluster_metadata-0", "topic-7"].contains(&name);
        match made.unwrap() {
            Ok(_) => assert!(!is_data, "{name}"),
            Err(refused) => {
                let told = refused.to_string();
                assert!(is_data && told.contains(name), "{told}");
                assert!(told.contains("node.id=3"), "{told}");
                assert!(disk.contents("/data/meta.properties").is_err());
            }
        }
    }
}

#[test]
fn a_directory_of_an_older_kafka_gets_an_id() {
    let disk = SimDisk::new(SimDiskOptions::default(), 1);
    let mut runtime = SimRuntime::new(&disk, 1);
    let lives = runtime.block_on(async {
        let folder = Path::new("/data");
        directory::create_all(folder).await.unwrap();
        let path = folder.join(META_PROPERTIES_FILE);
        let text = b"#\n#Mon Nov 30 01:11:16 UTC 2026\nnode.id=1\nversion=1\ncluster.id=abc\n";
        directory::write_file_durably(&path, text).await.unwrap();
        let first = load(&[folder], BrokerId(1), &mut Random::new(1)).await;
        let second = load(&[folder], BrokerId(1), &mut Random::new(2)).await;
        directory::write_file_durably(&path, b"version=2\n")
            .await
            .unwrap();
        let bad = load(&[folder], BrokerId(1), &mut Random::new(2)).await;
        (first.unwrap(), second.unwrap(), bad.unwrap_err())
    });
    let (first, second, bad) = lives.unwrap();
    assert_eq!(first, second);
    assert_eq!(first.cluster_id, "abc");
    assert!(matches!(bad, IdentityError::Format { .. }));
}

/// The files of two directories, and what becomes of a start with both.
fn start_with(texts: [Option<&str>; 2]) -> Result<NodeIdentity, String> {
    let disk = SimDisk::new(SimDiskOptions::default(), 1);
    let texts = texts.map(|text| text.map(str::to_owned));
    let outcome = SimRuntime::new(&disk, 1).block_on(async move {
        let folders = [Path::new("/a"), Path::new("/b")];
        for (folder, text) in folders.iter().zip(texts) {
            directory::create_all(folder).await.unwrap();
            if let Some(text) = text {
                let path = folder.join(META_PROPERTIES_FILE);
                let written = directory::write_file_durably(&path, text.as_bytes());
                written.await.unwrap();
            }
        }
        let first = load(&folders, BrokerId(1), &mut Random::new(1)).await;
        if let Ok(first) = &first {
            let second = load(&folders, BrokerId(1), &mut Random::new(2)).await;
            assert_eq!(first, &second.unwrap(), "made once and kept");
        }
        first
    });
    outcome.unwrap().map_err(|refused| refused.to_string())
}

#[test]
fn directories_of_one_node_get_ids_of_their_own() {
    let one = "version=1\ncluster.id=c\nnode.id=1\ndirectory.id=CO2eMZDqTAqOEUQgFx5vrA\n";
    for texts in [[None, None], [Some(one), None], [None, Some(one)]] {
        let identity = start_with(texts).unwrap();
        assert!(identity.failed.is_empty());
        let ids: Vec<&Uuid> = identity.directory_ids.values().collect();
        assert!(ids.len() == 2 && ids[0] != ids[1], "{texts:?}");
        let is_known = texts.iter().any(Option::is_some);
        assert_eq!(identity.cluster_id == "c", is_known, "{texts:?}");
        for (id, text) in ids.into_iter().zip(texts) {
            let kept = id.to_string() == "CO2eMZDqTAqOEUQgFx5vrA";
            assert_eq!(kept, text.is_some(), "{texts:?}");
        }
    }
}

#[test]
fn directories_that_do_not_belong_together_are_refused_with_the_file() {
    let of = |cluster: &str, node: i32, directory: &str| {
        format!("version=1\ncluster.id={cluster}\nnode.id={node}\ndirectory.id={directory}\n")
    };
    let (x, y) = ("CO2eMZDqTAqOEUQgFx5vrA", "DO2eMZDqTAqOEUQgFx5vrA");
    let first = of("c", 1, x);
    for (second, refusal) in [
        (
            of("d", 1, y),
            "Invalid cluster.id in: /b/meta.properties. Expected c, but read d",
        ),
        (
            of("c", 2, y),
            "Stored node id 2 doesn't match previous node id 1 in /b/meta.properties: set \
             node.id=2, or log.dirs to another folder",
        ),
        (
            of("c", 1, x),
            "Duplicate directory ID CO2eMZDqTAqOEUQgFx5vrA found. It was the ID of /a, but also \
             of /b",
        ),
    ] {
        let told = start_with([Some(&first), Some(&second)]);
        assert_eq!(told.unwrap_err(), refusal);
    }
    assert!(start_with([Some(&first), Some(&of("c", 1, y))]).is_ok());
    let broken = start_with([Some(&first), Some("version=1\n")]).unwrap_err();
    assert!(
        broken.starts_with("/b/meta.properties is not understood"),
        "{broken}"
    );
}

/// An unreadable file takes its directory alone, unless the metadata log is there.
#[test]
fn a_directory_whose_file_cannot_be_read_is_left_out() {
    let disk = SimDisk::new(SimDiskOptions::default(), 1);
    let outcome = SimRuntime::new(&disk, 1).block_on(async move {
        let (whole, broken) = (Path::new("/a"), Path::new("/b"));
        directory::create_all(whole).await.unwrap();
        directory::create_all(&broken.join(META_PROPERTIES_FILE))
            .await
            .unwrap();
        let left_out = load(&[whole, broken], BrokerId(1), &mut Random::new(1)).await;
        let refused = load(&[broken, whole], BrokerId(1), &mut Random::new(1)).await;
        (left_out.unwrap(), refused.unwrap_err())
    });
    let (left_out, refused) = outcome.unwrap();
    assert_eq!(left_out.directory_ids.len(), 1);
    assert_eq!(left_out.failed[0].0, Path::new("/b"));
    assert!(matches!(refused, IdentityError::Io { .. }), "{refused}");
}

/// An empty folder where a directory with an id was is a disk that is not mounted, not a new one,
/// until it is formatted; one at a path that was never heard of is new.
#[test]
fn an_empty_folder_in_place_of_a_directory_is_left_out() {
    let disk = SimDisk::new(SimDiskOptions::default(), 1);
    let mut runtime = SimRuntime::new(&disk, 1);
    let done = runtime.block_on(async {
        let [a, b, c] = ["/a", "/b", "/c"].map(Path::new);
        for folder in [a, b, c] {
            directory::create_all(folder).await.unwrap();
        }
        let node = BrokerId(3);
        let random = &mut Random::new(1);
        let first = load(&[a, b], node, random).await.unwrap();
        assert_eq!((first.directory_ids.len(), first.failed.len()), (2, 0));
        let properties = b.join(META_PROPERTIES_FILE);
        directory::remove_file(&properties).await.unwrap();
        for _ in 0..2 {
            let without = load(&[a, b, c], node, random).await.unwrap();
            assert_eq!(without.failed.len(), 1);
            let (path, reason) = &without.failed[0];
            let id = first.directory_ids[b].to_string();
            assert!(path == b && reason.contains(&id), "{reason}");
            assert_eq!(without.directory_ids[a], first.directory_ids[a]);
            assert!(without.directory_ids.contains_key(c));
            assert!(read_properties(b).await.unwrap().is_none());
        }
        // As Kafka's tool formats it.
        let id = random.next_uuid();
        let written = write_properties(b, (&first.cluster_id, node), id).await;
        written.unwrap();
        for _ in 0..2 {
            let formatted = load(&[a, b, c], node, random).await.unwrap();
            assert_eq!(
                (formatted.directory_ids[b], formatted.failed.len()),
                (id, 0)
            );
        }
        let file = a.join(KNOWN_DIRECTORIES);
        directory::write_file_durably(&file, b"0\n?\n")
            .await
            .unwrap();
        let damaged = load(&[a, b, c], node, random).await.unwrap_err();
        assert!(damaged.to_string().contains(KNOWN_DIRECTORIES), "{damaged}");
        // Where there is one directory, there is no such file.
        directory::create_all(Path::new("/d")).await.unwrap();
        load(&[Path::new("/d")], node, random).await.unwrap();
        let listed = directory::list(Path::new("/d")).await.unwrap();
        assert_eq!(listed.len(), 1);
    });
    done.unwrap();
}
