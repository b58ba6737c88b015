//! Consumer groups of the classic protocol and the offsets that groups commit, as Kafka's
//! `GroupMetadataManager`, `ClassicGroup` and `OffsetMetadataManager` keep them.
//!
//! One [`GroupCoordinator`] stands over one partition of `__consumer_offsets`. It does no I/O and
//! reads no clock: time, and what is random in member ids, come in as arguments.
//!
//! ```text
//! handle(operation) ─┐
//! expire(time)       ├─> Effects { writes, answers }     writes are appended in their order
//! committed(write)   │
//! failed(write)     ─┘   replay(record) when the partition is loaded
//! ```
//!
//! What a write changes in a group counts when it is committed; commits and deletions of offsets
//! are known at once to later operations, and to fetches when they are committed.
//!
//! A waiting answer is named by its [`Ticket`]. No ticket is ever lost: one whose member joins
//! again, leaves or expires is answered then, where Kafka leaves such a request without an answer.
//!
//! What is absent: the consumer, share and streams protocols (KIP-848, KIP-932, KIP-1071), and
//! offsets committed within transactions.

mod admin;
mod commit;
mod config;
mod coordinator;
mod core;
mod expiry;
mod fetch;
mod heartbeat;
mod ids;
mod join;
mod leave;
mod member;
mod memory;
mod offset_delete;
mod offsets;
mod operation;
mod protocols;
mod rebalance;
mod record;
mod replay;
mod report;
mod response;
mod roster;
mod state;
mod static_member;
mod sync;
mod timers;

pub use self::core::{Effects, Now, Ticket, Write, WriteId, code_of_failed_append};
pub use config::{FETCHED_BYTES_MAX, FETCHED_BYTES_MIN, GroupConfig};
pub use coordinator::{GroupCoordinator, GroupCounts};
pub use ids::{GroupId, InstanceId, MemberId};
pub use memory::GroupMemory;
pub use operation::{
    Assignment, CommitPartition, CommitTopic, DeleteOffsets, FetchOffsets, Heartbeat, Join, Leave,
    LeavingMember, ListGroups, NamedTopic, OffsetCommit, Operation, Protocol, Sync,
    TopicPartitions,
};
pub use record::{CommittedOffset, GroupValue, MemberValue, Record};
pub use report::{GroupReport, TopicOffsetsReport};
pub use response::{
    DescribedGroup, DescribedMember, FetchedOffset, FetchedOffsets, FetchedTopic, JoinMember,
    JoinResponse, LeaveResponse, LeftMember, ListedGroup, Response, SyncResponse, TopicCodes,
};
pub use state::GroupState;

#[cfg(test)]
mod group_test;
