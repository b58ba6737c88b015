//! One snapshot's file, in Kafka's format (`RecordsSnapshotWriter`): a control batch with header,
//! `kraft.version` and voters, batches of metadata records, a control batch with the footer;
//! offsets count from 0.
//!
//! It is written under the suffix `.part`, synced, renamed, and its folder synced: under its own
//! name it is whole and durable, or it is damaged.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use bytes::{Bytes, BytesMut};

use super::batch::{self, Entry};
use super::create;
use super::error::MetadataLogError;
use super::names::SnapshotId;
use super::reader::{BatchReader, Next};
use super::replay::Replay;
use crate::base::ids::Offset;
use crate::base::time::TimestampMs;
use crate::cluster::image::Image;
use crate::cluster::records::MetadataRecord;
use crate::io::{AlignedBuffer, Durability, File, OpenOptions, directory};
use crate::wire::record_batch::{BatchHeader, ControlRecord, ControlRecordType};

/// Bytes of records after which a batch of a snapshot ends.
const SNAPSHOT_BATCH_BYTES: usize = 512 * 1024;

/// Reads a snapshot into `replay`, which has read nothing before. Of the snapshot that a cluster
/// begins with the records are answered instead: they are yet to be appended.
pub async fn read(
    folder: &Path,
    id: SnapshotId,
    replay: &mut Replay,
) -> Result<Vec<MetadataRecord>, MetadataLogError> {
    let mut reader = BatchReader::open(folder.join(id.file_name())).await?;
    let mut reading = Reading::default();
    loop {
        let reason = match reader.next().await? {
            Next::End if reading.has_footer => break,
            Next::End => "it ends without a footer".to_owned(),
            Next::Bad(reason) => reason,
            Next::Batch(header, bytes) => match reading.take(&header, &bytes, id, replay) {
                Ok(()) => {
                    reader.position += bytes.len() as u64;
                    continue;
                }
                Err(reason) => reason,
            },
        };
        return Err(reader.damaged(reason));
    }
    replay.next_offset = id.end_offset;
    replay.epoch = id.epoch;
    replay.image.advance_to(id.end_offset, id.epoch);
    Ok(reading.bootstrap)
}

/// How far a snapshot has been read.
#[derive(Default)]
struct Reading {
    next: Offset,
    has_header: bool,
    has_footer: bool,
    bootstrap: Vec<MetadataRecord>,
}

impl Reading {
    /// Takes one batch; the text says what is wrong with it.
    fn take(
        &mut self,
        header: &BatchHeader,
        bytes: &Bytes,
        id: SnapshotId,
        replay: &mut Replay,
    ) -> Result<(), String> {
        if self.has_footer {
            return Err("a batch stands behind the footer".to_owned());
        }
        if header.base_offset != self.next {
            let (found, expected) = (header.base_offset, self.next);
            return Err(format!(
                "a batch begins at offset {found}, where {expected} should come next"
            ));
        }
        self.next = header.next_offset();
        let entries = batch::entries(header, bytes).map_err(|fault| fault.to_string())??;
        for entry in entries {
            match entry {
                Entry::Control(_, ControlRecordType::SnapshotHeader, value) => {
                    self.has_header = true;
                    replay.last_timestamp = contained_timestamp(&value);
                }
                _ if !self.has_header => return Err("it begins without a header".to_owned()),
                Entry::Control(_, ControlRecordType::SnapshotFooter, _) => self.has_footer = true,
                Entry::Data(_, record) if id == SnapshotId::BOOTSTRAP => {
                    self.bootstrap.push(record);
                }
                entry => (replay.apply_entry(entry)).map_err(|fault| fault.to_string())?,
            }
        }
        Ok(())
    }
}

/// `LastContainedLogTimestamp` of a `SnapshotHeaderRecord`.
fn contained_timestamp(value: &[u8]) -> TimestampMs {
    let bytes = value.get(2..).and_then(|rest| rest.first_chunk::<8>());
    bytes.map_or(TimestampMs::NONE, |bytes| {
        TimestampMs(i64::from_be_bytes(*bytes))
    })
}

/// Size of a snapshot in bytes and, when its header can be read, when the last record that it
/// contains was appended.
pub async fn describe(
    folder: &Path,
    id: SnapshotId,
) -> Result<(u64, Option<TimestampMs>), MetadataLogError> {
    let mut reader = BatchReader::open(folder.join(id.file_name())).await?;
    let Next::Batch(header, bytes) = reader.next().await? else {
        return Ok((reader.len, None));
    };
    let entries = batch::entries(&header, &bytes)?.unwrap_or_default();
    let timestamp = entries.iter().find_map(|entry| match entry {
        Entry::Control(_, ControlRecordType::SnapshotHeader, value) => {
            Some(contained_timestamp(value))
        }
        _ => None,
    });
    Ok((reader.len, timestamp))
}

/// What a snapshot is to hold.
#[derive(Debug)]
pub struct Content<'a> {
    /// Which one it is.
    pub id: SnapshotId,
    /// Its header, and what KRaft keeps for itself.
    pub head: Vec<ControlRecord>,
    /// All that the log has told.
    pub image: &'a Image,
    /// The time of its records.
    pub now: TimestampMs,
}

/// Writes a snapshot and makes it durable.
pub async fn write(folder: &Path, content: &Content<'_>) -> Result<(), MetadataLogError> {
    let part = folder.join(content.id.part_name());
    let path = folder.join(content.id.file_name());
    let written = write_part(&part, content).await;
    let renamed = match written {
        Ok(()) => {
            (directory::rename(&part, &path).await).map_err(MetadataLogError::io("rename", &part))
        }
        failed => failed,
    };
    if renamed.is_err() {
        // The next start removes it, should this fail too.
        let _ = directory::remove_file(&part).await;
    }
    renamed?;
    directory::sync(folder)
        .await
        .map_err(MetadataLogError::io("sync", folder))
}

async fn write_part(part: &Path, content: &Content<'_>) -> Result<(), MetadataLogError> {
    remove_if_there(part).await?;
    // A new file: a write of a killed process may still land in what that left.
    let options = OpenOptions {
        write: true,
        create_new: true,
        ..OpenOptions::default()
    };
    let file = File::open(part, options).await;
    let mut writer = PartWriter {
        file: file.map_err(MetadataLogError::io("create", part))?,
        path: part.to_owned(),
        position: 0,
        next: Offset(0),
    };
    let (id, now) = (content.id, content.now);
    let head = create::control_batch(writer.next, id.epoch, now, &content.head)?;
    writer.append(head, content.head.len()).await?;
    let mut values = Vec::new();
    let mut bytes = 0;
    for record in content.image.records() {
        let value = record.encode()?;
        if bytes + value.len() > SNAPSHOT_BATCH_BYTES && !values.is_empty() {
            let batch = batch::of_values(writer.next, id.epoch, now, &values)?;
            writer.append(batch, values.len()).await?;
            (values, bytes) = (Vec::new(), 0);
        }
        bytes += value.len();
        values.push(value);
    }
    if !values.is_empty() {
        let batch = batch::of_values(writer.next, id.epoch, now, &values)?;
        writer.append(batch, values.len()).await?;
    }
    let foot = [ControlRecord::snapshot_footer()];
    let foot = create::control_batch(writer.next, id.epoch, now, &foot)?;
    writer.append(foot, 1).await?;
    let synced = writer.file.sync_all().await;
    synced.map_err(MetadataLogError::io("sync", part))
}

struct PartWriter {
    file: File,
    path: PathBuf,
    position: u64,
    next: Offset,
}

impl PartWriter {
    async fn append(&mut self, batch: BytesMut, count: usize) -> Result<(), MetadataLogError> {
        let mut buffer = AlignedBuffer::with_capacity(batch.len());
        buffer.extend_from_slice(&batch);
        let written = self
            .file
            .write_at(self.position, buffer, Durability::Written);
        let (written, _) = written.await;
        written.map_err(MetadataLogError::io("write", &self.path))?;
        self.position += batch.len() as u64;
        self.next = self.next.plus(count as i64);
        Ok(())
    }
}

/// Removes a file, or nothing.
pub async fn remove_if_there(path: &Path) -> Result<(), MetadataLogError> {
    match directory::remove_file(path).await {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(MetadataLogError::io("remove", path)(error))
        }
        _ => Ok(()),
    }
}
