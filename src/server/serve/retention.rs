//! The looks for old segments: every `log.retention.check.interval.ms` each shard goes through the
//! logs of its partitions, one after the other (`LogManager.cleanupLogs`).

use std::rc::Rc;
use std::time::Duration;

use crate::base::config::BrokerConfig;
use crate::io;
use crate::partition::Partition;
use crate::shard::Shard;

/// Looks until the shard's runtime ends.
pub async fn look_for_old_segments(shard: Rc<Shard>, config: &BrokerConfig) {
    let ms = |value: i64| Duration::from_millis(u64::try_from(value).unwrap_or(0));
    let interval = ms(config.retention_check_ms).max(Duration::from_millis(1));
    io::sleep(ms(config.initial_task_delay_ms)).await;
    loop {
        for partition in shard.partitions() {
            if !partition.is_closed() {
                look_at(&partition).await;
            }
            // Whatever came meanwhile goes first.
            io::yield_now().await;
        }
        io::sleep(interval).await;
    }
}

async fn look_at(partition: &Partition) {
    // A log that is about to change its directory waits for the next look.
    let Some(_change) = partition.try_change() else {
        return;
    };
    let log = partition.log();
    let folder = log.identity().folder();
    match log.delete_old_segments(partition.high_watermark()).await {
        Ok(deleted) => {
            for segment in &deleted {
                tracing::info!(
                    "{folder}: deleted segment {} of {} bytes ({})",
                    segment.base_offset,
                    segment.bytes,
                    segment.cause
                );
            }
        }
        Err(error) if partition.is_closed() => {
            tracing::debug!("{folder}: {error}");
        }
        Err(error) => tracing::error!("{folder}: cannot delete old segments: {error}"),
    }
}
