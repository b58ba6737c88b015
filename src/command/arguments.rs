//! The command line.

use std::path::PathBuf;

use clap::Parser;

/// A broker that speaks Kafka's protocol and keeps Kafka's files.
///
/// Without arguments: a one-node broker on 127.0.0.1:9092 with its data in ./data, one shard per
/// core. SIGTERM stops it cleanly, SIGUSR1 prints its latencies.
#[derive(Clone, Debug, Parser)]
#[command(name = "coreline", version, about, long_about)]
pub struct Arguments {
    /// Settings under Kafka's names, as in Kafka's own server.properties.
    #[arg(value_name = "server.properties")]
    pub file: Option<PathBuf>,

    /// A setting that wins over the file; may be given several times.
    #[arg(long = "override", value_name = "name=value")]
    pub overrides: Vec<String>,

    /// Print what every setting means here, then end.
    #[arg(long)]
    pub settings: bool,
}
