//! Settings of single topics (`LogConfig`).

use super::super::setting::{Kind::*, Range::*, Setting, Status::*, UpdateMode::*};

settings! {
    "cleanup.policy": List => Some("delete"), OneOf(&["compact", "delete"]), ClusterWide, Effective;
    "What happens to old segments: `delete`, `compact`, both, or nothing.";
    "compression.gzip.level": Int => Some("-1"), BetweenOrMinusOne(1, 9), ClusterWide, Effective;
    "Level of gzip where the broker compresses itself.";
    "compression.lz4.level": Int => Some("9"), Between(1, 17), ClusterWide, NoMeaning;
    "Level of lz4 where the broker compresses itself; here it has one, the fast one.";
    "compression.type": String => Some("producer"),
        OneOf(&["uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"]),
        ClusterWide, Effective;
    "Codec in which batches are stored; `producer` stores them as they came.";
    "compression.zstd.level": Int => Some("3"), Between(-131072, 22), ClusterWide, Effective;
    "Level of zstd where the broker compresses itself.";
    "delete.retention.ms": Long => Some("86400000"), AtLeast(0), ClusterWide, Effective;
    "Time that tombstones are kept after compaction.";
    "errors.deadletterqueue.group.enable": Boolean => Some("false"), Any, ClusterWide, NotYet;
    "Whether the topic may be a share group's dead letter topic.";
    "file.delete.delay.ms": Long => Some("60000"), AtLeast(0), ClusterWide, Effective;
    "Time between a file's removal from the log and its removal from the disk.";
    "flush.messages": Long => Some("9223372036854775807"),
        AtLeast(1), ClusterWide, Effective;
    "With write caching, flush before the answer after this many records.";
    "flush.ms": Long => Some("9223372036854775807"), AtLeast(0), ClusterWide, Effective;
    "With write caching, longest time that a record stays unflushed.";
    "follower.replication.throttled.replicas": List => Some(""),
        ThrottledReplicas, ClusterWide, NoMeaning;
    "Replicas whose fetching is throttled, as `partition:broker`.";
    "index.interval.bytes": Int => Some("4096"), AtLeast(0), ClusterWide, Effective;
    "Bytes of the log between two entries of its offset index.";
    "internal.segment.bytes": Int => None, Any, ClusterWide, Effective, internal;
    "Segment size without the usual lower bound, for tests.";
    "leader.replication.throttled.replicas": List => Some(""),
        ThrottledReplicas, ClusterWide, NoMeaning;
    "Replicas whose leaders throttle them, as `partition:broker`.";
    "local.retention.bytes": Long => Some("-2"), AtLeast(-2), ClusterWide, NotYet;
    "Bytes kept here when a partition is also in remote storage; -2 for `retention.bytes`.";
    "local.retention.ms": Long => Some("-2"), AtLeast(-2), ClusterWide, NotYet;
    "Time that records are kept here when also in remote storage; -2 for `retention.ms`.";
    "max.compaction.lag.ms": Long => Some("9223372036854775807"),
        AtLeast(1), ClusterWide, Effective;
    "Time after which a record must have become a candidate for compaction.";
    "max.decompressed.message.bytes": Int => Some("2147483639"),
        Between(1, 2147483639), ClusterWide, NotYet;
    "Largest size of one batch after decompression.";
    "max.message.bytes": Int => Some("1048588"), AtLeast(0), ClusterWide, Effective;
    "Largest record batch that is accepted, in bytes as it came.";
    "message.timestamp.after.max.ms": Long => Some("3600000"), AtLeast(0), ClusterWide, Effective;
    "How far ahead of the broker's clock a record's timestamp may lie.";
    "message.timestamp.before.max.ms": Long => Some("9223372036854775807"),
        AtLeast(0), ClusterWide, Effective;
    "How far behind the broker's clock a record's timestamp may lie.";
    "message.timestamp.type": String => Some("CreateTime"),
        OneOf(&["CreateTime", "LogAppendTime"]), ClusterWide, Effective;
    "Whose clock stamps records: the client's (CreateTime) or the broker's (LogAppendTime).";
    "min.cleanable.dirty.ratio": Double => Some("0.5"), Fraction(0.0, 1.0), ClusterWide, Effective;
    "Share of uncleaned bytes from which the log is cleaned.";
    "min.compaction.lag.ms": Long => Some("0"), AtLeast(0), ClusterWide, Effective;
    "Time that a record stays untouched by compaction.";
    "min.insync.replicas": Int => Some("1"), AtLeast(1), ClusterWide, Effective;
    "In-sync replicas that acks=all needs.";
    "preallocate": Boolean => Some("false"), Any, ClusterWide, NoMeaning;
    "Whether segments are allocated at once; here space is always allocated ahead.";
    "remote.copy.lag.bytes": Long => Some("-1"), AtLeast(-1), ClusterWide, NotYet;
    "Bytes that stay out of remote storage at the log's end.";
    "remote.copy.lag.ms": Long => Some("0"), AtLeast(-1), ClusterWide, NotYet;
    "Time before a closed segment goes to remote storage.";
    "remote.log.copy.disable": Boolean => Some("false"), Any, ClusterWide, NotYet;
    "Whether nothing more goes to remote storage.";
    "remote.log.delete.on.disable": Boolean => Some("false"), Any, ClusterWide, NotYet;
    "Whether remote segments are deleted when remote storage is switched off.";
    "remote.storage.enable": Boolean => Some("false"), Any, ClusterWide, Refused;
    "Whether the topic's segments may go to remote storage.";
    "retention.bytes": Long => Some("-1"), Any, ClusterWide, Effective;
    "Bytes from which a partition drops its oldest segments; -1 for no limit.";
    "retention.ms": Long => Some("604800000"), AtLeast(-1), ClusterWide, Effective;
    "Time that records are kept; -1 for ever.";
    "segment.bytes": Int => Some("1073741824"), AtLeast(1048576), ClusterWide, Effective;
    "Size at which a segment rolls.";
    "segment.index.bytes": Int => Some("10485760"), AtLeast(4), ClusterWide, Effective;
    "Largest offset index of a segment; a full one rolls the segment.";
    "segment.jitter.ms": Long => Some("0"), AtLeast(0), ClusterWide, Effective;
    "Time by which rolls are spread at most.";
    "segment.ms": Long => Some("604800000"), AtLeast(1), ClusterWide, Effective;
    "Time after which a segment rolls.";
    "unclean.leader.election.enable": Boolean => Some("false"), Any, ClusterWide, NotYet;
    "Whether a replica out of sync may lead, at the price of lost records.";
    "write.caching": Boolean => Some("false"), Any, ClusterWide, Effective;
    "Whether an answer waits for the write only and not for the flush of the disk.";
}
