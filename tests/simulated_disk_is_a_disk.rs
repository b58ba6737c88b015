//! The simulated disk answers as the kernel does: the same random operations, one after another, on
//! both backends of the seam, and every answer compared. What a crash leaves cannot be compared so;
//! that is the model's word alone.
#![cfg(feature = "sim")]

use std::fmt::Debug;
use std::io::Result;
use std::path::{Path, PathBuf};
use std::time::Duration;

use coreline::base::random::Random;
use coreline::io::sim::{SimDisk, SimDiskOptions, SimRuntime};
use coreline::io::{
    AlignedBuffer, Durability, File, OpenOptions, Runtime, RuntimeOptions, directory,
};

const SEEDS: u64 = 40;
const OPERATIONS: usize = 120;
const NAMES: [&str; 6] = ["a", "b", "d", "d/a", "d/b", "d/e"];

/// An answer as text: errors by their kind, since only that is promised.
fn told<T: Debug>(answer: Result<T>) -> String {
    match answer {
        Ok(value) => format!("{value:?}"),
        Err(error) => format!("{:?}", error.kind()),
    }
}

struct Session {
    root: PathBuf,
    random: Random,
    files: Vec<File>,
    answers: Vec<String>,
}

impl Session {
    fn path(&mut self) -> PathBuf {
        let name = NAMES[self.random.below(NAMES.len() as u64) as usize];
        self.root.join(name)
    }

    fn file(&mut self) -> Option<File> {
        let place = self.random.below(self.files.len().max(1) as u64) as usize;
        self.files.get(place).cloned()
    }

    fn options(&mut self) -> OpenOptions {
        OpenOptions {
            write: self.random.chance(5, 6),
            create: self.random.chance(2, 3),
            create_new: self.random.chance(1, 10),
            truncate: false,
            direct: false,
        }
    }

    async fn open(&mut self) -> String {
        let path = self.path();
        let mut options = self.options();
        options.create &= options.write;
        options.create_new &= options.write;
        match File::open(&path, options).await {
            Ok(file) => {
                let told = told(file.len().await);
                if self.files.len() == 4 {
                    self.files.remove(0);
                }
                self.files.push(file);
                told
            }
            Err(error) => format!("{:?}", error.kind()),
        }
    }

    async fn write(&mut self, file: &File) -> String {
        let mut buffer = AlignedBuffer::zeroed(1 + self.random.below(9_000) as usize);
        buffer.fill(self.random.next_u64() as u8);
        let position = self.random.below(20_000);
        let durability = if self.random.chance(1, 2) {
            Durability::Stable
        } else {
            Durability::Written
        };
        let (written, _) = file.write_at(position, buffer, durability).await;
        told(written)
    }

    async fn read(&mut self, file: &File) -> String {
        let buffer = AlignedBuffer::zeroed(1 + self.random.below(12_000) as usize);
        let (read, buffer) = file.read_at(self.random.below(24_000), buffer).await;
        let len = *read.as_ref().unwrap_or(&0);
        format!("{} {:08x}", told(read), crc32c::crc32c(&buffer[..len]))
    }

    async fn work_on_file(&mut self, dice: u64) -> String {
        let Some(file) = self.file() else {
            return "no file".into();
        };
        let len = 1 + self.random.below(20_000);
        match dice {
            0..6 => self.write(&file).await,
            6..12 => self.read(&file).await,
            12 => told(file.truncate(len).await),
            13 => told(file.preallocate(len / 2, len).await),
            14 => told(file.sync_data().await),
            15 => told(file.lock_exclusive(Duration::ZERO).await),
            _ => told(file.len().await),
        }
    }

    async fn work_on_names(&mut self, dice: u64) -> String {
        let (path, other) = (self.path(), self.path());
        match dice {
            0 => told(directory::create(&path).await),
            1 => told(directory::create_all(&path).await),
            2 | 3 => told(directory::rename(&path, &other).await),
            4 | 5 => told(directory::remove_file(&path).await),
            6 => told(directory::remove_all(&path).await),
            7 => told(directory::list(&path).await),
            8 => told(directory::write_file_durably(&path, b"whole").await),
            9 => told(
                directory::read_file(&path, 100_000)
                    .await
                    .map(|bytes| bytes.len()),
            ),
            _ => {
                let described = directory::metadata(&path).await;
                // The size of a directory is the file system's own affair.
                told(described.map(|found| {
                    (
                        found.is_directory,
                        (!found.is_directory).then_some(found.len),
                    )
                }))
            }
        }
    }

    async fn run(mut self) -> Vec<String> {
        for _ in 0..OPERATIONS {
            let (kind, dice) = (self.random.below(4), self.random.below(18));
            let answer = match kind {
                0 => self.open().await,
                1 => self.work_on_names(dice % 12).await,
                _ => self.work_on_file(dice).await,
            };
            self.answers.push(format!("{kind}/{dice}: {answer}"));
        }
        self.answers
    }
}

fn session(root: &Path, seed: u64) -> Session {
    Session {
        root: root.to_owned(),
        random: Random::new(seed),
        files: Vec::new(),
        answers: Vec::new(),
    }
}

#[test]
fn every_answer_is_the_kernels() {
    for seed in 0..SEEDS {
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
        let mut real = Runtime::start(RuntimeOptions::for_tests()).expect("io_uring");
        let expected = real.block_on(session(folder.path(), seed).run());
        let disk = SimDisk::new(SimDiskOptions::default(), seed);
        let root = Path::new("/data");
        let mut simulated = SimRuntime::new(&disk, seed);
        let answers = simulated.block_on(async {
            directory::create(root).await.expect("the root is there");
            session(root, seed).run().await
        });
        let answers = answers.expect("nothing crashes");
        for (place, (answer, expected)) in answers.iter().zip(&expected).enumerate() {
            assert_eq!(
                answer,
                expected,
                "seed {seed}, operation {place}: {:?}",
                &answers[..place]
            );
        }
    }
}
