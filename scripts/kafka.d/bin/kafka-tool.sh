#!/usr/bin/env bash
# One wrapper for all of Apache Kafka's command-line tools: called as kafka-topics.sh (a link), it
# runs the class of that name. `kafka-tool.sh --list` prints the names.
set -euo pipefail
t=org.apache.kafka.tools
classes="
client-compatibility      $t.ClientCompatibilityTest
kafka-acls                $t.AclCommand
kafka-broker-api-versions $t.BrokerApiVersionsCommand
kafka-client-metrics      $t.ClientMetricsCommand
kafka-cluster             $t.ClusterTool
kafka-configs             $t.ConfigCommand
kafka-console-consumer    $t.consumer.ConsoleConsumer
kafka-console-producer    $t.ConsoleProducer
kafka-console-share-consumer $t.consumer.ConsoleShareConsumer
kafka-consumer-groups     $t.consumer.group.ConsumerGroupCommand
kafka-consumer-perf-test  $t.ConsumerPerformance
kafka-delegation-tokens   $t.DelegationTokenCommand
kafka-delete-records      $t.DeleteRecordsCommand
kafka-dump-log            $t.DumpLogSegments
kafka-e2e-latency         $t.EndToEndLatency
kafka-features            $t.FeatureCommand
kafka-get-offsets         $t.GetOffsetShell
kafka-groups              $t.GroupsCommand
kafka-jmx                 $t.JmxTool
kafka-leader-election     $t.LeaderElectionCommand
kafka-log-dirs            $t.LogDirsCommand
kafka-metadata-quorum     $t.MetadataQuorumCommand
kafka-producer-perf-test  $t.ProducerPerformance
kafka-reassign-partitions $t.reassign.ReassignPartitionsCommand
kafka-replica-verification $t.ReplicaVerificationTool
kafka-share-consumer-perf-test $t.ShareConsumerPerformance
kafka-share-groups        $t.consumer.group.ShareGroupCommand
kafka-server-start        kafka.Kafka
kafka-storage             kafka.tools.StorageTool
kafka-streams-application-reset $t.StreamsResetter
kafka-streams-groups      $t.streams.StreamsGroupCommand
kafka-topics              $t.TopicCommand
kafka-transactions        $t.TransactionsCommand
kafka-verifiable-consumer $t.VerifiableConsumer
kafka-verifiable-producer $t.VerifiableProducer
kafka-verifiable-share-consumer $t.VerifiableShareConsumer
log-compaction-tester     $t.LogCompactionTester
transactional-message-copier $t.TransactionalMessageCopier
"
name=$(basename "$0" .sh)
if [ "$name" = kafka-tool ]; then
  [ "${1:-}" = --list ] && { awk 'NF {print $1 ".sh"}' <<<"$classes"; exit; }
  name=${1:?a tool name, or --list}; shift
fi
class=$(awk -v n="$name" '$1 == n {print $2}' <<<"$classes")
[ -n "$class" ] || { echo "kafka-tool: no tool $name" >&2; exit 2; }
exec "$(dirname "$(readlink -f "$0")")/kafka-run-class.sh" "$class" "$@"
