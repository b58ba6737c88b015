//! Settings of the metadata log (`MetadataLogConfig`).

/// When the metadata log begins another segment, takes a snapshot and drops what is old.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MetadataLogSettings {
    /// `metadata.log.segment.bytes`, or `internal.metadata.log.segment.bytes` where that is given.
    pub segment_bytes_max: u64,
    /// `metadata.log.segment.ms`
    pub segment_ms_max: i64,
    /// `metadata.log.max.record.bytes.between.snapshots`
    pub bytes_between_snapshots_max: u64,
    /// `metadata.log.max.snapshot.interval.ms`; 0: time alone causes none.
    pub snapshot_interval_ms_max: i64,
    /// `metadata.max.retention.bytes`; negative: no limit.
    pub retention_bytes: i64,
    /// `metadata.max.retention.ms`; negative: no limit.
    pub retention_ms: i64,
}

impl Default for MetadataLogSettings {
    fn default() -> Self {
        super::BrokerConfig::default().metadata_log
    }
}
