//! Recovering a folder at rest that was not cleanly closed by its last owner, as Kafka does it
//! (`LogLoader.recoverLog`): the segments from the recovery point on, batch by batch, by checksum;
//! the first invalid batch ends the log.

use std::path::Path;
use std::rc::Rc;

use super::apply::remove_segment;
use super::rebuild::rebuild;
use super::ring_reader::open_locked;
use crate::base::ids::Offset;
use crate::io::FlushGroup;
use crate::log::error::LogError;
use crate::log::format::file_names::LogFileKind;
use crate::log::open::list_settled;
use crate::log::scan::{ScanEnd, Scanner};
use crate::log::segment::segment_path;

/// What was found.
pub(super) struct Recovered {
    pub(super) log_end: Offset,
    pub(super) notice: Option<String>,
}

/// Recovers one folder from `recovery_point` on.
pub(super) async fn recover_folder(
    folder: &Rc<Path>,
    recovery_point: Offset,
    flushes: &FlushGroup,
) -> Result<Recovered, LogError> {
    let listing = list_settled(folder).await?;
    let first = listing.segments.range(..=recovery_point.0).next_back();
    let first = first.map_or(i64::MIN, |(base, _)| *base);
    let last = listing
        .segments
        .last_key_value()
        .map_or((0, 0), |(base, size)| (*base, *size));
    let mut end = last;
    let mut notice = None;
    for (base, size) in listing.segments.range(first..) {
        if *base > end.0 {
            remove_segment(folder, Offset(*base), &listing.names).await?;
            continue;
        }
        let path = segment_path(folder, Offset(*base), LogFileKind::Log);
        let failed = |error| LogError::io(format!("recovering {}", path.display()), error);
        let file = open_locked(&path).await?;
        let mut scanner = Scanner::whole(&file, 0, *size);
        let why = loop {
            match scanner.next().await {
                Ok(_) => {}
                Err(why) => break why,
            }
        };
        match why {
            ScanEnd::Complete => {}
            ScanEnd::Failed(error) => return Err(failed(error)),
            ScanEnd::Invalid(what) => {
                let at = scanner.position();
                notice = Some(format!("{}: cut at byte {at}: {what}", path.display()));
                file.truncate(at).await.map_err(failed)?;
                end = (*base, at);
            }
        }
        flushes.file(&file).await.map_err(failed)?;
    }
    let synced = flushes.names(folder).await;
    synced.map_err(|error| LogError::io(format!("syncing {}", folder.display()), error))?;
    let log_end = rebuild(folder, recovery_point, end, flushes).await?;
    Ok(Recovered { log_end, notice })
}
