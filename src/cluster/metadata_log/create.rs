//! The files of a new log, and what the leader of an epoch writes first.

use std::io::ErrorKind;
use std::path::Path;

use bytes::{Bytes, BytesMut};

use super::batch::{self, BATCH_BYTES_MAX};
use super::error::MetadataLogError;
use super::names::SnapshotId;
use super::{MetadataLogOptions, names};
use crate::base::ids::{LeaderEpoch, Offset, Uuid};
use crate::base::time::TimestampMs;
use crate::cluster::decide::bootstrap_records;
use crate::io::directory;
use crate::wire::codec::DataMessage;
use crate::wire::messages::voters_record::{Endpoint, KRaftVersionFeature, Voter, VotersRecord};
use crate::wire::primitives::Writer;
use crate::wire::record_batch::{ControlRecord, ControlRecordType, kraft_control_batch};

/// Where each epoch begins.
pub const EPOCH_CHECKPOINT_FILE: &str = "leader-epoch-checkpoint";

const PARTITION_METADATA_FILE: &str = "partition.metadata";

/// `Topic.METADATA_TOPIC_ID`.
const METADATA_TOPIC_ID: Uuid = Uuid(1u128.to_be_bytes());

/// Level of `kraft.version` in a new log: the log names its voter itself (KIP-853), so that Kafka
/// can carry it on under `controller.quorum.bootstrap.servers` as under
/// `controller.quorum.voters`.
const KRAFT_VERSION_NEW: i16 = 1;

/// Creates what is not there of a new log. A log that holds anything keeps its bootstrap snapshot,
/// or goes on without one.
pub async fn create_missing(
    folder: &Path,
    options: &MetadataLogOptions,
    now: TimestampMs,
) -> Result<(), MetadataLogError> {
    refuse_without_metadata(folder, &options.log_dir).await?;
    directory::create_all(folder)
        .await
        .map_err(MetadataLogError::io("create", folder))?;
    let entries = directory::list(folder)
        .await
        .map_err(MetadataLogError::io("list", folder))?;
    let has = |wanted: &dyn Fn(&str) -> bool| entries.iter().any(|entry| wanted(&entry.name));
    if !has(&|name| name == PARTITION_METADATA_FILE) {
        let text = format!("version: 0\ntopic_id: {METADATA_TOPIC_ID}");
        replace(folder, PARTITION_METADATA_FILE, text.as_bytes()).await?;
    }
    let is_log =
        |name: &str| SnapshotId::parse(name).is_some() || names::parse_segment_name(name).is_some();
    if !has(&is_log) {
        let snapshot = bootstrap_snapshot(options, now)?;
        replace(folder, &SnapshotId::BOOTSTRAP.file_name(), &snapshot).await?;
    }
    // An earlier start may have died before this.
    directory::sync(&options.log_dir)
        .await
        .map_err(MetadataLogError::io("sync", &options.log_dir))
}

/// Without its log of metadata a directory's partitions would belong to nobody: a new log is begun
/// only where there are none.
async fn refuse_without_metadata(folder: &Path, log_dir: &Path) -> Result<(), MetadataLogError> {
    match directory::metadata(folder).await {
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        found => {
            return found
                .map(|_| ())
                .map_err(MetadataLogError::io("find", folder));
        }
    }
    let entries = directory::list(log_dir)
        .await
        .map_err(MetadataLogError::io("list", log_dir))?;
    for entry in entries.into_iter().filter(|entry| entry.is_directory) {
        let partition = log_dir.join(&entry.name).join(PARTITION_METADATA_FILE);
        if directory::metadata(&partition).await.is_ok() {
            return Err(MetadataLogError::Damaged {
                path: folder.to_owned(),
                position: 0,
                reason: format!(
                    "it is missing, and {} is the folder of a partition, which only it can name; \
                     put it back, or move the partitions' folders away",
                    entry.name
                ),
            });
        }
    }
    Ok(())
}

/// Replaces a small file of the folder, atomically and durably.
pub async fn replace(folder: &Path, name: &str, bytes: &[u8]) -> Result<(), MetadataLogError> {
    let path = folder.join(name);
    directory::write_file_durably(&path, bytes)
        .await
        .map_err(MetadataLogError::io("write", &path))
}

/// What `kafka-storage.sh format --standalone` writes: header, `kraft.version`, voter; the feature
/// levels; footer.
fn bootstrap_snapshot(
    options: &MetadataLogOptions,
    now: TimestampMs,
) -> Result<Vec<u8>, MetadataLogError> {
    let mut head = vec![ControlRecord::snapshot_header(now)];
    head.extend(quorum_records(options, KRAFT_VERSION_NEW)?);
    let levels = bootstrap_records();
    let no_epoch = LeaderEpoch(0);
    let data_at = Offset(head.len() as i64);
    let foot_at = data_at.plus(levels.len() as i64);
    let mut snapshot = control_batch(Offset(0), no_epoch, now, &head)?.to_vec();
    snapshot.extend_from_slice(&batch::build(data_at, no_epoch, now, &levels)?);
    let foot = [ControlRecord::snapshot_footer()];
    snapshot.extend_from_slice(&control_batch(foot_at, no_epoch, now, &foot)?);
    Ok(snapshot)
}

/// The first control record of an epoch of this node
/// (`LeaderState.appendStartOfEpochControlRecords`).
pub fn leader_change(options: &MetadataLogOptions) -> ControlRecord {
    // Kafka names no directory here, at any level.
    ControlRecord::leader_change(options.node_id, &[(options.node_id, Uuid::ZERO)])
}

/// What the log says of the quorum at this `kraft.version`, in each epoch and each snapshot.
pub fn quorum_records(
    options: &MetadataLogOptions,
    kraft_version: i16,
) -> Result<Vec<ControlRecord>, MetadataLogError> {
    if kraft_version == 0 {
        return Ok(Vec::new());
    }
    let version = ControlRecord::kraft_version(kraft_version);
    Ok(vec![version, voters_record(options)?])
}

fn voters_record(options: &MetadataLogOptions) -> Result<ControlRecord, MetadataLogError> {
    let controller = &options.controller;
    let record = VotersRecord {
        version: 0,
        voters: vec![Voter {
            voter_id: options.node_id,
            voter_directory_id: options.directory_id,
            endpoints: vec![Endpoint {
                name: controller.name.clone(),
                host: controller.host.clone(),
                port: controller.port,
            }],
            kraft_version_feature: KRaftVersionFeature {
                min_supported_version: 0,
                max_supported_version: KRAFT_VERSION_NEW,
            },
        }],
    };
    let mut writer = Writer::default();
    record.encode(&mut writer, 0)?;
    let value: Bytes = writer.into_bytes();
    Ok(ControlRecord {
        kind: ControlRecordType::KraftVoters,
        value: value.to_vec(),
    })
}

/// One control batch.
pub fn control_batch(
    base_offset: Offset,
    epoch: LeaderEpoch,
    now: TimestampMs,
    records: &[ControlRecord],
) -> Result<BytesMut, MetadataLogError> {
    // Only a codec's library could fail, and there is none.
    let too_large = |_| MetadataLogError::TooLarge {
        bytes: 0,
        limit: BATCH_BYTES_MAX,
    };
    kraft_control_batch(base_offset, epoch, now, records).map_err(too_large)
}

/// Reads the text of `leader-epoch-checkpoint`; `None` when it is none.
pub fn parse_epoch_checkpoint(text: &str) -> Option<Vec<(LeaderEpoch, Offset)>> {
    let mut lines = text.lines();
    if lines.next()? != "0" {
        return None;
    }
    let count: usize = lines.next()?.parse().ok()?;
    let start = |line: &str| {
        let (epoch, offset) = line.split_once(' ')?;
        Some((
            LeaderEpoch(epoch.parse().ok()?),
            Offset(offset.parse().ok()?),
        ))
    };
    let starts = lines.map(start).collect::<Option<Vec<_>>>()?;
    (starts.len() == count).then_some(starts)
}

/// The epochs that a log has which begins at `log_start`: the first begins there.
pub fn epoch_starts_from(
    log_start: Offset,
    starts: &[(LeaderEpoch, Offset)],
) -> Vec<(LeaderEpoch, Offset)> {
    let first = starts.iter().rposition(|(_, offset)| *offset <= log_start);
    let kept = starts.iter().skip(first.unwrap_or(0));
    kept.map(|(epoch, offset)| (*epoch, (*offset).max(log_start)))
        .collect()
}

/// The text of `leader-epoch-checkpoint`: version, count, then a line for each epoch with its first
/// offset.
pub fn epoch_checkpoint(starts: &[(LeaderEpoch, Offset)]) -> String {
    let mut text = format!("0\n{}\n", starts.len());
    for (epoch, offset) in starts {
        text.push_str(&format!("{epoch} {offset}\n"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn epochs_are_read_as_written_and_none_begins_before_the_log() {
        let starts = [(1, 0), (2, 10), (5, 30)];
        let starts = starts.map(|(epoch, offset)| (LeaderEpoch(epoch), Offset(offset)));
        let text = epoch_checkpoint(&starts);
        assert_eq!(parse_epoch_checkpoint(&text).unwrap(), starts);
        for text in ["", "1\n0\n", "0\n2\n1 0\n", "0\n1\n1\n", "0\nx\n"] {
            assert_eq!(parse_epoch_checkpoint(text), None, "{text}");
        }
        let from = |at| {
            let kept = epoch_starts_from(Offset(at), &starts);
            kept.iter()
                .map(|(epoch, at)| (epoch.0, at.0))
                .collect::<Vec<_>>()
        };
        assert_eq!(from(0), [(1, 0), (2, 10), (5, 30)]);
        assert_eq!(from(9), [(1, 9), (2, 10), (5, 30)]);
        assert_eq!(from(10), [(2, 10), (5, 30)]);
        assert_eq!(from(40), [(5, 40)]);
        assert!(epoch_starts_from(Offset(3), &[]).is_empty());
    }
}
