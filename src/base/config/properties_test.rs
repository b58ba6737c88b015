use super::*;

/// Names and values as `java.util.Properties` of Java 17 printed them for the same bytes.
const AS_JAVA: &[(&str, &[(&str, &str)])] = &[
    (
        "a=1\rb=2\r\nc=3\n\rd=4",
        &[("a", "1"), ("b", "2"), ("c", "3"), ("d", "4")],
    ),
    ("a=1\\\rb=2", &[("a", "1b=2")]),
    ("a=1\\\r\nb=2", &[("a", "1b=2")]),
    ("a=1\\\n\n b=2", &[("a", "1"), ("b", "2")]),
    ("a=1\\\r\r\nb=2", &[("a", "1"), ("b", "2")]),
    ("a=1\\\n\r\nb=2", &[("a", "1"), ("b", "2")]),
    ("a=1\\\n# not\nb=2", &[("a", "1# not"), ("b", "2")]),
    ("a=1\\\n!b\n", &[("a", "1!b")]),
    ("a=1\\\n  \t\u{c} cont", &[("a", "1cont")]),
    ("a\\ b=1", &[("a b", "1")]),
    ("a\\:b\\=c d", &[("a:b=c", "d")]),
    ("a\\=", &[("a=", "")]),
    ("a\\\\=1", &[("a\\", "1")]),
    ("a\\ \\ b\\\n c=d", &[("a  bc", "d")]),
    ("\\#a=1", &[("#a", "1")]),
    ("\\u0061b=1", &[("ab", "1")]),
    ("a\\\nb=1", &[("ab", "1")]),
    ("a\\\n\\\nb=1", &[("ab", "1")]),
    ("a=x\\", &[("a", "x")]),
    ("a=x\\\\", &[("a", "x\\")]),
    ("a=x\\\n", &[("a", "x")]),
    ("a=\\\n", &[("a", "")]),
    ("a\\", &[("a", "")]),
    ("\\", &[("", "")]),
    ("\\\n", &[("", "")]),
    ("\\\na=1", &[("a", "1")]),
    ("  \\\n  a=1", &[("a", "1")]),
    ("a=1\n\\\n\nb=2", &[("a", "1"), ("b", "2")]),
    ("#c\\\na=1", &[("a", "1")]),
    ("#\\\r\na=1", &[("a", "1")]),
    ("!x\r#y\ra=1", &[("a", "1")]),
    ("# \\uZZZZ\na=1", &[("a", "1")]),
    ("a==1", &[("a", "=1")]),
    ("a = : 1", &[("a", ": 1")]),
    ("a : = 1", &[("a", "= 1")]),
    (" = 1", &[("", "1")]),
    ("=\n", &[("", "")]),
    ("a=1 \t\u{c}", &[("a", "1 \t\u{c}")]),
    ("  a\t\u{c}=1", &[("a", "1")]),
    ("a\u{c}1", &[("a", "1")]),
    ("a=1\n\u{c}\nb", &[("a", "1"), ("b", "")]),
    ("\u{b}a=1", &[("\u{b}a", "1")]),
    ("a=1\u{b}b=2", &[("a", "1\u{b}b=2")]),
    ("a=\u{a0}x", &[("a", "\u{a0}x")]),
    ("\u{a0}a=1", &[("\u{a0}a", "1")]),
    ("a\u{85}1=2", &[("a\u{85}1", "2")]),
    ("a=1\0b", &[("a", "1\0b")]),
    ("a=\\u00e4x", &[("a", "\u{e4}x")]),
    ("a=\\U0041", &[("a", "U0041")]),
    ("a=\\\\u0041", &[("a", "\\u0041")]),
    ("a=\\\\\\u0041", &[("a", "\\A")]),
    ("a=\\ud83d\\ude00", &[("a", "\u{1f600}")]),
    ("a=\\u00\\\n41", &[("a", "A")]),
    (
        "a=\\uff21\\q\\t\\n\\r\\f\\0\\x",
        &[("a", "\u{ff21}q\t\n\r\u{c}0x")],
    ),
    // Java keeps half of a pair; no text has it here.
    ("a=\\ud800", &[("a", "\u{fffd}")]),
];

/// Java throws: "Malformed \uxxxx encoding."
const MALFORMED: &[&str] = &[
    "a=\\uZZZZ",
    "a=\\u12",
    "a=\\u",
    "a=\\u+041",
    "a\\uZZZZ=1",
    "a=\\u0041\\u004",
    "a=\\u004\nb",
];

#[test]
fn names_and_values_are_those_that_java_reads() {
    for (text, expected) in AS_JAVA {
        let parsed = parse(text);
        let entries = parsed.entries.iter();
        let found: Vec<_> = entries.map(|one| (&*one.name, &*one.value)).collect();
        assert_eq!(found, *expected, "{text:?}");
        assert_eq!(parsed.faults, [], "{text:?}");
    }
}

#[test]
fn what_java_refuses_is_a_fault_of_its_line_alone() {
    for text in MALFORMED {
        let parsed = parse(&format!("x=1\n{text}\ny=2"));
        assert_eq!(parsed.faults, [(2, LineFault::MalformedEscape)], "{text:?}");
        let names: Vec<_> = parsed.entries.iter().map(|one| &*one.name).collect();
        assert!(
            names.starts_with(&["x"]) && names.ends_with(&["y"]),
            "{names:?}"
        );
    }
}

#[test]
fn entries_know_the_line_on_which_they_begin() {
    let text = "# comment\r! too\r\n\na=1\n b : 2\nd=x\\\n   y\\\r z\re=1";
    let entries = parse(text).entries.into_iter();
    let lines: Vec<_> = entries.map(|one| (one.line, one.name)).collect();
    let expected = [(4, "a"), (5, "b"), (6, "d"), (9, "e")];
    assert_eq!(lines, expected.map(|(line, name)| (line, name.to_owned())));
}

/// Java takes the mark for a part of the first name.
#[test]
fn a_byte_order_mark_before_a_setting_is_named() {
    for mark in BYTE_ORDER_MARKS {
        let parsed = parse(&format!("{mark}a=1\nb=2"));
        assert_eq!(parsed.faults, [(1, LineFault::ByteOrderMark)]);
        assert_eq!(parsed.entries.len(), 1);
        for harmless in ["# a comment", "", "!"] {
            let parsed = parse(&format!("{mark}{harmless}\nb=2"));
            assert_eq!((parsed.faults.len(), parsed.entries.len()), (0, 1));
        }
    }
    assert_eq!(parse("a=\u{feff}").entries[0].value, "\u{feff}");
}
