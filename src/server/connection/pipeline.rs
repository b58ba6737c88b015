//! Requests of one connection in the order in which they came: answers leave in that order,
//! however they were finished.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::Future;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;

use super::close::CloseReason;
use crate::base::ids::ApiKey;
use crate::base::limits::MIB;
use crate::base::time::MonotonicNs;
use crate::io::task::JoinHandle;
use crate::metrics::StageTimes;
use crate::server::api::produce::ProduceInFlight;
use crate::shard::Credit;

/// Requests of one connection whose answers have not left; past it the connection is not read.
pub const REQUESTS_IN_FLIGHT_MAX: usize = 256;
/// Those of them that are no Produce: their answers may be many times larger than they are, so
/// that each is made when the one before it has left, as in Kafka.
pub const HANDLED_IN_FLIGHT_MAX: usize = 1;
/// Bytes of made answers that have not left; from here on the connection is not read.
pub const OWED_BYTES_MAX: usize = MIB;

/// The key whose requests are pipelined.
pub const PRODUCE: ApiKey = ApiKey(0);

/// What a request is answered with.
#[derive(Debug, Default)]
pub struct Answer {
    /// The encoded response; no piece for a request without an answer.
    pub pieces: Vec<Bytes>,
    /// The memory that its records hold, until it has left.
    pub credit: Option<Credit>,
    /// How long its request spent in each stage before it was ready.
    pub times: StageTimes,
}

impl Answer {
    /// Bytes that are to be sent.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.pieces.iter().map(Bytes::len).sum()
    }
}

impl From<Vec<Bytes>> for Answer {
    fn from(pieces: Vec<Bytes>) -> Self {
        Self {
            pieces,
            credit: None,
            times: StageTimes::default(),
        }
    }
}

/// What becomes of a request: an answer, or the end of the connection.
pub type Outcome = Result<Answer, CloseReason>;

/// How far one request is.
pub enum Progress {
    /// Its answer is known.
    Ready(Outcome),
    /// Its batches are with their owners.
    Produce(ProduceInFlight),
    /// Its handler is a task of its own.
    Handler(JoinHandle<Outcome>),
}

/// One request under way.
pub struct InFlight {
    /// What kind it is.
    pub api_key: ApiKey,
    /// When its last byte was there and its connection had room for it.
    pub received_at: MonotonicNs,
    /// How long it took until it was handed over.
    pub times: StageTimes,
    /// How far it is.
    pub progress: Progress,
    /// The memory of its frame until the answer is made, then that of the answer until it has
    /// left.
    pub credit: Credit,
    /// Bytes of the answer if it was made before its turn.
    pub owed_bytes: usize,
}

/// What has left in one send.
#[derive(Debug, Default)]
pub struct Sent {
    /// Requests that were answered.
    pub requests: usize,
    /// Those of them that are no Produce.
    pub handled: usize,
    /// Bytes of their answers.
    pub bytes: usize,
}

impl InFlight {
    /// The outcome, once. Never answers again after that.
    pub fn poll_outcome(&mut self, context: &mut Context<'_>) -> Poll<Outcome> {
        match &mut self.progress {
            Progress::Ready(outcome) => {
                Poll::Ready(std::mem::replace(outcome, Ok(Answer::default())))
            }
            Progress::Produce(produce) => produce.poll_outcome(context),
            Progress::Handler(handle) => std::pin::Pin::new(handle).poll(context),
        }
    }

    /// Whether its answer may be many times larger than it is.
    pub fn is_handled(&self) -> bool {
        self.api_key != PRODUCE
    }

    /// Makes the answer now if that can be; answers its bytes if it was made now.
    fn settle(&mut self) -> usize {
        if matches!(self.progress, Progress::Ready(_)) {
            return 0;
        }
        let outcome = match self.poll_outcome(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(outcome) => outcome,
            Poll::Pending => return 0,
        };
        let bytes = outcome.as_ref().map_or(0, Answer::bytes);
        self.credit.shrink(bytes);
        self.progress = Progress::Ready(outcome);
        self.owed_bytes = bytes;
        bytes
    }
}

/// The queue between a connection's reading and its writing side.
#[derive(Default)]
pub struct Pipeline {
    queue: RefCell<VecDeque<InFlight>>,
    /// Requests whose answers have not left, those in the writer's hands included.
    in_flight: Cell<usize>,
    /// Those of them that are no Produce.
    handled: Cell<usize>,
    /// Bytes of answers that are made and have not left.
    owed_bytes: Cell<usize>,
    closed: Cell<bool>,
    writer: RefCell<Option<Waker>>,
    reader: RefCell<Option<Waker>>,
}

impl Pipeline {
    /// Queues a request. The caller has waited for room.
    pub fn push(&self, request: InFlight) {
        let is_handled = request.is_handled();
        self.queue.borrow_mut().push_back(request);
        self.in_flight.set(self.in_flight.get() + 1);
        if is_handled {
            self.handled.set(self.handled.get() + 1);
        }
        wake(&self.writer);
    }

    /// Whether a request of this kind may be started; `None` while its kind has not come.
    pub fn has_room(&self, api_key: Option<ApiKey>) -> bool {
        self.in_flight.get() < REQUESTS_IN_FLIGHT_MAX
            && self.owed_bytes() < OWED_BYTES_MAX
            && (api_key == Some(PRODUCE) || self.handled.get() < HANDLED_IN_FLIGHT_MAX)
    }

    /// Waits until there is room for such a request, or the pipeline is closed.
    pub async fn room(&self, api_key: Option<ApiKey>) {
        self.until(|| self.has_room(api_key)).await;
    }

    /// Waits until the pipeline is closed.
    pub async fn closed(&self) {
        self.until(|| false).await;
    }

    /// Waits until every answer has left, or the pipeline is closed.
    pub async fn drained(&self) {
        self.until(|| self.in_flight.get() == 0).await;
    }

    async fn until(&self, is_so: impl Fn() -> bool) {
        std::future::poll_fn(|context| {
            if is_so() || self.closed.get() {
                return Poll::Ready(());
            }
            *self.reader.borrow_mut() = Some(context.waker().clone());
            Poll::Pending
        })
        .await;
    }

    /// The oldest request; waits for one. `None` once the pipeline is closed.
    pub async fn next(&self) -> Option<InFlight> {
        std::future::poll_fn(|context| {
            if self.closed.get() {
                return Poll::Ready(None);
            }
            if let Some(request) = self.try_next() {
                return Poll::Ready(Some(request));
            }
            *self.writer.borrow_mut() = Some(context.waker().clone());
            Poll::Pending
        })
        .await
    }

    /// The oldest request, if there is one.
    pub fn try_next(&self) -> Option<InFlight> {
        self.queue.borrow_mut().pop_front()
    }

    /// Bytes of answers that are made and have not left.
    pub fn owed_bytes(&self) -> usize {
        self.owed_bytes.get()
    }

    /// The writer holds `bytes` more of answers.
    pub fn owes(&self, bytes: usize) {
        self.owed_bytes.set(self.owed_bytes.get() + bytes);
    }

    /// Answers have left.
    pub fn sent(&self, sent: &Sent) {
        let less = |cell: &Cell<usize>, by: usize| cell.set(cell.get().saturating_sub(by));
        less(&self.in_flight, sent.requests);
        less(&self.handled, sent.handled);
        less(&self.owed_bytes, sent.bytes);
        wake(&self.reader);
    }

    /// Makes the answers that can be made while the writer is held up by one that is not read, so
    /// that the requests' memory is free again.
    pub fn settle(&self) {
        let mut owed = 0;
        for request in self.queue.borrow_mut().iter_mut() {
            owed += request.settle();
        }
        self.owes(owed);
    }

    /// Puts a request back that is not finished yet.
    pub fn put_back(&self, request: InFlight) {
        self.queue.borrow_mut().push_front(request);
    }

    /// Whether no request is under way.
    pub fn is_idle(&self) -> bool {
        self.in_flight.get() == 0
    }

    /// Ends both sides: what is queued is dropped, and with it what it holds.
    pub fn close(&self) {
        self.closed.set(true);
        let dropped = std::mem::take(&mut *self.queue.borrow_mut());
        drop(dropped);
        wake(&self.writer);
        wake(&self.reader);
    }

    /// Whether the pipeline is closed.
    pub fn is_closed(&self) -> bool {
        self.closed.get()
    }
}

fn wake(side: &RefCell<Option<Waker>>) {
    let waker = side.borrow_mut().take();
    if let Some(waker) = waker {
        waker.wake();
    }
}
