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
    /// The value as it came; `*` for passwords.
    pub value: String,
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
        write!(
            out,
            "Invalid value {value} for configuration {name}: {reason}"
        )
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
        let text = text.trim();
        let outcome = match self.kind {
            Kind::Boolean => parse_boolean(text)
                .map(|_| ())
                .ok_or_else(|| "Expected value to be either true or false".to_owned()),
            Kind::Short => self.check_number(text, i64::from(i16::MIN), i64::from(i16::MAX)),
            Kind::Int => self.check_number(text, i64::from(i32::MIN), i64::from(i32::MAX)),
            Kind::Long => self.check_number(text, i64::MIN, i64::MAX),
            Kind::Double => self.check_double(text),
            Kind::List => list(text).try_for_each(|item| self.check_text(item)),
            Kind::String | Kind::Class | Kind::Password => self.check_text(text),
        };
        outcome.map_err(|reason| self.fault(text, reason))
    }

    /// A fault of this setting for that value.
    #[must_use]
    pub fn fault(&self, value: &str, reason: impl Into<String>) -> ValueFault {
        let value = if self.is_sensitive() { "*" } else { value };
        ValueFault {
            name: self.name.to_owned(),
            value: value.to_owned(),
            reason: reason.into(),
        }
    }

    fn check_number(&self, text: &str, lowest: i64, highest: i64) -> Result<(), String> {
        let number = text
            .parse::<i64>()
            .ok()
            .filter(|number| (lowest..=highest).contains(number))
            .ok_or_else(|| {
                let size = match self.kind {
                    Kind::Short => "16-bit",
                    Kind::Int => "32-bit",
                    _ => "64-bit",
                };
                format!("Not a {size} whole number ({lowest} to {highest})")
            })?;
        let fits = match self.range {
            Range::AtLeast(least) => number >= least,
            Range::Between(least, most) => (least..=most).contains(&number),
            Range::BetweenOrMinusOne(least, most) => {
                number == -1 || (least..=most).contains(&number)
            }
            _ => true,
        };
        if fits {
            Ok(())
        } else {
            Err(self.range.to_string())
        }
    }

    fn check_double(&self, text: &str) -> Result<(), String> {
        let number: f64 = text.parse().map_err(|_| "Not a number".to_owned())?;
        match self.range {
            Range::Fraction(least, most) if !(least..=most).contains(&number) => {
                Err(self.range.to_string())
            }
            _ => Ok(()),
        }
    }

    fn check_text(&self, text: &str) -> Result<(), String> {
        let fits = match self.range {
            Range::OneOf(options) => options.contains(&text),
            Range::OneOfAnyCase(options) => options
                .iter()
                .any(|option| option.eq_ignore_ascii_case(text)),
            Range::NotEmpty => !text.is_empty(),
            Range::ThrottledReplicas => text == "*" || is_replica(text),
            _ => true,
        };
        if fits {
            Ok(())
        } else {
            Err(self.range.to_string())
        }
    }
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
            Self::OneOf(options) | Self::OneOfAnyCase(options) => {
                write!(out, "String must be one of: {}", options.join(", "))
            }
            Self::NotEmpty => write!(out, "String must be non-empty"),
            Self::ThrottledReplicas => {
                write!(
                    out,
                    "Must be the literal '*' or a list of replicas as \
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
