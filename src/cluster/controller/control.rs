//! How shards ask the controller.

use std::time::Duration;

use thiserror::Error;

use crate::base::error_code::ErrorCode;
use crate::base::ids::{
    BrokerId, LeaderEpoch, Offset, PartitionIndex, ProducerId, TopicPartition, Uuid,
};
use crate::cluster::decide::alter_configs::{Outcomes, ResourceChanges};
use crate::cluster::metadata_log::{ControllerEndpoint, MetadataLogError};
use crate::cluster::quotas::mutations::Asker;
use crate::io::reply::{ReplyReceiver, ReplySender, reply_slot};
use crate::io::{self, InboxSender};
use crate::wire::messages::alter_client_quotas::{
    AlterClientQuotasRequest, AlterClientQuotasResponse,
};
use crate::wire::messages::alter_partition_reassignments::{
    AlterPartitionReassignmentsRequest, AlterPartitionReassignmentsResponse,
};
use crate::wire::messages::create_partitions::{CreatePartitionsRequest, CreatePartitionsResponse};
use crate::wire::messages::create_topics::{CreateTopicsRequest, CreateTopicsResponse};
use crate::wire::messages::delete_topics::{DeleteTopicsRequest, DeleteTopicsResponse};
use crate::wire::messages::elect_leaders::{ElectLeadersRequest, ElectLeadersResponse};
use crate::wire::messages::update_features::{UpdateFeaturesRequest, UpdateFeaturesResponse};

/// How long an asker waits before it tries a full inbox again.
const INBOX_RETRY: Duration = Duration::from_millis(1);

/// Why the controller did not do what it was asked.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ControlError {
    /// The metadata log could not take the change.
    #[error("the metadata log cannot be written: {0}")]
    Storage(String),
    /// The change does not fit one batch of the metadata log.
    #[error("{0}")]
    TooLarge(String),
    /// Every producer id there is has been given out.
    #[error("there are no producer ids left")]
    NoProducerIds,
    /// The asker's time is over; what it asked for goes on.
    #[error("the time that the request allows is over; the change goes on")]
    TimedOut,
    /// The broker is stopping.
    #[error("the broker is stopping")]
    Stopped,
}

impl ControlError {
    /// Kafka's code.
    #[must_use]
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Storage(_) => ErrorCode::KAFKA_STORAGE_ERROR,
            Self::TooLarge(_) => ErrorCode::POLICY_VIOLATION,
            Self::NoProducerIds => ErrorCode::UNKNOWN_SERVER_ERROR,
            Self::TimedOut => ErrorCode::REQUEST_TIMED_OUT,
            Self::Stopped => ErrorCode::NOT_CONTROLLER,
        }
    }
}

impl From<&MetadataLogError> for ControlError {
    fn from(fault: &MetadataLogError) -> Self {
        match fault {
            MetadataLogError::TooLarge { .. } | MetadataLogError::Encode(_) => {
                Self::TooLarge(fault.to_string())
            }
            _ => Self::Storage(fault.to_string()),
        }
    }
}

type Answer<T> = Result<T, ControlError>;

/// A partition by its topic's name, and the directory where it is to be made.
pub type Preferred = (String, PartitionIndex, Uuid);

/// What the controller is asked.
pub(super) enum ControlRequest {
    CreateTopics {
        request: CreateTopicsRequest,
        asker: Asker,
        reply: ReplySender<Answer<CreateTopicsResponse>>,
    },
    CreatePartitions {
        request: CreatePartitionsRequest,
        asker: Asker,
        reply: ReplySender<Answer<CreatePartitionsResponse>>,
    },
    DeleteTopics {
        request: DeleteTopicsRequest,
        version: i16,
        asker: Asker,
        reply: ReplySender<Answer<DeleteTopicsResponse>>,
    },
    AlterConfigs {
        resources: Vec<ResourceChanges>,
        validate_only: bool,
        reply: ReplySender<Answer<Outcomes>>,
    },
    NextProducerId {
        reply: ReplySender<Answer<ProducerId>>,
    },
    Cluster(ClusterRequest),
    DirectoryFailed {
        directory: Uuid,
        reply: ReplySender<Answer<()>>,
    },
    Stop {
        reply: ReplySender<()>,
    },
}

/// What concerns the cluster as a whole, or partitions wherever they lie.
pub(super) enum ClusterRequest {
    ElectLeaders {
        request: ElectLeadersRequest,
        reply: ReplySender<Answer<ElectLeadersResponse>>,
    },
    AlterReassignments {
        request: AlterPartitionReassignmentsRequest,
        reply: ReplySender<Answer<AlterPartitionReassignmentsResponse>>,
    },
    AssignDirectory {
        partition: TopicPartition,
        directory: Uuid,
        reply: ReplySender<Answer<bool>>,
    },
    PreferDirectories {
        wanted: Vec<Preferred>,
        reply: ReplySender<Answer<()>>,
    },
    UpdateFeatures {
        request: UpdateFeaturesRequest,
        version: i16,
        reply: ReplySender<Answer<UpdateFeaturesResponse>>,
    },
    AlterClientQuotas {
        request: AlterClientQuotasRequest,
        unknown_hosts: Vec<String>,
        reply: ReplySender<Answer<AlterClientQuotasResponse>>,
    },
    DescribeQuorum {
        reply: ReplySender<Answer<QuorumState>>,
    },
}

/// Who keeps the metadata log, and how far it goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuorumState {
    /// The one voter, who leads.
    pub node_id: BrokerId,
    /// The log directory that holds the log.
    pub directory_id: Uuid,
    /// In which epoch it leads.
    pub leader_epoch: LeaderEpoch,
    /// The end of the log; all of it is durable.
    pub end_offset: Offset,
    /// Where a controller of Kafka's would be reached.
    pub endpoint: ControllerEndpoint,
}

/// The way to the controller; cheap to clone, may go to any thread.
#[derive(Clone)]
pub struct ControlHandle {
    requests: InboxSender<ControlRequest>,
}

impl std::fmt::Debug for ControlHandle {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("ControlHandle").finish_non_exhaustive()
    }
}

impl ControlHandle {
    pub(super) fn new(requests: InboxSender<ControlRequest>) -> Self {
        Self { requests }
    }

    /// What `answer` becomes within `timeout_ms`, as Kafka's requests give it: at or below zero
    /// there is no time.
    pub async fn within<T>(timeout_ms: i32, answer: impl Future<Output = Answer<T>>) -> Answer<T> {
        let timeout = Duration::from_millis(u64::try_from(timeout_ms).unwrap_or(0));
        let answered = io::with_deadline(io::now().after(timeout), answer).await;
        answered.unwrap_or(Err(ControlError::TimedOut))
    }

    /// Creates topics. Answered when their partitions can be used.
    pub async fn create_topics(
        &self,
        request: CreateTopicsRequest,
        asker: Asker,
    ) -> Answer<CreateTopicsResponse> {
        let (reply, answer) = reply_slot();
        let request = ControlRequest::CreateTopics {
            request,
            asker,
            reply,
        };
        self.ask(request, answer).await?
    }

    /// Adds partitions to topics. Answered when they can be used.
    pub async fn create_partitions(
        &self,
        request: CreatePartitionsRequest,
        asker: Asker,
    ) -> Answer<CreatePartitionsResponse> {
        let (reply, answer) = reply_slot();
        let request = ControlRequest::CreatePartitions {
            request,
            asker,
            reply,
        };
        self.ask(request, answer).await?
    }

    /// Deletes topics, by the rules of this version of the request. Answered when no shard serves
    /// them any more.
    pub async fn delete_topics(
        &self,
        request: DeleteTopicsRequest,
        version: i16,
        asker: Asker,
    ) -> Answer<DeleteTopicsResponse> {
        let (reply, answer) = reply_slot();
        let request = ControlRequest::DeleteTopics {
            request,
            version,
            asker,
            reply,
        };
        self.ask(request, answer).await?
    }

    /// Changes settings of topics, brokers, groups and subscriptions. Answered when they are in
    /// force.
    pub async fn alter_configs(
        &self,
        resources: Vec<ResourceChanges>,
        validate_only: bool,
    ) -> Answer<Outcomes> {
        let (reply, answer) = reply_slot();
        let request = ControlRequest::AlterConfigs {
            resources,
            validate_only,
            reply,
        };
        self.ask(request, answer).await?
    }

    /// Elects leaders of partitions. Answered when they lead.
    pub async fn elect_leaders(
        &self,
        request: ElectLeadersRequest,
    ) -> Answer<ElectLeadersResponse> {
        let (reply, answer) = reply_slot();
        let request = ClusterRequest::ElectLeaders { request, reply };
        self.ask(ControlRequest::Cluster(request), answer).await?
    }

    /// Gives partitions other replicas.
    pub async fn alter_reassignments(
        &self,
        request: AlterPartitionReassignmentsRequest,
    ) -> Answer<AlterPartitionReassignmentsResponse> {
        let (reply, answer) = reply_slot();
        let request = ClusterRequest::AlterReassignments { request, reply };
        self.ask(ControlRequest::Cluster(request), answer).await?
    }

    /// Says, durably, that a partition is in another of this broker's log directories; false where
    /// there is no such partition or directory. After an error it may be so or not.
    pub async fn assign_directory(
        &self,
        partition: TopicPartition,
        directory: Uuid,
    ) -> Answer<bool> {
        let (reply, answer) = reply_slot();
        let request = ClusterRequest::AssignDirectory {
            partition,
            directory,
            reply,
        };
        self.ask(ControlRequest::Cluster(request), answer).await?
    }

    /// Names directories for partitions that there are not yet.
    pub async fn prefer_directories(&self, wanted: Vec<Preferred>) -> Answer<()> {
        let (reply, answer) = reply_slot();
        let request = ClusterRequest::PreferDirectories { wanted, reply };
        self.ask(ControlRequest::Cluster(request), answer).await?
    }

    /// Changes levels of features, and answers as this version of the request is answered.
    pub async fn update_features(
        &self,
        request: UpdateFeaturesRequest,
        version: i16,
    ) -> Answer<UpdateFeaturesResponse> {
        let (reply, answer) = reply_slot();
        let request = ClusterRequest::UpdateFeatures {
            request,
            version,
            reply,
        };
        self.ask(ControlRequest::Cluster(request), answer).await?
    }

    /// Changes limits of users, clients and addresses, of which these hosts have none. Answered
    /// when the limits are in force.
    pub async fn alter_client_quotas(
        &self,
        request: AlterClientQuotasRequest,
        unknown_hosts: Vec<String>,
    ) -> Answer<AlterClientQuotasResponse> {
        let (reply, answer) = reply_slot();
        let request = ClusterRequest::AlterClientQuotas {
            request,
            unknown_hosts,
            reply,
        };
        self.ask(ControlRequest::Cluster(request), answer).await?
    }

    /// Who keeps the metadata log.
    pub async fn describe_quorum(&self) -> Answer<QuorumState> {
        let (reply, answer) = reply_slot();
        let request = ClusterRequest::DescribeQuorum { reply };
        self.ask(ControlRequest::Cluster(request), answer).await?
    }

    /// A producer id that nobody else will ever get.
    pub async fn next_producer_id(&self) -> Answer<ProducerId> {
        let (reply, answer) = reply_slot();
        let request = ControlRequest::NextProducerId { reply };
        self.ask(request, answer).await?
    }

    /// Tells that a log directory has failed. Answered when no shard takes requests for its
    /// partitions any more.
    pub async fn directory_failed(&self, directory: Uuid) -> Answer<()> {
        let (reply, answer) = reply_slot();
        let request = ControlRequest::DirectoryFailed { directory, reply };
        self.ask(request, answer).await?
    }

    /// Stops the controller; done when its log is closed. What is asked afterwards is refused.
    pub async fn stop(&self) {
        let (reply, answer) = reply_slot();
        // Stopped already is as good.
        let _ = self.ask(ControlRequest::Stop { reply }, answer).await;
    }

    async fn ask<T: Send>(
        &self,
        mut request: ControlRequest,
        answer: ReplyReceiver<T>,
    ) -> Answer<T> {
        while let Err(returned) = self.requests.try_send(request) {
            if self.requests.is_closed() {
                return Err(ControlError::Stopped);
            }
            request = returned;
            io::sleep(INBOX_RETRY).await;
        }
        answer.await.ok_or(ControlError::Stopped)
    }
}
