#![no_main]

#[path = "../seeds.rs"]
#[allow(dead_code)]
mod seeds;
#[path = "../targets.rs"]
#[allow(dead_code)]
mod targets;

libfuzzer_sys::fuzz_target!(
    init: seeds::write(seeds::disk_files()),
    |bytes: &[u8]| targets::disk_files(bytes)
);
