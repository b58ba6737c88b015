//! Damage found: where the whole batches of a log end, and its durable mark.

use std::path::Path;

use super::error::LogError;
use super::format::damage_mark::DamageMark;
use super::format::file_names::{DAMAGE_MARK, LogFileKind, LogFileName};
use super::journal::Result;
use super::open::list_folder;
use super::recovery::open_locked;
use super::scan::{ScanEnd, Scanner};
use super::segment::segment_path;
use crate::base::ids::Offset;
use crate::io;

/// The whole batches at the front of a log.
pub(crate) struct WholePrefix {
    /// The segment in which they end.
    base: Offset,
    /// The byte at which they end.
    position: u64,
    /// The offset after the last.
    offset: Offset,
}

/// Walks a log by checksum to the first batch that is not whole, at most to segment and position
/// `limit`. Only for logs that are known to be damaged: it reads all of them.
pub(crate) async fn whole_prefix(folder: &Path, limit: Option<(i64, u64)>) -> Result<WholePrefix> {
    let listing = list_folder(folder).await?;
    let mut found = WholePrefix {
        base: Offset(0),
        position: 0,
        offset: Offset(0),
    };
    for (base, size) in &listing.segments {
        let (size, is_last) = match limit {
            Some((last, _)) if *base > last => break,
            Some((last, position)) if *base == last => (position.min(*size), true),
            _ => (*size, false),
        };
        let path = segment_path(folder, Offset(*base), LogFileKind::Log);
        let file = open_locked(&path).await?;
        let mut scanner = Scanner::whole(&file, 0, size);
        found.offset = found.offset.max(Offset(*base));
        let why = loop {
            match scanner.next().await {
                Ok(batch) => found.offset = batch.header.next_offset(),
                Err(why) => break why,
            }
        };
        (found.base, found.position) = (Offset(*base), scanner.position());
        if is_last || !matches!(why, ScanEnd::Complete) {
            break;
        }
    }
    Ok(found)
}

/// Marks a log where its whole batches end.
pub(crate) async fn mark_after(
    folder: &Path,
    prefix: WholePrefix,
    durable_end: Offset,
    cause: &str,
) -> Result<DamageMark> {
    let mark = DamageMark {
        file: LogFileName::live(prefix.base, LogFileKind::Log).to_string(),
        position: prefix.position,
        offset: prefix.offset,
        durable_end: durable_end.max(prefix.offset),
        cause: cause.to_owned(),
    };
    mark_damage(folder, &mark).await?;
    Ok(mark)
}

/// Puts the durable mark into the folder.
pub(crate) async fn mark_damage(folder: &Path, mark: &DamageMark) -> Result<()> {
    let path = folder.join(DAMAGE_MARK);
    let written = io::directory::write_file_durably(&path, &mark.encode()).await;
    written.map_err(|error| LogError::io(format!("marking {}", path.display()), error))
}

/// What an operator reads.
pub(crate) fn describe(folder: &Path, mark: &DamageMark) -> String {
    format!(
        "{} is damaged at byte {}, offset {}: {}",
        folder.join(&mark.file).display(),
        mark.position,
        mark.offset,
        mark.cause
    )
}
