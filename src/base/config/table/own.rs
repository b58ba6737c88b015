//! Coreline's own settings.

use super::super::setting::{Kind::*, Range::*, Setting, Status::*, UpdateMode::*};

settings! {
    "coreline.cores": String => None, Any, ReadOnly, Effective;
    "Shards: a number of them or a list of CPUs such as `0-3,6`; all usable CPUs when not set.";
    "coreline.memory": Long => None, AtLeast(67108864), ReadOnly, Effective;
    "Cap of the whole process in bytes; half of what machine or cgroup allows when not set.";
    "coreline.cache.bytes": Long => None, AtLeast(1048576), ReadOnly, Effective;
    "Cache of the logs' ends; half of `coreline.memory` when not set.";
    "coreline.requests.bytes": Long => None, AtLeast(1048576), ReadOnly, Effective;
    "Requests and answers in flight; a quarter of `coreline.memory` when not set.";
    "coreline.journal.bytes": Long => None, AtLeast(2097152), ReadOnly, Effective;
    "Live journal bytes of all shards; 1 GiB or 1/16 of the disk when not set.";
    "coreline.write.caching": Boolean => Some("false"), Any, ClusterWide, Effective;
    "Whether an answer waits for the write only and not for the flush of the disk.";
    "coreline.validate.compressed": Boolean => Some("true"), Any, ReadOnly, Effective;
    "Whether compressed batches are decoded and checked before they are accepted.";
    "coreline.admin.listener": String => Some("127.0.0.1:9644"), Any, ReadOnly, Effective;
    "Host and port of the admin port: health, metrics, latency. Empty for none.";
    "coreline.latency.log": String => None, Any, ReadOnly, Effective;
    "File for an interval log (.hlog) of the latency histograms; begun anew at 64 MiB.";
    "coreline.slow.request.ms": Long => Some("1000"), AtLeast(0), ReadOnly, Effective;
    "Requests slower than this are logged with their stages.";
    "coreline.disk.reserve.bytes": Long => None, AtLeast(0), ReadOnly, Effective;
    "Producers are refused while less of the disk is free; 256 MiB or 2 % of it when not set.";
    "coreline.disk.low.bytes": Long => None, AtLeast(0), ReadOnly, Effective;
    "Operators are warned while less of the disk is free; a tenth of it when not set.";
}
