//! `coreline.admin.listener`: where the admin port is.

/// Host and port of the admin listener.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AdminAddress {
    /// A name or an address, without brackets.
    pub host: String,
    /// 0 lets the system choose.
    pub port: u16,
}

impl AdminAddress {
    /// Reads `host:port`. Empty: there is no admin port.
    ///
    /// # Errors
    /// What would have been right.
    pub fn parse(text: &str) -> Result<Option<Self>, &'static str> {
        let text = text.trim();
        if text.is_empty() {
            return Ok(None);
        }
        let split = text.rsplit_once(':');
        let split = split.and_then(|(host, port)| Some((host, port.parse().ok()?)));
        let Some((host, port)) = split else {
            return Err("Must be host:port with a port of 0 to 65535, or empty for none");
        };
        let inner = host
            .strip_prefix('[')
            .and_then(|rest| rest.strip_suffix(']'));
        let host = inner.unwrap_or(host);
        let is_bare = inner.is_none() && host.contains(':');
        if host.is_empty() || is_bare || host.contains(['/', ' ', '[', ']']) {
            return Err("Must be host:port, with brackets around an IPv6 address");
        }
        Ok(Some(Self {
            host: host.to_owned(),
            port,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_read_or_refused() {
        let read = |text| AdminAddress::parse(text);
        let address = |host: &str, port| {
            let host = host.to_owned();
            Ok(Some(AdminAddress { host, port }))
        };
        assert_eq!(read("127.0.0.1:9644"), address("127.0.0.1", 9644));
        assert_eq!(read(" localhost:0 "), address("localhost", 0));
        assert_eq!(read("[::1]:9644"), address("::1", 9644));
        assert_eq!(read(""), Ok(None));
        for wrong in [
            "9644",
            ":9644",
            "::1:9644",
            "a:65536",
            "http://a:1",
            "a:",
            "[::1:1",
        ] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
