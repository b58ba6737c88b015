//! Settings of connections, requests, topics and replicas.

use super::super::setting::{Kind::*, Range::*, Setting, Status::*, UpdateMode::*};

settings! {
    "advertised.listeners": List => None, Any, ReadOnly, Effective;
    "Addresses handed to clients, one per listener; those of `listeners` when not set.";
    "alter.config.policy.class.name": Class => None, Any, ReadOnly, Refused;
    "Java class that may veto changes of settings.";
    "alter.log.dirs.replication.quota.window.num": Int => Some("11"),
        AtLeast(1), ReadOnly, NoMeaning;
    "Samples kept for the quota of moves between log directories.";
    "alter.log.dirs.replication.quota.window.size.seconds": Int => Some("1"),
        AtLeast(1), ReadOnly, NoMeaning;
    "Length of one sample of the quota of moves between log directories.";
    "auto.create.topics.enable": Boolean => Some("true"), Any, ReadOnly, Effective;
    "Whether a client that names an unknown topic in a metadata request creates it.";
    "auto.leader.rebalance.enable": Boolean => Some("true"), Any, ReadOnly, NoMeaning;
    "Whether leadership goes back to the preferred replicas by itself.";
    "background.threads": Int => Some("10"), AtLeast(1), ClusterWide, NoMeaning;
    "Threads for work in the background; here each core has its own executor.";
    "client.quota.callback.class": Class => None, Any, ReadOnly, Refused;
    "Java class that computes the quotas of clients.";
    "config.providers": List => Some(""), Any, ClusterWide, Refused;
    "Java classes that resolve variables in settings.";
    "connection.failed.authentication.delay.ms": Int => Some("100"), AtLeast(0), ReadOnly, NotYet;
    "Delay before a connection that failed to authenticate is closed.";
    "connections.max.idle.ms": Long => Some("600000"), Any, ReadOnly, Effective;
    "Time without a request after which a connection is closed.";
    "connections.max.reauth.ms": Long => Some("0"), Any, ReadOnly, NotYet;
    "Longest time that a SASL session may last without authenticating anew; 0 for ever.";
    "controlled.shutdown.enable": Boolean => Some("true"), Any, ReadOnly, NoMeaning;
    "Whether a stopping broker first hands its leaderships to others.";
    "cordoned.log.dirs": List => Some(""), Any, PerBroker, NoMeaning;
    "Log directories that get no new partitions.";
    "create.topic.policy.class.name": Class => None, Any, ReadOnly, Refused;
    "Java class that may veto the creation of topics.";
    "default.replication.factor": Int => Some("1"), Any, ReadOnly, Effective;
    "Replicas of a topic that is created without a number of them.";
    "delete.records.purgatory.purge.interval.requests": Int => Some("1"), Any, ReadOnly, NoMeaning;
    "Requests between two sweeps of finished waiting DeleteRecords.";
    "delete.topic.enable": Boolean => Some("true"), Any, ReadOnly, Effective;
    "Whether topics can be deleted.";
    "early.start.listeners": List => None, Any, ReadOnly, NoMeaning;
    "Listeners that open before the broker has caught up.";
    "errors.deadletterqueue.auto.create.topics.enable": Boolean => Some("false"),
        Any, ClusterWide, NotYet;
    "Whether dead letter topics of share groups are created by need.";
    "errors.deadletterqueue.topic.name.prefix": String => Some("dlq."), Any, ClusterWide, NotYet;
    "How the names of dead letter topics begin.";
    "fetch.max.bytes": Int => Some("57671680"), AtLeast(1024), ReadOnly, Effective;
    "Most bytes of one fetch's answer; a first batch larger than this is still sent.";
    "fetch.purgatory.purge.interval.requests": Int => Some("1000"), Any, ReadOnly, NoMeaning;
    "Requests between two sweeps of finished waiting fetches.";
    "follower.fetch.last.tiered.offset.enable": Boolean => Some("false"), Any, ClusterWide, NotYet;
    "Whether a new follower starts after what is in remote storage.";
    "follower.replication.throttled.rate": Long => None,
        AtLeast(0), ClusterWide, NoMeaning, internal;
    "Bytes a second of fetching for throttled replicas.";
    "inter.broker.listener.name": String => None, Any, ReadOnly, Effective;
    "Listener over which brokers speak with each other; must be one of the listeners.";
    "leader.imbalance.check.interval.seconds": Long => Some("300"), AtLeast(1), ReadOnly, NoMeaning;
    "Pause between two looks at the balance of leaders.";
    "leader.replication.throttled.rate": Long => None,
        AtLeast(0), ClusterWide, NoMeaning, internal;
    "Bytes a second that leaders give to throttled replicas.";
    "listener.security.protocol.map": String =>
        Some("SASL_SSL:SASL_SSL,PLAINTEXT:PLAINTEXT,SSL:SSL,\
            SASL_PLAINTEXT:SASL_PLAINTEXT"),
        Any, PerBroker, Effective;
    "Security protocol of each listener's name; PLAINTEXT is served.";
    "listeners": List => Some("PLAINTEXT://:9092"), Any, PerBroker, Effective;
    "Addresses that this broker listens on, each as `NAME://host:port`.";
    "max.connection.creation.rate": Int => Some("2147483647"), AtLeast(0), ClusterWide, Effective;
    "Connections that may arrive per second; after `listener.name.<name>.` that listener's.";
    "max.connections": Int => Some("2147483647"), AtLeast(0), ClusterWide, Effective;
    "Connections at a time; after `listener.name.<name>.` that listener's.";
    "max.connections.per.ip": Int => Some("2147483647"), AtLeast(0), ClusterWide, Effective;
    "Connections of one address at a time.";
    "max.connections.per.ip.overrides": String => Some(""), Any, ClusterWide, Effective;
    "Addresses with a limit of their own, each as `address:limit`.";
    "max.decompressed.message.bytes": Int => Some("2147483639"),
        Between(1, 2147483639), ClusterWide, NotYet;
    "Largest size of one batch after decompression.";
    "max.incremental.fetch.session.cache.slots": Int => Some("1000"),
        AtLeast(0), ReadOnly, Effective;
    "Fetch sessions kept at a time.";
    "max.request.partition.size.limit": Int => Some("2000"), AtLeast(1), ReadOnly, Effective;
    "Partitions of one DescribeTopicPartitions answer.";
    "num.io.threads": Int => Some("8"), AtLeast(1), ClusterWide, NoMeaning;
    "Threads that work on requests; here `coreline.cores` counts.";
    "num.network.threads": Int => Some("3"), AtLeast(1), ClusterWide, NoMeaning;
    "Threads that serve connections; here `coreline.cores` counts.";
    "num.partitions": Int => Some("1"), AtLeast(1), ReadOnly, Effective;
    "Partitions of a topic that is created without a number of them.";
    "num.recovery.threads.per.data.dir": Int => Some("2"), AtLeast(1), ClusterWide, NoMeaning;
    "Threads that recover logs at start; here the journals make that short.";
    "num.replica.alter.log.dirs.threads": Int => None, Any, ReadOnly, NoMeaning;
    "Threads that move replicas between log directories; here each core copies two at a time.";
    "num.replica.fetchers": Int => Some("1"), AtLeast(1), ClusterWide, NoMeaning;
    "Threads that fetch from each leader.";
    "producer.id.expiration.check.interval.ms": Int => Some("600000"),
        AtLeast(1), ReadOnly, NotYet, internal;
    "Pause between two sweeps for forgotten producers.";
    "producer.id.expiration.ms": Int => Some("86400000"), AtLeast(1), ClusterWide, Effective;
    "Time without a batch after which a partition forgets a producer.";
    "producer.purgatory.purge.interval.requests": Int => Some("1000"), Any, ReadOnly, NoMeaning;
    "Requests between two sweeps of finished waiting produces.";
    "queued.max.request.bytes": Long => Some("-1"), Any, ReadOnly, NoMeaning;
    "Bytes of requests that may wait; here `coreline.requests.bytes` counts.";
    "queued.max.requests": Int => Some("500"), AtLeast(1), ReadOnly, NoMeaning;
    "Requests that may wait; here `coreline.requests.bytes` counts.";
    "quota.window.num": Int => Some("11"), AtLeast(1), ReadOnly, Effective;
    "Samples kept for clients' quotas.";
    "quota.window.size.seconds": Int => Some("1"), AtLeast(1), ReadOnly, Effective;
    "Length of one sample of clients' quotas.";
    "replica.alter.log.dirs.io.max.bytes.per.second": Long => None,
        AtLeast(0), ClusterWide, Effective, internal;
    "Bytes a second that all moves between log directories together copy.";
    "replica.fetch.backoff.ms": Int => Some("1000"), AtLeast(0), ReadOnly, NoMeaning;
    "Pause of a follower after a failed fetch.";
    "replica.fetch.max.bytes": Int => Some("1048576"), AtLeast(0), ReadOnly, NoMeaning;
    "Bytes that a follower asks of one partition.";
    "replica.fetch.min.bytes": Int => Some("1"), Any, ReadOnly, NoMeaning;
    "Bytes that a follower waits for.";
    "replica.fetch.response.max.bytes": Int => Some("10485760"), AtLeast(0), ReadOnly, NoMeaning;
    "Bytes of a whole answer to a follower.";
    "replica.fetch.wait.max.ms": Int => Some("500"), Any, ReadOnly, NoMeaning;
    "Time that a follower's fetch may wait.";
    "replica.high.watermark.checkpoint.interval.ms": Long => Some("5000"),
        Any, ReadOnly, Effective;
    "Pause between writes of the high watermarks to their file; 0 or less: none.";
    "replica.lag.time.max.ms": Long => Some("30000"), Any, ReadOnly, NoMeaning;
    "Time after which a follower that lags leaves the in-sync replicas.";
    "replica.selector.class": String => None, Any, ReadOnly, Refused;
    "Java class that chooses the replica that a consumer reads.";
    "replica.socket.receive.buffer.bytes": Int => Some("65536"), Any, ReadOnly, NoMeaning;
    "Receive buffer of followers' sockets.";
    "replica.socket.timeout.ms": Int => Some("30000"), Any, ReadOnly, NoMeaning;
    "Time that a follower's request may take.";
    "replication.quota.window.num": Int => Some("11"), AtLeast(1), ReadOnly, NoMeaning;
    "Samples kept for replication quotas.";
    "replication.quota.window.size.seconds": Int => Some("1"), AtLeast(1), ReadOnly, NoMeaning;
    "Length of one sample of replication quotas.";
    "request.timeout.ms": Int => Some("30000"), Any, ReadOnly, NoMeaning;
    "Time that requests between brokers may take.";
    "socket.connection.setup.timeout.max.ms": Long => Some("30000"), Any, ReadOnly, NoMeaning;
    "Longest time that connecting to another node may take.";
    "socket.connection.setup.timeout.ms": Long => Some("10000"), Any, ReadOnly, NoMeaning;
    "Time that connecting to another node may take at first.";
    "socket.listen.backlog.size": Int => Some("50"), AtLeast(1), ReadOnly, Effective;
    "Connections that may wait to be accepted on each listener.";
    "socket.receive.buffer.bytes": Int => Some("-1"), Any, ReadOnly, Effective;
    "Receive buffer of clients' sockets; -1 leaves it to the system. Kafka's default is 102400.";
    "socket.request.max.bytes": Int => Some("104857600"), AtLeast(1), ReadOnly, Effective;
    "Largest request that is accepted.";
    "socket.send.buffer.bytes": Int => Some("-1"), Any, ReadOnly, Effective;
    "Send buffer of clients' sockets; -1 leaves it to the system. Kafka has 102400.";
    "telemetry.max.bytes": Int => Some("1048576"), AtLeast(1), ReadOnly, NotYet;
    "Largest telemetry push of a client.";
    "unstable.api.versions.enable": Boolean => Some("false"), Any, ReadOnly, Refused, internal;
    "Whether versions still in development are served.";
    "unstable.feature.versions.enable": Boolean => Some("false"), Any, ReadOnly, Refused, internal;
    "Whether feature levels still in development may be used.";
}
