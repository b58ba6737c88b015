//! `coreline latency`: asks a broker's admin port for its table.

use std::io::IsTerminal as _;
use std::time::Duration;

use http_body_util::{BodyExt as _, Empty, Limited};
use hyper::client::conn::http1;
use hyper::header::HOST;
use hyper::{Request, StatusCode, body::Bytes};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

use super::arguments::LatencyArguments;
use super::output::print_or_end;

/// Between two tables of `--watch`.
const WATCH_INTERVAL: Duration = Duration::from_secs(2);
/// How long the broker may take to answer.
const ANSWER_WAIT: Duration = Duration::from_secs(5);
/// Bytes of an answer, at most: whatever listens there may never end its own.
const ANSWER_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Clears a terminal and goes to its top.
const CLEAR: &str = "\x1b[2J\x1b[H";

/// Prints the table, once or until interrupted. The error is the text to print.
pub fn run(arguments: &LatencyArguments) -> Result<(), String> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .enable_time()
        .build()
        .map_err(|error| error.to_string())?;
    loop {
        let asked = async { tokio::time::timeout(ANSWER_WAIT, ask(arguments)).await };
        let table = runtime.block_on(asked);
        let answer = no_answer(&arguments.admin, "no answer in time");
        let table = table.unwrap_or(Err(answer))?;
        if !arguments.watch {
            print_or_end(&table);
            return Ok(());
        }
        let clear = match std::io::stdout().is_terminal() {
            true => CLEAR,
            false => "",
        };
        print_or_end(&format!("{clear}{table}\n"));
        std::thread::sleep(WATCH_INTERVAL);
    }
}

fn no_answer(admin: &str, reason: &str) -> String {
    format!(
        "no latencies from {admin}: {reason}; is the broker running, and is this its \
         coreline.admin.listener (--admin)?"
    )
}

async fn ask(arguments: &LatencyArguments) -> Result<String, String> {
    let text = |error: &dyn std::fmt::Display| no_answer(&arguments.admin, &error.to_string());
    let stream = TcpStream::connect(&arguments.admin).await;
    let stream = stream.map_err(|error| text(&error))?;
    let connected = http1::handshake(TokioIo::new(stream)).await;
    let (mut sender, connection) = connected.map_err(|error| text(&error))?;
    let request = Request::get(path(arguments))
        .header(HOST, &arguments.admin)
        .body(Empty::<Bytes>::new())
        .map_err(|error| text(&error))?;
    let exchange = async {
        let answer = sender.send_request(request).await?;
        let status = answer.status();
        let body = Limited::new(answer.into_body(), ANSWER_BYTES_MAX).collect();
        let body = body.await?.to_bytes();
        // The connection ends with its sender.
        drop(sender);
        Ok::<_, Box<dyn std::error::Error + Send + Sync>>((status, body))
    };
    let tasks = tokio::task::LocalSet::new();
    tasks.spawn_local(connection);
    let (status, body) = tasks
        .run_until(exchange)
        .await
        .map_err(|error| text(&error))?;
    let body = String::from_utf8_lossy(&body).into_owned();
    if status == StatusCode::OK {
        Ok(body)
    } else {
        Err(format!("{}: {}", arguments.admin, body.trim_end()))
    }
}

fn path(arguments: &LatencyArguments) -> String {
    let window = if arguments.minute { "minute" } else { "start" };
    let shard = arguments.shard.map(|number| format!("&shard={number}"));
    format!("/latency.txt?window={window}{}", shard.unwrap_or_default())
}
