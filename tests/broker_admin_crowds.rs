//! Crowds at the admin port: everybody who asks gets an answer, however many ask at once, and those
//! who ask nothing keep nobody out.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod broker;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use broker::{Harness, HarnessOptions, admin};

const ANSWERED_WITHIN: Duration = Duration::from_secs(30);

fn harness() -> Harness {
    Harness::start(HarnessOptions {
        has_admin: true,
        ..HarnessOptions::default()
    })
}

/// Status and body of what a client reads that has sent all of `request` before it does.
fn ask(address: SocketAddr, path: &str) -> (u16, usize) {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(ANSWERED_WITHIN)).unwrap();
    write!(
        stream,
        "GET {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
    )
    .unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    let status = text.split(' ').nth(1).and_then(|code| code.parse().ok());
    (status.unwrap_or(0), text.len())
}

#[test]
fn each_of_a_hundred_who_ask_at_once_is_answered() {
    let harness = harness();
    let address = harness.admin();
    for path in ["/metrics", "/latency.json", "/healthz"] {
        let clients: Vec<_> = (0..100)
            .map(|_| thread::spawn(move || ask(address, path)))
            .collect();
        let answers: Vec<_> = clients
            .into_iter()
            .map(|client| client.join().unwrap())
            .collect();
        assert!(
            answers
                .iter()
                .all(|(status, bytes)| *status == 200 && *bytes > 50),
            "{path}: {answers:?}"
        );
    }
}

/// Forty that keep their connection and ask again and again.
#[test]
fn each_of_forty_who_come_again_is_answered() {
    let harness = harness();
    let address = harness.admin();
    let client = move || {
        for _ in 0..20 {
            let (status, _) = ask(address, "/readyz");
            assert_eq!(status, 200);
        }
    };
    let clients: Vec<_> = (0..40).map(|_| thread::spawn(client)).collect();
    clients
        .into_iter()
        .for_each(|client| client.join().unwrap());
}

/// Those who said nothing are told so where another takes their place.
#[test]
fn who_says_nothing_gives_way_with_an_answer() {
    let harness = harness();
    let address = harness.admin();
    let mut silent: Vec<_> = (0..32)
        .map(|_| TcpStream::connect(address).unwrap())
        .collect();
    let began = Instant::now();
    assert_eq!(admin::text(address, "/healthz"), "ok\n");
    assert!(
        began.elapsed() < Duration::from_secs(3),
        "{:?}",
        began.elapsed()
    );
    let mut text = String::new();
    silent[0].set_read_timeout(Some(ANSWERED_WITHIN)).unwrap();
    silent[0].read_to_string(&mut text).unwrap();
    assert!(text.starts_with("HTTP/1.1 503 "), "{text}");
    assert!(text.ends_with("\r\n\r\ntoo many connections\n"), "{text}");
}
