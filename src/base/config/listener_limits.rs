//! Settings of single listeners, `listener.name.<listener>.<setting>`, as far as they have meaning
//! here: those of `SocketServer`'s `ListenerConnectionQuota`.

use std::collections::BTreeMap;

use super::dynamic::ConfigMap;

/// What Kafka takes for no limit.
const UNLIMITED: usize = i32::MAX as usize;

/// Settings that a listener may have for itself; all others are the broker's.
pub const OF_LISTENERS: [&str; 2] = ["max.connections", "max.connection.creation.rate"];

/// How many connections a listener has at a time, and how fast they come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListenerLimits {
    /// `max.connections`
    pub connections_max: usize,
    /// `max.connection.creation.rate`
    pub connection_creation_rate_max: usize,
}

impl Default for ListenerLimits {
    fn default() -> Self {
        Self {
            connections_max: UNLIMITED,
            connection_creation_rate_max: UNLIMITED,
        }
    }
}

/// A listener's setting taken apart: the listener's name in capitals, and the setting. Kafka writes
/// the name in small letters here; any are understood.
#[must_use]
pub fn parts(name: &str) -> Option<(String, &str)> {
    let (listener, setting) = name.strip_prefix("listener.name.")?.split_once('.')?;
    Some((listener.to_uppercase(), setting))
}

/// The limits by listener, of layers that win over those before them. Values were checked before;
/// one that was not is passed over.
#[must_use]
pub fn read<'a>(
    layers: impl IntoIterator<Item = &'a ConfigMap>,
) -> BTreeMap<String, ListenerLimits> {
    let mut limits: BTreeMap<String, ListenerLimits> = BTreeMap::new();
    for (name, value) in layers.into_iter().flatten() {
        let Some((listener, setting)) = parts(name) else {
            continue;
        };
        let Ok(value) = value.trim().parse::<usize>() else {
            continue;
        };
        match setting {
            "max.connections" => limits.entry(listener).or_default().connections_max = value,
            "max.connection.creation.rate" => {
                let limit = limits.entry(listener).or_default();
                limit.connection_creation_rate_max = value;
            }
            _ => {}
        }
    }
    limits
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_later_layer_wins_for_what_it_names() {
        let layer = |pairs: &[(&str, &str)]| -> ConfigMap {
            let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
            pairs.iter().map(owned).collect()
        };
        let fixed = layer(&[
            ("listener.name.plain.max.connections", "5"),
            ("listener.name.plain.max.connection.creation.rate", " 7 "),
            ("listener.name.other.max.connections", "x"),
            ("max.connections", "3"),
        ]);
        let own = layer(&[("listener.name.PLAIN.max.connections", "6")]);
        let limits = read([&fixed, &own]);
        let plain = ListenerLimits {
            connections_max: 6,
            connection_creation_rate_max: 7,
        };
        assert_eq!(limits.get("PLAIN"), Some(&plain));
        assert_eq!(limits.len(), 1);
    }
}
