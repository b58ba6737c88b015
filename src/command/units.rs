//! Sizes and times as people say them.

/// What counts as no limit.
const ENDLESS: [i64; 2] = [i64::MAX, i32::MAX as i64];

const SIZES: [(i64, &str); 4] = [
    (1 << 40, "TiB"),
    (1 << 30, "GiB"),
    (1 << 20, "MiB"),
    (1 << 10, "KiB"),
];

const TIMES: [(i64, &str); 5] = [
    (86_400_000, "d"),
    (3_600_000, "h"),
    (60_000, "min"),
    (1_000, "s"),
    (1, "ms"),
];

/// How a setting's name says what its number counts.
#[derive(Clone, Copy)]
enum Unit {
    Bytes,
    /// So many milliseconds each.
    Time(i64),
}

/// Names without a suffix that tells their unit.
const BYTES: [&str; 3] = [
    "coreline.memory",
    "log.cleaner.dedupe.buffer.size",
    "log.cleaner.io.buffer.size",
];

fn unit(name: &str) -> Option<Unit> {
    let is_last = |word: &str| name.ends_with(word);
    let is_bytes = is_last(".bytes")
        || is_last(".bytes.per.second")
        || is_last(".max.bytes")
        || is_last(".bytes.max")
        || is_last("size.max.bytes")
        || BYTES.contains(&name);
    if is_bytes {
        return Some(Unit::Bytes);
    }
    let times = [
        (".ms", 1),
        (".seconds", 1_000),
        (".minutes", 60_000),
        (".hours", 3_600_000),
    ];
    let found = times.into_iter().find(|(suffix, _)| is_last(suffix));
    found.map(|(_, length)| Unit::Time(length))
}

/// The number that a setting of that name has, in larger units; `None` where they say nothing more.
pub fn human(name: &str, number: i64) -> Option<String> {
    let unit = unit(name)?;
    if ENDLESS.contains(&number) {
        return Some("no limit".to_owned());
    }
    match unit {
        Unit::Bytes => size(number),
        Unit::Time(length) => {
            let time = time(number.checked_mul(length)?)?;
            let is_same = length == 1 && number < 1_000;
            (!is_same).then_some(time)
        }
    }
}

/// Exactly where it is whole, else to a tenth.
fn size(bytes: i64) -> Option<String> {
    let (length, name) = SIZES.into_iter().find(|(length, _)| bytes >= *length)?;
    let tenths = (i128::from(bytes) * 10 + i128::from(length) / 2) / i128::from(length);
    Some(match bytes % length {
        0 => format!("{} {name}", bytes / length),
        _ => format!("about {}.{} {name}", tenths / 10, tenths % 10),
    })
}

/// In at most two units, rounded down; exactly where two are enough.
fn time(ms: i64) -> Option<String> {
    let first = TIMES.iter().position(|(length, _)| ms >= *length)?;
    let mut rest = ms;
    let mut parts = Vec::new();
    for (length, name) in TIMES.iter().skip(first).take(2) {
        if rest >= *length {
            parts.push(format!("{} {name}", rest / length));
        }
        rest %= length;
    }
    let text = parts.join(" ");
    Some(if rest == 0 {
        text
    } else {
        format!("about {text}")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(name: &str, number: i64) -> String {
        human(name, number).unwrap_or_default()
    }

    #[test]
    fn sizes_are_told_in_the_largest_unit() {
        assert_eq!(told("segment.bytes", 1 << 30), "1 GiB");
        assert_eq!(told("max.message.bytes", 1_048_588), "about 1.0 MiB");
        assert_eq!(told("log.segment.bytes", 1_610_612_736), "about 1.5 GiB");
        assert_eq!(told("socket.request.max.bytes", 104_857_600), "100 MiB");
        assert_eq!(told("log.segment.bytes", 1_023), "");
        assert_eq!(told("log.segment.bytes", 1_024), "1 KiB");
        assert_eq!(told("log.retention.bytes", -1), "");
        assert_eq!(told("coreline.memory", i64::MAX), "no limit");
    }

    #[test]
    fn times_are_told_in_at_most_two_units() {
        assert_eq!(told("retention.ms", 604_800_000), "7 d");
        assert_eq!(told("log.retention.hours", 168), "7 d");
        assert_eq!(told("log.retention.minutes", 90), "1 h 30 min");
        assert_eq!(told("segment.ms", 5_400_001), "about 1 h 30 min");
        assert_eq!(told("segment.ms", 1_500), "1 s 500 ms");
        assert_eq!(told("segment.ms", 999), "");
        assert_eq!(told("quota.window.size.seconds", 1), "1 s");
        assert_eq!(told("flush.ms", i64::MAX), "no limit");
        assert_eq!(told("log.retention.hours", i64::MAX - 1), "");
        assert_eq!(told("num.partitions", 60_000), "");
    }
}
