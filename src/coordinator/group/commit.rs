//! OffsetCommit.

use super::coordinator::GroupCoordinator;
use super::core::{AfterWrite, Now, Ticket};
use super::memory::{GROUP_BYTES, OFFSET_BYTES};
use super::offsets::OffsetEntry;
use super::operation::{CommitPartition, OffsetCommit};
use super::record::{CommittedOffset, Record};
use super::response::{Response, TopicCodes};
use super::roster::Group;
use super::state::GroupState;
use crate::base::error_code::ErrorCode;
use crate::base::ids::TopicId;
use crate::base::time::TimestampMs;

impl GroupCoordinator {
    /// Commits offsets of a member, or of a client that assigns its partitions itself; for the
    /// latter a group need not be known before.
    pub(super) fn commit_offsets(&mut self, now: Now, ticket: Ticket, commit: OffsetCommit) {
        if let Err(code) = self.check_commit(now, &commit) {
            let response = Response::CommitOffsets(Err(code));
            self.core.answer(ticket, response);
            return;
        }
        let ends = commit.retention_ms != -1;
        let expires_at = match ends {
            true => TimestampMs(now.wall.0.saturating_add(commit.retention_ms)),
            false => TimestampMs::NONE,
        };
        let mut records = Vec::new();
        let mut codes = Vec::with_capacity(commit.topics.len());
        for topic in commit.topics {
            let mut partitions = Vec::with_capacity(topic.partitions.len());
            // As its record has it.
            let topic_id = if ends { TopicId::ZERO } else { topic.topic_id };
            for one in topic.partitions {
                let index = one.partition;
                if is_too_large(&one, self.core.config.offset_metadata_max) {
                    partitions.push((index, ErrorCode::OFFSET_METADATA_TOO_LARGE));
                    continue;
                }
                partitions.push((index, ErrorCode::NONE));
                records.push(Record::Offset {
                    group_id: commit.group_id.clone(),
                    topic: topic.name.clone(),
                    partition: index,
                    value: Some(CommittedOffset {
                        offset: one.offset,
                        leader_epoch: one.leader_epoch,
                        metadata: one.metadata.unwrap_or_default(),
                        committed_at: now.wall,
                        expires_at,
                        topic_id,
                    }),
                });
            }
            codes.push(TopicCodes {
                name: topic.name,
                partitions,
            });
        }
        if !records.is_empty() && !self.groups.contains_key(&commit.group_id) {
            self.insert_group(Group::new(commit.group_id, now.wall));
        }
        let response = Response::CommitOffsets(Ok(codes));
        self.write(records, AfterWrite::Answer(ticket, response));
    }

    fn check_commit(&mut self, now: Now, commit: &OffsetCommit) -> Result<(), ErrorCode> {
        let Some(group) = self.groups.get(&commit.group_id) else {
            if commit.generation_id.0 < 0 {
                return self.check_room(commit);
            }
            return Err(match commit.tells_unknown_group {
                true => ErrorCode::GROUP_ID_NOT_FOUND,
                false => ErrorCode::ILLEGAL_GENERATION,
            });
        };
        group.check_commit(commit)?;
        self.check_room(commit)?;
        // A commit is a sign of life.
        if let Some(group) = self.groups.get(&commit.group_id)
            && matches!(
                group.state,
                GroupState::Stable | GroupState::PreparingRebalance
            )
        {
            group.restart_session(&mut self.core, now, &commit.member_id);
        }
        Ok(())
    }
}

impl GroupCoordinator {
    /// Offsets that were not there before need memory, and may not have it.
    fn check_room(&self, commit: &OffsetCommit) -> Result<(), ErrorCode> {
        let is_new = !self.groups.contains_key(&commit.group_id);
        let mut bytes = match is_new {
            true => GROUP_BYTES + 2 * commit.group_id.len(),
            false => 0,
        };
        for topic in &commit.topics {
            for one in &topic.partitions {
                let known = self
                    .offsets
                    .get(&commit.group_id, &topic.name, one.partition);
                let metadata = one.metadata.as_deref().map_or(0, str::len);
                let known = known.map_or(0, OffsetEntry::bytes);
                bytes += (OFFSET_BYTES + metadata).saturating_sub(known);
            }
        }
        match self.core.charge.has_room(bytes) {
            true => Ok(()),
            false => Err(ErrorCode::COORDINATOR_NOT_AVAILABLE),
        }
    }
}

impl Group {
    /// `ClassicGroup.validateOffsetCommit`.
    fn check_commit(&self, commit: &OffsetCommit) -> Result<(), ErrorCode> {
        if commit.generation_id.0 < 0 && self.is_empty() {
            return Ok(());
        }
        let is_named = !commit.member_id.is_empty() || commit.instance_id.is_some();
        if commit.generation_id.0 >= 0 || is_named {
            self.validate(&commit.member_id, commit.instance_id.as_ref())?;
            if commit.generation_id != self.generation_id {
                return Err(ErrorCode::ILLEGAL_GENERATION);
            }
        } else if !self.is_empty() {
            return Err(ErrorCode::UNKNOWN_MEMBER_ID);
        }
        match self.state {
            GroupState::CompletingRebalance => Err(ErrorCode::REBALANCE_IN_PROGRESS),
            _ => Ok(()),
        }
    }
}

/// Java counts UTF-16 code units.
fn is_too_large(commit: &CommitPartition, max: usize) -> bool {
    let metadata = commit.metadata.as_deref().unwrap_or_default();
    metadata.len() > max && metadata.encode_utf16().count() > max
}
