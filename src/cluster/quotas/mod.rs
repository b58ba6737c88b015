//! Limits of users, clients and addresses (KIP-13, KIP-124, KIP-546, KIP-599, KIP-612): which limit
//! counts for whom, and how much of it is used. Pure: points in time come in as arguments.
//!
//! | Module | What it is |
//! |---|---|
//! | [`limits`] | the limits of an image as they are looked up |
//! | [`rate`] | what was used within the windows of `quota.window.num` |
//! | [`tokens`] | what may still be changed of partitions |
//! | [`mutations`] | the controller's buckets of tokens, by whose they are |

pub mod limits;
pub mod mutations;
pub mod rate;
pub mod tokens;

pub use crate::base::config::QuotaWindows as Windows;

/// What is limited for users and clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum QuotaKind {
    /// Bytes of Produce requests a second.
    Produce,
    /// Bytes of Fetch responses a second.
    Fetch,
    /// Time of one thread, in percent.
    Request,
    /// Partitions created or deleted a second.
    ControllerMutation,
}

impl QuotaKind {
    /// All of them.
    pub const ALL: [Self; 4] = [
        Self::Produce,
        Self::Fetch,
        Self::Request,
        Self::ControllerMutation,
    ];

    /// Kafka's name of the limit.
    #[must_use]
    pub const fn key(self) -> &'static str {
        match self {
            Self::Produce => "producer_byte_rate",
            Self::Fetch => "consumer_byte_rate",
            Self::Request => "request_percentage",
            Self::ControllerMutation => "controller_mutation_rate",
        }
    }
}

/// Kafka's name of the limit of an address: connections a second.
pub const CONNECTION_CREATION_RATE: &str = "connection_creation_rate";

/// The name of every user that does not say who it is (`KafkaPrincipal.ANONYMOUS`).
pub const ANONYMOUS: &str = "ANONYMOUS";
