//! What fuzzing (`scripts/fuzz`) once found, replayed on stable Rust, and its seeds, cut and bent a
//! little: the targets themselves are in `fuzz/src/targets.rs`.
#![cfg(feature = "sim")]

#[path = "../fuzz/src/seeds.rs"]
#[allow(dead_code)]
mod seeds;
#[path = "../fuzz/src/targets.rs"]
mod targets;

use std::fs;
use std::path::Path;

use coreline::base::random::Random;

type Target = (&'static str, fn(&[u8]), fn() -> Vec<Vec<u8>>);

const TARGETS: [Target; 3] = [
    ("requests", targets::requests, seeds::requests),
    (
        "record_batches",
        targets::record_batches,
        seeds::record_batches,
    ),
    ("disk_files", targets::disk_files, seeds::disk_files),
];
/// Changed copies of each seed.
const CHANGES: usize = 20;

#[test]
fn findings_stay_fixed() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fuzz_findings");
    for (name, target, _) in TARGETS {
        let Ok(found) = fs::read_dir(root.join(name)) else {
            continue;
        };
        for entry in found {
            let path = entry.expect("a readable folder").path();
            println!("{}", path.display());
            target(&fs::read(&path).expect("a readable finding"));
        }
    }
}

#[test]
fn seeds_and_what_is_near_them_pass() {
    let mut random = Random::new(3);
    for (name, target, seeds) in TARGETS {
        let seeds = seeds();
        assert!(seeds.len() > 10, "{name} has seeds");
        for seed in seeds {
            target(&seed);
            for _ in 0..CHANGES {
                target(&changed(&mut random, &seed));
            }
        }
    }
}

/// A copy with a few bytes changed, perhaps cut or grown.
fn changed(random: &mut Random, seed: &[u8]) -> Vec<u8> {
    let mut bytes = seed.to_vec();
    for _ in 0..=random.below(4) {
        let at = random.below(bytes.len().max(1) as u64) as usize;
        match random.below(5) {
            0 => bytes.truncate(at),
            1 => bytes.insert(at.min(bytes.len()), random.next_u64() as u8),
            2 => {
                if let Some(byte) = bytes.get_mut(at) {
                    *byte = [0, 1, 0x7f, 0x80, 0xff][random.below(5) as usize];
                }
            }
            _ => {
                if let Some(byte) = bytes.get_mut(at) {
                    *byte ^= 1 << random.below(8);
                }
            }
        }
    }
    bytes
}
