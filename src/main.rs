//! The `coreline` command: reads settings, starts the broker, prints what a user should know, waits
//! for signals, stops in order.

mod command;

use std::io::IsTerminal;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use clap::Parser;
use coreline::base::ids::ApiKey;
use coreline::io::startup::file_system;
use coreline::server::log_levels::{self, LogLevels};
use coreline::server::serve::{Broker, StopReport};
use coreline::server::startup;
use coreline::wire;
use tracing::{error, info, warn};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use command::arguments::{Arguments, Command, LogCommand};
use command::check;
use command::latency;
use command::log_verify;
use command::output::{print_or_end, tell};
use command::screen::{self, Started};
use command::settings;
use command::signals::{Signals, Wish, ask_to_stop};

fn main() -> ExitCode {
    coreline::io::startup::keep_freed_memory();
    coreline::io::memory::note_broker_process();
    let arguments = Arguments::parse();
    if arguments.settings {
        print_or_end(&settings::list());
        return ExitCode::SUCCESS;
    }
    if let Some(Command::Check(wanted)) = &arguments.command {
        return check::run(wanted);
    }
    start_log();
    if let Some(Command::Latency(wanted)) = &arguments.command {
        return match latency::run(wanted) {
            Ok(()) => ExitCode::SUCCESS,
            Err(reason) => {
                error!("{reason}");
                ExitCode::FAILURE
            }
        };
    }
    if let Some(Command::Log(LogCommand::Verify(wanted))) = &arguments.command {
        return log_verify::run(wanted);
    }
    match run(&arguments) {
        Ok(code) => code,
        Err(refusal) => {
            for line in refusal.lines() {
                error!("{line}");
            }
            ExitCode::FAILURE
        }
    }
}

/// Operators' log lines go to standard error; `RUST_LOG` gives the levels of the start, and
/// requests change them.
fn start_log() {
    let text = std::env::var("RUST_LOG").unwrap_or_default();
    let is_understood = log_levels::set_all(&text);
    let lines = tracing_subscriber::fmt::layer()
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .with_target(false)
        .with_filter(LogLevels);
    tracing_subscriber::registry().with(lines).init();
    if !is_understood {
        warn!("RUST_LOG is not understood: {text}");
    }
}

/// Serves until told to stop. The error is a refusal, told to the user as it is.
fn run(arguments: &Arguments) -> Result<ExitCode, String> {
    let (config, notices) = settings::load(arguments)?;
    for notice in notices {
        info!("settings {notice}");
    }
    let signals = Signals::hold().map_err(|error| format!("cannot hold signals: {error}"))?;
    let prepared = startup::prepare(config).map_err(|error| error.to_string())?;
    for warning in &prepared.warnings {
        warn!("{warning}");
    }
    let screen = screen::render(&Started {
        config: &prepared.config,
        budgets: &prepared.budgets,
        shards: prepared.cpus.len(),
        is_pinned: prepared.cpus.iter().all(Option::is_some),
        is_power_safe: (prepared.locks.iter())
            .all(|lock| file_system(lock.folder()).is_ok_and(|found| found.notice.is_none())),
        admin: prepared
            .admin
            .as_ref()
            .and_then(|bound| bound.local_addr().ok()),
        has_scripts: Path::new("scripts/load-test").exists(),
    });
    let has_failed = Arc::new(AtomicBool::new(false));
    let failed = Arc::clone(&has_failed);
    let on_failure = move |reason: String| {
        error!("the broker stops: {reason}");
        failed.store(true, Ordering::Release);
        ask_to_stop();
    };
    let broker =
        Broker::start(prepared, Box::new(on_failure)).map_err(|error| error.to_string())?;
    tell(&screen);
    loop {
        match signals.next() {
            Ok(Wish::Report) => print_table(&broker.metrics().table(key_name)),
            Ok(Wish::Stop) => break,
            Err(error) => return Err(format!("cannot wait for signals: {error}")),
        }
    }
    info!("stopping");
    Ok(report(&broker.stop(), has_failed.load(Ordering::Acquire)))
}

fn print_table(table: &str) {
    tell(match table {
        "" => "no request yet\n",
        table => table,
    });
}

fn key_name(key: ApiKey) -> Option<&'static str> {
    wire::api::find(key).map(|api| api.name)
}

fn report(stopped: &StopReport, has_failed: bool) -> ExitCode {
    tell(&stopped.metrics.table(key_name));
    let ms = stopped.duration.as_millis();
    if stopped.is_clean {
        info!("stopped cleanly in {ms} ms");
    } else {
        warn!("stopped in {ms} ms without closing cleanly; the next start recovers");
    }
    if has_failed {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    }
}
