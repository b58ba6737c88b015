//! Settings of tiered storage.

use super::super::setting::{Kind::*, Range::*, Setting, Status::*, UpdateMode::*};

settings! {
    "remote.fetch.max.wait.ms": Int => Some("500"), AtLeast(1), ClusterWide, NotYet;
    "Time that a fetch waits for remote storage.";
    "remote.list.offsets.request.timeout.ms": Long => Some("30000"),
        AtLeast(1), ClusterWide, NotYet;
    "Time that a ListOffsets request waits for remote storage.";
    "remote.log.index.file.cache.total.size.bytes": Long => Some("1073741824"),
        AtLeast(1), ClusterWide, NotYet;
    "Bytes of remote indexes that are kept here.";
    "remote.log.index.file.cache.ttl.ms": Long => Some("900000"),
        AtLeast(-1), ReadOnly, NotYet, internal;
    "Time that a remote index is kept here.";
    "remote.log.manager.copier.thread.pool.size": Int => Some("10"),
        AtLeast(1), ClusterWide, NotYet;
    "Threads that copy segments to remote storage.";
    "remote.log.manager.copy.max.bytes.per.second": Long => Some("9223372036854775807"),
        AtLeast(1), ClusterWide, NotYet;
    "Bytes copied to remote storage per second.";
    "remote.log.manager.copy.quota.window.num": Int => Some("11"), AtLeast(1), ReadOnly, NotYet;
    "Samples kept for the quota of copies to remote storage.";
    "remote.log.manager.copy.quota.window.size.seconds": Int => Some("1"),
        AtLeast(1), ReadOnly, NotYet;
    "Length of one sample of the quota of copies to remote storage.";
    "remote.log.manager.expiration.thread.pool.size": Int => Some("10"),
        AtLeast(1), ClusterWide, NotYet;
    "Threads that drop old segments from remote storage.";
    "remote.log.manager.fetch.max.bytes.per.second": Long => Some("9223372036854775807"),
        AtLeast(1), ClusterWide, NotYet;
    "Bytes fetched from remote storage per second.";
    "remote.log.manager.fetch.quota.window.num": Int => Some("11"), AtLeast(1), ReadOnly, NotYet;
    "Samples kept for the quota of remote fetches.";
    "remote.log.manager.fetch.quota.window.size.seconds": Int => Some("1"),
        AtLeast(1), ReadOnly, NotYet;
    "Length of one sample of the quota of remote fetches.";
    "remote.log.manager.follower.thread.pool.size": Int => Some("2"),
        AtLeast(1), ClusterWide, NotYet;
    "Threads that follow leaders of remote partitions.";
    "remote.log.manager.task.interval.ms": Long => Some("30000"), AtLeast(1), ReadOnly, NotYet;
    "Pause between runs of the remote storage tasks.";
    "remote.log.manager.task.retry.backoff.max.ms": Long => Some("30000"),
        AtLeast(1), ReadOnly, NotYet, internal;
    "Longest pause before a remote storage task is tried again.";
    "remote.log.manager.task.retry.backoff.ms": Long => Some("500"),
        AtLeast(1), ReadOnly, NotYet, internal;
    "Pause before a remote storage task is tried again.";
    "remote.log.manager.task.retry.jitter": Double => Some("0.2"),
        Fraction(0.0, 0.5), ReadOnly, NotYet, internal;
    "Spread of the pauses of remote storage tasks.";
    "remote.log.manager.thread.pool.size": Int => Some("2"), AtLeast(1), ReadOnly, NotYet;
    "Threads of the remote storage tasks.";
    "remote.log.metadata.custom.metadata.max.bytes": Int => Some("128"),
        AtLeast(0), ReadOnly, NotYet;
    "Largest custom metadata of a remote segment.";
    "remote.log.metadata.manager.class.name": String =>
        Some("org.apache.kafka.server.log.remote.metadata.storage.\
            TopicBasedRemoteLogMetadataManager"),
        NotEmpty, ReadOnly, NotYet;
    "Java class that keeps the metadata of remote segments.";
    "remote.log.metadata.manager.class.path": String => None, Any, ReadOnly, NotYet;
    "Class path of the remote metadata manager.";
    "remote.log.metadata.manager.impl.prefix": String => Some("rlmm.config."),
        NotEmpty, ReadOnly, NotYet;
    "Prefix of the remote metadata manager's own settings.";
    "remote.log.metadata.manager.listener.name": String => None, NotEmpty, ReadOnly, NotYet;
    "Listener that the remote metadata manager uses.";
    "remote.log.reader.max.pending.tasks": Int => Some("100"), AtLeast(1), ReadOnly, NotYet;
    "Reads of remote storage that may wait.";
    "remote.log.reader.threads": Int => Some("10"), AtLeast(1), ClusterWide, NotYet;
    "Threads that read from remote storage.";
    "remote.log.storage.manager.class.name": String => None, NotEmpty, ReadOnly, NotYet;
    "Java class that is the remote storage.";
    "remote.log.storage.manager.class.path": String => None, Any, ReadOnly, NotYet;
    "Class path of the remote storage manager.";
    "remote.log.storage.manager.impl.prefix": String => Some("rsm.config."),
        NotEmpty, ReadOnly, NotYet;
    "Prefix of the remote storage manager's own settings.";
    "remote.log.storage.system.enable": Boolean => Some("false"), Any, ReadOnly, Refused;
    "Whether segments may go to remote storage.";
}
