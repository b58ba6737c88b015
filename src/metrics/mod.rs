//! Counters and HDR histograms, one set a shard without locks, merged when read.
