//! The value of the control record that names the voters of the metadata log (KIP-853). It stands
//! in version 0 without a prefix, and carries that version as its first field.

use crate::base::ids::{BrokerId, Uuid};
use crate::wire::codec::message;

message! {
    /// The voters from here on (KIP-853).
    pub struct VotersRecord(data, versions 0..=0, flexible 0) {
        version: i16 => 0..;
        voters: Vec<Voter> => 0..;
    }

    /// One who may vote.
    pub struct Voter {
        voter_id: BrokerId => 0..;
        voter_directory_id: Uuid => 0..;
        endpoints: Vec<Endpoint> => 0..;
        kraft_version_feature: KRaftVersionFeature => 0..;
    }

    /// One listener of a voter.
    pub struct Endpoint {
        name: String => 0..;
        host: String => 0..;
        port: u16 => 0..;
    }

    /// The levels of `kraft.version` that a voter supports, both ends inclusive.
    pub struct KRaftVersionFeature {
        min_supported_version: i16 => 0..;
        max_supported_version: i16 => 0..;
    }
}
