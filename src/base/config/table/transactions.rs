//! Settings of transactions.

use super::super::setting::{Kind::*, Range::*, Setting, Status::*, UpdateMode::*};

settings! {
    "add.partitions.to.txn.retry.backoff.max.ms": Int => Some("100"), AtLeast(0), ReadOnly, NotYet;
    "Longest pause before an AddPartitionsToTxn request is tried again.";
    "add.partitions.to.txn.retry.backoff.ms": Int => Some("20"), AtLeast(1), ReadOnly, NotYet;
    "Pause before an AddPartitionsToTxn request is tried again by the broker.";
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": Int => Some("10000"),
        AtLeast(1), ReadOnly, NotYet;
    "Pause between two sweeps for transactions past their time.";
    "transaction.max.timeout.ms": Int => Some("900000"), AtLeast(1), ReadOnly, NotYet;
    "Longest transaction timeout that a producer may ask for.";
    "transaction.partition.verification.enable": Boolean => Some("true"), Any, ClusterWide, NotYet;
    "Whether a partition checks with the coordinator that it is part of a transaction.";
    "transaction.remove.expired.transaction.cleanup.interval.ms": Int => Some("3600000"),
        AtLeast(1), ReadOnly, NotYet;
    "Pause between two sweeps for expired transactional ids.";
    "transaction.state.log.load.buffer.size": Int => Some("5242880"), AtLeast(1), ReadOnly, NotYet;
    "Bytes read at a time when transaction state is loaded.";
    "transaction.state.log.min.isr": Int => Some("2"), AtLeast(1), ReadOnly, NotYet;
    "In-sync replicas that the transaction topic needs.";
    "transaction.state.log.num.partitions": Int => Some("50"), AtLeast(1), ReadOnly, NotYet;
    "Partitions of the transaction topic.";
    "transaction.state.log.replication.factor": Short => Some("3"), AtLeast(1), ReadOnly, NotYet;
    "Replicas of the transaction topic.";
    "transaction.state.log.segment.bytes": Int => Some("104857600"), AtLeast(1), ReadOnly, NotYet;
    "Segment size of the transaction topic.";
    "transaction.two.phase.commit.enable": Boolean => Some("false"), Any, ReadOnly, NotYet;
    "Whether two-phase commit may keep transactions open for ever.";
    "transactional.id.expiration.ms": Int => Some("604800000"), AtLeast(1), ReadOnly, NotYet;
    "Time without a transaction after which a transactional id is forgotten.";
}
