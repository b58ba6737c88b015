//! Walking a segment batch by batch, each with its checksum and its records, in bounded memory; and
//! going on behind bytes that are no batch.

use bytes::Bytes;

use super::view::SegmentView;
use crate::base::limits::{KIB, MIB};
use crate::wire::compression::{DecodeLimits, Decoder};
use crate::wire::record_batch::{BatchHeader, CRC_COVERS_FROM, HEADER_BYTES, verify_crc};
use crate::wire::record_walk::RecordWalker;

/// Bytes of a window.
const WINDOW_BYTES: usize = 512 * KIB;
/// A larger batch is checksummed window by window, and its records are not walked: no client could
/// fetch it either.
const BATCH_BYTES_MAX: usize = 128 * MIB;
/// What a decoder may hold at once; its output is never kept.
const DECODE_LIMITS: DecodeLimits = DecodeLimits {
    output_bytes_max: u64::MAX,
    window_bytes_max: 128 * MIB,
};

/// One batch, whole.
pub(super) struct Walked {
    pub(super) header: BatchHeader,
    pub(super) position: u64,
    /// Records counted, unless the batch is too large for that.
    pub(super) records: u64,
}

/// What stands at the walk's position.
pub(super) enum Step {
    Batch(Walked),
    /// No batch, and why.
    Invalid(String),
    End,
}

/// A walk over one segment.
pub(super) struct Walk<'v, 'a> {
    view: &'v SegmentView<'a>,
    pub(super) position: u64,
    window: Bytes,
    window_at: u64,
}

impl<'v, 'a> Walk<'v, 'a> {
    pub(super) fn new(view: &'v SegmentView<'a>) -> Self {
        Self {
            view,
            position: 0,
            window: Bytes::new(),
            window_at: 0,
        }
    }

    pub(super) async fn next(&mut self) -> std::io::Result<Step> {
        let left = self.view.end.saturating_sub(self.position);
        if left == 0 {
            return Ok(Step::End);
        }
        let header = match self.header(self.position).await? {
            Ok(header) => header,
            Err(what) => return Ok(Step::Invalid(what)),
        };
        let length = header.total_bytes();
        let checked = if length <= BATCH_BYTES_MAX {
            let bytes = self.bytes(self.position, length).await?;
            check(&header, &bytes)
        } else {
            let is_whole = self.checksum(length).await? == header.crc;
            let what = "its checksum is not that of its bytes".to_owned();
            let records = u64::from(header.record_count.unsigned_abs());
            is_whole.then_some(records).ok_or(what)
        };
        Ok(match checked {
            Err(what) => Step::Invalid(what),
            Ok(records) => {
                let position = self.position;
                self.position += length as u64;
                Step::Batch(Walked {
                    header,
                    position,
                    records,
                })
            }
        })
    }

    /// The header at `position`, if one whole batch can be there.
    async fn header(&mut self, position: u64) -> std::io::Result<Result<BatchHeader, String>> {
        let left = self.view.end.saturating_sub(position);
        if left < HEADER_BYTES as u64 {
            return Ok(Err(format!("{left} bytes are no batch")));
        }
        let bytes = self.bytes(position, HEADER_BYTES).await?;
        let header = match BatchHeader::parse(&bytes) {
            Ok(header) => header,
            Err(error) => return Ok(Err(error.to_string())),
        };
        let length = header.total_bytes();
        if length as u64 > left {
            return Ok(Err(format!(
                "a batch of {length} bytes where {left} are left"
            )));
        }
        if header.last_offset_delta < 0 || header.base_offset.0 < 0 {
            return Ok(Err("a batch ends before it begins".to_owned()));
        }
        Ok(Ok(header))
    }

    /// Where a batch follows on bytes that are none: behind the claimed length if something that
    /// may come next stands there, else at the first of `places` with a whole batch.
    pub(super) async fn find_next(
        &mut self,
        places: impl Iterator<Item = u64>,
    ) -> std::io::Result<Option<u64>> {
        let bad = self.position;
        if let Ok(header) = self.header(bad).await? {
            let behind = bad + header.total_bytes() as u64;
            let next = header
                .base_offset
                .0
                .checked_add(i64::from(header.last_offset_delta) + 1);
            match self.header(behind).await? {
                Ok(after) if Some(after.base_offset.0) == next => return Ok(Some(behind)),
                _ if behind == self.view.end => return Ok(None),
                _ => {}
            }
        }
        for place in places.filter(|place| *place > bad) {
            self.position = place;
            let is_batch = matches!(self.next().await?, Step::Batch(_));
            self.position = bad;
            if is_batch {
                return Ok(Some(place));
            }
        }
        Ok(None)
    }

    /// The CRC of a batch's covered bytes, a window at a time.
    async fn checksum(&mut self, length: usize) -> std::io::Result<u32> {
        let (mut at, mut crc) = (CRC_COVERS_FROM, 0);
        while at < length {
            let some = WINDOW_BYTES.min(length - at);
            let bytes = self.view.read(self.position + at as u64, some).await?;
            if bytes.is_empty() {
                return Ok(!crc);
            }
            crc = crc32c::crc32c_append(crc, &bytes);
            at += bytes.len();
        }
        Ok(crc)
    }

    async fn bytes(&mut self, position: u64, length: usize) -> std::io::Result<Bytes> {
        let skip = position.checked_sub(self.window_at);
        let skip = skip.and_then(|skip| usize::try_from(skip).ok());
        let held = skip.filter(|skip| {
            skip.checked_add(length)
                .is_some_and(|end| end <= self.window.len())
        });
        if let Some(skip) = held {
            return Ok(self.window.slice(skip..skip + length));
        }
        self.window = self.view.read(position, length.max(WINDOW_BYTES)).await?;
        self.window_at = position;
        Ok(self.window.slice(..length.min(self.window.len())))
    }
}

/// Checks one batch's bytes; answers its records. Pure.
fn check(header: &BatchHeader, bytes: &[u8]) -> Result<u64, String> {
    verify_crc(bytes).map_err(|error| error.to_string())?;
    if bytes.len() != header.total_bytes() {
        return Err("the file ends within a batch".to_owned());
    }
    let codec = header.attributes.codec();
    let codec = codec.map_err(|error| error.to_string())?;
    let records = bytes.get(HEADER_BYTES..).unwrap_or_default();
    let decoder = Decoder::new(codec, records, DECODE_LIMITS).map_err(|error| error.to_string())?;
    let mut latest = -1;
    let mut count = 0;
    for record in RecordWalker::new(decoder, header.record_count) {
        let record = record.map_err(|error| format!("record {count}: {error}"))?;
        if record.offset_delta <= latest || record.offset_delta > header.last_offset_delta {
            return Err(format!(
                "record {count}: offset delta {} after {latest} in a batch up to {}",
                record.offset_delta, header.last_offset_delta
            ));
        }
        latest = record.offset_delta;
        count += 1;
    }
    Ok(count)
}
