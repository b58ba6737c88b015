//! Settings of single groups (`GroupConfig`).

use super::super::setting::{Kind::*, Range::*, Setting, Status::*, UpdateMode::*};

settings! {
    "consumer.assignment.interval.ms": Int => Some("1000"), AtLeast(0), ClusterWide, NotYet;
    "Time that the group gathers changes before it assigns anew.";
    "consumer.heartbeat.interval.ms": Int => Some("5000"), AtLeast(1), ClusterWide, NotYet;
    "Pause between heartbeats that members are told.";
    "consumer.session.timeout.ms": Int => Some("45000"), AtLeast(1), ClusterWide, NotYet;
    "Time without a heartbeat after which the group drops a member.";
    "errors.deadletterqueue.copy.record.enable": Boolean => Some("false"),
        Any, ClusterWide, NotYet;
    "Whether the dead letter topic gets the record itself and not its context alone.";
    "errors.deadletterqueue.topic.name": String => Some(""), Any, ClusterWide, NotYet;
    "The share group's dead letter topic; none when empty.";
    "share.assignment.interval.ms": Int => Some("1000"), AtLeast(0), ClusterWide, NotYet;
    "Time that the share group gathers changes before it assigns anew.";
    "share.auto.offset.reset": String => Some("latest"), Any, ClusterWide, NotYet;
    "Where a share group begins: `earliest`, `latest` or `by_duration:` and a duration.";
    "share.delivery.count.limit": Int => Some("5"), AtLeast(2), ClusterWide, NotYet;
    "Times that one record is delivered at most.";
    "share.heartbeat.interval.ms": Int => Some("5000"), AtLeast(1), ClusterWide, NotYet;
    "Pause between heartbeats that members of the share group are told.";
    "share.isolation.level": String => Some("read_uncommitted"),
        OneOf(&["read_committed", "read_uncommitted"]), ClusterWide, NotYet;
    "Whether records of open and aborted transactions are delivered.";
    "share.partition.max.record.locks": Int => Some("2000"), AtLeast(100), ClusterWide, NotYet;
    "Records of one share partition that may be locked at a time.";
    "share.record.lock.duration.ms": Int => Some("30000"), AtLeast(1000), ClusterWide, NotYet;
    "Time that a record stays locked by the consumer that got it.";
    "share.renew.acknowledge.enable": Boolean => Some("true"), Any, ClusterWide, NotYet;
    "Whether consumers may prolong a record's lock.";
    "share.session.timeout.ms": Int => Some("45000"), AtLeast(1), ClusterWide, NotYet;
    "Time without a heartbeat after which the share group drops a member.";
    "streams.assignment.interval.ms": Int => Some("1000"), AtLeast(0), ClusterWide, NotYet;
    "Time that the streams group gathers changes before it assigns anew.";
    "streams.assignor.name": String => Some("sticky"), Any, ClusterWide, NotYet;
    "Assignor of the streams group; one of the broker's.";
    "streams.heartbeat.interval.ms": Int => Some("5000"), AtLeast(1), ClusterWide, NotYet;
    "Pause between heartbeats that members of the streams group are told.";
    "streams.initial.rebalance.delay.ms": Int => Some("3000"), AtLeast(0), ClusterWide, NotYet;
    "Time that a new streams group waits for more members.";
    "streams.num.standby.replicas": Int => Some("0"), AtLeast(0), ClusterWide, NotYet;
    "Standby tasks of each streams task.";
    "streams.rack.aware.assignment.tags": List => Some(""), Any, ClusterWide, NotYet;
    "Client tags over which standby tasks are spread.";
    "streams.session.timeout.ms": Int => Some("45000"), AtLeast(1), ClusterWide, NotYet;
    "Time without a heartbeat after which the streams group drops a member.";
}
