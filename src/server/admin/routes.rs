//! Paths and their answers.

use std::collections::BTreeMap;
use std::time::Duration;

use hyper::{StatusCode, Uri};

use super::observer::{Observer, SILENCE_MAX, Window};
use super::{Phase, latency, metrics};

/// How long an answer waits for what shards have recorded this second.
const FRESH_WAIT: Duration = Duration::from_millis(300);
/// And for all their partitions.
const PARTITIONS_WAIT: Duration = Duration::from_secs(2);
/// A disk that leaves a write unanswered for longer keeps producers waiting.
const DISK_SILENCE_MAX: Duration = Duration::from_secs(5);
/// A broker with a shard that is silent for so long had better be restarted.
const DEAD_AFTER: Duration = Duration::from_secs(60);

const TEXT: &str = "text/plain; charset=utf-8";
const INDEX: &str = "Coreline's admin port\n\n/healthz       whether it lives\n\
                     /readyz        whether it serves\n/metrics       Prometheus text\n\
                     /latency       a live page\n/latency.json  what it shows\n\
                     /latency.txt   the table of `coreline latency`\n\
                     /latency.hgrm  ?api=Produce or ?stage=flush, for HdrHistogram's viewers\n\n\
                     Latencies take ?shard=N and ?window=minute.\n";

/// What is sent back.
pub struct Answer {
    pub status: StatusCode,
    pub content_type: &'static str,
    pub body: String,
}

impl Answer {
    /// Plain text.
    pub fn text(status: StatusCode, body: impl Into<String>) -> Self {
        Self {
            status,
            content_type: TEXT,
            body: body.into(),
        }
    }

    fn ok(content_type: &'static str, body: String) -> Self {
        Self {
            status: StatusCode::OK,
            content_type,
            body,
        }
    }
}

/// What a latency is asked for.
pub struct Query<'a> {
    /// One shard; `None` for all.
    pub shard: Option<usize>,
    /// Since when.
    pub window: Window,
    /// An API's name.
    pub api: Option<&'a str>,
    /// A stage's name.
    pub stage: Option<&'a str>,
}

impl<'a> Query<'a> {
    fn parse(text: &'a str, shards: usize) -> Result<Self, String> {
        let mut query = Self {
            shard: None,
            window: Window::Start,
            api: None,
            stage: None,
        };
        for pair in text.split('&').filter(|pair| !pair.is_empty()) {
            match pair.split_once('=').unwrap_or((pair, "")) {
                ("shard", "" | "all") => query.shard = None,
                ("shard", number) => {
                    let known = number.parse().ok().filter(|number| *number < shards);
                    query.shard = Some(known.ok_or_else(|| {
                        format!(
                            "there is no shard {number}: they are 0 to {}\n",
                            shards.max(1) - 1
                        )
                    })?);
                }
                ("window", "" | "start") => query.window = Window::Start,
                ("window", "minute") => query.window = Window::Minute,
                ("window", _) => return Err("window is start or minute\n".to_owned()),
                ("api", name) => query.api = Some(name),
                ("stage", name) => query.stage = Some(name),
                // Monitoring systems add parameters of their own.
                _ => {}
            }
        }
        Ok(query)
    }
}

/// Whether the answer grows with the number of partitions.
pub fn is_large(uri: &Uri) -> bool {
    uri.path() == "/metrics"
}

/// Asks the shards for what a large answer is made of; for one that stands still not for long.
/// Whoever waits here holds no such answer yet.
pub async fn prepare_large(observer: &Observer) {
    observer.refresh(FRESH_WAIT).await;
    observer.refresh_partitions(PARTITIONS_WAIT).await;
}

/// Answers a GET.
pub async fn answer(observer: &Observer, uri: &Uri) -> Answer {
    match uri.path() {
        "/" => Answer::text(StatusCode::OK, INDEX),
        "/healthz" => health(observer, DEAD_AFTER, false),
        "/readyz" => health(observer, SILENCE_MAX, true),
        "/latency" => Answer::ok("text/html; charset=utf-8", latency::PAGE.to_owned()),
        "/metrics" => {
            let text = metrics::render(observer);
            Answer::ok("text/plain; version=0.0.4; charset=utf-8", text)
        }
        path @ ("/latency.json" | "/latency.txt" | "/latency.hgrm") => {
            observer.refresh(FRESH_WAIT).await;
            let shards = observer.shards(<[_]>::len);
            let query = match Query::parse(uri.query().unwrap_or_default(), shards) {
                Ok(query) => query,
                Err(reason) => return Answer::text(StatusCode::BAD_REQUEST, reason),
            };
            match path {
                "/latency.json" => Answer::ok("application/json", latency::json(observer, &query)),
                "/latency.txt" => Answer::ok(TEXT, latency::table(observer, &query)),
                _ => match latency::hgrm(observer, &query) {
                    Some(text) => Answer::ok(TEXT, text),
                    None => Answer::text(
                        StatusCode::NOT_FOUND,
                        "nothing recorded under that name; ?api=Produce or ?stage=flush\n",
                    ),
                },
            }
        }
        _ => Answer::text(StatusCode::NOT_FOUND, INDEX),
    }
}

fn health(observer: &Observer, silence_max: Duration, must_serve: bool) -> Answer {
    let mut faults = Vec::new();
    let (mut offline, mut is_none_online) = (BTreeMap::new(), false);
    match observer.phase() {
        Phase::Serving => {}
        Phase::Starting if must_serve => faults.push("starting".to_owned()),
        Phase::Stopping if must_serve => faults.push("stopping".to_owned()),
        Phase::Starting | Phase::Stopping => {}
    }
    observer.shards(|shards| {
        for (number, shard) in shards.iter().enumerate() {
            let silence = shard.silence();
            if observer.phase() == Phase::Serving && silence > silence_max {
                let seconds = silence.as_secs();
                faults.push(format!("shard {number} stands still for {seconds} s"));
            }
            let disk_silence = shard.gauges.disk_silence;
            if must_serve && disk_silence > DISK_SILENCE_MAX {
                let seconds = disk_silence.as_secs();
                faults.push(format!(
                    "shard {number} has waited {seconds} s for the disk to answer a write"
                ));
            }
            if must_serve {
                let failed = shard.gauges.offline.iter();
                offline.extend(failed.map(|one| (one.path.clone(), one.told())));
                is_none_online |= shard.gauges.are_all_offline;
            }
        }
    });
    let mut offline: Vec<String> = offline.into_values().collect();
    // While some directories serve the broker does; who serves nothing is not ready.
    if is_none_online {
        faults.append(&mut offline);
    }
    if faults.is_empty() {
        let notes: String = offline.iter().map(|note| format!("{note}\n")).collect();
        let remark = match must_serve {
            true => remark(observer),
            false => String::new(),
        };
        Answer::text(StatusCode::OK, format!("ok\n{notes}{remark}"))
    } else {
        Answer::text(
            StatusCode::SERVICE_UNAVAILABLE,
            format!("{}\n", faults.join("\n")),
        )
    }
}

/// What whoever asks should know though clients are served: reads and deletes go on.
fn remark(observer: &Observer) -> String {
    let full = observer.disks.iter().filter(|disk| {
        let space = disk.space();
        space.is_some_and(|space| metrics::disks::is_refusing(disk, space))
    });
    let lines = full.map(|disk| {
        let directory = disk.directory().display();
        format!("but producers are refused: the disk of {directory} is nearly full\n")
    });
    lines.collect()
}
