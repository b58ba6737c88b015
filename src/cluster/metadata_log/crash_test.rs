//! Crashes at every step of a snapshot and of what follows on it, and random lives against a model:
//! the image of snapshot and log is that of all records that were ever appended.

use super::log_test::{disk, live, open_with, options};
use super::names::{SnapshotId, is_leftover, parse_segment_name};
use super::*;
use crate::base::random::Random;
use crate::cluster::image::random_test::History;
use crate::io::sim::SimDisk;
use std::cell::Cell;

const FOLDER: &str = "/data/__cluster_metadata-0";
const NOW: TimestampMs = TimestampMs(2_000);

/// Short segments, and no room for anything before the newest snapshot.
fn tight() -> MetadataLogOptions {
    MetadataLogOptions {
        settings: MetadataLogSettings {
            segment_bytes_max: 2_000,
            retention_bytes: 0,
            ..MetadataLogSettings::default()
        },
        ..options()
    }
}

/// The states of a cluster through its changes, as one that was never stopped sees them.
struct Model {
    changes: Vec<Vec<MetadataRecord>>,
    images: Vec<Image>,
}

impl Model {
    fn new(seed: u64, len: usize) -> Self {
        let mut history = History::new(seed);
        let mut image = Image::new("cluster", BrokerId(1));
        let mut model = Self {
            changes: Vec::new(),
            images: vec![image.clone()],
        };
        while model.changes.len() < len {
            let change = history.change();
            if change.is_empty() {
                continue;
            }
            for record in &change {
                image.apply(record).unwrap();
            }
            // No two states are the same: one tells how many changes there were.
            let count = model.changes.len();
            let mark = super::log_test::config(count as u64, 1);
            image.apply(&mark).unwrap();
            model.changes.push([change, vec![mark]].concat());
            model.images.push(image.clone());
        }
        model
    }

    /// How many changes `image` is the outcome of.
    fn place(&self, image: &Image) -> Option<usize> {
        let mut image = image.clone();
        image.advance_to(Offset(0), LeaderEpoch(0));
        self.images.iter().position(|state| *state == image)
    }
}

/// A log with the image of what it holds.
struct Cluster<'a> {
    log: MetadataLog,
    image: Image,
    model: &'a Model,
    /// Changes that were acknowledged.
    acked: &'a Cell<usize>,
}

impl<'a> Cluster<'a> {
    /// Opens the log, which must hold what was acknowledged, and at most one change more.
    async fn open(model: &'a Model, acked: &'a Cell<usize>, options: &MetadataLogOptions) -> Self {
        let opened = open_with(options).await;
        let Opened { log, image, .. } = opened.unwrap_or_else(|fault| panic!("{fault}"));
        let place = model.place(&image).expect("a state that there was");
        let expected = acked.get()..=acked.get() + 1;
        assert!(expected.contains(&place), "{place} of {expected:?}");
        acked.set(place);
        Self {
            log,
            image,
            model,
            acked,
        }
    }

    async fn change(&mut self) {
        let change = &self.model.changes[self.acked.get()];
        self.log.append(change, NOW).await.unwrap();
        for record in change {
            self.image.apply(record).unwrap();
        }
        let (end, epoch) = (self.log.next_offset(), self.log.epoch());
        self.image.advance_to(end, epoch);
        self.acked.set(self.acked.get() + 1);
    }

    async fn snapshot(&mut self) {
        self.log.snapshot(&self.image, NOW).await.unwrap();
    }

    async fn clean(&mut self) {
        self.log.clean(NOW).await.unwrap();
    }
}

/// What Kafka expects of the folder, and nothing is left lying about.
fn assert_sound(disk: &SimDisk, note: &str) {
    let entries = disk.list(FOLDER).unwrap();
    let names = || entries.iter().map(|(name, _)| name.as_str());
    let mut bases: Vec<Offset> = names().filter_map(parse_segment_name).collect();
    bases.sort_unstable();
    let mut snapshots: Vec<SnapshotId> = names().filter_map(SnapshotId::parse).collect();
    snapshots.sort_unstable();
    let leftover = names().find(|name| is_leftover(name) || name.ends_with(".damaged"));
    assert_eq!(leftover, None, "{note}");
    if bases[0] > Offset(0) {
        let newest = snapshots.last().expect("a snapshot");
        assert!(newest.end_offset >= bases[0], "{note}");
    }
    for pair in bases.windows(2) {
        let path = format!("{FOLDER}/{}", segment_name(pair[0]));
        let bytes = disk.contents(&path).unwrap();
        let mut end = pair[0];
        let mut rest = &bytes[..];
        while let batch::Scan::Batch(header) = batch::scan(rest) {
            end = header.next_offset();
            rest = &rest[header.total_bytes()..];
        }
        assert_eq!(end, pair[1], "{note}: a gap behind {path}");
    }
}

/// Two lives without a crash, each with a snapshot and without room for the one before.
fn prepared(model: &Model, acked: &Cell<usize>) -> SimDisk {
    let disk = disk(1);
    for seed in 0..2 {
        let life = async {
            let mut cluster = Cluster::open(model, acked, &tight()).await;
            for _ in 0..8 {
                cluster.change().await;
            }
            cluster.snapshot().await;
            cluster.clean().await;
            cluster.change().await;
        };
        live(&disk, seed, life).expect("no crash");
    }
    disk
}

/// The life that crashes: several segments and two snapshots go.
async fn last_life(model: &Model, acked: &Cell<usize>) {
    let mut cluster = Cluster::open(model, acked, &tight()).await;
    for _ in 0..12 {
        cluster.change().await;
    }
    cluster.snapshot().await;
    cluster.change().await;
    cluster.clean().await;
    cluster.change().await;
    cluster.snapshot().await;
    cluster.clean().await;
    cluster.change().await;
}

#[test]
fn a_crash_at_any_step_of_a_snapshot_leaves_all_that_was_acknowledged() {
    let model = Model::new(7, 60);
    let steps = {
        let acked = Cell::new(0);
        let disk = prepared(&model, &acked);
        let before = disk.steps();
        live(&disk, 3, last_life(&model, &acked)).expect("no crash");
        let first = disk.list(FOLDER).unwrap();
        let first = first
            .iter()
            .filter_map(|(name, _)| parse_segment_name(name));
        assert!(first.min().unwrap() > Offset(0), "nothing was dropped");
        disk.steps() - before
    };
    assert!(steps > 100, "{steps}");
    let mut crashes = 0;
    for step in 1..=steps {
        for is_power_cut in [false, true] {
            let acked = Cell::new(0);
            let disk = prepared(&model, &acked);
            disk.crash_after(step);
            crashes += usize::from(live(&disk, 3, last_life(&model, &acked)).is_none());
            if is_power_cut {
                disk.power_cut(step);
            } else {
                disk.kill(step);
            }
            let note = format!("step {step}, power cut {is_power_cut}");
            let again = async {
                let mut cluster = Cluster::open(&model, &acked, &tight()).await;
                cluster.snapshot().await;
                cluster.clean().await;
                cluster.change().await;
            };
            live(&disk, 4, again).expect("no crash");
            assert_sound(&disk, &note);
            let opened = async { Cluster::open(&model, &acked, &tight()).await.acked.get() };
            let there = live(&disk, 5, opened).expect("no crash");
            assert_eq!(there, acked.get(), "{note}");
        }
    }
    assert!(crashes as u64 > steps, "{crashes} of {steps}");
}

/// Lives with random changes, snapshots, retentions and ends.
#[test]
fn snapshot_and_log_are_the_whole_log() {
    let (mut crashes, mut dropped) = (0, 0);
    for seed in 0..40 {
        let model = Model::new(seed, 400);
        let acked = Cell::new(0);
        let disk = disk(seed);
        let mut random = Random::new(seed ^ 0x736e_6170);
        for round in 0..8 {
            let options = MetadataLogOptions {
                settings: MetadataLogSettings {
                    segment_bytes_max: 500 + random.below(8_000),
                    retention_bytes: random.below(30_000) as i64 - 3_000,
                    ..MetadataLogSettings::default()
                },
                ..options()
            };
            if random.chance(2, 3) {
                disk.crash_after(random.below(400) + 1);
            }
            let mut choices = Random::new(random.below(u64::MAX));
            let life = async {
                let mut cluster = Cluster::open(&model, &acked, &options).await;
                while choices.chance(29, 30) && acked.get() + 1 < model.changes.len() {
                    match choices.below(12) {
                        0 => cluster.snapshot().await,
                        1 => cluster.clean().await,
                        _ => cluster.change().await,
                    }
                }
            };
            crashes += u32::from(live(&disk, seed * 10 + round, life).is_none());
            match random.below(3) {
                0 => disk.power_cut(seed + round),
                1 => disk.kill(seed + round),
                _ => disk.never_crash(),
            }
            if disk.has_crashed() {
                disk.kill(round);
            }
        }
        live(&disk, seed, async {
            Cluster::open(&model, &acked, &tight()).await.acked.get()
        })
        .expect("no crash");
        let note = format!("seed {seed}");
        assert_sound(&disk, &note);
        let entries = disk.list(FOLDER).unwrap();
        let bases = entries
            .iter()
            .filter_map(|(name, _)| parse_segment_name(name));
        dropped += u32::from(bases.min().unwrap() > Offset(0));
    }
    assert!(
        crashes > 80 && dropped > 10,
        "{crashes} crashes, {dropped} dropped"
    );
}
