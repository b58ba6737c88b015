//! HdrHistogram's own text formats, for its viewers: `.hgrm` and the rows of an `.hlog`.

use std::fmt::Write as _;
use std::time::Duration;

use base64::Engine as _;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Serializer, V2DeflateSerializer};

const NS_PER_MS: f64 = 1_000_000.0;
/// Rows of a percentile distribution for each halving of the distance to 100 %.
const TICKS_PER_HALF_DISTANCE: u32 = 5;

/// A percentile distribution in milliseconds, as `Histogram.outputPercentileDistribution` of the
/// Java library prints it.
#[must_use]
pub fn hgrm(histogram: &Histogram<u64>) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = writeln!(
        text,
        "{:>12} {:>14} {:>10} {:>14}\n",
        "Value", "Percentile", "TotalCount", "1/(1-Percentile)"
    );
    let mut count = 0;
    for value in histogram.iter_quantiles(TICKS_PER_HALF_DISTANCE) {
        count += value.count_since_last_iteration();
        let ms = value.value_iterated_to() as f64 / NS_PER_MS;
        let quantile = value.quantile_iterated_to();
        let _ = write!(text, "{ms:>12.3} {quantile:>2.12} {count:>10}");
        let _ = if quantile < 1.0 {
            writeln!(text, " {:>14.2}", 1.0 / (1.0 - quantile))
        } else {
            writeln!(text)
        };
    }
    let in_ms = |ns: f64| ns / NS_PER_MS;
    let (mean, deviation) = (in_ms(histogram.mean()), in_ms(histogram.stdev()));
    let max = in_ms(histogram.max() as f64);
    let digits = u32::from(histogram.sigfig());
    let sub_buckets = (2 * 10u64.pow(digits)).next_power_of_two();
    let _ = writeln!(
        text,
        "#[Mean    = {mean:>12.3}, StdDeviation   = {deviation:>12.3}]\n\
         #[Max     = {max:>12.3}, Total count    = {:>12}]\n\
         #[Buckets = {:>12}, SubBuckets     = {sub_buckets:>12}]",
        histogram.len(),
        histogram.buckets(),
    );
    text
}

/// What stands at the top of an interval log that begins at this time since the epoch.
#[must_use]
pub fn hlog_head(began: Duration) -> String {
    let seconds = began.as_secs_f64();
    format!(
        "#[Latencies of a Coreline broker in nanoseconds, maxima in milliseconds]\n\
         #[Histogram log format version 1.3]\n\
         #[StartTime: {seconds:.3} (seconds since epoch)]\n\
         \"StartTimestamp\",\"Interval_Length\",\"Interval_Max\",\
         \"Interval_Compressed_Histogram\"\n"
    )
}

/// One row of an interval log: a histogram of the span that began at `began` since the epoch.
/// `None` for one that cannot be written, which no histogram of ours is.
#[must_use]
pub fn hlog_row(
    tag: &str,
    (began, length): (Duration, Duration),
    histogram: &Histogram<u64>,
) -> Option<String> {
    let mut bytes = Vec::new();
    let mut serializer = V2DeflateSerializer::new();
    serializer.serialize(histogram, &mut bytes).ok()?;
    let text = base64::engine::general_purpose::STANDARD.encode(&bytes);
    let (began, length) = (began.as_secs_f64(), length.as_secs_f64());
    let max = histogram.max() as f64 / NS_PER_MS;
    // Commas and spaces end a tag.
    let tag = tag.replace([',', ' '], "_");
    Some(format!(
        "Tag={tag},{began:.3},{length:.3},{max:.3},{text}\n"
    ))
}
