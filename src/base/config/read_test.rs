use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::*;
use crate::base::ids::BrokerId;

fn read_file(text: &str) -> Result<(BrokerConfig, Vec<Notice>), Vec<ConfigFault>> {
    let sources = Sources {
        file: Some(text),
        overrides: &[],
    };
    read(sources)
}

fn faults(text: &str) -> Vec<String> {
    match read_file(text) {
        Ok(_) => Vec::new(),
        Err(faults) => faults
            .iter()
            .map(|fault| format!("{}: {}", fault.origin, fault.kind))
            .collect(),
    }
}

#[test]
fn kafkas_sample_file_is_accepted() {
    let text = include_str!("../../../tests/data/server.properties");
    let (config, notices) = read_file(text).expect("Kafka's own sample");
    assert_eq!(config.node_id, BrokerId(1));
    assert_eq!(config.log_dirs, [Path::new("/tmp/kraft-combined-logs")]);
    let [client] = config.listeners.clients.as_slice() else {
        panic!("one listener for clients: {:?}", config.listeners);
    };
    assert_eq!((client.host.as_str(), client.port), ("", 9092));
    assert_eq!(client.advertised_host, "localhost");
    assert_eq!(config.listeners.controller.len(), 1);
    let controller = notices
        .iter()
        .find(|notice| notice.kind == NoticeKind::ControllerListener)
        .expect("the controller's listener is mentioned");
    assert_eq!(controller.names, ["CONTROLLER://:9093"]);
    let idle = notices
        .iter()
        .find(|notice| notice.kind == NoticeKind::NoMeaning);
    assert!(idle.is_some_and(|notice| notice.names.contains(&"num.io.threads".to_owned())));
}

#[test]
fn without_a_file_only_this_machine_is_served() {
    let (config, notices) = read(Sources::default()).expect("the defaults");
    assert_eq!(config.listeners.clients[0].host, "127.0.0.1");
    assert_eq!(config.log_dirs, [Path::new("./data")]);
    assert_eq!(config.metadata_log_dir(), Path::new("./data"));
    assert!(notices.is_empty());
    let (config, _) = read_file("node.id=1").expect("a minimal file");
    assert_eq!(config.listeners.clients[0].host, "");
}

#[test]
fn overrides_win_and_are_checked() {
    let overrides = ["num.partitions=7".to_owned(), "broken".to_owned()];
    let sources = Sources {
        file: Some("num.partitions=3"),
        overrides: &overrides[..1],
    };
    assert_eq!(read(sources).expect("valid").0.num_partitions, 7);
    let sources = Sources {
        file: None,
        overrides: &overrides,
    };
    let faults = read(sources).expect_err("an override without a value");
    assert_eq!(faults[0].origin, Origin::Override(2));
}

#[test]
fn every_fault_is_reported_with_its_line() {
    let text = "node.id=1\nnum.partitoins=3\n\nlog.segment.bytes=12\nlog.dirs=/a,/b,/a\n";
    assert_eq!(
        faults(text),
        [
            "line 2: Unknown setting num.partitoins",
            "line 4: Invalid value 12 for configuration log.segment.bytes: \
             Value must be at least 1048576",
            "line 5: Invalid value /a,/b,/a for configuration log.dirs: Names a folder twice",
        ]
    );
}

#[test]
fn folders_are_those_of_log_dirs_else_of_log_dir() {
    let of = |text: &str| {
        let sources = Sources {
            file: Some(text),
            overrides: &[],
        };
        let config = read(sources).expect("valid").0;
        (
            config.log_dirs.clone(),
            config.metadata_log_dir().to_owned(),
        )
    };
    let folders = |names: &[&str]| names.iter().map(PathBuf::from).collect::<Vec<_>>();
    assert_eq!(
        of("log.dir=/c,/d\nlog.dirs=/b, /a\n"),
        (folders(&["/b", "/a"]), "/b".into())
    );
    assert_eq!(of("log.dir=/c,/d\n").0, folders(&["/c", "/d"]));
    assert_eq!(
        of("log.dirs=/a,/b\nmetadata.log.dir=/b\n").1,
        Path::new("/b")
    );
    assert_eq!(faults("log.dirs=/a,,/b").len(), 1);
    assert_eq!(faults("log.dirs=/a,/ab\nlog.dir=/a/b\n").len(), 0);
    assert_eq!(faults("log.dirs=/b,/a/c,/a").len(), 1);
    assert_eq!(faults("log.dir=/a,/a/b").len(), 1);
    assert_eq!(faults("log.dirs=/a\nmetadata.log.dir=/a/meta\n").len(), 1);
    assert_eq!(faults("log.dirs=").len(), 1);
}

#[test]
fn what_would_be_unsafe_to_ignore_is_refused() {
    assert_eq!(faults("authorizer.class.name=").len(), 0);
    assert_eq!(faults("authorizer.class.name=org.example.Acl").len(), 1);
    assert_eq!(faults("remote.log.storage.system.enable=true").len(), 1);
    assert_eq!(faults("controller.quorum.voters=1@a:1,2@b:1").len(), 1);
    assert_eq!(faults("controller.quorum.voters=1@a:1").len(), 0);
    assert_eq!(faults("process.roles=broker").len(), 1);
    assert_eq!(faults("listeners=SSL://:9093").len(), 1);
}

#[test]
fn listeners_follow_kafkas_rules() {
    let wrong = [
        "listeners=PLAINTEXT://:9092,PLAINTEXT://:9093",
        "listeners=PLAINTEXT://:9092,OTHER://:9092",
        "listeners=PLAINTEXT://:9092,OTHER://:9093",
        "listeners=PLAINTEXT://0.0.0.0:9092",
        "listeners=PLAINTEXT:9092",
        "listeners=PLAINTEXT://:65536",
        "listeners=",
        "advertised.listeners=OTHER://x:1",
        "inter.broker.listener.name=OTHER",
        "listeners=CONTROLLER://:9093\ncontroller.listener.names=CONTROLLER",
    ];
    for text in wrong {
        assert_eq!(faults(text).len(), 1, "{text}: {:?}", faults(text));
    }
    let text = "listeners=IN://127.0.0.1:9092,OUT://[::1]:9092\n\
                listener.security.protocol.map=IN:PLAINTEXT,OUT:PLAINTEXT\n\
                advertised.listeners=IN://a.example:1,OUT://b.example:2\n\
                inter.broker.listener.name=IN";
    let (config, _) = read_file(text).expect("two plaintext listeners");
    let told: Vec<_> = config
        .listeners
        .clients
        .iter()
        .map(|listener| (listener.host.as_str(), listener.advertised_port))
        .collect();
    assert_eq!(told, [("127.0.0.1", 1), ("::1", 2)]);
}

#[test]
fn former_and_listener_settings_are_mentioned() {
    let text = "zookeeper.connect=x\nlistener.name.plaintext.ssl.keystore.location=/x";
    let (_, notices) = read_file(text).expect("accepted");
    let kinds: Vec<_> = notices.iter().map(|notice| notice.kind).collect();
    assert_eq!(kinds, [NoticeKind::NotYet, NoticeKind::Former]);
    assert_eq!(faults("listener.name.plaintext.nonsense=1").len(), 1);
}

#[test]
fn a_listeners_own_limits_are_heeded_and_what_it_cannot_have_is_mentioned() {
    let own = "listener.name.plaintext";
    let text = format!(
        "listeners=PLAINTEXT://:9092\n{own}.max.connections=5\n{own}.num.network.threads=4\n\
         {own}.max.connections.per.ip=3\nlistener.name.other.max.connections=7"
    );
    let (config, notices) = read_file(&text).expect("accepted");
    assert_eq!(config.listener_limits("PLAINTEXT").connections_max, 5);
    let rate = config
        .listener_limits("PLAINTEXT")
        .connection_creation_rate_max;
    assert_eq!(rate, ListenerLimits::default().connection_creation_rate_max);
    let told: Vec<_> = notices
        .iter()
        .map(|one| (one.kind, one.names.join(" ")))
        .collect();
    let without = format!("{own}.num.network.threads {own}.max.connections.per.ip");
    let nobodys = "listener.name.other.max.connections".to_owned();
    assert_eq!(
        told,
        [
            (NoticeKind::NoMeaning, without),
            (NoticeKind::NoListener, nobodys)
        ]
    );
    assert_eq!(faults(&format!("{own}.max.connections=-1")).len(), 1);
}

fn settings(broker: &str, topic: &[(&str, &str)]) -> TopicSettings {
    let (config, _) = read_file(broker).expect("valid");
    let topic: BTreeMap<String, String> = topic
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect();
    TopicSettings::derive(&config.texts, &topic).expect("valid")
}

#[test]
fn a_topics_value_comes_from_the_nearest_place() {
    assert_eq!(settings("log.roll.hours=2", &[]).segment_ms, 7_200_000);
    assert_eq!(
        settings("log.roll.hours=2\nlog.roll.ms=5", &[]).segment_ms,
        5
    );
    assert_eq!(
        settings("log.roll.ms=5", &[("segment.ms", "9")]).segment_ms,
        9
    );
    assert_eq!(
        settings("log.retention.minutes=3", &[]).retention_ms,
        180_000
    );
    assert_eq!(settings("log.retention.hours=-1", &[]).retention_ms, -1);
    assert_eq!(
        settings("", &[("internal.segment.bytes", "512")]).segment_bytes,
        512
    );
    assert!(settings("coreline.write.caching=true", &[]).write_caching);
    let own = [("write.caching", "false")];
    assert!(!settings("coreline.write.caching=true", &own).write_caching);
}

#[test]
fn a_topics_faults_name_the_setting() {
    let derive = |name: &str, value: &str| {
        let topic = BTreeMap::from([(name.to_owned(), value.to_owned())]);
        TopicSettings::derive(&BrokerTexts::new(), &topic)
    };
    assert_eq!(
        derive("segment.byte", "1").expect_err("unknown").name,
        "segment.byte"
    );
    assert!(derive("min.compaction.lag.ms", "10").is_ok());
    assert!(derive("remote.storage.enable", "true").is_err());
    assert!(derive("segment.ms", "0").is_err());
}

#[test]
fn descriptions_name_source_and_synonyms() {
    let (config, _) = read_file("log.retention.minutes=3\nssl.key.password=x").expect("valid");
    let own = BTreeMap::from([("segment.bytes".to_owned(), "2000000".to_owned())]);
    let nothing = BTreeMap::new();
    let layers = dynamic::Layers {
        own: &nothing,
        common: &nothing,
        fixed: &config.texts,
    };
    let described = describe::topic(layers, &own);
    let find = |name: &str| {
        described
            .iter()
            .find(|described| described.name == name)
            .expect("described")
    };
    let segment = find("segment.bytes");
    assert_eq!(segment.source, describe::Source::Topic);
    let names: Vec<_> = segment
        .synonyms
        .iter()
        .map(|synonym| synonym.name.as_str())
        .collect();
    assert_eq!(names, ["segment.bytes", "log.segment.bytes"]);
    let retention = find("retention.ms");
    assert_eq!(retention.value.as_deref(), Some("180000"));
    assert_eq!(retention.source, describe::Source::StaticBroker);
    assert_eq!(
        find("flush.ms").value.as_deref(),
        Some("9223372036854775807")
    );
    let broker = describe::broker(layers);
    let password = broker
        .iter()
        .find(|described| described.name == "ssl.key.password")
        .expect("described");
    assert_eq!(
        (&password.value, &password.synonyms[0].value),
        (&None, &None)
    );
}

#[test]
fn numbers_are_those_that_java_reads() {
    for text in ["nan", "inf", "+Inf", "infinity", "-NAN"] {
        let told = faults(&format!("log.cleaner.io.max.bytes.per.second={text}\n"));
        assert_eq!(told.len(), 1, "{text}");
        assert!(told[0].ends_with("Not a number of type DOUBLE"), "{told:?}");
    }
    for text in ["NaN", "Infinity", "+1.5", "-.5", "1e3"] {
        let told = faults(&format!("log.cleaner.io.buffer.load.factor={text}\n"));
        let is_number = told.iter().all(|fault| !fault.contains("Not a number"));
        assert!(is_number, "{text}: {told:?}");
    }
}

#[test]
fn folders_without_a_name_are_no_folders_twice() {
    let told = faults("log.dirs=,\n");
    assert_eq!(told.len(), 1);
    assert!(told[0].contains("without a name"), "{told:?}");
}
