use super::*;
use crate::base::random::Random;
use crate::wire::primitives::Float64;

type Parts<'a> = (Option<Option<&'a str>>, Option<Option<&'a str>>);

/// The levels in the order in which they count, for user `ann` and client `app`.
const LEVELS: [Parts<'static>; 8] = [
    (Some(Some("ann")), Some(Some("app"))),
    (Some(Some("ann")), Some(None)),
    (Some(Some("ann")), None),
    (Some(None), Some(Some("app"))),
    (Some(None), Some(None)),
    (Some(None), None),
    (None, Some(Some("app"))),
    (None, Some(None)),
];

fn entity((user, client): Parts<'_>) -> QuotaEntity {
    let part = |kind: &str, name: Option<Option<&str>>| {
        name.map(|name| (kind.to_owned(), name.map(str::to_owned)))
    };
    let parts = [part("user", user), part("client-id", client)];
    parts.into_iter().flatten().collect()
}

fn limits(parts: impl IntoIterator<Item = (Parts<'static>, f64)>) -> QuotaLimits {
    let mut quotas: BTreeMap<QuotaEntity, QuotaValues> = BTreeMap::new();
    for (parts, bound) in parts {
        let values = quotas.entry(entity(parts)).or_default();
        values.insert("consumer_byte_rate".to_owned(), Float64(bound));
    }
    QuotaLimits::of(&quotas, &HostAddresses::default())
}

fn found(limits: &QuotaLimits, client: &str) -> Option<(f64, String, String)> {
    let limit = limits.limit(QuotaKind::Fetch, "ann", client)?;
    let QuotaAccount {
        user, client_id, ..
    } = limit.account;
    Some((limit.bound, user.into(), client_id.into()))
}

/// Every choice of levels: the first of them counts, counted as the table says.
#[test]
fn of_all_limits_the_first_in_kafkas_order_counts() {
    for chosen in 0..1_u32 << LEVELS.len() {
        let has = |level: &usize| chosen & (1 << level) != 0;
        let levels: Vec<usize> = (0..LEVELS.len()).filter(has).collect();
        let limits = limits(levels.iter().map(|at| (LEVELS[*at], *at as f64 + 1.0)));
        let expected = levels.first().map(|first| {
            let (user, client) = LEVELS[*first];
            let name = |part: Option<_>, name: &str| match part {
                Some(_) => name.to_owned(),
                None => String::new(),
            };
            (*first as f64 + 1.0, name(user, "ann"), name(client, "app"))
        });
        assert_eq!(found(&limits, "app"), expected, "{levels:?}");
    }
}

#[test]
fn other_users_clients_and_kinds_have_no_part_in_it() {
    let limits = limits([(LEVELS[0], 1.0)]);
    assert_eq!(found(&limits, "other"), None);
    assert_eq!(limits.limit(QuotaKind::Fetch, "bob", "app"), None);
    assert_eq!(limits.limit(QuotaKind::Produce, "ann", "app"), None);
}

#[test]
fn a_client_without_a_name_has_the_limits_of_users_alone() {
    let all = limits(
        LEVELS
            .iter()
            .zip(1..)
            .map(|(level, at)| (*level, f64::from(at))),
    );
    assert_eq!(
        found(&all, ""),
        Some((3.0, "ann".to_owned(), String::new()))
    );
    assert_eq!(found(&limits([(LEVELS[4], 1.0)]), ""), None);
    assert_eq!(found(&limits([(LEVELS[7], 1.0)]), ""), None);
}

#[test]
fn what_is_no_positive_number_limits_nothing() {
    for bound in [f64::NAN, f64::INFINITY, 0.0, -1.0] {
        assert_eq!(found(&limits([(LEVELS[0], bound)]), "app"), None);
    }
}

#[test]
fn an_address_has_its_own_rate_or_that_of_all() {
    let ip = |name: Option<&str>| QuotaEntity::from([("ip".to_owned(), name.map(str::to_owned))]);
    let rate = |bound| QuotaValues::from([(CONNECTION_CREATION_RATE.to_owned(), Float64(bound))]);
    let mut quotas = BTreeMap::from([(ip(Some("10.0.0.1")), rate(5.0))]);
    let (own, other) = ("10.0.0.1".parse().unwrap(), "10.0.0.2".parse().unwrap());
    let limits = QuotaLimits::of(&quotas, &HostAddresses::default());
    assert_eq!(limits.addresses().of(own), Some(5.0));
    assert_eq!(limits.addresses().of(other), None);
    quotas.insert(ip(None), rate(7.0));
    let limits = QuotaLimits::of(&quotas, &HostAddresses::default());
    assert_eq!(limits.addresses().of(own), Some(5.0));
    assert_eq!(limits.addresses().of(other), Some(7.0));
}

/// Whatever the names, a lookup finds what a search through Kafka's order by hand finds.
#[test]
fn lookups_agree_with_a_search_in_order() {
    let mut random = Random::new(7);
    let names = ["ann", "app", "other"];
    for _ in 0..500 {
        let mut pick = |may_be_absent: bool| match random.below(5) {
            0 if may_be_absent => None,
            0 | 1 => Some(None),
            _ => Some(Some(names[random.below(3) as usize])),
        };
        let entities: Vec<Parts<'static>> = (0..4)
            .map(|_| {
                let user = pick(true);
                (user, pick(user.is_some()))
            })
            .collect();
        let limits = limits(
            entities
                .iter()
                .zip(1..)
                .map(|(one, at)| (*one, f64::from(at))),
        );
        let expected = LEVELS.iter().find_map(|level| {
            // The last that was set for an entity is what is kept.
            let place = entities.iter().rposition(|one| one == level)?;
            Some(place as f64 + 1.0)
        });
        assert_eq!(found(&limits, "app").map(|found| found.0), expected);
    }
}

#[test]
fn a_hosts_name_stands_for_its_addresses_once_they_are_known() {
    let ip = |name: &str| QuotaEntity::from([("ip".to_owned(), Some(name.to_owned()))]);
    let rate = |bound| QuotaValues::from([(CONNECTION_CREATION_RATE.to_owned(), Float64(bound))]);
    let [one, two, three]: [IpAddr; 3] =
        ["10.0.0.1", "10.0.0.2", "::1"].map(|text| text.parse().unwrap());
    let quotas = BTreeMap::from([
        (ip("10.0.0.2"), rate(2.0)),
        (ip("app.example"), rate(5.0)),
        (ip("gone.example"), rate(7.0)),
    ]);
    let names = of_host_names(&quotas);
    assert_eq!(
        names.into_iter().collect::<Vec<_>>(),
        [
            ("app.example".to_owned(), rate(5.0)),
            ("gone.example".to_owned(), rate(7.0))
        ]
    );
    let mapped = "::ffff:10.0.0.1".parse().unwrap();
    let hosts = |order, addresses: &[IpAddr]| {
        let known = BTreeMap::from([
            ("app.example".to_owned(), addresses.to_vec()),
            ("gone.example".to_owned(), Vec::new()),
            ("other.example".to_owned(), vec![three]),
        ]);
        Arc::new(HostAddresses { order, known })
    };
    let mut latest = LatestLimits {
        limits: Rc::new(QuotaLimits::of(&quotas, &HostAddresses::default())),
        of: Arc::new(quotas),
        ..LatestLimits::default()
    };
    let told = |latest: &LatestLimits| {
        [one, two, three].map(|address| latest.known().addresses().of(address))
    };
    assert_eq!(told(&latest), [None, Some(2.0), None], "not known yet");
    latest.set_hosts(&hosts(2, &[mapped, two]));
    let its_own = Some(2.0);
    assert_eq!(told(&latest), [Some(5.0), its_own, None]);
    latest.set_hosts(&hosts(1, &[three]));
    assert_eq!(told(&latest), [Some(5.0), its_own, None], "what is older");
    latest.set_hosts(&hosts(3, &[three]));
    assert_eq!(told(&latest), [None, its_own, Some(5.0)]);
}
