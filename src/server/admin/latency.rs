//! Latencies as page, numbers, table and percentile distribution.

use std::fmt::Write as _;

use hdrhistogram::Histogram;

use super::observer::{Observer, Window};
use super::routes::Query;
use crate::base::ids::ApiKey;
use crate::metrics::{Recorded, export};
use crate::wire::api;

/// The page; it asks for `/latency.json` and draws by itself.
pub const PAGE: &str = include_str!("latency.html");

const NS_PER_MS: f64 = 1_000_000.0;
/// Points of a curve for each halving of the distance to 100 %.
const TICKS_PER_HALF_DISTANCE: u32 = 2;
/// The percentiles of the page's table.
const QUANTILES: [f64; 5] = [0.5, 0.9, 0.99, 0.999, 0.9999];
/// Where the time of the slowest is divided among the stages.
const TAIL_QUANTILE: f64 = 0.999;

pub(super) fn name_of(key: ApiKey) -> Option<&'static str> {
    api::find(key).map(|api| api.name)
}

/// The table of `coreline latency`, with how far each shard is.
pub fn table(observer: &Observer, query: &Query<'_>) -> String {
    let mut text = observer
        .snapshot_of(query.shard, query.window)
        .table(name_of);
    if text.is_empty() {
        text.push_str("no request yet\n");
    }
    observer.shards(|shards| {
        for (number, shard) in shards.iter().enumerate() {
            if query.shard.is_none_or(|one| one == number) {
                let busy = shard.busy_share() * 100.0;
                let silence = shard.silence().as_secs_f64();
                let _ = writeln!(
                    text,
                    "shard {number:<20} busy {busy:>5.1} %, heard {silence:.1} s ago"
                );
            }
        }
    });
    text
}

/// One distribution; `None` where nothing was recorded under that name.
pub fn hgrm(observer: &Observer, query: &Query<'_>) -> Option<String> {
    let recorded = observer.recorded(query.shard, query.window);
    let found = match query.stage {
        Some(name) => recorded
            .stages()
            .find(|(stage, _)| stage.name() == name)
            .map(|(_, histogram)| histogram),
        None => {
            let name = query.api.unwrap_or("Produce");
            let mut all = recorded.requests();
            all.find(|(key, _)| name_of(*key) == Some(name))
                .map(|(_, histogram)| histogram)
        }
    };
    found.map(export::hgrm)
}

/// Everything that the page shows: names are ours and need no escapes.
pub fn json(observer: &Observer, query: &Query<'_>) -> String {
    let mut text = String::from("{\"shards\":[");
    // Writing to a string cannot fail.
    observer.shards(|shards| {
        for (number, shard) in shards.iter().enumerate() {
            let comma = if number > 0 { "," } else { "" };
            let _ = write!(
                text,
                "{comma}{{\"busy\":{:.4},\"silent_ms\":{},\"inbox\":{}}}",
                shard.busy_share(),
                shard.silence().as_millis(),
                shard.inbox_depth()
            );
        }
    });
    let uptime = observer.started.elapsed().as_secs();
    let _ = write!(text, "],\"uptime_s\":{uptime},\"windows\":{{");
    for (place, window) in [Window::Start, Window::Minute].into_iter().enumerate() {
        let (comma, name) = match place {
            0 => ("", "start"),
            _ => (",", "minute"),
        };
        let recorded = observer.recorded(query.shard, window);
        let _ = write!(text, "{comma}\"{name}\":[{}]", series(&recorded));
    }
    text.push_str("}}");
    text
}

fn series(recorded: &Recorded) -> String {
    let mut all = Vec::new();
    for (key, histogram) in recorded.requests() {
        let number = format!("key {key}");
        let name = name_of(key).unwrap_or(&number);
        let from = histogram.value_at_quantile(TAIL_QUANTILE);
        let shares = recorded.tail(key).map(|tail| tail.shares_from(from));
        let shares: Vec<String> = shares
            .into_iter()
            .flat_map(|shares| shares.shares)
            .map(|(stage, share)| format!("[\"{}\",{share:.4}]", stage.name()))
            .collect();
        let tail = format!(",\"tail\":[{}]", shares.join(","));
        all.push(one("request", name, histogram) + &tail + "}");
    }
    for (stage, histogram) in recorded.stages() {
        all.push(one("stage", stage.name(), histogram) + "}");
    }
    all.join(",")
}

fn one(kind: &str, name: &str, histogram: &Histogram<u64>) -> String {
    let ms = |ns: u64| ns as f64 / NS_PER_MS;
    let quantiles: Vec<String> = QUANTILES
        .iter()
        .map(|quantile| format!("{:.4}", ms(histogram.value_at_quantile(*quantile))))
        .collect();
    let points: Vec<String> = histogram
        .iter_quantiles(TICKS_PER_HALF_DISTANCE)
        .filter(|value| value.quantile_iterated_to() < 1.0)
        .map(|value| {
            let (quantile, at) = (value.quantile_iterated_to(), value.value_iterated_to());
            format!("[{quantile:.8},{:.4}]", ms(at))
        })
        .collect();
    format!(
        "{{\"kind\":\"{kind}\",\"name\":\"{name}\",\"count\":{},\"quantiles\":[{}],\
         \"max\":{:.4},\"points\":[{}]",
        histogram.len(),
        quantiles.join(","),
        ms(histogram.max()),
        points.join(",")
    )
}
