//! The controller: the one writer of the metadata log. Runs on the control executor.
//!
//! A request is decided purely, its records are appended durably, the image moves on, every shard
//! gets the new image and hosts or drops what it owns, and then the answer leaves. Requests are
//! taken one by one, in the order of their arrival.
//!
//! Before anything is served, a start has registered the broker and raised the leader epoch of
//! every partition that it leads ([`Controller::open`]).

mod cluster_requests;
mod control;
mod upkeep;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use thiserror::Error;

use super::decide::{
    self, CreateTopicsContext, Decision, LocalDirectories, METADATA_VERSION_DIRECTORIES,
    METADATA_VERSIONS, NodeRegistration, PreferredDirectories, ProducerIdBlock,
    RECORDS_PER_OPERATION_MAX, alter_configs,
};
use super::identity::NodeIdentity;
use super::image::{Image, METADATA_VERSION};
use super::metadata_log::{
    ControllerEndpoint, MetadataLog, MetadataLogError, MetadataLogOptions, Opened,
};
use super::quotas::mutations::MutationQuotas;
use super::records::{AbortTransactionRecord, BrokerEndpoint, MetadataRecord};
use crate::base::config::BrokerConfig;
use crate::base::ids::{BrokerEpoch, ProducerId, Uuid};
use crate::base::random::Random;
use crate::base::time::TimestampMs;
use crate::io::{self, Inbox, inbox::inbox};

pub use control::{ControlError, ControlHandle, Preferred, QuorumState};

use control::ControlRequest;
use upkeep::Upkeep;

/// Requests that may wait for the controller.
pub const CONTROL_INBOX_LEN_MAX: usize = 1_024;

/// Brings every shard to an image; done when owners have opened or dropped their logs.
pub type Publish = Box<dyn Fn(Arc<Image>) -> Pin<Box<dyn Future<Output = ()>>>>;

/// Hears once that the metadata log takes nothing any more, and why.
pub type OnLogFailure = Box<dyn Fn(String)>;

/// Why the controller does not start.
#[derive(Debug, Error)]
pub enum ControllerError {
    /// The metadata log's level knows of no log directories, and there are several.
    #[error(
        "metadata.version {level} of the metadata log has no place for several log directories: \
         name one in log.dirs, or raise the level to {least} first, with Kafka 3.7 or later"
    )]
    OneDirectory {
        /// The level.
        level: i16,
        /// The first that has.
        least: i16,
    },
    /// The metadata log cannot be carried on.
    #[error(transparent)]
    Log(#[from] MetadataLogError),
}

/// The metadata log's leader.
pub struct Controller {
    log: MetadataLog,
    log_directory_id: Uuid,
    image: Arc<Image>,
    config: Arc<BrokerConfig>,
    random: Random,
    /// What the log began with and was left with, until [`Self::begin`].
    found: Option<(Vec<MetadataRecord>, bool)>,
    on_log_failure: Option<OnLogFailure>,
    /// What is left of the block of producer ids at hand.
    producer_ids: ProducerIdBlock,
    mutations: MutationQuotas,
    preferred: PreferredDirectories,
    handle: ControlHandle,
    requests: Inbox<ControlRequest>,
}

impl Controller {
    /// Reads what the cluster is and begins a new epoch, durably. `random_seed` comes from the
    /// system's entropy: ids are drawn from it.
    pub async fn open(
        config: Arc<BrokerConfig>,
        identity: &NodeIdentity,
        random_seed: u64,
        now: TimestampMs,
    ) -> Result<Self, ControllerError> {
        let log_dir = config.metadata_log_dir().to_owned();
        let directory_id = identity.directory_ids.get(&log_dir);
        let options = MetadataLogOptions {
            directory_id: directory_id.copied().unwrap_or_default(),
            log_dir,
            cluster_id: identity.cluster_id.clone(),
            node_id: identity.node_id,
            controller: controller_endpoint(&config),
            settings: config.metadata_log,
        };
        let opened = MetadataLog::open(&options, now).await?;
        if opened.torn_bytes > 0 {
            tracing::warn!(
                "cut {} bytes of an append that had not ended from the metadata log",
                opened.torn_bytes
            );
        }
        let Opened {
            log,
            image,
            bootstrap,
            abort_transaction,
            ..
        } = opened;
        let (handle, requests) = inbox(CONTROL_INBOX_LEN_MAX);
        Ok(Self {
            log,
            log_directory_id: options.directory_id,
            image: Arc::new(image),
            random: Random::new(random_seed),
            found: Some((bootstrap, abort_transaction)),
            producer_ids: ProducerIdBlock {
                first: ProducerId(0),
                len: 0,
            },
            on_log_failure: None,
            mutations: MutationQuotas::new(config.controller_quota_windows),
            preferred: PreferredDirectories::default(),
            handle: ControlHandle::new(handle),
            requests,
            config,
        })
    }

    /// Registers the broker with the log directories `local` and elects it anew in its partitions,
    /// all durably. Once, before anything is served.
    pub async fn begin(
        &mut self,
        local: &LocalDirectories,
        now: TimestampMs,
    ) -> Result<(), ControllerError> {
        let (bootstrap, abort_transaction) = self.found.take().unwrap_or_default();
        if abort_transaction {
            let reason = Some("Aborting the metadata transaction that was left open".to_owned());
            let abort = MetadataRecord::AbortTransaction(AbortTransactionRecord { reason });
            self.commit(&[abort], now).await?;
        }
        if !self.image.features().contains_key(METADATA_VERSION) {
            let bootstrap = if bootstrap.is_empty() {
                decide::bootstrap_records()
            } else {
                bootstrap
            };
            self.commit(&bootstrap, now).await?;
        }
        check_level(&self.image, self.config.log_dirs.len())?;
        let node = NodeRegistration {
            node_id: self.config.node_id,
            incarnation_id: self.random.next_uuid(),
            end_points: end_points(&self.config),
            rack: self.config.rack.clone(),
        };
        let next_offset = self.log.next_offset();
        let records = decide::startup_records(&self.image, &node, local, next_offset);
        for records in records.chunks(RECORDS_PER_OPERATION_MAX) {
            self.commit(records, now).await?;
        }
        Ok(())
    }

    /// The metadata now.
    #[must_use]
    pub fn image(&self) -> Arc<Image> {
        Arc::clone(&self.image)
    }

    /// For asking the controller, from any thread.
    #[must_use]
    pub fn handle(&self) -> ControlHandle {
        self.handle.clone()
    }

    /// Sets who hears when the metadata log fails.
    pub fn on_log_failure(&mut self, told: OnLogFailure) {
        self.on_log_failure = Some(told);
    }

    /// Epoch of this start's registration.
    #[must_use]
    pub fn broker_epoch(&self) -> BrokerEpoch {
        let broker = self.image.broker(self.config.node_id);
        broker.map_or(BrokerEpoch(-1), |broker| broker.epoch)
    }

    /// Answers requests until told to stop, then fences the broker and closes the log. The error
    /// means that the last records of the stop are not durable; what was acknowledged is.
    pub async fn serve(mut self, publish: Publish) -> Result<(), MetadataLogError> {
        let mut batch = Vec::new();
        let mut upkeep = Upkeep::new(&self.config.metadata_log);
        loop {
            let received = self.requests.receive_batch(&mut batch);
            if io::with_deadline(upkeep.at, received).await == Some(false) {
                break;
            }
            for request in batch.drain(..) {
                if let Some(stopped) = self.answer(request, &publish).await {
                    let outcome = self.close().await;
                    stopped.send(());
                    return outcome;
                }
            }
            upkeep.carry_out(&mut self.log, &self.image).await;
        }
        self.close().await
    }

    /// Answers one request; for a stop, gives back whom to tell when it is done.
    async fn answer(
        &mut self,
        request: ControlRequest,
        publish: &Publish,
    ) -> Option<crate::io::reply::ReplySender<()>> {
        match request {
            ControlRequest::CreateTopics {
                request,
                asker,
                reply,
            } => {
                let context = CreateTopicsContext {
                    broker_texts: &self.config.texts,
                    num_partitions: self.config.num_partitions,
                    replication_factor: self.config.default_replication_factor,
                };
                let mut permits = self.mutations.permits(&self.image, &asker, io::now());
                let drawn = (&mut self.random, &mut permits);
                let mut decision = decide::create_topics(&self.image, &request, context, drawn);
                self.preferred.heed(&self.image, &mut decision.records);
                reply.send(self.carry_out(decision, publish).await);
            }
            ControlRequest::CreatePartitions {
                request,
                asker,
                reply,
            } => {
                let mut permits = self.mutations.permits(&self.image, &asker, io::now());
                let drawn = (&mut self.random, &mut permits);
                let mut decision = decide::create_partitions(&self.image, &request, drawn);
                self.preferred.heed(&self.image, &mut decision.records);
                reply.send(self.carry_out(decision, publish).await);
            }
            ControlRequest::DeleteTopics {
                request,
                version,
                asker,
                reply,
            } => {
                let permits = &mut self.mutations.permits(&self.image, &asker, io::now());
                let (image, is_enabled) = (&self.image, self.config.delete_topics);
                let decision = decide::delete_topics(image, &request, version, is_enabled, permits);
                reply.send(self.carry_out(decision, publish).await);
            }
            ControlRequest::AlterConfigs {
                resources,
                validate_only,
                reply,
            } => {
                let fixed = &self.config.texts;
                let decision =
                    alter_configs::alter_configs(&self.image, &resources, fixed, validate_only);
                reply.send(self.carry_out(decision, publish).await);
            }
            ControlRequest::Cluster(request) => self.answer_cluster(request, publish).await,
            ControlRequest::NextProducerId { reply } => reply.send(self.next_producer_id().await),
            ControlRequest::DirectoryFailed { directory, reply } => {
                reply.send(self.directory_failed(directory, publish).await);
            }
            ControlRequest::Stop { reply } => return Some(reply),
        }
        None
    }

    /// The next id of the block at hand, or the first of a new one. No shard needs to hear of it.
    async fn next_producer_id(&mut self) -> Result<ProducerId, ControlError> {
        if self.producer_ids.len == 0 {
            let (node, epoch) = (self.config.node_id, self.broker_epoch());
            let decision = decide::next_producer_id_block(&self.image, node, epoch);
            let decision = decision.ok_or(ControlError::NoProducerIds)?;
            self.commit(&decision.records, io::wall_clock())
                .await
                .map_err(|fault| ControlError::from(&fault))?;
            self.producer_ids = decision.response;
        }
        let block = &mut self.producer_ids;
        let next = block.first;
        block.first = ProducerId(next.0 + 1);
        block.len -= 1;
        Ok(next)
    }

    /// Goes on without a log directory. Partial success is none to take back: what is told of it
    /// holds for each partition by itself.
    async fn directory_failed(
        &mut self,
        directory: Uuid,
        publish: &Publish,
    ) -> Result<(), ControlError> {
        let records = decide::directory_failed(&self.image, directory);
        for records in records.chunks(RECORDS_PER_OPERATION_MAX) {
            let committed = self.commit(records, io::wall_clock()).await;
            committed.map_err(|fault| ControlError::from(&fault))?;
        }
        publish(self.image()).await;
        Ok(())
    }

    /// Makes a decision so: durably, then on every shard.
    async fn carry_out<R>(
        &mut self,
        decision: Decision<R>,
        publish: &Publish,
    ) -> Result<R, ControlError> {
        if decision.records.is_empty() {
            return Ok(decision.response);
        }
        match self.commit(&decision.records, io::wall_clock()).await {
            Ok(()) => {
                publish(self.image()).await;
                Ok(decision.response)
            }
            Err(fault) => {
                tracing::error!("a metadata change is refused: {fault}");
                Err(ControlError::from(&fault))
            }
        }
    }

    /// Appends one batch durably and moves the image on. Records that do not fit the image, which
    /// would be a fault of the decision, are found before they are written.
    async fn commit(
        &mut self,
        records: &[MetadataRecord],
        now: TimestampMs,
    ) -> Result<(), MetadataLogError> {
        let mut image = Image::clone(&self.image);
        for (record, place) in records.iter().zip(0..) {
            let offset = self.log.next_offset().plus(place);
            image
                .apply(record)
                .map_err(|source| MetadataLogError::Image { offset, source })?;
        }
        if let Err(fault) = self.log.append(records, now).await {
            if self.log.has_failed()
                && let Some(told) = self.on_log_failure.take()
            {
                told(fault.to_string());
            }
            return Err(fault);
        }
        image.advance_to(self.log.next_offset(), self.log.epoch());
        self.image = Arc::new(image);
        Ok(())
    }

    async fn close(mut self) -> Result<(), MetadataLogError> {
        let records = decide::shutdown_records(&self.image, self.config.node_id);
        self.commit(&records, io::wall_clock()).await?;
        self.log.close().await
    }
}

/// The endpoints that clients are told.
fn end_points(config: &BrokerConfig) -> Vec<BrokerEndpoint> {
    (config.listeners.clients.iter())
        .map(|listener| BrokerEndpoint {
            name: listener.name.clone(),
            host: listener.advertised_host.clone(),
            port: listener.advertised_port,
            security_protocol: 0,
        })
        .collect()
}

/// Where Kafka's controller would be reached: the settings' controller listener, or that of
/// Kafka's sample settings.
fn controller_endpoint(config: &BrokerConfig) -> ControllerEndpoint {
    let sample = ControllerEndpoint::default();
    let Some(listener) = config.listeners.controller.first() else {
        return sample;
    };
    let host = [&listener.advertised_host, &listener.host]
        .into_iter()
        .find(|host| !host.is_empty());
    ControllerEndpoint {
        name: listener.name.clone(),
        host: host.cloned().unwrap_or(sample.host),
        port: match listener.advertised_port {
            0 => sample.port,
            port => port,
        },
    }
}

/// Whether the log's records are all of kinds and versions that are known here, and can tell of so
/// many log directories.
fn check_level(image: &Image, directories: usize) -> Result<(), ControllerError> {
    let (min, max) = METADATA_VERSIONS;
    let least = METADATA_VERSION_DIRECTORIES;
    match image.features().get(METADATA_VERSION) {
        Some(level) if *level < least && directories > 1 => Err(ControllerError::OneDirectory {
            level: *level,
            least,
        }),
        Some(level) if (min..=max).contains(level) => Ok(()),
        level => Err(ControllerError::Log(MetadataLogError::Feature {
            name: METADATA_VERSION.to_owned(),
            level: level.copied().unwrap_or_default(),
            min,
            max,
        })),
    }
}

#[cfg(test)]
mod controller_test;
