//! Settings of sockets and listeners: each changed, and its effect seen from outside.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use coreline::base::error_code::ErrorCode;
use coreline::base::limits::MIB;
use coreline::wire::messages::api_versions::{ApiVersionsRequest, ApiVersionsResponse};
use coreline::wire::messages::produce::ProduceResponse;
use nix::sys::socket::{setsockopt, sockopt};

use crate::broker::requests::{errors_of, fetch, produce};
use crate::broker::{Client, batch};
use crate::changes::{BROKER, alter, take_away};
use crate::starts::{Process, create, free};

/// So long nothing comes that would come at once.
const QUIET: Duration = Duration::from_millis(500);

#[test]
fn so_many_connections_wait_to_be_accepted() {
    let waiting = |backlog: u32| {
        let process = Process::start(&[&format!("socket.listen.backlog.size={backlog}")]);
        process.pause();
        // The kernel lets one more wait than it was told.
        let wait = || TcpStream::connect_timeout(&process.address, QUIET).ok();
        let open: Vec<_> = std::iter::from_fn(wait).take(30).collect();
        process.go_on();
        open.len()
    };
    let (few, many) = (waiting(3), waiting(50));
    assert!((3..=5).contains(&few), "{few} of a backlog of 3");
    assert_eq!(many, 30);
}

/// A connection that is served, so that its buffers are set.
fn served(process: &Process) -> Client {
    let mut client = process.connect();
    let _: ApiVersionsResponse = client.ask(&ApiVersionsRequest::default(), 3);
    client
}

#[test]
fn a_socket_takes_in_what_its_buffer_holds() {
    let taken = |bytes: usize| {
        let process = Process::start(&[&format!("socket.receive.buffer.bytes={bytes}")]);
        let mut client = served(&process);
        setsockopt(&client.stream, sockopt::SndBuf, &8_192).unwrap();
        process.pause();
        client.stream.set_write_timeout(Some(QUIET)).unwrap();
        let mut sent = 0;
        while let Ok(count) = client.stream.write(&[0; 4_096]) {
            sent += count;
        }
        process.go_on();
        sent
    };
    // The kernel decides at the first segments how far it opens the window; without an effect both
    // would be alike each time.
    let has_effect = (0..6).any(|_| {
        let (small, large) = (taken(8_192), taken(MIB));
        println!("{small} and {large} bytes");
        large > 3 * small
    });
    assert!(has_effect);
}

#[test]
fn a_socket_sends_ahead_what_its_buffer_holds() {
    let ahead = |bytes: usize| {
        let process = Process::start(&[&format!("socket.send.buffer.bytes={bytes}")]);
        let mut client = served(&process);
        create(&mut client, "t", 5, 1);
        let batches = (0..5).map(|partition| (partition, batch(1, 900_000)));
        let response: ProduceResponse = client.ask(&produce("t", -1, batches), 9);
        assert_eq!(errors_of(&response), [ErrorCode::NONE; 5]);
        setsockopt(&client.stream, sockopt::RcvBuf, &8_192).unwrap();
        let all: Vec<(i32, i64)> = (0..5).map(|partition| (partition, 0)).collect();
        client.send(&fetch("t", &all), 12);
        std::thread::sleep(QUIET);
        process.pause();
        client.stream.set_read_timeout(Some(QUIET)).unwrap();
        let mut received = 0;
        let mut piece = [0; 4_096];
        while let Ok(count) = client.stream.read(&mut piece) {
            received += count;
        }
        process.go_on();
        received
    };
    let (small, large) = (ahead(8_192), ahead(MIB));
    assert!(large > 2 * small, "{small} and {large} bytes");
}

/// Whether a new connection is answered soon.
fn is_served(address: SocketAddr) -> (bool, Client) {
    let mut client = Client::connect(address);
    client.stream.set_read_timeout(Some(QUIET)).unwrap();
    client.send(&ApiVersionsRequest::default(), 3);
    let is_answered = match client.stream.peek(&mut [0]) {
        Ok(count) => count > 0,
        Err(error) => {
            assert!(matches!(
                error.kind(),
                ErrorKind::WouldBlock | ErrorKind::TimedOut
            ));
            false
        }
    };
    (is_answered, client)
}

#[test]
fn a_listener_has_limits_of_its_own() {
    let (first, second) = (free(), free());
    let process = Process::start_at(
        first,
        &[
            &format!("listeners=FIRST://{first},SECOND://{second}"),
            "listener.security.protocol.map=FIRST:PLAINTEXT,SECOND:PLAINTEXT",
            "inter.broker.listener.name=FIRST",
            "listener.name.second.max.connections=2",
        ],
    );
    let mut client = process.connect();
    let held: Vec<_> = (0..2).map(|_| is_served(second)).collect();
    assert!(held.iter().all(|(is_answered, _)| *is_answered));
    let (is_answered, mut waits) = is_served(second);
    assert!(!is_answered, "one past the limit waits");
    assert!(is_served(first).0, "the other listener has none");
    drop(held);
    waits.stream.set_read_timeout(Some(QUIET * 20)).unwrap();
    waits
        .stream
        .read_exact(&mut [0])
        .expect("its place has come");
    // And while it runs, for all brokers or for this one, of which the nearer wins.
    let name = "listener.name.second.max.connections";
    alter(&mut client, BROKER, "", &[(name, "1000")]);
    assert!(is_served(second).0, "raised");
    alter(&mut client, BROKER, "1", &[(name, "1")]);
    assert!(!is_served(second).0, "the nearer wins");
    take_away(&mut client, BROKER, "1", &[name]);
    assert!(is_served(second).0);
}

#[test]
fn a_listener_takes_connections_at_a_rate_of_its_own() {
    let (first, second) = (free(), free());
    let process = Process::start_at(
        first,
        &[
            &format!("listeners=FIRST://{first},SECOND://{second}"),
            "listener.security.protocol.map=FIRST:PLAINTEXT,SECOND:PLAINTEXT",
            "inter.broker.listener.name=FIRST",
        ],
    );
    let rate = "listener.name.second.max.connection.creation.rate";
    alter(&mut process.connect(), BROKER, "", &[(rate, "10")]);
    let took = |address: SocketAddr| {
        let begun = Instant::now();
        for _ in 0..25 {
            let mut client = Client::connect(address);
            let _: ApiVersionsResponse = client.ask(&ApiVersionsRequest::default(), 3);
        }
        begun.elapsed()
    };
    // Ten come at once, the rest at 100 ms each.
    let (slow, fast) = (took(second), took(first));
    assert!(slow > Duration::from_millis(1_300), "{slow:?}");
    assert!(fast < slow, "{fast:?}, {slow:?}");
}
