use super::*;

fn told(text: &str) -> (String, bool) {
    check(Path::new("my.properties"), text, &[])
}

#[test]
fn a_valid_file_is_explained_in_larger_units() {
    let (text, is_valid) = told(
        "# Kafka's\nlog.segment.bytes=1073741824\nlog.retention.hours=168\nnum.io.threads=8\n\
         zookeeper.connect=localhost\n",
    );
    assert!(is_valid, "{text}");
    assert!(
        text.starts_with("my.properties is valid: 4 settings\n"),
        "{text}"
    );
    for line in [
        "in effect:\n  log.segment.bytes=1073741824 (1 GiB)\n      Size at which a segment rolls.",
        "  log.retention.hours=168 (7 d)\n",
        "accepted, without meaning here:\n  num.io.threads=8\n",
        "accepted, no longer Kafka's:\n  zookeeper.connect=localhost\n",
    ] {
        assert!(text.contains(line), "{line} is not in {text}");
    }
}

#[test]
fn faults_name_line_text_range_and_what_was_meant() {
    let (text, is_valid) = told(
        "\nnum.partitoins=3\nlog.segment.bytes=1GB\ncompression.type=lz5\n\
         log.segment.bytes = 1000\nlog.retention.ms=7d\nxyzzy=1\n",
    );
    assert!(!is_valid);
    assert!(
        text.starts_with("my.properties is refused: 6 faults\n"),
        "{text}"
    );
    for part in [
        "my.properties:2: num.partitoins=3\n    no such setting; did you mean num.partitions?\n    \
         num.partitions: ",
        "my.properties:3: log.segment.bytes=1GB\n    Not a number of type INT; did you mean \
         1073741824?\n    log.segment.bytes: Size at which a segment rolls. At least 1048576 \
         (1 MiB). Default: 1073741824 (1 GiB).\n",
        "my.properties:4: compression.type=lz5\n    String must be one of: uncompressed, zstd, \
         lz4, snappy, gzip, producer; did you mean lz4?\n",
        "my.properties:5: log.segment.bytes=1000\n    Value must be at least 1048576\n",
        "my.properties:6: log.retention.ms=7d\n    Not a number of type LONG; did you mean \
         604800000?\n",
        "my.properties:7: xyzzy=1\n    no such setting; `coreline --settings` lists all\n",
        "  my.properties:3: log.segment.bytes is given again: my.properties:5 wins\n",
    ] {
        assert!(text.contains(part), "{part} is not in {text}");
    }
}

#[test]
fn a_setting_that_yields_to_another_is_named() {
    let (text, is_valid) = told("log.retention.hours=1\nlog.retention.ms=60000\n");
    assert!(is_valid);
    let line = "my.properties:1: log.retention.hours yields to log.retention.ms\n";
    assert!(text.contains(line), "{text}");
}

#[test]
fn overrides_win_and_passwords_stay_hidden() {
    let overrides = ["num.partitions=0".to_owned(), "lone".to_owned()];
    let file = "num.partitions=2\nssl.key.password=secret\n";
    let (text, is_valid) = check(Path::new("f"), file, &overrides);
    assert!(!is_valid);
    assert!(text.contains("override 1: num.partitions=0\n    Value must be at least 1\n"));
    assert!(
        text.contains("override 2\n    `lone` is not of the form name=value\n"),
        "{text}"
    );
    assert!(
        text.contains("f:1: num.partitions is given again: override 1 wins\n"),
        "{text}"
    );
    assert!(
        text.contains("[hidden]") && !text.contains("secret"),
        "{text}"
    );
}

#[test]
fn what_is_not_served_says_what_to_do() {
    let (text, is_valid) =
        told("process.roles=broker\nlisteners=PLAINTEXT://:9092,PLAINTEXT://:9092\n");
    assert!(!is_valid);
    let roles = "my.properties:1: process.roles=broker\n    process.roles is not served: this \
                 broker and its controller are one process; a cluster is not served yet; use \
                 broker,controller\n";
    assert!(text.contains(roles), "{text}");
    assert!(text.contains("my.properties:2: listeners="), "{text}");
}

#[test]
fn so_many_faults_and_repetitions_are_told_and_of_more_their_number() {
    let parts = |count: usize| {
        let (text, is_valid) = told(&"x=1\n".repeat(count));
        assert!(!is_valid);
        let faults = text.matches("no such setting").count();
        (faults, text.matches("is given again").count(), text)
    };
    let (faults, repeated, text) = parts(FAULTS_TOLD_MAX);
    assert_eq!((faults, repeated), (FAULTS_TOLD_MAX, FAULTS_TOLD_MAX - 1));
    assert!(!text.contains(" more "), "{text}");
    let (faults, repeated, text) = parts(FAULTS_TOLD_MAX + 1);
    assert_eq!((faults, repeated), (FAULTS_TOLD_MAX, FAULTS_TOLD_MAX));
    assert!(text.contains("\nand 1 more fault\n"), "{text}");
    let (_, repeated, text) = parts(FAULTS_TOLD_MAX + 2);
    assert_eq!(repeated, FAULTS_TOLD_MAX);
    assert!(text.contains("\n  and 1 more repetition\n"), "{text}");
}

#[test]
fn lines_that_java_refuses_are_named() {
    let (text, is_valid) = told("\u{feff}num.partitions=1\nlog.dirs=\\uZZZZ\n");
    assert!(!is_valid);
    for part in [
        "my.properties:1\n    The file begins with a byte order mark",
        "my.properties:2\n    Malformed \\uxxxx encoding",
    ] {
        assert!(text.contains(part), "{part} is not in {text}");
    }
}

#[test]
fn what_this_machine_refuses_is_refused() {
    let (text, is_valid) = told("node.id=1\ncoreline.cores=0-999\n");
    assert!(!is_valid, "{text}");
    let place = "my.properties:2: coreline.cores=0-999\n    coreline.cores names CPU ";
    assert!(text.contains(place), "{text}");
    let (text, is_valid) = told("log.dirs=/a,/b,/c\ncoreline.memory=67108864\ncoreline.cores=2\n");
    assert!(!is_valid, "{text}");
    let place = "my.properties:2: coreline.memory=67108864\n    coreline.memory=67108864 is too";
    assert!(text.contains(place), "{text}");
    let (text, is_valid) = told("log.dirs=/a,/b,/a/c\n");
    assert!(!is_valid, "{text}");
    assert!(text.contains("/a/c lies within /a: "), "{text}");
    assert!(told("log.dirs=/a,/b,/ac\n").1);
}

/// What is no file of settings at all: 1 MiB of noise, and of one long word.
#[test]
fn noise_is_judged_in_no_time() {
    let mut random = coreline::base::random::Random::new(7);
    let noise: String = (0..1 << 20)
        .map(|_| char::from(random.below(256) as u8))
        .collect();
    let listeners: String = (0..20_000)
        .map(|number| format!("listener.name.l{number}.max.connections=1\n"))
        .collect();
    for text in [noise, "x".repeat(1 << 20), listeners] {
        let started = std::time::Instant::now();
        let (told, _) = told(&text);
        // Was minutes; a fraction of a second even without optimisation.
        let took = started.elapsed();
        assert!(took < std::time::Duration::from_secs(20), "{took:?}");
        let told = told
            .lines()
            .filter(|line| line.contains("no such setting"))
            .count();
        assert!(told <= FAULTS_TOLD_MAX, "{told}");
    }
}

#[test]
fn a_listeners_own_settings_are_told_as_the_start_takes_them() {
    let (text, is_valid) = told(
        "listeners=PLAINTEXT://:9092\nlistener.name.plaintext.max.connections=5\n\
         listener.name.other.max.connections=6\nlistener.name.plaintext.log.retention.ms=7\n\
         listener.name.plaintext.ssl.keystore.type=JKS\n",
    );
    assert!(is_valid, "{text}");
    for line in [
        "\n  listener.name.plaintext.max.connections=5\n",
        "accepted, for no listener there is:\n  listener.name.other.max.connections=6\n",
        "accepted, without meaning here:\n  listener.name.plaintext.log.retention.ms=7",
        "accepted, not in effect yet:\n  listener.name.plaintext.ssl.keystore.type=JKS\n",
    ] {
        assert!(text.contains(line), "{line} is not in {text}");
    }
    let effective = text.split("in effect:\n").nth(1).unwrap();
    let effective = effective.split("\n\n").next().unwrap();
    assert!(effective.contains("plaintext.max.connections=5"), "{text}");
}

#[test]
fn no_word_is_suggested_for_itself() {
    let (text, is_valid) = told("security.inter.broker.protocol=SSL\n");
    assert!(!is_valid);
    assert!(!text.contains("did you mean"), "{text}");
}
