//! The command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

/// A broker that speaks Kafka's protocol and keeps Kafka's files.
///
/// Without arguments: a one-node broker on 127.0.0.1:9092 with its data in ./data, one shard per
/// core. SIGTERM or SIGHUP stops it cleanly, SIGUSR1 prints its latencies.
#[derive(Clone, Debug, Parser)]
#[command(
    name = "coreline",
    version,
    about,
    long_about,
    args_conflicts_with_subcommands = true
)]
pub struct Arguments {
    /// Something else than to serve.
    #[command(subcommand)]
    pub command: Option<Command>,

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

/// What `coreline` does beside serving.
#[derive(Clone, Debug, Subcommand)]
pub enum Command {
    /// Print the latencies of a running broker: per API key and stage, and what the slowest
    /// requests spent their time on.
    Latency(LatencyArguments),
    /// Validate and explain a file of settings without starting: exit code 0 when they are valid,
    /// 1 when a broker would refuse them, 2 when the file cannot be read. Addresses and folders are
    /// not tried: whether a port is free or a directory is writable, only a start shows.
    Check(CheckArguments),
    /// Look at the files of a broker that does not run.
    #[command(subcommand)]
    Log(LogCommand),
}

/// What `coreline log` does.
#[derive(Clone, Debug, Subcommand)]
pub enum LogCommand {
    /// Read every byte of a stopped data directory, Coreline's or Apache Kafka's, and print what is
    /// not as it was written, with file and position: exit code 0 when all is, 1 when something is
    /// not, 2 when the directory cannot be read or a broker uses it. Nothing is written.
    Verify(VerifyArguments),
}

/// What `coreline log verify` reads.
#[derive(Clone, Debug, Args)]
pub struct VerifyArguments {
    /// Data directories (log.dirs).
    #[arg(value_name = "DIR", default_value = "data")]
    pub directories: Vec<PathBuf>,
}

/// What `coreline check` looks at.
#[derive(Clone, Debug, Args)]
pub struct CheckArguments {
    /// Settings under Kafka's names, as in Kafka's own server.properties.
    #[arg(value_name = "server.properties")]
    pub file: PathBuf,

    /// A setting that wins over the file; may be given several times.
    #[arg(long = "override", value_name = "name=value")]
    pub overrides: Vec<String>,
}

/// What `coreline latency` asks.
#[derive(Clone, Debug, Args)]
pub struct LatencyArguments {
    /// The broker's admin port.
    #[arg(long, value_name = "host:port", default_value = "127.0.0.1:9644")]
    pub admin: String,

    /// One shard instead of all together.
    #[arg(long, value_name = "number")]
    pub shard: Option<u16>,

    /// The last minute instead of everything since the start.
    #[arg(long)]
    pub minute: bool,

    /// Print again every two seconds until interrupted.
    #[arg(long)]
    pub watch: bool,
}
