//! What an operator sees when the broker is ready.

use std::fmt::Write as _;
use std::net::SocketAddr;

use coreline::base::config::{BrokerConfig, Budgets};

/// What is told about a broker that has just started.
#[derive(Debug)]
pub struct Started<'a> {
    /// Its settings.
    pub config: &'a BrokerConfig,
    /// Its budgets.
    pub budgets: &'a Budgets,
    /// How many shards run.
    pub shards: usize,
    /// Whether each shard has a CPU of its own.
    pub is_pinned: bool,
    /// Whether the data's file system keeps what was flushed through a power cut.
    pub is_power_safe: bool,
    /// Where the admin port listens.
    pub admin: Option<SocketAddr>,
    /// Whether this project's scripts stand in the working directory.
    pub has_scripts: bool,
}

/// The start-up screen: where things are, what is promised, what to type next.
pub fn render(started: &Started<'_>) -> String {
    let config = started.config;
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = writeln!(text, "Coreline {} is ready", env!("CARGO_PKG_VERSION"));
    for listener in &config.listeners.clients {
        let (host, port) = (&listener.advertised_host, listener.advertised_port);
        let _ = writeln!(
            text,
            "  clients      {}:{port} ({}, bound to {}:{})",
            bracketed(host),
            listener.name,
            bracketed(&listener.host),
            listener.port
        );
    }
    let folders: Vec<String> = (config.log_dirs.iter())
        .map(|folder| folder.display().to_string())
        .collect();
    let _ = writeln!(text, "  data         {}", folders.join(", "));
    let pinned = if started.is_pinned {
        ", one pinned to each core"
    } else {
        ""
    };
    let _ = writeln!(text, "  shards       {}{pinned}", started.shards);
    let durability = if config.topic_defaults.write_caching {
        "acks=1 and all answer when written (write caching: kill -9 loses nothing, power loss may)"
    } else if started.is_power_safe {
        "acks=1 and all answer when on disk (kill -9 and power loss lose nothing acknowledged)"
    } else {
        "acks=1 and all answer when on disk (kill -9 loses nothing acknowledged; power loss: see \
         the warning about the file system)"
    };
    let _ = writeln!(text, "  durability   {durability}");
    let budgets = started.budgets;
    let _ = writeln!(
        text,
        "  memory       {} in all, {} cache, {} requests",
        human(budgets.memory_bytes),
        human(budgets.cache_bytes),
        human(budgets.requests_bytes)
    );
    if let Some(address) = started.admin {
        let _ = writeln!(
            text,
            "  admin        http://{address}/latency, /metrics, /readyz"
        );
    }
    if let Some(listener) = config.listeners.clients.first() {
        let address = format!("{}:{}", listener.advertised_host, listener.advertised_port);
        let _ = writeln!(text, "Try it:");
        let _ = if started.has_scripts {
            writeln!(text, "  ./scripts/load-test {address}")
        } else {
            writeln!(
                text,
                "  kafka-producer-perf-test.sh --topic test --num-records 1000000 \
                 --record-size 100 --throughput -1 --producer-props bootstrap.servers={address}"
            )
        };
    }
    text
}

/// A host as it stands before a port.
fn bracketed(host: &str) -> String {
    if host.contains(':') && !host.starts_with('[') {
        format!("[{host}]")
    } else {
        host.to_owned()
    }
}

/// Bytes in the largest unit that keeps them above one.
fn human(bytes: u64) -> String {
    let units = [(1u64 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    for (size, unit) in units {
        if bytes >= size {
            return format!("{:.1} {unit}", bytes as f64 / size as f64);
        }
    }
    format!("{bytes} B")
}

#[cfg(test)]
mod tests {
    use super::*;
    use coreline::base::config::{Machine, Sources, read};

    #[test]
    fn the_screen_names_what_a_new_user_needs() {
        let (config, _) = read(Sources::default()).expect("the defaults");
        let machine = Machine {
            memory_bytes: 4 << 30,
            disk_bytes: 1 << 40,
        };
        let budgets = Budgets::divide(&config, machine, 2).expect("enough memory");
        let started = |has_scripts| {
            render(&Started {
                config: &config,
                budgets: &budgets,
                shards: 2,
                is_pinned: true,
                is_power_safe: has_scripts,
                admin: Some(SocketAddr::from(([127, 0, 0, 1], 9644))),
                has_scripts,
            })
        };
        let screen = started(true);
        for part in [
            "127.0.0.1:9092",
            "./data",
            "2, one pinned",
            "on disk",
            "2.0 GiB in all",
        ] {
            assert!(screen.contains(part), "{part} in\n{screen}");
        }
        assert!(screen.ends_with("./scripts/load-test 127.0.0.1:9092\n"));
        assert!(started(false).ends_with("bootstrap.servers=127.0.0.1:9092\n"));
    }
}
