//! Requests about the cluster as a whole.

use super::control::{ClusterRequest, QuorumState};
use super::{Controller, Publish, controller_endpoint, decide};
use crate::cluster::decide::FeaturesContext;

impl Controller {
    /// Answers one.
    pub(super) async fn answer_cluster(&mut self, request: ClusterRequest, publish: &Publish) {
        match request {
            ClusterRequest::ElectLeaders { request, reply } => {
                let decision = decide::elect_leaders(&self.image, &request);
                reply.send(self.carry_out(decision, publish).await);
            }
            ClusterRequest::AlterReassignments { request, reply } => {
                let decision = decide::alter_reassignments(&self.image, &request);
                reply.send(self.carry_out(decision, publish).await);
            }
            ClusterRequest::AssignDirectory {
                partition,
                directory,
                reply,
            } => {
                let decision = decide::assign_directory(&self.image, partition, directory);
                reply.send(self.carry_out(decision, publish).await);
            }
            ClusterRequest::PreferDirectories { wanted, reply } => {
                for (topic, partition, directory) in wanted {
                    self.preferred.prefer((topic, partition), directory);
                }
                reply.send(Ok(()));
            }
            ClusterRequest::UpdateFeatures {
                request,
                version,
                reply,
            } => {
                let context = FeaturesContext {
                    kraft_version: self.log.kraft_version(),
                    api_version: version,
                };
                let decision = decide::update_features(&self.image, &request, context);
                reply.send(self.carry_out(decision, publish).await);
            }
            ClusterRequest::AlterClientQuotas {
                request,
                unknown_hosts,
                reply,
            } => {
                let decision = decide::alter_quotas(&self.image, &request, &unknown_hosts);
                reply.send(self.carry_out(decision, publish).await);
            }
            ClusterRequest::DescribeQuorum { reply } => reply.send(Ok(QuorumState {
                node_id: self.config.node_id,
                directory_id: self.log_directory_id,
                leader_epoch: self.log.epoch(),
                end_offset: self.log.next_offset(),
                endpoint: controller_endpoint(&self.config),
            })),
        }
    }
}
