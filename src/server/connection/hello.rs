//! What came instead of a request, as far as its first bytes tell: for the log line alone.

/// Names a well-known protocol by its first bytes; `None` for anything else.
#[must_use]
pub fn recognise(bytes: &[u8]) -> Option<&'static str> {
    const HTTP: [&[u8]; 8] = [
        b"GET ", b"POST", b"PUT ", b"HEAD", b"DELE", b"OPTI", b"PATC", b"CONN",
    ];
    let start = bytes.first_chunk::<4>()?;
    if HTTP.contains(&start.as_slice()) {
        return Some("an HTTP request");
    }
    match start {
        b"PRI " => Some("an HTTP/2 preface"),
        b"SSH-" => Some("an SSH hello"),
        [0x16, 0x03, 0x00..=0x04, _] => Some("a TLS hello; this listener is plaintext"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hellos_are_named_and_requests_are_not() {
        assert_eq!(recognise(b"GET / HTTP/1.1\r\n"), Some("an HTTP request"));
        let tls = recognise(&[0x16, 0x03, 0x01, 0x02, 0x00, 0x01]);
        assert!(tls.is_some_and(|name| name.starts_with("a TLS hello")));
        assert_eq!(recognise(&[0x16, 0x03, 0x05, 0x02]), None);
        assert_eq!(recognise(&[0, 0, 0, 20, 0, 18]), None);
        assert_eq!(recognise(b"GET"), None);
    }
}
