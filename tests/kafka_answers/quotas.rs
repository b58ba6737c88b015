//! DescribeClientQuotas and AlterClientQuotas.

use coreline::base::error_code::ErrorCode;
use coreline::wire::messages::alter_client_quotas::{
    AlterClientQuotasRequest, AlterClientQuotasResponse, EntityData, EntryData, OpData,
};
use coreline::wire::messages::describe_client_quotas::{
    ComponentData, DescribeClientQuotasRequest, DescribeClientQuotasResponse,
};

use coreline::wire::primitives::Float64;

use crate::session::{ALL, Peer, Session};

/// What a filter asks for: a kind, how it is to match, and with what.
type Filter<'a> = &'a [(&'a str, i8, Option<&'a str>)];

/// Filters while there are no limits and while there are some, and changes of them.
pub fn compare(session: &mut Session) {
    compare_filters(session);
    compare_changes(session);
    compare_filters(session);
    compare_removals(session);
    compare_filters(session);
}

fn compare_filters(session: &mut Session) {
    let cases: [(&str, Filter<'_>); 14] = [
        ("everything", &[]),
        ("a user", &[("user", 0, Some("ann"))]),
        ("the default user", &[("user", 1, None)]),
        ("any user", &[("user", 2, None)]),
        (
            "a user's client",
            &[("user", 0, Some("ann")), ("client-id", 2, None)],
        ),
        ("an address", &[("ip", 0, Some("127.0.0.1"))]),
        (
            "an address and a user",
            &[("ip", 2, None), ("user", 2, None)],
        ),
        ("no kind", &[("", 2, None)]),
        ("an unknown kind", &[("group", 2, None)]),
        ("a kind twice", &[("user", 2, None), ("user", 1, None)]),
        ("no name", &[("user", 0, None)]),
        ("a named default", &[("user", 1, Some("ann"))]),
        ("a named any", &[("user", 2, Some("ann"))]),
        ("an unknown match", &[("user", 3, None)]),
    ];
    // Kafka's order is that of its hash tables.
    let even = |_: &Peer, response: &mut DescribeClientQuotasResponse| {
        for entry in response.entries.iter_mut().flatten() {
            entry
                .entity
                .sort_by(|one, other| one.entity_type.cmp(&other.entity_type));
            entry.values.sort_by(|one, other| one.key.cmp(&other.key));
        }
        if let Some(entries) = &mut response.entries {
            entries.sort_by_key(|entry| format!("{entry:?}"));
        }
    };
    for (case, filter) in cases {
        let component = |(kind, match_type, name): &(&str, i8, Option<&str>)| ComponentData {
            entity_type: (*kind).to_owned(),
            match_type: *match_type,
            r#match: name.map(str::to_owned),
        };
        for strict in [false, true] {
            let request = |_: &Peer| DescribeClientQuotasRequest {
                components: filter.iter().map(component).collect(),
                strict,
            };
            session.compare(case, ALL, request, even);
        }
    }
}

type Parts<'a> = &'a [(&'a str, Option<&'a str>)];
type Ops<'a> = &'a [(&'a str, Option<f64>)];
/// Entities, each with what is to become of its limits.
type Entries<'a> = &'a [(Parts<'a>, Ops<'a>)];

const ANN: Parts<'static> = &[("user", Some("ann"))];
const RATE: Ops<'static> = &[("producer_byte_rate", Some(1_000.0))];
const OPENED: Ops<'static> = &[("connection_creation_rate", Some(5.0))];

/// Each in every version, first only validated, then made.
fn compare_entries(session: &mut Session, cases: &[(&str, Entries<'_>)]) {
    let even = |_: &Peer, response: &mut AlterClientQuotasResponse| {
        for entry in &mut response.entries {
            entry
                .entity
                .sort_by(|one, other| one.entity_type.cmp(&other.entity_type));
            // Kafka names one of several faults, as its hash tables have them.
            assert_ne!(entry.error_code, ErrorCode::UNKNOWN_SERVER_ERROR);
        }
        response.entries.sort_by_key(|entry| format!("{entry:?}"));
    };
    let part = |(kind, name): &(&str, Option<&str>)| EntityData {
        entity_type: (*kind).to_owned(),
        entity_name: name.map(str::to_owned),
    };
    let op = |(key, value): &(&str, Option<f64>)| OpData {
        key: (*key).to_owned(),
        value: Float64(value.unwrap_or_default()),
        remove: value.is_none(),
    };
    for (case, entries) in cases {
        for validate_only in [true, false] {
            let entry = |(parts, ops): &(Parts<'_>, Ops<'_>)| EntryData {
                entity: parts.iter().map(part).collect(),
                ops: ops.iter().map(op).collect(),
            };
            let request = |_: &Peer| AlterClientQuotasRequest {
                entries: entries.iter().map(entry).collect(),
                validate_only,
            };
            session.compare(case, ALL, request, even);
        }
    }
}

fn compare_changes(session: &mut Session) {
    let all: Ops<'_> = &[
        ("producer_byte_rate", Some(1_000.0)),
        ("consumer_byte_rate", Some(2_000.0)),
        ("request_percentage", Some(12.5)),
        ("controller_mutation_rate", Some(0.5)),
    ];
    let cases: [(&str, Entries<'_>); 27] = [
        ("nothing", &[]),
        ("a user's", &[(ANN, all)]),
        ("the same again", &[(ANN, all)]),
        ("any user's", &[(&[("user", None)], RATE)]),
        ("a client's", &[(&[("client-id", Some("app"))], RATE)]),
        ("any client's", &[(&[("client-id", None)], RATE)]),
        (
            "a user's client",
            &[(&[("user", Some("ann")), ("client-id", Some("app"))], RATE)],
        ),
        (
            "any user's any client",
            &[(&[("user", None), ("client-id", None)], RATE)],
        ),
        ("an address", &[(&[("ip", Some("10.0.0.1"))], OPENED)]),
        ("another address", &[(&[("ip", Some("::1"))], OPENED)]),
        (
            "a client's that looks like a path",
            &[(&[("client-id", Some("a/b c"))], RATE)],
        ),
        ("no entity", &[(&[], RATE)]),
        ("an unknown kind", &[(&[("group", Some("g"))], RATE)]),
        ("an empty name", &[(&[("user", Some(""))], RATE)]),
        (
            "an address and a user",
            &[(&[("ip", None), ("user", None)], OPENED)],
        ),
        (
            "no address",
            &[(&[("ip", Some("no address at all"))], OPENED)],
        ),
        ("a user's connections", &[(ANN, OPENED)]),
        ("an address's bytes", &[(&[("ip", Some("10.0.0.1"))], RATE)]),
        ("an unknown limit", &[(ANN, &[("bytes", Some(1.0))])]),
        ("nought", &[(ANN, &[("producer_byte_rate", Some(0.0))])]),
        (
            "less than nought",
            &[(ANN, &[("request_percentage", Some(-1.0))])],
        ),
        (
            "a fraction of a byte",
            &[(ANN, &[("consumer_byte_rate", Some(1.5))])],
        ),
        (
            "too many bytes",
            &[(ANN, &[("consumer_byte_rate", Some(1e19))])],
        ),
        (
            "too many connections",
            &[(&[("ip", None)], &[("connection_creation_rate", Some(3e9))])],
        ),
        ("an entity twice", &[(ANN, RATE), (ANN, RATE)]),
        (
            "a limit twice",
            &[(
                &[("user", Some("eve")), ("client-id", None)],
                &[RATE[0], RATE[0]],
            )],
        ),
        (
            "one of two refused",
            &[(ANN, RATE), (&[("user", Some(""))], RATE)],
        ),
    ];
    compare_entries(session, &cases);
}

fn compare_removals(session: &mut Session) {
    let gone: Ops<'_> = &[("producer_byte_rate", None)];
    let closed: Ops<'_> = &[("connection_creation_rate", None)];
    let all: Ops<'_> = &[
        ("producer_byte_rate", None),
        ("consumer_byte_rate", None),
        ("request_percentage", None),
        ("controller_mutation_rate", None),
    ];
    let cases: [(&str, Entries<'_>); 12] = [
        ("what is not there", &[(&[("user", Some("bob"))], gone)]),
        ("an unknown limit's removal", &[(ANN, &[("bytes", None)])]),
        (
            "a removal of an unknown kind",
            &[(&[("group", Some("g"))], gone)],
        ),
        ("a user's removal", &[(ANN, all)]),
        ("any user's removal", &[(&[("user", None)], gone)]),
        (
            "a client's removal",
            &[(&[("client-id", Some("app"))], gone)],
        ),
        ("any client's removal", &[(&[("client-id", None)], gone)]),
        (
            "a user's client's removal",
            &[(&[("user", Some("ann")), ("client-id", Some("app"))], gone)],
        ),
        (
            "any user's any client's",
            &[(&[("user", None), ("client-id", None)], gone)],
        ),
        (
            "an address's removal",
            &[(&[("ip", Some("10.0.0.1"))], closed)],
        ),
        (
            "another address's removal",
            &[(&[("ip", Some("::1"))], closed)],
        ),
        (
            "the path's removal",
            &[(&[("client-id", Some("a/b c"))], gone)],
        ),
    ];
    compare_entries(session, &cases);
}
