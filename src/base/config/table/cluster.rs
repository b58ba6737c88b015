//! Settings of the node, the controller and metrics.

use super::super::setting::{Kind::*, Range::*, Setting, Status::*, UpdateMode::*};

settings! {
    "broker.heartbeat.interval.ms": Int => Some("2000"), Any, ReadOnly, NoMeaning;
    "Pause between a broker's heartbeats to the controller.";
    "broker.id": Int => Some("-1"), Any, ReadOnly, Effective;
    "Old name of `node.id`.";
    "broker.rack": String => None, Any, ReadOnly, Effective;
    "Rack of this broker, told to clients and used when replicas are placed.";
    "broker.session.timeout.ms": Int => Some("9000"), Any, ReadOnly, NoMeaning;
    "Time without a heartbeat after which the controller fences a broker.";
    "controller.listener.names": List => Some(""), Any, ReadOnly, Effective;
    "Listeners that belong to the controller; on one node nothing is bound to them.";
    "controller.performance.always.log.threshold.ms": Long => Some("2000"),
        AtLeast(0), ReadOnly, NoMeaning, internal;
    "Controller events slower than this are logged.";
    "controller.performance.sample.period.ms": Long => Some("60000"),
        AtLeast(100), ReadOnly, NoMeaning, internal;
    "Pause between two summaries of the controller's event times.";
    "controller.quorum.append.linger.ms": Int => Some("25"), AtLeast(0), ReadOnly, NoMeaning;
    "Time that a controller leader gathers records before it writes them.";
    "controller.quorum.auto.join.enable": Boolean => Some("false"), Any, ReadOnly, NoMeaning;
    "Whether a controller joins the voters by itself.";
    "controller.quorum.bootstrap.servers": List => Some(""), Any, ReadOnly, NoMeaning;
    "Addresses at which the controllers are found.";
    "controller.quorum.election.backoff.max.ms": Int => Some("1000"),
        AtLeast(0), ReadOnly, NoMeaning;
    "Longest pause between elections of controllers.";
    "controller.quorum.election.timeout.ms": Int => Some("1000"), AtLeast(0), ReadOnly, NoMeaning;
    "Time without a leader after which controllers elect one.";
    "controller.quorum.fetch.max.bytes": Int => Some("1048576"), AtLeast(1), ReadOnly, NoMeaning;
    "Most bytes of one fetch between controllers.";
    "controller.quorum.fetch.snapshot.max.bytes": Int => Some("1048576"),
        AtLeast(1), ReadOnly, NoMeaning;
    "Most bytes of one fetch of a metadata snapshot.";
    "controller.quorum.fetch.timeout.ms": Int => Some("2000"), AtLeast(0), ReadOnly, NoMeaning;
    "Time without a fetch after which a controller leader steps down.";
    "controller.quorum.request.timeout.ms": Int => Some("2000"), AtLeast(0), ReadOnly, NoMeaning;
    "Time that a controller waits for another's answer.";
    "controller.quorum.retry.backoff.ms": Int => Some("20"), AtLeast(0), ReadOnly, NoMeaning;
    "Pause before a controller asks another again.";
    "controller.quorum.voters": List => Some(""), Any, ReadOnly, NoMeaning;
    "Controllers as `id@host:port`; a single node needs none.";
    "controller.quota.window.num": Int => Some("11"), AtLeast(1), ReadOnly, Effective;
    "Samples kept for the quota of topic mutations.";
    "controller.quota.window.size.seconds": Int => Some("1"), AtLeast(1), ReadOnly, Effective;
    "Length of one sample of the quota of topic mutations.";
    "controller.socket.timeout.ms": Int => Some("30000"), Any, ReadOnly, NoMeaning;
    "Time that requests between controller and broker may take.";
    "initial.broker.registration.timeout.ms": Int => Some("60000"), Any, ReadOnly, NoMeaning;
    "Time that a starting broker may take to register with the controller.";
    "internal.metadata.delete.delay.millis": Long => Some("60000"),
        Any, ReadOnly, NoMeaning, internal;
    "Delay before superseded files of the metadata log are removed.";
    "internal.metadata.log.segment.bytes": Int => None, Any, ReadOnly, Effective, internal;
    "Segment size of the metadata log, for Kafka's own tests.";
    "internal.metadata.max.batch.size.in.bytes": Int => Some("8388608"),
        Any, ReadOnly, NoMeaning, internal;
    "Largest batch of the metadata log.";
    "kafka.metrics.polling.interval.secs": Int => Some("10"), AtLeast(1), ReadOnly, NoMeaning;
    "Pause between readings of Java metrics.";
    "kafka.metrics.reporters": List => Some(""), Any, ReadOnly, NoMeaning;
    "Java classes that report Yammer metrics.";
    "metadata.log.dir": String => None, Any, ReadOnly, Effective;
    "Folder of the metadata log; the first of `log.dirs` when it is not set.";
    "metadata.log.max.record.bytes.between.snapshots": Long => Some("20971520"),
        AtLeast(1), ReadOnly, Effective;
    "Bytes of new metadata records after which a snapshot is written.";
    "metadata.log.max.snapshot.interval.ms": Long => Some("3600000"),
        AtLeast(0), ReadOnly, Effective;
    "Time after which a metadata snapshot is written.";
    "metadata.log.segment.bytes": Int => Some("1073741824"), AtLeast(8388608), ReadOnly, Effective;
    "Size at which a segment of the metadata log rolls.";
    "metadata.log.segment.ms": Long => Some("604800000"), Any, ReadOnly, Effective;
    "Time after which a segment of the metadata log rolls.";
    "metadata.max.idle.interval.ms": Int => Some("500"), AtLeast(0), ReadOnly, NoMeaning;
    "Pause after which a controller writes a record that means nothing.";
    "metadata.max.retention.bytes": Long => Some("104857600"), Any, ReadOnly, Effective;
    "Bytes from which old snapshots and segments of metadata go.";
    "metadata.max.retention.ms": Long => Some("604800000"), Any, ReadOnly, Effective;
    "Time after which old snapshots and segments of metadata go.";
    "metric.reporters": List => Some("org.apache.kafka.common.metrics.JmxReporter"),
        Any, ClusterWide, NoMeaning;
    "Java classes that report metrics.";
    "metrics.num.samples": Int => Some("2"), AtLeast(1), ReadOnly, NoMeaning;
    "Samples kept for a Java metric.";
    "metrics.recording.level": String => Some("INFO"), Any, ReadOnly, NoMeaning;
    "Finest level of Java metrics that are recorded.";
    "metrics.sample.window.ms": Long => Some("30000"), AtLeast(1), ReadOnly, NoMeaning;
    "Length of one sample of a Java metric.";
    "node.id": Int => Some("1"), AtLeast(0), ReadOnly, Effective;
    "Number of this node in the cluster.";
    "process.roles": List => Some("broker,controller"),
        OneOf(&["broker", "controller"]), ReadOnly, Effective;
    "Roles of this process; here broker and controller are always one.";
    "server.max.startup.time.ms": Long => Some("9223372036854775807"),
        AtLeast(0), ReadOnly, NoMeaning, internal;
    "Longest time that a start may take.";
}
