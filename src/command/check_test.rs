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
