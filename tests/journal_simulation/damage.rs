//! Bit flips and zeroed blocks in what a later durable cycle vouches for: after a quiet end, with
//! everything acknowledged and the closing cycle written. The log that is hit comes back whole from
//! its other copy, or is reported with file and position and cut nowhere; no other loses a byte.

use crate::world::{DIRECTORY, World};

/// What was hit.
#[derive(Clone, Debug)]
pub struct Damage {
    pub path: String,
    pub position: u64,
}

impl Damage {
    /// The folder of the log that was hit; `None` for a journal.
    pub fn log_folder(&self) -> Option<&str> {
        let below = self.path.strip_prefix(DIRECTORY)?.trim_start_matches('/');
        let (folder, file) = below.rsplit_once('/')?;
        file.ends_with(".log").then_some(folder)
    }

    pub fn is_in_journal(&self) -> bool {
        self.path.contains("/ring-")
    }

    /// Whether `notice` names the place: file and position.
    pub fn is_named_in(&self, notice: &str) -> bool {
        let file = self.path.rsplit('/').next().unwrap_or_default();
        let folder = self.log_folder().unwrap_or(file);
        (notice.contains(file) || notice.contains(folder))
            && notice.bytes().any(|byte| byte.is_ascii_digit())
    }
}

fn files_below(world: &World, path: &str, found: &mut Vec<String>) {
    for (name, is_directory) in world.disk.list(path).unwrap_or_default() {
        let below = format!("{path}/{name}");
        if is_directory {
            files_below(world, &below, found);
        } else {
            found.push(below);
        }
    }
}

/// Damages one place that holds something, in a journal or a segment.
pub fn strike(world: &World) -> Option<Damage> {
    let mut files = Vec::new();
    files_below(world, DIRECTORY, &mut files);
    let in_journal = world.one_in(2);
    files.retain(|path| {
        if in_journal {
            path.contains("/ring-")
        } else {
            path.ends_with(".log")
        }
    });
    for _ in 0..20 {
        if files.is_empty() {
            return None;
        }
        let path = files[world.below(files.len() as u64) as usize].clone();
        let bytes = world.disk.contents(&path).ok()?;
        let used: Vec<u64> = (0..bytes.len() as u64)
            .step_by(4096)
            .filter(|at| {
                let block = &bytes[*at as usize..bytes.len().min(*at as usize + 4096)];
                block.iter().any(|byte| *byte != 0)
            })
            .collect();
        if used.is_empty() {
            continue;
        }
        let block = used[world.below(used.len() as u64) as usize];
        let within = world.below(4096.min(bytes.len() as u64 - block));
        let position = block + within;
        let done = if world.one_in(2) {
            world.disk.zero_block(&path, position)
        } else {
            world.disk.flip_bit(&path, position, world.below(8) as u32)
        };
        return done.ok().map(|()| Damage { path, position });
    }
    None
}
