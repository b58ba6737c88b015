//! Prometheus' text format, version 0.0.4.

use std::fmt::Write as _;

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
