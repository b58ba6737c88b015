//! Settings of logs, which topics may override.

use super::super::setting::{Kind::*, Range::*, Setting, Status::*, UpdateMode::*};

settings! {
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
    "log.cleaner.backoff.ms": Long => Some("15000"), AtLeast(0), ClusterWide, Effective;
    "Pause of the cleaner when nothing is left to clean.";
    "log.cleaner.dedupe.buffer.size": Long => Some("134217728"), Any, ClusterWide, Effective;
    "Memory of the cleaners' key tables, in bytes.";
    "log.cleaner.delete.retention.ms": Long => Some("86400000"), AtLeast(0), ClusterWide, Effective;
    "Time that a compacted topic keeps its tombstones.";
    "log.cleaner.enable": Boolean => Some("true"), Any, ReadOnly, Effective;
    "Whether the cleaner runs at all.";
    "log.cleaner.io.buffer.load.factor": Double => Some("0.9"), Any, ClusterWide, Effective;
    "How full the cleaners' key tables may become.";
    "log.cleaner.io.buffer.size": Int => Some("524288"), AtLeast(0), ClusterWide, Effective;
    "Memory of the cleaners' read and write buffers, in bytes.";
    "log.cleaner.io.max.bytes.per.second": Double => Some("1.7976931348623157E308"),
        Any, ClusterWide, Effective;
    "Bytes that the cleaners may read and write per second.";
    "log.cleaner.max.compaction.lag.ms": Long => Some("9223372036854775807"),
        AtLeast(1), ClusterWide, Effective;
    "Time after which a record must have become a candidate for compaction.";
    "log.cleaner.min.cleanable.ratio": Double => Some("0.5"),
        Fraction(0.0, 1.0), ClusterWide, Effective;
    "Share of uncleaned bytes from which a log is cleaned.";
    "log.cleaner.min.compaction.lag.ms": Long => Some("0"), AtLeast(0), ClusterWide, Effective;
    "Time that a record stays untouched by compaction.";
    "log.cleaner.threads": Int => Some("1"), AtLeast(0), ClusterWide, Effective;
    "Cleaners that run at a time.";
    "log.cleanup.policy": List => Some("delete"),
        OneOf(&["compact", "delete"]), ClusterWide, Effective;
    "What happens to old segments: `delete`, `compact`, both, or nothing.";
    "log.dir": List => Some("./data"), Any, ReadOnly, Effective;
    "Folders of the data, used when `log.dirs` is not set.";
    "log.dir.failure.timeout.ms": Long => Some("30000"), AtLeast(1), ReadOnly, NoMeaning;
    "Time to tell the controller of a failed log directory before the broker stops.";
    "log.dirs": List => None, Any, ReadOnly, Effective;
    "Folders of the data; a new partition goes to the one with the fewest.";
    "log.flush.interval.messages": Long => Some("9223372036854775807"),
        AtLeast(1), ClusterWide, Effective;
    "With write caching, flush before the answer after this many records of a partition.";
    "log.flush.interval.ms": Long => None, Any, ClusterWide, Effective;
    "With write caching, longest time that a record stays unflushed.";
    "log.flush.offset.checkpoint.interval.ms": Int => Some("60000"),
        AtLeast(0), ReadOnly, Effective;
    "Pause between writes of the recovery points to their file; the journal has them; 0: none.";
    "log.flush.scheduler.interval.ms": Long => Some("9223372036854775807"),
        Any, ReadOnly, Effective;
    "Stands in for `log.flush.interval.ms` when that is not set.";
    "log.flush.start.offset.checkpoint.interval.ms": Int => Some("60000"),
        AtLeast(0), ReadOnly, Effective;
    "Pause between writes of the log start offsets to their file; 0: none.";
    "log.index.interval.bytes": Int => Some("4096"), AtLeast(0), ClusterWide, Effective;
    "Bytes of the log between two entries of its offset index.";
    "log.index.size.max.bytes": Int => Some("10485760"), AtLeast(4), ClusterWide, Effective;
    "Largest offset index of a segment; a full one rolls the segment.";
    "log.initial.task.delay.ms": Long => Some("30000"), AtLeast(0), ReadOnly, Effective, internal;
    "Delay before the log's periodic tasks run first.";
    "log.local.retention.bytes": Long => Some("-2"), AtLeast(-2), ClusterWide, NotYet;
    "Bytes of a partition kept here when it is also in remote storage.";
    "log.local.retention.ms": Long => Some("-2"), AtLeast(-2), ClusterWide, NotYet;
    "Time that records are kept here when they are also in remote storage.";
    "log.message.timestamp.after.max.ms": Long => Some("3600000"),
        AtLeast(0), ClusterWide, Effective;
    "How far ahead of the broker's clock a record's timestamp may lie.";
    "log.message.timestamp.before.max.ms": Long => Some("9223372036854775807"),
        AtLeast(0), ClusterWide, Effective;
    "How far behind the broker's clock a record's timestamp may lie.";
    "log.message.timestamp.type": String => Some("CreateTime"),
        OneOf(&["CreateTime", "LogAppendTime"]), ClusterWide, Effective;
    "Whose clock stamps records: the client's (CreateTime) or the broker's (LogAppendTime).";
    "log.preallocate": Boolean => Some("false"), Any, ClusterWide, NoMeaning;
    "Whether segments are allocated at once; here space is always allocated ahead.";
    "log.remote.copy.lag.bytes": Long => Some("-1"), AtLeast(-1), ClusterWide, NotYet;
    "Bytes that stay out of remote storage at a log's end.";
    "log.remote.copy.lag.ms": Long => Some("0"), AtLeast(-1), ClusterWide, NotYet;
    "Time before a closed segment goes to remote storage.";
    "log.retention.bytes": Long => Some("-1"), Any, ClusterWide, Effective;
    "Bytes from which a partition drops its oldest segments; -1 for no limit.";
    "log.retention.check.interval.ms": Long => Some("300000"), AtLeast(1), ReadOnly, Effective;
    "Pause between two looks for segments to drop.";
    "log.retention.hours": Int => Some("168"), Any, ReadOnly, Effective;
    "Hours that records are kept, unless minutes or milliseconds are set.";
    "log.retention.minutes": Int => None, Any, ReadOnly, Effective;
    "Minutes that records are kept, unless milliseconds are set.";
    "log.retention.ms": Long => None, Any, ClusterWide, Effective;
    "Milliseconds that records are kept; -1 for ever.";
    "log.roll.hours": Int => Some("168"), AtLeast(1), ReadOnly, Effective;
    "Hours after which a segment rolls, unless milliseconds are set.";
    "log.roll.jitter.hours": Int => Some("0"), AtLeast(0), ReadOnly, Effective;
    "Hours by which rolls are spread at most, unless milliseconds are set.";
    "log.roll.jitter.ms": Long => None, Any, ClusterWide, Effective;
    "Milliseconds by which rolls are spread at most.";
    "log.roll.ms": Long => None, Any, ClusterWide, Effective;
    "Milliseconds after which a segment rolls.";
    "log.segment.bytes": Int => Some("1073741824"), AtLeast(1048576), ClusterWide, Effective;
    "Size at which a segment rolls.";
    "log.segment.delete.delay.ms": Long => Some("60000"), AtLeast(0), ClusterWide, Effective;
    "Time between a file's removal from the log and its removal from the disk.";
    "message.max.bytes": Int => Some("1048588"), AtLeast(0), ClusterWide, Effective;
    "Largest record batch that is accepted, in bytes as it came.";
    "min.insync.replicas": Int => Some("1"), AtLeast(1), ClusterWide, Effective;
    "In-sync replicas that acks=all needs.";
    "unclean.leader.election.enable": Boolean => Some("false"), Any, ClusterWide, NotYet;
    "Whether a replica out of sync may lead, at the price of lost records.";
    "unclean.leader.election.interval.ms": Long => Some("300000"),
        AtLeast(1), ReadOnly, NoMeaning, internal;
    "Pause between two looks for unclean elections.";
}
