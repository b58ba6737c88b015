//! Moves between log directories, under the names that the usual rules give
//! `kafka.server:type=ReplicaAlterLogDirsManager`, and what Coreline adds.
//!
//! Absent: `MinFetchRate`, since a copy does not fetch.

use super::super::observer::Observer;
use super::text::Text;
use crate::server::moves::MoveGauges;

/// Writes them.
pub fn render(text: &mut Text, observer: &Observer) {
    let mut all = MoveGauges::default();
    observer.shards(|shards| {
        for one in shards.iter().map(|shard| shard.gauges.moves) {
            all.moving += one.moving;
            all.failed += one.failed;
            all.lag_max = all.lag_max.max(one.lag_max);
        }
    });
    let labels = [("clientId", "ReplicaAlterLogDirs")];
    for (name, help, value) in [
        (
            "kafka_server_replicaalterlogdirsmanager_maxlag",
            "Offsets that the copy furthest behind lacks, of partitions on their way to another \
             log directory",
            all.lag_max as f64,
        ),
        (
            "kafka_server_replicaalterlogdirsmanager_failedpartitionscount",
            "Partitions whose last move was given up; the broker's log says why",
            all.failed as f64,
        ),
        (
            "kafka_server_replicaalterlogdirsmanager_deadthreadcount",
            "Always 0: a failure ends one move, never the others",
            0.0,
        ),
    ] {
        text.gauge(name, help).value(&labels, value);
    }
    text.gauge(
        "coreline_moving_partitions",
        "Partitions on their way to another log directory",
    )
    .value(&[], all.moving as f64);
}
