//! What the admin port answers where no shard is asked.

use std::rc::Rc;
use std::sync::Arc;

use hyper::{StatusCode, Uri};

use super::observer::Observer;
use super::routes::{self, Answer};
use crate::base::config::BrokerConfig;

fn ask(observer: &Rc<Observer>, path: &str) -> Answer {
    let uri: Uri = path.parse().expect("a path");
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .expect("a runtime");
    runtime.block_on(routes::answer(observer, &uri))
}

#[test]
fn readiness_follows_the_phases_and_health_does_not() {
    let observer = Observer::new(&Arc::new(BrokerConfig::default()), Vec::new());
    let ready = ask(&observer, "/readyz");
    assert_eq!(ready.status, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(ready.body, "starting\n");
    assert_eq!(ask(&observer, "/healthz").status, StatusCode::OK);
    observer.serve(Vec::new());
    assert_eq!(ask(&observer, "/readyz").body, "ok\n");
    observer.stop();
    let ready = ask(&observer, "/readyz");
    assert_eq!(ready.status, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(ready.body, "stopping\n");
    assert_eq!(ask(&observer, "/healthz").body, "ok\n");
}

#[test]
fn everything_answers_before_there_are_shards() {
    let observer = Observer::new(&Arc::new(BrokerConfig::default()), Vec::new());
    for path in ["/", "/metrics", "/latency", "/latency.json", "/latency.txt"] {
        assert_eq!(ask(&observer, path).status, StatusCode::OK, "{path}");
    }
    for path in ["/latency.hgrm", "/no", "//", "/latency/"] {
        assert_eq!(ask(&observer, path).status, StatusCode::NOT_FOUND, "{path}");
    }
    for path in [
        "/latency.json?shard=0",
        "/latency.json?shard=-1",
        "/latency.txt?shard=99999999999999999999",
        "/latency.hgrm?window=hour",
    ] {
        assert_eq!(
            ask(&observer, path).status,
            StatusCode::BAD_REQUEST,
            "{path}"
        );
    }
}
