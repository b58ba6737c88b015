//! Members that come and go all the time, beside a broker that lives and beside one that is killed.
//!
//! Whatever happens, committed offsets never go back, a partition has one owner in a generation,
//! nobody commits for a generation that is over, and a group that is left alone settles within the
//! session timeout and five seconds.

use std::net::SocketAddr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use coreline::wire::messages::join_group::JoinGroupResponse;

use crate::book::Book;
use crate::broker::process::Process;
use crate::broker::{Client, Harness};
use crate::member::{self, Dice, World};
use crate::{fetched, find, join, options};

fn is_whole_dose() -> bool {
    std::env::var_os("CORELINE_ACCEPT").is_some()
}

/// Ten minutes, or `CORELINE_CHURN_SECONDS`.
fn whole_span() -> Duration {
    let given = std::env::var("CORELINE_CHURN_SECONDS").ok();
    Duration::from_secs(given.map_or(600, |text| text.parse().unwrap()))
}

/// `CORELINE_SEED`, or another one each time.
fn seed() -> u64 {
    let given = std::env::var("CORELINE_SEED").ok();
    let given = given.map(|text| text.parse().unwrap());
    given.unwrap_or_else(|| {
        let now = std::time::SystemTime::now();
        let since = now.duration_since(std::time::UNIX_EPOCH).unwrap();
        since.as_nanos() as u64
    })
}

fn world(address: SocketAddr, is_cooperative: bool, session: Duration) -> World {
    World {
        address: Mutex::new(address),
        group: "churn".to_owned(),
        topic: "t".to_owned(),
        partitions: if is_whole_dose() { 150 } else { 24 },
        is_cooperative,
        session,
        book: Mutex::new(Book::default()),
        is_calm: AtomicBool::new(false),
        is_over: AtomicBool::new(false),
        sleepers: AtomicUsize::new(0),
    }
}

/// The end of a test, also where the test fails: else its members would never end.
struct Ending<'a>(&'a World);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.is_over.store(true, Ordering::Release);
    }
}

fn judge(world: &World, what: &str, seed: u64, slowest: Duration) {
    let book = world.book();
    println!(
        "{what}: {} generations, {} assignments, {} commits, {} refusals, settled within {slowest:?}",
        book.generation, book.assignments, book.commits, book.refused
    );
    let first: Vec<&String> = book.faults.iter().take(5).collect();
    let count = book.faults.len();
    assert!(
        count == 0,
        "{what}, seed {seed}: {count} faults: {first:#?}"
    );
    assert!(has_seen_enough(&book), "hardly anything happened");
}

/// A loaded machine needs longer for it.
fn has_seen_enough(book: &Book) -> bool {
    book.generation > 1 && book.commits > 20
}

fn goes_on(world: &World, (passed, span): (Duration, Duration)) -> bool {
    let book = world.book();
    let is_due = passed < span || (!has_seen_enough(&book) && passed < span * 20);
    is_due && book.faults.is_empty()
}

fn churn(is_cooperative: bool) {
    let mut harness = Harness::start(options(2));
    let (members, span) = match is_whole_dose() {
        true => (100, whole_span()),
        false => (12, Duration::from_millis(1_500)),
    };
    let session = Duration::from_secs(if is_whole_dose() { 3 } else { 1 });
    let world = world(harness.address, is_cooperative, session);
    harness.create_topic("t", world.partitions);
    find(&mut harness.connect());
    let (seed, mut slowest) = (seed(), Duration::ZERO);
    std::thread::scope(|scope| {
        let _ending = Ending(&world);
        for number in 0..members {
            let world = &world;
            scope.spawn(move || member::live(world, number, seed));
        }
        scope.spawn(|| member::watch(&world));
        let (began, mut dice) = (Instant::now(), Dice(seed));
        while goes_on(&world, (began.elapsed(), span)) {
            let most = if is_whole_dose() { 20_000 } else { 1_500 };
            std::thread::sleep(Duration::from_millis(500 + dice.below(most)));
            slowest = slowest.max(member::settle(&world, members));
        }
    });
    let name = if is_cooperative {
        "cooperative"
    } else {
        "eager"
    };
    judge(&world, name, seed, slowest);
}

#[test]
fn eager_members_that_come_and_go_leave_no_trace() {
    churn(false);
}

#[test]
fn cooperative_members_that_come_and_go_leave_no_trace() {
    churn(true);
}

fn start(folder: &std::path::Path) -> Process {
    let settings = [
        "group.min.session.timeout.ms=500",
        "group.initial.rebalance.delay.ms=0",
    ];
    Process::start_set(folder, &settings)
}

/// Until somebody has committed again, or cannot.
fn until_committed(world: &World) {
    let (before, began) = (world.book().commits, Instant::now());
    while world.book().commits < before + 10 && began.elapsed() < Duration::from_secs(10) {
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// kill -9 during rebalances and commits: what was acknowledged is there, generations do not come
/// twice, and the group settles without anybody's help.
#[test]
fn kills_during_rebalances_and_commits_lose_nothing() {
    let (kills, members) = if is_whole_dose() { (60, 12) } else { (2, 6) };
    let folder = tempfile::tempdir().unwrap();
    let process = start(folder.path());
    let world = world(process.address, false, Duration::from_secs(2));
    let mut client = Client::connect(process.address);
    client.create_topic_with("t", world.partitions, &[]);
    find(&mut client);
    fetched(&mut client, &world.group);
    let (seed, mut slowest, mut life) = (seed(), Duration::ZERO, Some(process));
    std::thread::scope(|scope| {
        let _ending = Ending(&world);
        for number in 0..members {
            let world = &world;
            scope.spawn(move || member::live(world, number, seed));
        }
        scope.spawn(|| member::watch(&world));
        let mut dice = Dice(seed);
        for kill in 1..=kills {
            until_committed(&world);
            std::thread::sleep(Duration::from_millis(dice.below(700)));
            life.take().unwrap().kill();
            let process = start(folder.path());
            *world.address.lock().unwrap() = process.address;
            life = Some(process);
            if kill % 5 == 0 || kill == kills {
                slowest = slowest.max(member::settle(&world, members));
            }
            if !world.book().faults.is_empty() {
                break;
            }
        }
    });
    judge(&world, "kills", seed, slowest);
    let address = *world.address.lock().unwrap();
    let told: JoinGroupResponse = join(&mut Client::connect(address), "other", "");
    assert!(told.error_code.is_none());
}
