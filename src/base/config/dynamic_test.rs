use super::*;

fn map(pairs: &[(&str, &str)]) -> ConfigMap {
    (pairs.iter())
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect()
}

#[test]
fn a_nearer_layer_wins_over_a_synonym_of_a_farther_one() {
    let fixed = BrokerTexts::from([
        ("log.retention.ms", "5".to_owned()),
        ("log.retention.hours", "2".to_owned()),
        ("message.max.bytes", "100".to_owned()),
    ]);
    let common = map(&[("log.retention.ms", "7"), ("message.max.bytes", " 200 ")]);
    let own = map(&[("message.max.bytes", "300")]);
    let layers = Layers {
        own: &own,
        common: &common,
        fixed: &fixed,
    };
    let expected = BrokerTexts::from([
        ("log.retention.ms", "7".to_owned()),
        ("message.max.bytes", "300".to_owned()),
    ]);
    assert_eq!(layers.merged(), expected);
    assert!(!layers.is_fixed());
}

#[test]
fn what_no_layer_may_hold_does_not_count() {
    let fixed = BrokerTexts::new();
    let common = map(&[("listeners", "A://:1"), ("message.max.bytes", "x")]);
    let own = map(&[("node.id", "7"), ("nope", "1"), ("message.max.bytes", "-1")]);
    let layers = Layers {
        own: &own,
        common: &common,
        fixed: &fixed,
    };
    assert_eq!(layers.merged(), fixed);
}

/// Each refusal as Apache Kafka 4.4.0 words it, but for the last two, which are ours.
#[test]
fn refusals_tell_the_rule() {
    let empty = ConfigMap::new();
    let fixed = BrokerTexts::from([("num.io.threads", "8".to_owned())]);
    let layers = Layers {
        own: &empty,
        common: &empty,
        fixed: &fixed,
    };
    let told =
        |level, pairs: &[(&str, &str)]| check(level, &map(pairs), layers).err().unwrap_or_default();
    let broker = |name: &str, value: &str| told(Level::Broker, &[(name, value)]);
    let all = |name: &str, value: &str| told(Level::AllBrokers, &[(name, value)]);
    for name in ["max.connections", "max.connection.creation.rate"] {
        assert_eq!(broker(name, "0"), format!("Invalid {name} 0"));
        assert_eq!(all(name, "0"), format!("Invalid {name} 0"));
        assert_eq!(all(name, "1"), "");
        let own = format!("listener.name.plaintext.{name}");
        assert_eq!(broker(&own, "0"), format!("Invalid {name} 0"));
    }
    let zero = "max.connections.per.ip can be set to zero only if \
                max.connections.per.ip.overrides property is set.";
    assert!(all("max.connections.per.ip", "0").contains(zero));
    let named = [
        ("max.connections.per.ip", "0"),
        ("max.connections.per.ip.overrides", "127.0.0.1:3"),
    ];
    assert_eq!(told(Level::AllBrokers, &named), "");
    assert_eq!(
        broker("node.id", "5"),
        "Cannot update these configs dynamically: [node.id]"
    );
    assert_eq!(
        broker("log.retention.ms", "x"),
        "Invalid value x for configuration log.retention.ms: Not a number of type LONG"
    );
    assert_eq!(
        all("listeners", "PLAINTEXT://:1"),
        "Cannot update these configs at default cluster level, broker id must be specified: \
         [listeners]"
    );
    let security = "These security configs can be dynamically updated only per-listener using the \
                    listener prefix: [ssl.keystore.password]";
    assert_eq!(broker("ssl.keystore.password", "x"), security);
    let threads = "Dynamic thread count update validation failed for num.io.threads=";
    let half = format!("{threads}3, value should be at least half the current value 8");
    assert_eq!(broker("num.io.threads", "3"), half);
    let double =
        format!("{threads}17, value should not be greater than double the current value 8");
    assert_eq!(broker("num.io.threads", "17"), double);
    for (name, value) in [
        ("num.io.threads", "4"),
        ("num.io.threads", "16"),
        ("log.retention.ms", "5"),
        ("nope", "5"),
        ("listener.name.plaintext.max.connections", "5"),
        ("listeners", "PLAINTEXT://:9092"),
    ] {
        assert_eq!(broker(name, value), "", "{name}={value}");
    }
    assert_eq!(all("listener.name.plaintext.max.connections", "5"), "");
    assert!(all("listener.name.plaintext.ssl.keystore.password", "x").contains("cluster level"));
    assert!(broker("log.retention.ms", "0").contains("unlimited (-1)"));
    assert!(broker("listeners", "PLAINTEXT://:1").contains("cannot be altered"));
    assert!(broker("config.providers", "x").contains("only its default"));
}
