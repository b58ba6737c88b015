//! What is known of one setting, and how a text becomes its value.

use std::fmt;

/// The type of a setting's value (`ConfigDef.Type`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `true` or `false`, in any case.
    Boolean,
    /// 16-bit whole number.
    Short,
    /// 32-bit whole number.
    Int,
    /// 64-bit whole number.
    Long,
    /// Floating-point number.
    Double,
    /// Text without the spaces around it.
    String,
    /// Texts between commas.
    List,
    /// Name of a Java class.
    Class,
    /// Text that is never shown.
    Password,
}

/// Which values are valid.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Range {
    /// Every value of the type.
    Any,
    /// Whole numbers from this one on.
    AtLeast(i64),
    /// Whole numbers between these two, both included.
    Between(i64, i64),
    /// As `Between`, or -1.
    BetweenOrMinusOne(i64, i64),
    /// Floating-point numbers between these two, both included.
    Fraction(f64, f64),
    /// One of these texts; for a list, each of its texts.
    OneOf(&'static [&'static str]),
    /// One of these texts, in any case.
    OneOfAnyCase(&'static [&'static str]),
    /// Any text but the empty one.
    NotEmpty,
    /// `*`, or a list of `partition:broker`.
    ThrottledReplicas,
}

/// How a setting changes while the broker runs (`DynamicBrokerConfig`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UpdateMode {
    /// Only by a restart.
    ReadOnly,
    /// For a single broker.
    PerBroker,
    /// For a single broker or for all.
    ClusterWide,
}

/// What Coreline does with a setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// Does what Kafka does with it.
    Effective,
    /// Accepted; nothing here corresponds to it.
    NoMeaning,
    /// Accepted; belongs to a part that is not served yet.
    NotYet,
    /// Only its default is accepted: ignoring another value would be unsafe.
    Refused,
}

/// One row of a table of settings.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    /// Kafka's name.
    pub name: &'static str,
    /// Type of the value.
    pub kind: Kind,
    /// Text of the default; `None` where Kafka has null.
    pub default: Option<&'static str>,
    /// Valid values.
    pub range: Range,
    /// How it changes at run time.
    pub update_mode: UpdateMode,
    /// What Coreline does with it.
    pub status: Status,
    /// Whether Kafka keeps it out of descriptions.
    pub internal: bool,
    /// One sentence for operators.
    pub documentation: &'static str,
}

/// Why a value was refused. Shown as Kafka's `ConfigException` would.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ValueFault {
    /// The setting's name.
    pub name: String,
    /// The value as it came, `*` for passwords; `None` when the reason says it all.
    pub value: Option<String>,
    /// What would have been right.
    pub reason: String,
}

impl fmt::Display for ValueFault {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            name,
            value,
            reason,
        } = self;
        match value {
            None => out.write_str(reason),
            Some(value) => write!(
                out,
                "Invalid value {value} for configuration {name}: {reason}"
            ),
        }
    }
}

impl std::error::Error for ValueFault {}

impl Setting {
    /// Whether its value must not be shown.
    #[must_use]
    pub fn is_sensitive(&self) -> bool {
        self.kind == Kind::Password
    }

    /// Whether `text` is a valid value: its type, then its range.
    pub fn check(&self, text: &str) -> Result<(), ValueFault> {
        let trimmed = text.trim();
        match self.kind {
            Kind::Boolean => parse_boolean(trimmed)
                .map(|_| ())
                .ok_or_else(|| self.fault(text, "Expected value to be either true or false")),
            Kind::Short => self.check_number(text, i64::from(i16::MIN), i64::from(i16::MAX)),
            Kind::Int => self.check_number(text, i64::from(i32::MIN), i64::from(i32::MAX)),
            Kind::Long => self.check_number(text, i64::MIN, i64::MAX),
            Kind::Double => self.check_double(text),
            Kind::List => self.check_list(trimmed),
            Kind::String | Kind::Class | Kind::Password => self
                .check_text(trimmed)
                .map_err(|reason| self.fault(trimmed, reason)),
        }
    }

    /// A fault of this setting for that value.
    #[must_use]
    pub fn fault(&self, value: &str, reason: impl Into<String>) -> ValueFault {
        let value = if self.is_sensitive() { "*" } else { value };
        ValueFault {
            name: self.name.to_owned(),
            value: Some(value.to_owned()),
            reason: reason.into(),
        }
    }

    fn not_a_number(&self, text: &str) -> ValueFault {
        let kind = match self.kind {
            Kind::Short => "SHORT",
            Kind::Int => "INT",
            Kind::Double => "DOUBLE",
            _ => "LONG",
        };
        self.fault(text, format!("Not a number of type {kind}"))
    }

    fn check_number(&self, text: &str, lowest: i64, highest: i64) -> Result<(), ValueFault> {
        let number = text
            .trim()
            .parse::<i64>()
            .ok()
            .filter(|number| (lowest..=highest).contains(number))
            .ok_or_else(|| self.not_a_number(text))?;
        let reason = match self.range {
            Range::AtLeast(least) | Range::Between(least, _) if number < least => {
                Some(too_small(least))
            }
            Range::Between(_, most) if number > most => Some(too_large(most)),
            Range::BetweenOrMinusOne(least, most) if !(least..=most).contains(&number) => (number
                != -1)
                .then(|| format!("Value must be between {least} and {most} or equal to -1")),
            _ => None,
        };
        reason.map_or(
            Ok(()),
            |reason| Err(self.fault(&number.to_string(), reason)),
        )
    }

    fn check_double(&self, text: &str) -> Result<(), ValueFault> {
        let number = text
            .trim()
            .parse()
            .ok()
            .filter(|_| is_java_double(text.trim()));
        let number: f64 = number.ok_or_else(|| self.not_a_number(text))?;
        let reason = match self.range {
            Range::Fraction(least, _) if number < least => too_small(least),
            Range::Fraction(_, most) if number > most => too_large(most),
            _ => return Ok(()),
        };
        Err(self.fault(&format!("{number:?}"), reason))
    }

    fn check_list(&self, text: &str) -> Result<(), ValueFault> {
        if let Range::ThrottledReplicas = self.range {
            let fits = text == "*" || list(text).all(is_replica);
            let shown: Vec<&str> = list(text).collect();
            let value = format!("[{}]", shown.join(", "));
            let name = self.name;
            return if fits {
                Ok(())
            } else {
                Err(self.fault(&value, format!("{name} {}", self.range)))
            };
        }
        list(text).try_for_each(|item| match self.check_text(item) {
            Ok(()) => Ok(()),
            Err(_) if item.is_empty() => Err(ValueFault {
                name: self.name.to_owned(),
                value: None,
                reason: format!("Configuration '{}' values must not be empty.", self.name),
            }),
            Err(reason) => Err(self.fault(item, reason)),
        })
    }

    fn check_text(&self, text: &str) -> Result<(), String> {
        let fits = match self.range {
            Range::OneOf(options) => options.contains(&text),
            Range::OneOfAnyCase(options) => options
                .iter()
                .any(|option| option.eq_ignore_ascii_case(text)),
            Range::NotEmpty => !text.is_empty(),
            _ => true,
        };
        if fits {
            Ok(())
        } else {
            Err(self.range.to_string())
        }
    }
}

/// Whether Java reads a number that we read: it knows one spelling of what is no finite number.
fn is_java_double(text: &str) -> bool {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    unsigned.starts_with(|first: char| !first.is_ascii_alphabetic())
        || matches!(unsigned, "NaN" | "Infinity")
}

fn too_small(least: impl fmt::Display) -> String {
    format!("Value must be at least {least}")
}

fn too_large(most: impl fmt::Display) -> String {
    format!("Value must be no more than {most}")
}

fn is_replica(text: &str) -> bool {
    text.split_once(':').is_some_and(|(partition, broker)| {
        partition.parse::<i32>().is_ok() && broker.parse::<i32>().is_ok()
    })
}

impl fmt::Display for Range {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Any => write!(out, "Any value"),
            Self::AtLeast(least) => write!(out, "Value must be at least {least}"),
            Self::Between(least, most) => {
                write!(out, "Value must be between {least} and {most}")
            }
            Self::BetweenOrMinusOne(least, most) => {
                write!(out, "Value must be between {least} and {most}, or -1")
            }
            Self::Fraction(least, most) => {
                write!(out, "Value must be between {least} and {most}")
            }
            Self::OneOf(options) => {
                write!(out, "String must be one of: {}", options.join(", "))
            }
            Self::OneOfAnyCase(options) => {
                let options = options.join(", ");
                write!(out, "String must be one of (case insensitive): {options}")
            }
            Self::NotEmpty => write!(out, "String must be non-empty"),
            Self::ThrottledReplicas => {
                write!(
                    out,
                    "must be the literal '*' or a list of replicas in the following format: \
                    [partitionId]:[brokerId],[partitionId]:[brokerId],..."
                )
            }
        }
    }
}

/// Kafka's reading of a boolean: either word in any case.
#[must_use]
pub fn parse_boolean(text: &str) -> Option<bool> {
    if text.eq_ignore_ascii_case("true") {
        Some(true)
    } else if text.eq_ignore_ascii_case("false") {
        Some(false)
    } else {
        None
    }
}

/// The texts of a list: split at commas, without the spaces around them; none of an empty text.
pub fn list(text: &str) -> impl Iterator<Item = &str> {
    let text = text.trim();
    let empty = text.is_empty();
    text.split(',').map(str::trim).filter(move |_| !empty)
}
