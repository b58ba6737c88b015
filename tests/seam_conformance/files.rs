//! Files, their durability, and directories.

use std::time::{Duration, Instant};

use coreline::base::time::TimestampMs;
use coreline::io::{self, AlignedBuffer, Durability, File, OpenOptions, TaskClass, directory};

use crate::{filled, run, scratch, writable};

#[test]
fn files_read_back_what_was_written() {
    let folder = scratch();
    run(async {
        for direct in [false, true] {
            for durability in [Durability::Written, Durability::Stable] {
                let path = folder.path().join(format!("{direct}-{durability:?}"));
                let file = File::open(&path, writable(direct)).await.unwrap();
                assert_eq!(
                    file.is_direct(),
                    direct,
                    "ext4 and overlayfs have direct I/O"
                );
                let (written, buffer) = file.write_at(8_192, filled(12_288, 1), durability).await;
                written.unwrap();
                assert_eq!(buffer.len(), 12_288);
                assert_eq!(file.len().await.unwrap(), 20_480);
                let (read, back) = file.read_at(8_192, AlignedBuffer::zeroed(12_288)).await;
                assert_eq!(read.unwrap(), 12_288);
                assert_eq!(&back[..], &filled(12_288, 1)[..]);
                // The hole before it reads as zeros, past the end there is nothing.
                let (read, back) = file.read_at(0, AlignedBuffer::zeroed(8_192)).await;
                assert_eq!(read.unwrap(), 8_192);
                assert!(back.iter().all(|byte| *byte == 0));
                let (read, _) = file.read_at(20_480, AlignedBuffer::zeroed(4_096)).await;
                assert_eq!(read.unwrap(), 0);
                let (read, _) = file.read_at(16_384, AlignedBuffer::zeroed(65_536)).await;
                assert_eq!(read.unwrap(), 4_096);
                file.sync_data().await.unwrap();
                file.sync_all().await.unwrap();
            }
        }
    });
}

#[test]
fn a_direct_read_across_an_unaligned_end_is_short() {
    let folder = scratch();
    run(async {
        let path = folder.path().join("file");
        let file = File::open(&path, writable(true)).await.unwrap();
        let (written, _) = file
            .write_at(0, filled(8_192, 3), Durability::Written)
            .await;
        written.unwrap();
        file.truncate(5_000).await.unwrap();
        assert_eq!(file.len().await.unwrap(), 5_000);
        let (read, back) = file.read_at(0, AlignedBuffer::zeroed(8_192)).await;
        assert_eq!(read.unwrap(), 5_000);
        assert_eq!(&back[..5_000], &filled(8_192, 3)[..5_000]);
        let (read, _) = file.read_at(4_096, AlignedBuffer::zeroed(4_096)).await;
        assert_eq!(read.unwrap(), 904);
    });
}

#[test]
fn opening_obeys_its_options() {
    let folder = scratch();
    run(async {
        let path = folder.path().join("file");
        let missing = File::open(&path, OpenOptions::default()).await;
        assert_eq!(missing.unwrap_err().kind(), std::io::ErrorKind::NotFound);
        let create_new = OpenOptions {
            write: true,
            create_new: true,
            direct: true,
            ..OpenOptions::default()
        };
        let file = File::open(&path, create_new).await.unwrap();
        let (written, _) = file
            .write_at(0, filled(4_096, 1), Durability::Written)
            .await;
        written.unwrap();
        let again = File::open(&path, create_new).await;
        assert_eq!(again.unwrap_err().kind(), std::io::ErrorKind::AlreadyExists);
        let cut = OpenOptions {
            truncate: true,
            ..writable(false)
        };
        let file = File::open(&path, cut).await.unwrap();
        assert_eq!(file.len().await.unwrap(), 0);
        let reader = File::open(&path, OpenOptions::default()).await.unwrap();
        let (written, buffer) = reader
            .write_at(0, filled(4_096, 1), Durability::Written)
            .await;
        assert!(written.is_err(), "opened for reading only");
        assert_eq!(buffer.len(), 4_096, "the buffer comes back with the error");
    });
}

#[test]
fn what_is_no_regular_file_is_refused_without_waiting() {
    let folder = scratch();
    run(async {
        let pipe = folder.path().join("pipe");
        let link = folder.path().join("link");
        let mode = nix::sys::stat::Mode::from_bits_truncate(0o600);
        nix::unistd::mkfifo(&pipe, mode).unwrap();
        std::os::unix::fs::symlink("/dev/zero", &link).unwrap();
        for path in [pipe.as_path(), &link, folder.path()] {
            let soon = io::now().after(Duration::from_secs(5));
            let opened = io::with_deadline(soon, File::open(path, OpenOptions::default())).await;
            let error = opened.expect("it answers at once").unwrap_err();
            assert_eq!(error.kind(), std::io::ErrorKind::InvalidInput, "{error}");
            let named = error.to_string().contains(&path.display().to_string());
            assert!(named, "{error}");
            let small = directory::read_file(path, 100).await;
            assert!(small.is_err(), "{small:?}");
        }
    });
}

#[test]
fn preallocation_keeps_the_size() {
    let folder = scratch();
    run(async {
        let path = folder.path().join("file");
        let file = File::open(&path, writable(true)).await.unwrap();
        file.preallocate(0, 1 << 20).await.unwrap();
        assert_eq!(file.len().await.unwrap(), 0);
        file.sync_all().await.unwrap();
        let too_much = file.preallocate(0, 1 << 60).await;
        assert!(too_much.is_err());
    });
}

#[test]
fn a_lock_belongs_to_its_descriptor() {
    let folder = scratch();
    run(async {
        let path = folder.path().join("file");
        let first = File::open(&path, writable(false)).await.unwrap();
        let second = File::open(&path, writable(false)).await.unwrap();
        first.lock_exclusive(Duration::ZERO).await.unwrap();
        let refused = second.lock_exclusive(Duration::from_millis(30)).await;
        assert_eq!(refused.unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
        let waiting = io::spawn(TaskClass::Produce, async move {
            second.lock_exclusive(Duration::from_secs(10)).await
        });
        io::sleep(Duration::from_millis(20)).await;
        drop(first);
        waiting.await.unwrap();
    });
}

#[test]
fn directories_do_what_they_are_asked() {
    let folder = scratch();
    run(async {
        let root = folder.path();
        directory::create(&root.join("a")).await.unwrap();
        assert!(directory::create(&root.join("a")).await.is_err());
        directory::create_all(&root.join("b/c/d")).await.unwrap();
        directory::write_file_durably(&root.join("b/file"), b"contents")
            .await
            .unwrap();
        directory::write_file_durably(&root.join("b/file"), b"new")
            .await
            .unwrap();
        directory::write_file_durably(&root.join("b/empty"), b"")
            .await
            .unwrap();
        let names: Vec<_> = directory::list(&root.join("b"))
            .await
            .unwrap()
            .into_iter()
            .map(|entry| (entry.name, entry.is_directory))
            .collect();
        let expected = [("c", true), ("empty", false), ("file", false)];
        assert_eq!(names, expected.map(|(name, is)| (name.to_owned(), is)));
        assert_eq!(
            directory::read_file(&root.join("b/file"), 3).await.unwrap(),
            b"new"
        );
        assert_eq!(
            directory::read_file(&root.join("b/empty"), 0)
                .await
                .unwrap(),
            b""
        );
        let too_long = directory::read_file(&root.join("b/file"), 2).await;
        assert_eq!(
            too_long.unwrap_err().kind(),
            std::io::ErrorKind::InvalidData
        );
        directory::rename(&root.join("b/file"), &root.join("a/file"))
            .await
            .unwrap();
        let described = directory::metadata(&root.join("a/file")).await.unwrap();
        assert_eq!((described.len, described.is_directory), (3, false));
        assert!(directory::metadata(root).await.unwrap().is_directory);
        let gone = directory::metadata(&root.join("b/file")).await;
        assert_eq!(gone.unwrap_err().kind(), std::io::ErrorKind::NotFound);
        let then = TimestampMs(1_700_000_000_123);
        directory::set_modified(&root.join("a/file"), then)
            .await
            .unwrap();
        let described = directory::metadata(&root.join("a/file")).await.unwrap();
        assert_eq!((described.len, described.modified), (3, then));
        directory::sync(&root.join("a")).await.unwrap();
        let file = File::open(&root.join("a/file"), OpenOptions::default()).await;
        file.unwrap().sync_filesystem().await.unwrap();
        directory::remove_file(&root.join("a/file")).await.unwrap();
        assert!(directory::remove_file(&root.join("a/file")).await.is_err());
        directory::remove_all(&root.join("b")).await.unwrap();
        assert_eq!(directory::list(root).await.unwrap().len(), 1);
        let space = directory::space(root).await.unwrap();
        assert!(space.available_bytes > 0 && space.total_bytes >= space.available_bytes);
    });
}

#[test]
fn a_write_whose_future_was_dropped_still_happens() {
    let folder = scratch();
    run(async {
        let path = folder.path().join("file");
        let file = File::open(&path, writable(true)).await.unwrap();
        {
            let mut write =
                std::pin::pin!(file.write_at(0, filled(1 << 20, 9), Durability::Stable));
            std::future::poll_fn(|context| {
                assert!(write.as_mut().poll(context).is_pending());
                std::task::Poll::Ready(())
            })
            .await;
        }
        drop(file);
        let deadline = Instant::now() + Duration::from_secs(10);
        while std::fs::read(&path).unwrap() != filled(1 << 20, 9)[..] {
            assert!(Instant::now() < deadline, "the write never happened");
            io::sleep(Duration::from_millis(1)).await;
        }
    });
}
