//! Settings of subscriptions to client metrics (`ClientMetricsConfigs`).

use super::super::setting::{Kind::*, Range::*, Setting, Status::*, UpdateMode::*};

settings! {
    "interval.ms": Int => Some("300000"), Any, ClusterWide, NotYet;
    "Pause between two pushes of a client, in milliseconds.";
    "match": List => Some(""), Any, ClusterWide, NotYet;
    "Which clients the subscription is for, each as `key=pattern`; all of them when empty.";
    "metrics": List => Some(""), Any, ClusterWide, NotYet;
    "How the names of the metrics begin; `*` for all of them.";
}
