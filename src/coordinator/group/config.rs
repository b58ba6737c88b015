//! The settings of groups and offsets.

use std::time::Duration;

/// What Kafka sets for groups and offsets (`GroupCoordinatorConfig`), with its defaults.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupConfig {
    /// `group.min.session.timeout.ms`.
    pub session_timeout_min: Duration,
    /// `group.max.session.timeout.ms`.
    pub session_timeout_max: Duration,
    /// `group.initial.rebalance.delay.ms`.
    pub initial_rebalance_delay: Duration,
    /// `group.max.size`: members of one group.
    pub members_max: usize,
    /// `offset.metadata.max.bytes`, in UTF-16 code units as Java counts text.
    pub offset_metadata_max: usize,
    /// `offsets.retention.minutes`.
    pub offsets_retention: Duration,
    /// `offsets.retention.check.interval.ms`.
    pub retention_check_interval: Duration,
}

impl Default for GroupConfig {
    fn default() -> Self {
        Self {
            session_timeout_min: Duration::from_secs(6),
            session_timeout_max: Duration::from_secs(30 * 60),
            initial_rebalance_delay: Duration::from_secs(3),
            members_max: usize::MAX,
            offset_metadata_max: 4_096,
            offsets_retention: Duration::from_secs(7 * 24 * 60 * 60),
            retention_check_interval: Duration::from_secs(10 * 60),
        }
    }
}

/// How long a new member may wait for its first rebalance before its client counts as gone
/// (`GroupMetadataManager`'s join timeout of new members).
pub const NEW_MEMBER_JOIN_TIMEOUT: Duration = Duration::from_secs(5 * 60);
/// Members of one group that were given an id and have not come back with it. The oldest is
/// forgotten for a newer one: a client that comes back with a forgotten id is told so and asks for
/// another. Kafka keeps all of them until their session timeout.
pub const PENDING_MEMBERS_MAX: usize = 10_000;
/// Groups that one look for expired offsets goes through before others have their turn.
pub const EXPIRY_GROUPS_MAX: usize = 200;
/// How soon such a look goes on.
pub const EXPIRY_PAUSE: Duration = Duration::from_millis(10);
/// Metadata and places of the offsets that one answer tells, in bytes, at most; a request that asks
/// for more is refused (INVALID_REQUEST). Kafka has no such limit.
pub const FETCHED_BYTES_MAX: usize = 64 << 20;
/// An answer may tell so much however little memory there is.
pub const FETCHED_BYTES_MIN: usize = 16 << 20;
/// Records of one write that deletes offsets; more become several. What a client commits is one
/// write, however many.
pub const WRITE_RECORDS_MAX: usize = 1_000;
