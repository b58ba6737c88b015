//! Settings of group and share coordinators.

use super::super::setting::{Kind::*, Range::*, Setting, Status::*, UpdateMode::*};

settings! {
    "group.consumer.assignment.interval.ms": Int => Some("1000"), AtLeast(0), ClusterWide, NotYet;
    "Time that a consumer group gathers changes before it assigns anew.";
    "group.consumer.assignor.offload.enable": Boolean => Some("true"),
        Any, ClusterWide, NotYet, internal;
    "Whether assignments of consumer groups are computed on other threads.";
    "group.consumer.assignors": List => Some("uniform,range"), Any, ReadOnly, NotYet;
    "Assignors of consumer groups, the first being the default.";
    "group.consumer.heartbeat.interval.ms": Int => Some("5000"), AtLeast(1), ReadOnly, NotYet;
    "Pause between heartbeats that consumer group members are told.";
    "group.consumer.max.assignment.interval.ms": Int => Some("15000"), AtLeast(0), ReadOnly, NotYet;
    "Highest assignment interval that a consumer group may set.";
    "group.consumer.max.heartbeat.interval.ms": Int => Some("15000"), AtLeast(1), ReadOnly, NotYet;
    "Highest heartbeat interval that a consumer group may set.";
    "group.consumer.max.session.timeout.ms": Int => Some("60000"), AtLeast(1), ReadOnly, NotYet;
    "Highest session timeout that a consumer group may set.";
    "group.consumer.max.size": Int => Some("2147483647"), AtLeast(1), ReadOnly, NotYet;
    "Most members of one consumer group.";
    "group.consumer.migration.policy": String => Some("bidirectional"),
        OneOfAnyCase(&["DISABLED", "DOWNGRADE", "UPGRADE", "BIDIRECTIONAL"]), ReadOnly, NotYet;
    "Which way groups may move between the classic and the consumer protocol.";
    "group.consumer.min.assignment.interval.ms": Int => Some("0"), AtLeast(0), ReadOnly, NotYet;
    "Lowest assignment interval that a consumer group may set.";
    "group.consumer.min.heartbeat.interval.ms": Int => Some("5000"), AtLeast(1), ReadOnly, NotYet;
    "Lowest heartbeat interval that a consumer group may set.";
    "group.consumer.min.session.timeout.ms": Int => Some("45000"), AtLeast(1), ReadOnly, NotYet;
    "Lowest session timeout that a consumer group may set.";
    "group.consumer.regex.refresh.interval.ms": Int => Some("600000"),
        AtLeast(10000), ReadOnly, NotYet, internal;
    "Pause before a group's topic patterns are resolved again.";
    "group.consumer.session.timeout.ms": Int => Some("45000"), AtLeast(1), ReadOnly, NotYet;
    "Time without a heartbeat after which a consumer group drops a member.";
    "group.coordinator.append.linger.ms": Int => Some("-1"), AtLeast(-1), ReadOnly, NotYet;
    "Time that a group coordinator gathers records; -1 adapts by itself.";
    "group.coordinator.background.threads": Int => Some("2"), AtLeast(1), ReadOnly, NotYet;
    "Threads for the group coordinator's work in the background.";
    "group.coordinator.cached.buffer.max.bytes": Int => Some("1048588"),
        AtLeast(524288), ClusterWide, NotYet;
    "Largest write buffer that a group coordinator keeps.";
    "group.coordinator.rebalance.protocols": List => Some("classic,consumer,streams"),
        OneOf(&["consumer", "classic", "share", "streams"]), ReadOnly, NotYet;
    "Group protocols that are served.";
    "group.coordinator.threads": Int => Some("4"), AtLeast(1), ReadOnly, NotYet;
    "Threads that run group coordinators.";
    "group.initial.rebalance.delay.ms": Int => Some("3000"), Any, ReadOnly, Effective;
    "Time that a new group waits for more members before its first rebalance.";
    "group.max.session.timeout.ms": Int => Some("1800000"), Any, ReadOnly, Effective;
    "Highest session timeout that a classic group's member may ask for.";
    "group.max.size": Int => Some("2147483647"), AtLeast(1), ReadOnly, Effective;
    "Most members of one classic group.";
    "group.min.session.timeout.ms": Int => Some("6000"), Any, ReadOnly, Effective;
    "Lowest session timeout that a classic group's member may ask for.";
    "group.share.assignment.interval.ms": Int => Some("1000"), AtLeast(0), ClusterWide, NotYet;
    "Time that a share group gathers changes before it assigns anew.";
    "group.share.assignor.offload.enable": Boolean => Some("true"),
        Any, ClusterWide, NotYet, internal;
    "Whether assignments of share groups are computed on other threads.";
    "group.share.assignors": List => Some("simple"), Any, ReadOnly, NotYet;
    "Assignors of share groups.";
    "group.share.delivery.count.limit": Int => Some("5"), Between(2, 10), ReadOnly, NotYet;
    "Times that a share group delivers one record at most.";
    "group.share.dlq.manager.class.name": String =>
        Some("org.apache.kafka.server.share.dlq.\
            DefaultShareGroupDLQManager"),
        Any, ReadOnly, NotYet, internal;
    "Java class that fills dead letter topics.";
    "group.share.heartbeat.interval.ms": Int => Some("5000"), AtLeast(1), ReadOnly, NotYet;
    "Pause between heartbeats that share group members are told.";
    "group.share.initialize.retry.interval.ms": Int => Some("30000"),
        AtLeast(1), ReadOnly, NotYet, internal;
    "Pause before a share group's state is initialised again.";
    "group.share.max.assignment.interval.ms": Int => Some("15000"), AtLeast(0), ReadOnly, NotYet;
    "Highest assignment interval that a share group may set.";
    "group.share.max.delivery.count.limit": Int => Some("10"), Between(5, 25), ReadOnly, NotYet;
    "Highest delivery count that a share group may set.";
    "group.share.max.heartbeat.interval.ms": Int => Some("15000"), AtLeast(1), ReadOnly, NotYet;
    "Highest heartbeat interval that a share group may set.";
    "group.share.max.partition.max.record.locks": Int => Some("4000"),
        Between(2000, 10000), ReadOnly, NotYet;
    "Highest number of record locks that a share group may set.";
    "group.share.max.record.lock.duration.ms": Int => Some("60000"),
        Between(30000, 3600000), ReadOnly, NotYet;
    "Longest record lock that a share group may set.";
    "group.share.max.session.timeout.ms": Int => Some("60000"), AtLeast(1), ReadOnly, NotYet;
    "Highest session timeout that a share group may set.";
    "group.share.max.share.sessions": Int => Some("2000"), AtLeast(1), ReadOnly, NotYet;
    "Most share sessions of this broker.";
    "group.share.max.size": Int => Some("200"), Between(1, 1000), ReadOnly, NotYet;
    "Most members of one share group.";
    "group.share.min.assignment.interval.ms": Int => Some("0"), AtLeast(0), ReadOnly, NotYet;
    "Lowest assignment interval that a share group may set.";
    "group.share.min.delivery.count.limit": Int => Some("2"), Between(2, 5), ReadOnly, NotYet;
    "Lowest delivery count that a share group may set.";
    "group.share.min.heartbeat.interval.ms": Int => Some("5000"), AtLeast(1), ReadOnly, NotYet;
    "Lowest heartbeat interval that a share group may set.";
    "group.share.min.partition.max.record.locks": Int => Some("100"),
        Between(100, 2000), ReadOnly, NotYet;
    "Lowest number of record locks that a share group may set.";
    "group.share.min.record.lock.duration.ms": Int => Some("15000"),
        Between(1000, 30000), ReadOnly, NotYet;
    "Shortest record lock that a share group may set.";
    "group.share.min.session.timeout.ms": Int => Some("45000"), AtLeast(1), ReadOnly, NotYet;
    "Lowest session timeout that a share group may set.";
    "group.share.partition.max.record.locks": Int => Some("2000"),
        Between(100, 10000), ReadOnly, NotYet;
    "Records of one share partition that may be locked at a time.";
    "group.share.persister.class.name": String =>
        Some("org.apache.kafka.server.share.persister.\
            DefaultStatePersister"),
        Any, ReadOnly, NotYet, internal;
    "Java class that keeps the state of share groups.";
    "group.share.record.lock.duration.ms": Int => Some("30000"),
        Between(1000, 3600000), ReadOnly, NotYet;
    "Time that a record stays locked by the consumer that got it.";
    "group.share.session.timeout.ms": Int => Some("45000"), AtLeast(1), ReadOnly, NotYet;
    "Time without a heartbeat after which a share group drops a member.";
    "group.streams.acceptable.recovery.lag": Long => Some("10000"),
        AtLeast(0), ReadOnly, NotYet, internal;
    "Lag up to which a streams task counts as caught up.";
    "group.streams.assignment.interval.ms": Int => Some("1000"), AtLeast(0), ClusterWide, NotYet;
    "Time that a streams group gathers changes before it assigns anew.";
    "group.streams.assignor.offload.enable": Boolean => Some("true"),
        Any, ClusterWide, NotYet, internal;
    "Whether assignments of streams groups are computed on other threads.";
    "group.streams.assignors": List => Some("sticky"), Any, ReadOnly, NotYet;
    "Assignors of streams groups.";
    "group.streams.heartbeat.interval.ms": Int => Some("5000"), AtLeast(1), ReadOnly, NotYet;
    "Pause between heartbeats that streams group members are told.";
    "group.streams.initial.rebalance.delay.ms": Int => Some("3000"), AtLeast(0), ReadOnly, NotYet;
    "Time that a new streams group waits for more members.";
    "group.streams.max.assignment.interval.ms": Int => Some("15000"), AtLeast(0), ReadOnly, NotYet;
    "Highest assignment interval that a streams group may set.";
    "group.streams.max.heartbeat.interval.ms": Int => Some("15000"), AtLeast(1), ReadOnly, NotYet;
    "Highest heartbeat interval that a streams group may set.";
    "group.streams.max.session.timeout.ms": Int => Some("60000"), AtLeast(1), ReadOnly, NotYet;
    "Highest session timeout that a streams group may set.";
    "group.streams.max.size": Int => Some("2147483647"), AtLeast(1), ReadOnly, NotYet;
    "Most members of one streams group.";
    "group.streams.max.standby.replicas": Int => Some("2"), AtLeast(0), ReadOnly, NotYet;
    "Highest number of standby tasks that a streams group may set.";
    "group.streams.max.warmup.replicas": Int => Some("20"), AtLeast(0), ReadOnly, NotYet, internal;
    "Highest number of warm-up tasks that a streams group may set.";
    "group.streams.min.assignment.interval.ms": Int => Some("0"), AtLeast(0), ReadOnly, NotYet;
    "Lowest assignment interval that a streams group may set.";
    "group.streams.min.heartbeat.interval.ms": Int => Some("5000"), AtLeast(1), ReadOnly, NotYet;
    "Lowest heartbeat interval that a streams group may set.";
    "group.streams.min.session.timeout.ms": Int => Some("45000"), AtLeast(1), ReadOnly, NotYet;
    "Lowest session timeout that a streams group may set.";
    "group.streams.min.task.offset.interval.ms": Int => Some("15000"),
        AtLeast(1), ReadOnly, NotYet, internal;
    "Lowest pause between reports of task offsets that a group may set.";
    "group.streams.num.standby.replicas": Int => Some("0"), AtLeast(0), ReadOnly, NotYet;
    "Standby tasks of each streams task.";
    "group.streams.num.warmup.replicas": Int => Some("2"), AtLeast(0), ReadOnly, NotYet, internal;
    "Warm-up tasks of a streams group at a time.";
    "group.streams.rack.aware.assignment.tags": List => Some(""), Any, ReadOnly, NotYet;
    "Client tags over which standby tasks are spread.";
    "group.streams.session.timeout.ms": Int => Some("45000"), AtLeast(1), ReadOnly, NotYet;
    "Time without a heartbeat after which a streams group drops a member.";
    "group.streams.task.offset.interval.ms": Int => Some("60000"),
        AtLeast(1), ReadOnly, NotYet, internal;
    "Pause between reports of task offsets that members are told.";
    "group.streams.topology.description.plugin.class": Class => None, Any, ReadOnly, NotYet;
    "Java class that keeps descriptions of topologies.";
    "offset.metadata.max.bytes": Int => Some("4096"), Any, ReadOnly, Effective;
    "Largest text that may accompany a committed offset.";
    "offsets.commit.timeout.ms": Int => Some("5000"), AtLeast(1), ReadOnly, NotYet;
    "Time that an offset commit may wait for its replicas.";
    "offsets.load.buffer.size": Int => Some("5242880"), AtLeast(1), ReadOnly, NotYet;
    "Bytes read at a time when committed offsets are loaded.";
    "offsets.retention.check.interval.ms": Long => Some("600000"), AtLeast(1), ReadOnly, Effective;
    "Pause between two sweeps for expired offsets.";
    "offsets.retention.minutes": Int => Some("10080"), AtLeast(1), ReadOnly, Effective;
    "Minutes that an empty group's offsets are kept.";
    "offsets.topic.compression.codec": Int => Some("0"), Any, ReadOnly, Effective;
    "Codec of the offsets topic, by number.";
    "offsets.topic.num.partitions": Int => Some("50"), AtLeast(1), ReadOnly, Effective;
    "Partitions of the offsets topic.";
    "offsets.topic.replication.factor": Short => Some("3"), AtLeast(1), ReadOnly, NotYet;
    "Replicas of the offsets topic.";
    "offsets.topic.segment.bytes": Int => Some("104857600"), AtLeast(1), ReadOnly, Effective;
    "Segment size of the offsets topic.";
    "share.coordinator.append.linger.ms": Int => Some("-1"), AtLeast(-1), ReadOnly, NotYet;
    "Time that a share coordinator gathers records; -1 adapts by itself.";
    "share.coordinator.cached.buffer.max.bytes": Int => Some("1048588"),
        AtLeast(524288), ClusterWide, NotYet;
    "Largest write buffer that a share coordinator keeps.";
    "share.coordinator.cold.partition.snapshot.interval.ms": Int => Some("300000"),
        AtLeast(1), ReadOnly, NotYet, internal;
    "Pause between snapshots of idle share partitions.";
    "share.coordinator.load.buffer.size": Int => Some("5242880"), AtLeast(1), ReadOnly, NotYet;
    "Bytes read at a time when share state is loaded.";
    "share.coordinator.snapshot.update.records.per.snapshot": Int => Some("500"),
        Between(0, 500), ReadOnly, NotYet;
    "Updates between two snapshots of share state.";
    "share.coordinator.state.topic.compression.codec": Int => Some("0"), Any, ReadOnly, NotYet;
    "Codec of the share state topic, by number.";
    "share.coordinator.state.topic.min.isr": Short => Some("2"), AtLeast(1), ReadOnly, NotYet;
    "In-sync replicas that the share state topic needs.";
    "share.coordinator.state.topic.num.partitions": Int => Some("50"), AtLeast(1), ReadOnly, NotYet;
    "Partitions of the share state topic.";
    "share.coordinator.state.topic.prune.interval.ms": Int => Some("300000"),
        AtLeast(1), ReadOnly, NotYet, internal;
    "Pause between prunings of the share state topic.";
    "share.coordinator.state.topic.replication.factor": Short => Some("3"),
        AtLeast(1), ReadOnly, NotYet;
    "Replicas of the share state topic.";
    "share.coordinator.state.topic.segment.bytes": Int => Some("104857600"),
        AtLeast(1), ReadOnly, NotYet;
    "Segment size of the share state topic.";
    "share.coordinator.threads": Int => Some("1"), AtLeast(1), ReadOnly, NotYet;
    "Threads that run share coordinators.";
    "share.coordinator.write.timeout.ms": Int => Some("5000"), AtLeast(1), ReadOnly, NotYet;
    "Time that a write of share state may take.";
    "share.fetch.purgatory.purge.interval.requests": Int => Some("1000"), Any, ReadOnly, NoMeaning;
    "Requests between two sweeps of finished waiting share fetches.";
}
