//! Prometheus' text format, version 0.0.4.

use std::fmt::Write as _;

use crate::base::limits::MIB;

/// Text about single partitions, single topics, single groups, and groups' single offsets, at most:
/// there are a few such texts at a time, on a thread whose memory is not charged to anybody. 2,000
/// partitions fit whatever their topics' names.
const TEXT_BYTES_MAX: usize = 4 * MIB;
/// What a series takes beside its names.
const SERIES_BYTES: usize = 40;

/// How many names of these lengths have their series within [`TEXT_BYTES_MAX`], with as many series
/// each as there are families.
pub fn fitting(names: impl Iterator<Item = usize>, families: &[&str]) -> usize {
    let fixed: usize = families.iter().map(|name| name.len() + SERIES_BYTES).sum();
    let mut left = TEXT_BYTES_MAX;
    let fits = |name: &usize| {
        let bytes = fixed + families.len() * name;
        let is_within = bytes <= left;
        left = left.saturating_sub(bytes);
        is_within
    };
    names.take_while(fits).count()
}

/// Families of series, written one after the other.
#[derive(Default)]
pub struct Text {
    text: String,
}

/// A family that is being written.
pub struct Family<'a> {
    text: &'a mut String,
    name: &'static str,
}

impl Text {
    /// A family of values that only rise; its name ends in `_total`.
    pub fn counter(&mut self, name: &'static str, help: &str) -> Family<'_> {
        self.family(name, "counter", help)
    }

    /// A family of values that rise and fall.
    pub fn gauge(&mut self, name: &'static str, help: &str) -> Family<'_> {
        self.family(name, "gauge", help)
    }

    /// A family of quantiles and counts.
    pub fn summary(&mut self, name: &'static str, help: &str) -> Family<'_> {
        self.family(name, "summary", help)
    }

    /// A family of counts by size.
    pub fn histogram(&mut self, name: &'static str, help: &str) -> Family<'_> {
        self.family(name, "histogram", help)
    }

    fn family(&mut self, name: &'static str, kind: &str, help: &str) -> Family<'_> {
        // Writing to a string cannot fail.
        let _ = writeln!(self.text, "# HELP {name} {help}\n# TYPE {name} {kind}");
        Family {
            text: &mut self.text,
            name,
        }
    }

    /// The whole text.
    pub fn finish(self) -> String {
        self.text
    }
}

impl Family<'_> {
    /// One series of the family.
    pub fn value(&mut self, labels: &[(&str, &str)], value: f64) -> &mut Self {
        self.series("", labels, value)
    }

    /// One series whose name continues the family's (`_count` of a summary).
    pub fn series(&mut self, suffix: &str, labels: &[(&str, &str)], value: f64) -> &mut Self {
        self.text.push_str(self.name);
        self.text.push_str(suffix);
        for (place, (name, label)) in labels.iter().enumerate() {
            self.text.push(if place == 0 { '{' } else { ',' });
            self.text.push_str(name);
            self.text.push_str("=\"");
            for character in label.chars() {
                match character {
                    '\\' => self.text.push_str("\\\\"),
                    '"' => self.text.push_str("\\\""),
                    '\n' => self.text.push_str("\\n"),
                    other => self.text.push(other),
                }
            }
            self.text.push('"');
        }
        if !labels.is_empty() {
            self.text.push('}');
        }
        let _ = writeln!(self.text, " {value}");
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::limits::TOPIC_NAME_LEN_MAX;

    #[test]
    fn two_thousand_partitions_fit_and_no_text_grows_past_its_limit() {
        let families = ["kafka_cluster_partition_replicascount"; 6];
        let count = |name: usize| fitting(std::iter::repeat_n(name, 1 << 20), &families);
        let longest = TOPIC_NAME_LEN_MAX;
        assert!(count(longest) >= 2_000, "{}", count(longest));
        assert!(count(1) > 8_000);
        for name in [longest, 1] {
            let bytes: usize = families.iter().map(|one| one.len() + name).sum();
            assert!(count(name) * (bytes + 6 * SERIES_BYTES) <= TEXT_BYTES_MAX);
        }
    }

    #[test]
    fn labels_are_escaped() {
        let mut text = Text::default();
        text.gauge("a", "what")
            .value(&[("b", "c\"\\\n"), ("d", "")], 1.5);
        text.summary("s", "x")
            .series("_count", &[], 12_345_678_901.0);
        assert_eq!(
            text.finish(),
            "# HELP a what\n# TYPE a gauge\na{b=\"c\\\"\\\\\\n\",d=\"\"} 1.5\n\
             # HELP s x\n# TYPE s summary\ns_count 12345678901\n"
        );
    }
}
