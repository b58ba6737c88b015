//! One connection: a reading task that takes frames and starts requests, a writing task that sends
//! answers in request order.
//!
//! ```text
//! open ──▶ closing ──▶ gone
//! ```
//!
//! Either side may begin to close: the reading side at the end of the stream or at what it cannot
//! accept, the writing side at a failed send or a request that ends the connection. Closing drops
//! what is queued and cancels parked fetches at once; appends that were handed over happen.
//!
//! A client that does not read its answers is not read either: a bounded number of its requests is
//! under way, and one of those whose answers may be large. What its requests hold is freed when
//! their answers are made, and when memory is short the answers unread for longest are given up.
//!
//! A panic in either task or in a request's handler ends this connection alone: they change no
//! partition, that is the shard loop's.

mod close;
mod frame_buffer;
mod guard;
mod hello;
mod memory;
mod pipeline;
#[cfg(test)]
mod pipeline_test;
mod reader;
mod writer;

use std::cell::Cell;
use std::future::poll_fn;
use std::net::SocketAddr;
use std::pin::pin;
use std::rc::Rc;
use std::time::Duration;

pub use close::CloseReason;
pub use guard::{guarded, reason_of_panic};
pub use memory::{CONNECTION_BYTES, ConnectionMemory, ConnectionRoom};
pub use pipeline::{Answer, InFlight, Outcome, Pipeline, Progress, REQUESTS_IN_FLIGHT_MAX};

use super::context::{ListenerInfo, RequestContext};
use super::node::Node;
use super::serve::connection_limits::{AddressPermit, ConnectionPermit};
use crate::base::limits::MIB;
use crate::base::time::MonotonicNs;
use crate::io::{self, TaskClass, TcpStream};
use crate::metrics::Counter;

/// What counts a connection: for its listener, for all, and for its address.
pub type Permits = ([ConnectionPermit; 2], AddressPermit);

/// One connection as its tasks and its shard's reaper see it.
pub struct Connection {
    node: Rc<Node>,
    context: Rc<RequestContext>,
    stream: TcpStream,
    pipeline: Pipeline,
    activity: Activity,
    /// Memory that it holds beside its requests.
    room: ConnectionRoom,
    /// Count the connection while it lives.
    _permits: Permits,
}

/// When something last came, for whoever closes what stands still.
#[derive(Debug, Default)]
pub struct Activity {
    moved_at: Cell<MonotonicNs>,
    sending_since: Cell<Option<MonotonicNs>>,
    window: Cell<Option<(MonotonicNs, u64)>>,
    frame_bytes: Cell<u64>,
}

/// How long a client may leave a part of an answer unread while others wait for memory.
pub const STALLED_SEND_MAX: Duration = Duration::from_secs(30);
/// The same while fetches wait for what unread answers hold, for those that have done so longest.
pub const STALLED_SEND_MAX_SHORT: Duration = Duration::from_secs(1);
/// How long a partly sent request may stand still while others wait for the memory that it holds.
pub const STALLED_PARTIAL_MAX_SHORT: Duration = Duration::from_secs(1);
/// What a partly sent request must bring in each [`ReapRules::partial_max`] to be waited for
/// longer: smaller requests must have come whole within the first.
pub const PARTIAL_BYTES_MIN: u64 = MIB as u64;

impl Activity {
    fn note(&self, now: MonotonicNs, count: usize) {
        self.moved_at.set(now);
        self.frame_bytes.set(self.frame_bytes.get() + count as u64);
    }

    /// A frame is unfinished, or none is.
    fn note_partial(&self, now: MonotonicNs, partial: bool) {
        if !partial {
            self.window.set(None);
        } else if self.window.get().is_none() {
            self.window.set(Some((now, self.frame_bytes.get())));
        }
    }

    /// Since when a partly sent request has brought nothing, though there was room for more of it.
    fn partial_since(&self) -> Option<MonotonicNs> {
        let (begun, _) = self.window.get()?;
        Some(begun.max(self.moved_at.get()))
    }

    /// A send has begun, or has ended.
    fn note_sending(&self, since: Option<MonotonicNs>) {
        self.sending_since.set(since);
    }

    /// Why to close the connection now, if there is a reason.
    fn verdict(&self, now: MonotonicNs, rules: ReapRules) -> Option<CloseReason> {
        if let Some((since, bytes)) = self.window.get()
            && now.since(since) > rules.partial_max
        {
            if self.frame_bytes.get() - bytes < PARTIAL_BYTES_MIN {
                return Some(CloseReason::TooSlow);
            }
            self.window.set(Some((now, self.frame_bytes.get())));
        }
        let sending = self.sending_since.get().map(|since| now.since(since));
        if rules.memory_is_short && sending.is_some_and(|time| time > STALLED_SEND_MAX) {
            return Some(CloseReason::NotReading);
        }
        let idle_max = rules.idle_max?;
        (now.since(self.moved_at.get()) > idle_max).then_some(CloseReason::Idle)
    }
}

/// What the reaper goes by.
#[derive(Clone, Copy, Debug)]
pub struct ReapRules {
    /// How long a request may take to come, from its first byte.
    pub partial_max: Duration,
    /// `connections.max.idle.ms`; none for ever.
    pub idle_max: Option<Duration>,
    /// Whether somebody waits for request memory, which answers that are not read hold.
    pub memory_is_short: bool,
}

impl Connection {
    /// Serves a connection that was accepted; returns at once.
    pub fn open(
        node: &Rc<Node>,
        listener: Rc<ListenerInfo>,
        (stream, peer): (TcpStream, SocketAddr),
        (permits, room): (Permits, ConnectionRoom),
    ) {
        let context = Rc::new(RequestContext::new(Rc::clone(node), listener, peer));
        let connection = Rc::new(Self {
            node: Rc::clone(node),
            context,
            stream,
            pipeline: Pipeline::default(),
            activity: Activity::default(),
            room,
            _permits: permits,
        });
        connection.activity.note(io::now(), 0);
        node.metrics().add(Counter::ConnectionsOpened, 1);
        tracing::debug!("a connection from {peer} opens");
        let number = node.connections().add(Rc::clone(&connection));
        let writer = Rc::clone(&connection);
        io::spawn(TaskClass::Produce, async move {
            let mut writing = pin!(Rc::clone(&writer).write());
            let work = writer.context.work();
            poll_fn(|waker| work.poll(writing.as_mut(), waker)).await;
        });
        io::spawn(TaskClass::Produce, async move {
            let mut reading = pin!(Rc::clone(&connection).read(number));
            let work = connection.context.work();
            poll_fn(|waker| work.poll(reading.as_mut(), waker)).await;
        });
    }

    async fn read(self: Rc<Self>, number: u64) {
        let outcome = guarded(self.read_requests()).await;
        if let Err(reason) = outcome {
            self.refuse(&reason);
        }
        self.close();
        self.node.metrics().add(Counter::ConnectionsClosed, 1);
        self.node.connections().remove(number);
    }

    async fn write(self: Rc<Self>) {
        if let Err(reason) = guarded(self.write_answers()).await {
            self.refuse(&reason);
        }
        self.close();
    }

    /// Names the peer and the reason in the log, unless too many lines came before.
    fn refuse(&self, reason: &CloseReason) {
        if reason.is_ordinary() || self.pipeline.is_closed() {
            return;
        }
        self.node.metrics().add(Counter::ConnectionsRefused, 1);
        if let Some(suppressed) = self.node.log_limit().admit(io::now()) {
            let peer = self.context.peer();
            if suppressed > 0 {
                tracing::warn!("{suppressed} lines like the next one were left out");
            }
            tracing::warn!("closed the connection from {peer}: {reason}");
        }
    }

    /// Begins to close; both tasks end soon after.
    pub fn close(&self) {
        if !self.pipeline.is_closed() {
            self.pipeline.close();
            self.context.cancel_fetches();
            self.stream.shutdown();
        }
    }

    /// Lets parked fetches answer with what they have.
    pub fn stop_waiting(&self) {
        self.context.cancel_fetches();
    }

    /// Since when a send waits for the client.
    #[must_use]
    pub fn sending_since(&self) -> Option<MonotonicNs> {
        self.activity.sending_since.get()
    }

    /// Makes the answers behind one that is not read, so that their requests' memory is free.
    pub fn settle(&self) {
        if self.sending_since().is_some() {
            self.pipeline.settle();
        }
    }

    /// Closes the connection, whose client does not read.
    pub fn close_unread(&self) {
        self.refuse(&CloseReason::NotReading);
        self.close();
    }

    /// Since when a partly sent request stands still.
    #[must_use]
    pub fn partial_since(&self) -> Option<MonotonicNs> {
        self.activity.partial_since()
    }

    /// Closes the connection, whose client does not go on with its request.
    pub fn close_partial(&self) {
        self.refuse(&CloseReason::PartlySent);
        self.close();
    }

    /// Whether no request is under way.
    pub fn is_idle(&self) -> bool {
        self.pipeline.is_idle()
    }

    /// Closes the connection if it has stood still for too long.
    pub fn reap(&self, now: MonotonicNs, rules: ReapRules) {
        if let Some(reason) = self.activity.verdict(now, rules) {
            self.refuse(&reason);
            self.close();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULES: ReapRules = ReapRules {
        partial_max: Duration::from_secs(25),
        idle_max: None,
        memory_is_short: false,
    };

    fn at(seconds: u64) -> MonotonicNs {
        MonotonicNs(seconds * 1_000_000_000)
    }

    #[test]
    fn a_request_that_does_not_come_whole_is_closed_and_a_large_one_that_moves_is_not() {
        let activity = Activity::default();
        activity.note(at(0), 1);
        activity.note_partial(at(0), true);
        // Byte after byte: each counts as activity, none as a new beginning.
        activity.note(at(24), PARTIAL_BYTES_MIN as usize - 1);
        activity.note_partial(at(24), true);
        assert!(activity.verdict(at(25), RULES).is_none(), "the limit");
        let slow = activity.verdict(at(26), RULES);
        assert!(matches!(slow, Some(CloseReason::TooSlow)), "one past it");
        activity.note(at(26), 1);
        assert!(activity.verdict(at(26), RULES).is_none(), "it moves");
        assert!(activity.verdict(at(51), RULES).is_none());
        let slow = activity.verdict(at(52), RULES);
        assert!(matches!(slow, Some(CloseReason::TooSlow)));
        activity.note_partial(at(53), false);
        assert!(activity.verdict(at(99), RULES).is_none());
    }

    #[test]
    fn a_partly_sent_request_stands_still_from_its_last_byte_or_its_last_room() {
        let activity = Activity::default();
        activity.note(at(5), 1);
        assert_eq!(activity.partial_since(), None);
        activity.note_partial(at(7), true);
        assert_eq!(activity.partial_since(), Some(at(7)), "it waited for room");
        activity.note_partial(at(8), true);
        assert_eq!(activity.partial_since(), Some(at(7)));
        activity.note(at(9), 1);
        assert_eq!(activity.partial_since(), Some(at(9)));
        activity.note_partial(at(9), false);
        assert_eq!(activity.partial_since(), None);
    }

    #[test]
    fn a_connection_on_which_nothing_moves_is_closed() {
        let activity = Activity::default();
        activity.note(at(5), 10);
        let rules = ReapRules {
            idle_max: Some(Duration::from_secs(10)),
            ..RULES
        };
        assert!(activity.verdict(at(15), rules).is_none());
        assert!(activity.verdict(at(16), RULES).is_none());
        let idle = activity.verdict(at(16), rules);
        assert!(matches!(idle, Some(CloseReason::Idle)));
    }

    #[test]
    fn an_unread_answer_is_dropped_only_when_others_need_its_memory() {
        let activity = Activity::default();
        activity.note_sending(Some(at(0)));
        let short = ReapRules {
            memory_is_short: true,
            ..RULES
        };
        assert!(activity.verdict(at(30), short).is_none());
        assert!(activity.verdict(at(31), RULES).is_none());
        let stalled = activity.verdict(at(31), short);
        assert!(matches!(stalled, Some(CloseReason::NotReading)));
        activity.note_sending(None);
        assert!(activity.verdict(at(31), short).is_none());
    }
}
