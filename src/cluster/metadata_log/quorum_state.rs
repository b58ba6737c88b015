//! The file `quorum-state`: which epoch this node has seen and led (`FileQuorumStateStore`,
//! `QuorumStateData.json`), as JSON. Version 0 belongs to `kraft.version` 0 and repeats the voters,
//! version 1 to `kraft.version` 1.

use crate::base::ids::{BrokerId, LeaderEpoch};

/// Its name in the log's folder.
pub const QUORUM_STATE_FILE: &str = "quorum-state";

/// Largest file that is read, in bytes.
pub const QUORUM_STATE_BYTES_MAX: usize = 64 * 1024;

/// What of the file matters to a node that is the only voter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QuorumState {
    /// The leader of the epoch, or -1.
    pub leader: BrokerId,
    /// The epoch.
    pub epoch: LeaderEpoch,
}

impl QuorumState {
    /// Reads the file; `None` when it is none. Whatever else it holds is left aside.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let epoch = integer(text, "leaderEpoch")?;
        let leader = integer(text, "leaderId")?;
        Some(Self {
            leader: BrokerId(leader),
            epoch: LeaderEpoch(epoch),
        })
    }

    /// The file's text at this `kraft.version`.
    #[must_use]
    pub fn text(self, kraft_version: i16) -> String {
        let Self { leader, epoch } = self;
        if kraft_version == 0 {
            format!(
                "{{\"clusterId\":\"\",\"leaderId\":{leader},\"leaderEpoch\":{epoch},\
                 \"votedId\":-1,\"appliedOffset\":0,\
                 \"currentVoters\":[{{\"voterId\":{leader}}}],\"data_version\":0}}"
            )
        } else {
            format!(
                "{{\"leaderId\":{leader},\"leaderEpoch\":{epoch},\"votedId\":-1,\
                 \"votedDirectoryId\":\"AAAAAAAAAAAAAAAAAAAAAA\",\"data_version\":1}}"
            )
        }
    }
}

/// The whole number that stands under `name`.
fn integer(text: &str, name: &str) -> Option<i32> {
    let (_, rest) = text.split_once(&format!("\"{name}\""))?;
    let rest = rest.trim_start().strip_prefix(':')?.trim_start();
    let end = rest
        .find(|character: char| character != '-' && !character.is_ascii_digit())
        .unwrap_or(rest.len());
    rest.get(..end)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_versions_are_kafkas_text() {
        let state = QuorumState {
            leader: BrokerId(1),
            epoch: LeaderEpoch(1),
        };
        // As Apache Kafka 4.4.0 wrote them.
        assert_eq!(
            state.text(0),
            "{\"clusterId\":\"\",\"leaderId\":1,\"leaderEpoch\":1,\"votedId\":-1,\
             \"appliedOffset\":0,\"currentVoters\":[{\"voterId\":1}],\"data_version\":0}"
        );
        assert_eq!(
            state.text(1),
            "{\"leaderId\":1,\"leaderEpoch\":1,\"votedId\":-1,\
             \"votedDirectoryId\":\"AAAAAAAAAAAAAAAAAAAAAA\",\"data_version\":1}"
        );
        assert_eq!(QuorumState::parse(&state.text(0)), Some(state));
        assert_eq!(QuorumState::parse(&state.text(1)), Some(state));
    }

    #[test]
    fn other_texts_are_refused() {
        let none = QuorumState {
            leader: BrokerId(-1),
            epoch: LeaderEpoch(7),
        };
        let text = "{ \"leaderEpoch\" : 7, \"leaderId\" : -1 }";
        assert_eq!(QuorumState::parse(text), Some(none));
        for text in [
            "",
            "{}",
            "{\"leaderId\":1}",
            "{\"leaderId\":1,\"leaderEpoch\":x}",
        ] {
            assert_eq!(QuorumState::parse(text), None, "{text}");
        }
    }
}
