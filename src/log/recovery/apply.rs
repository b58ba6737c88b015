//! The second pass (JOURNAL §7.3): one log's plan meets its files. EXTENTs are checked, DATA is
//! written, each file is cut once, and what is invalid below the durable end becomes a mark of
//! damage instead of a cut.

use std::io::ErrorKind;
use std::path::Path;

use bytes::{Bytes, BytesMut};

use super::replay::{LogPlan, Place, PlannedRange};
use super::ring_reader::open_locked;
use crate::base::ids::Offset;
use crate::base::limits::{BLOCK_BYTES, CYCLE_BYTES_MAX};
use crate::io::{self, AlignedBuffer, Durability, File, FlushGroup};
use crate::log::error::LogError;
use crate::log::format::file_names::{
    LEADER_EPOCH_CHECKPOINT, LogFileKind, LogFileName, NEXT_SEGMENT,
};
use crate::log::journal::cycle::checksum_of;
use crate::log::next_segment::adopt;
use crate::log::open::{list_folder, list_settled};
use crate::log::scan::read_exactly;
use crate::log::seeded::{SeededBug, is_seeded};
use crate::log::segment::{floor_to_block, segment_path};

type Result<T> = std::result::Result<T, LogError>;

/// What became of a log.
#[derive(Debug, Default)]
pub(crate) struct Applied {
    /// Where its bytes end now.
    pub(crate) end: Place,
    /// Bytes below the durable end that are not what was written begin here.
    pub(crate) damage: Option<(Place, String)>,
    pub(crate) notices: Vec<String>,
}

/// One log being brought to what its plan says.
pub(crate) struct LogRecovery<'a> {
    pub(crate) folder: &'a Path,
    pub(crate) plan: &'a mut LogPlan,
    /// The ring files that the plan's records lie in.
    pub(crate) ring: &'a [File],
    /// Files of many logs are made durable together.
    pub(crate) flushes: &'a FlushGroup,
}

/// Bytes to be written at one place.
struct Run {
    start: u64,
    bytes: BytesMut,
}

impl LogRecovery<'_> {
    /// Checks, writes and cuts.
    pub(crate) async fn run(mut self) -> Result<Applied> {
        let mut applied = Applied::default();
        if let Some(place) = self.plan.suspect {
            let what = self.plan.suspect_cause.take();
            let what = what
                .unwrap_or_else(|| "a damaged journal cycle held what followed here".to_owned());
            self.note_damage(&mut applied, place, what);
        }
        if let Some(place) = self.plan.first_hole() {
            self.note_damage(
                &mut applied,
                place,
                "no record vouches for these bytes".into(),
            );
        }
        self.name_last_segment().await?;
        let bases: Vec<i64> = self.plan.ranges.keys().copied().collect();
        for base in bases {
            if base > self.plan.end.0 {
                break;
            }
            self.apply_segment(base, &mut applied).await?;
        }
        applied.end = self.plan.end;
        self.cut_files(&applied).await?;
        Ok(applied)
    }

    /// The last segment may have been rolled to and its file not named yet; all its records are
    /// live then.
    async fn name_last_segment(&self) -> Result<()> {
        let listing = list_settled(self.folder).await?;
        let base = self.plan.end.0;
        let is_without_file = !listing.segments.contains_key(&base);
        let is_all_live = self.plan.watermark <= (base, 0) && self.plan.reset_to.is_none();
        if is_without_file && is_all_live && listing.names.iter().any(|name| name == NEXT_SEGMENT) {
            adopt(self.folder, Offset(base)).await?;
        }
        Ok(())
    }

    /// Bytes below what was durable are not what was written: the log keeps its files and is not
    /// served past there.
    fn note_damage(&mut self, applied: &mut Applied, place: Place, what: String) {
        if is_seeded(SeededBug::DamageCutAsTear) {
            self.plan.cut(place);
            return;
        }
        if applied
            .damage
            .as_ref()
            .is_none_or(|(known, _)| place < *known)
        {
            applied.damage = Some((place, what));
        }
    }

    /// Checks the directly written bytes of a segment, in their order. The first invalid ones end
    /// the log there if nothing past them was durable; else they are damage.
    async fn check_extents(&mut self, file: &File, base: i64, applied: &mut Applied) -> Result<()> {
        let ranges = self.plan.ranges.get(&base).cloned().unwrap_or_default();
        for range in ranges.iter().filter(|range| range.is_extent()) {
            let Some((at, offset)) = self.check_extent(file, range).await? else {
                continue;
            };
            let place = (base, at);
            if offset < self.plan.durable_end {
                let what = "bytes written directly are not what was recorded".to_owned();
                self.note_damage(applied, place, what);
            } else {
                let folder = self.folder.display();
                applied
                    .notices
                    .push(format!("{folder}: a tear is cut at offset {offset}"));
                self.plan.cut(place);
            }
            break;
        }
        Ok(())
    }

    async fn apply_segment(&mut self, base: i64, applied: &mut Applied) -> Result<()> {
        let path = segment_path(self.folder, Offset(base), LogFileKind::Log);
        let file = match open_locked(&path).await {
            Ok(file) => file,
            Err(LogError::Io { source, .. }) if source.kind() == ErrorKind::NotFound => {
                let what = "the segment file is missing".to_owned();
                self.note_damage(applied, (base, 0), what);
                return Ok(());
            }
            Err(error) => return Err(error),
        };
        self.check_extents(&file, base, applied).await?;
        let ranges = self.plan.ranges.get(&base).cloned().unwrap_or_default();
        let mut pieces: Vec<(u64, Bytes)> = Vec::new();
        for range in &ranges {
            pieces.extend(self.inline_bytes(range).await?);
        }
        for run in coalesce(pieces) {
            write_run(&file, run)
                .await
                .map_err(|error| failed(&path, error))?;
        }
        Ok(())
    }

    /// The bytes of a range that the journal holds, with their position.
    async fn inline_bytes(&self, range: &PlannedRange) -> Result<Option<(u64, Bytes)>> {
        let record = &range.record;
        let length = record.header.inline_length as usize;
        let start = record.header.position + u64::from(record.header.length) - length as u64;
        if length == 0 || start >= range.end {
            return Ok(None);
        }
        let Some(file) = self.ring.get(record.file) else {
            return Ok(None);
        };
        let bytes = read_exactly(file, record.inline_at, length).await;
        let bytes = bytes.map_err(|error| LogError::io("reading a journal file", error))?;
        let kept = (range.end - start).min(length as u64) as usize;
        Ok(Some((start, bytes.slice(..kept))))
    }

    /// Position and offset at which an EXTENT's bytes cease to be what was recorded, if they do.
    async fn check_extent(
        &self,
        file: &File,
        range: &PlannedRange,
    ) -> Result<Option<(u64, Offset)>> {
        let header = &range.record.header;
        let tail = self.inline_bytes(range).await?;
        let in_segment = tail.as_ref().map_or(range.end, |(start, _)| *start) - range.start();
        let length = usize::try_from(in_segment).unwrap_or(usize::MAX);
        let bytes = match read_exactly(file, range.start(), length).await {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => {
                return Ok(Some((range.start(), header.end_before)));
            }
            Err(error) => return Err(LogError::io("reading a segment", error)),
        };
        let mut whole = BytesMut::from(&bytes[..]);
        if let Some((_, tail)) = tail {
            whole.extend_from_slice(&tail);
        }
        let checksum = checksum_of(&whole, true);
        let is_whole = checksum == Some(header.checksum) || (range.is_cut() && checksum.is_some());
        if is_whole {
            return Ok(None);
        }
        let (valid, offset) = valid_prefix(&whole);
        Ok(Some((
            range.start() + valid as u64,
            offset.unwrap_or(header.end_before),
        )))
    }

    /// Cuts the log's files to its end and removes the segments past it, in that order from the
    /// back. A damaged log is not cut at all.
    async fn cut_files(&self, applied: &Applied) -> Result<()> {
        let listing = list_folder(self.folder).await?;
        if let Some(start) = self.plan.reset_to {
            return self.empty(start, &listing.names).await;
        }
        if applied.damage.is_some() && !is_seeded(SeededBug::DamageCutAsTear) {
            return Ok(());
        }
        for base in listing.segments.keys() {
            let path = segment_path(self.folder, Offset(*base), LogFileKind::Log);
            if *base < self.plan.watermark.0 {
                continue;
            }
            if is_seeded(SeededBug::TornTailKept) {
                continue;
            }
            let end = match (*base).cmp(&applied.end.0) {
                std::cmp::Ordering::Greater => {
                    remove_segment(self.folder, Offset(*base), &listing.names).await?;
                    continue;
                }
                _ => self.plan.end_in(*base).max(self.floor_of(*base)),
            };
            // Under the lock: a dead process's write may land until it is free, also in a file
            // that no record names.
            let file = open_locked(&path).await?;
            let size = file.len().await.map_err(|error| failed(&path, error))?;
            if size != end {
                file.truncate(end)
                    .await
                    .map_err(|error| failed(&path, error))?;
            }
            self.flushes
                .file(&file)
                .await
                .map_err(|error| failed(&path, error))?;
        }
        let synced = self.flushes.names(self.folder).await;
        synced.map_err(|error| failed(self.folder, error))
    }

    /// Ends a RESET that was under way: one empty segment at `start`.
    async fn empty(&self, start: Offset, names: &[String]) -> Result<()> {
        let bases = names.iter().filter_map(|name| LogFileName::parse(name));
        for name in bases.collect::<Vec<_>>() {
            let path = self.folder.join(name.to_string());
            let removed = io::directory::remove_file(&path).await;
            removed.map_err(|error| failed(&path, error))?;
        }
        let epochs = self.folder.join(LEADER_EPOCH_CHECKPOINT);
        if names.iter().any(|name| name == LEADER_EPOCH_CHECKPOINT) {
            let removed = io::directory::remove_file(&epochs).await;
            removed.map_err(|error| failed(&epochs, error))?;
        }
        let path = segment_path(self.folder, start, LogFileKind::Log);
        let options = crate::io::OpenOptions {
            write: true,
            create: true,
            ..Default::default()
        };
        let file = File::open(&path, options).await;
        let synced = file.map_err(|error| failed(&path, error))?.sync_all().await;
        synced.map_err(|error| failed(&path, error))?;
        let synced = io::directory::sync(self.folder).await;
        synced.map_err(|error| failed(self.folder, error))
    }

    fn floor_of(&self, base: i64) -> u64 {
        if base == self.plan.watermark.0 {
            self.plan.watermark.1
        } else {
            0
        }
    }
}

/// How many bytes at the front are whole, valid batches, and the offset after them.
fn valid_prefix(bytes: &[u8]) -> (usize, Option<Offset>) {
    let (mut valid, mut offset) = (0, None);
    while let Some(rest) = bytes.get(valid..)
        && let Ok(header) = crate::wire::record_batch::BatchHeader::parse(rest)
        && let Some(batch) = rest.get(..header.total_bytes())
        && crate::wire::record_batch::verify_crc(batch).is_ok()
    {
        valid += batch.len();
        offset = Some(header.next_offset());
    }
    (valid, offset)
}

/// Pieces in the order of the records become runs without gaps, later bytes over earlier ones.
fn coalesce(mut pieces: Vec<(u64, Bytes)>) -> Vec<Run> {
    // Stable: of two pieces at one place the later record's is applied later.
    pieces.sort_by_key(|(start, _)| *start);
    let mut runs: Vec<Run> = Vec::new();
    for (start, bytes) in pieces {
        let end = start + bytes.len() as u64;
        if let Some(run) = runs.last_mut()
            && start <= run.start + run.bytes.len() as u64
            && (end - run.start) as usize <= CYCLE_BYTES_MAX
        {
            let at = (start - run.start) as usize;
            let overlap = bytes.len().min(run.bytes.len() - at);
            if let Some(place) = run.bytes.get_mut(at..at + overlap) {
                place.copy_from_slice(bytes.get(..overlap).unwrap_or_default());
            }
            run.bytes
                .extend_from_slice(bytes.get(overlap..).unwrap_or_default());
            continue;
        }
        runs.push(Run {
            start,
            bytes: BytesMut::from(&bytes[..]),
        });
    }
    runs
}

/// Writes a run, keeping the bytes around it in its first and last block.
async fn write_run(file: &File, run: Run) -> std::io::Result<()> {
    let from = floor_to_block(run.start);
    let end = run.start + run.bytes.len() as u64;
    let to = end.next_multiple_of(BLOCK_BYTES as u64);
    let mut buffer = AlignedBuffer::zeroed((to - from) as usize);
    for block in [from, to - BLOCK_BYTES as u64] {
        let (result, found) = file
            .read_at(block, AlignedBuffer::zeroed(BLOCK_BYTES))
            .await;
        let read = result?;
        let at = (block - from) as usize;
        if let (Some(place), Some(found)) = (buffer.get_mut(at..at + read), found.get(..read)) {
            place.copy_from_slice(found);
        }
    }
    let at = (run.start - from) as usize;
    if let Some(place) = buffer.get_mut(at..at + run.bytes.len()) {
        place.copy_from_slice(&run.bytes);
    }
    file.write_at(from, buffer, Durability::Written).await.0
}

/// Removes a segment's files.
pub(crate) async fn remove_segment(folder: &Path, base: Offset, names: &[String]) -> Result<()> {
    for kind in LogFileKind::ALL {
        let name = LogFileName::live(base, kind).to_string();
        if kind != LogFileKind::ProducerSnapshot && names.contains(&name) {
            let path = folder.join(&name);
            let removed = io::directory::remove_file(&path).await;
            removed.map_err(|error| failed(&path, error))?;
        }
    }
    Ok(())
}

fn failed(path: &Path, error: std::io::Error) -> LogError {
    LogError::io(format!("recovering {}", path.display()), error)
}
