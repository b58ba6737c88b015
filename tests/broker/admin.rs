//! What tests ask an admin port, in plain HTTP, and how they read what it tells.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

/// How long a loaded machine may take for what must come.
const COMES_WITHIN: Duration = Duration::from_secs(20);

/// A port for an admin listener, as a start binds it.
pub fn bind() -> TcpListener {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    listener
}

/// An answer of the admin port.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub head: String,
    pub body: String,
}

/// Sends `request` as it is and reads until the connection ends.
pub fn exchange(address: SocketAddr, request: &[u8]) -> std::io::Result<Answer> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(COMES_WITHIN))?;
    stream.write_all(request)?;
    let mut text = Vec::new();
    stream.read_to_end(&mut text)?;
    let text = String::from_utf8_lossy(&text).into_owned();
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
    let status = head.split(' ').nth(1).and_then(|code| code.parse().ok());
    Ok(Answer {
        status: status.unwrap_or(0),
        head: head.to_owned(),
        body: body.to_owned(),
    })
}

/// Asks for a path.
pub fn get(address: SocketAddr, path: &str) -> std::io::Result<Answer> {
    let request = format!("GET {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    exchange(address, request.as_bytes())
}

/// Asks for a path that must be there.
pub fn text(address: SocketAddr, path: &str) -> String {
    let answer = get(address, path).unwrap();
    assert_eq!(answer.status, 200, "{path}: {answer:?}");
    answer.body
}

/// Asks again until `wanted` finds what it wants in the answer.
pub fn until<T>(address: SocketAddr, path: &str, wanted: impl Fn(&str) -> Option<T>) -> T {
    let began = Instant::now();
    loop {
        let body = text(address, path);
        if let Some(found) = wanted(&body) {
            return found;
        }
        assert!(began.elapsed() < COMES_WITHIN, "{path} stays {body}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Series of a Prometheus text by name and labels, as they are written. Whatever the format
/// forbids fails the test.
pub fn series(text: &str) -> BTreeMap<String, f64> {
    let mut series = BTreeMap::new();
    let mut families: BTreeMap<&str, &str> = BTreeMap::new();
    let mut family = "";
    assert!(text.ends_with('\n'));
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            let (name, help) = rest.split_once(' ').expect("a help text");
            assert!(is_name(name) && !help.is_empty(), "{line}");
            continue;
        }
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').expect("a kind");
            assert!(
                ["counter", "gauge", "summary", "histogram"].contains(&kind),
                "{line}"
            );
            assert_eq!(kind == "counter", name.ends_with("_total"), "{line}");
            assert!(families.insert(name, kind).is_none(), "{line} twice");
            family = name;
            continue;
        }
        let (key, value) = line.rsplit_once(' ').expect("a value");
        let name = key.split('{').next().unwrap();
        let suffix = name.strip_prefix(family).expect("its family stands above");
        let may_follow = match families[family] {
            "summary" => ["", "_count", "_sum"].contains(&suffix),
            "histogram" => ["_bucket", "_count", "_sum"].contains(&suffix),
            _ => suffix.is_empty(),
        };
        assert!(is_name(name) && may_follow, "{line}");
        let value: f64 = value.parse().expect("a number");
        assert!(value.is_finite(), "{line}");
        let old = series.insert(key.to_owned(), value);
        assert!(old.is_none(), "{line} twice");
    }
    series
}

fn is_name(text: &str) -> bool {
    let all = text.bytes();
    let mut all =
        all.map(|byte| byte.is_ascii_lowercase() || byte == b'_' || byte.is_ascii_digit());
    !text.is_empty() && !text.as_bytes()[0].is_ascii_digit() && all.all(|fits| fits)
}
