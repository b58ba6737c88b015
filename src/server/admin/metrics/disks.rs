//! The disks of the log directories.

use super::super::observer::Observer;
use super::text::Text;
use crate::io::directory::Space;
use crate::log::DiskRoom;
use crate::server::disk_gauge::DiskGauge;

type Value = fn(&DiskGauge, Space) -> f64;

/// Writes them, as far as somebody has looked.
pub fn render(text: &mut Text, observer: &Observer) {
    let families: [(&'static str, &str, Value); 5] = [
        (
            "coreline_disk_free_bytes",
            "Free bytes of the disk",
            |_, space| space.available_bytes as f64,
        ),
        (
            "coreline_disk_size_bytes",
            "Bytes of the disk",
            |_, space| space.total_bytes as f64,
        ),
        (
            "coreline_disk_reserve_bytes",
            "Free bytes below which producers are refused",
            |disk, space| disk.bounds(space).reserve_bytes as f64,
        ),
        (
            "coreline_disk_low",
            "1 while less is free than coreline.disk.low.bytes",
            |disk, space| f64::from(u8::from(disk.bounds(space).is_low(space.available_bytes))),
        ),
        (
            "coreline_disk_refuses_appends",
            "1 while less is free than coreline.disk.reserve.bytes: producers are refused",
            |disk, space| f64::from(u8::from(is_refusing(disk, space))),
        ),
    ];
    for (name, help, value) in families {
        let mut family = text.gauge(name, help);
        for disk in &observer.disks {
            if let Some(space) = disk.space() {
                let directory = disk.directory().display().to_string();
                family.value(&[("logdirectory", &directory)], value(disk, space));
            }
        }
    }
}

/// Whether producers are refused for want of room.
pub fn is_refusing(disk: &DiskGauge, space: Space) -> bool {
    disk.bounds(space).room(space.available_bytes) == DiskRoom::Reserve
}
