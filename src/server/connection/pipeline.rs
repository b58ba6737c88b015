//! Requests of one connection in the order in which they came: answers leave in that order,
//! however they were finished.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::Future;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;

use super::close::CloseReason;
use crate::base::ids::ApiKey;
use crate::base::time::MonotonicNs;
use crate::io::task::JoinHandle;
use crate::server::api::produce::ProduceInFlight;
use crate::shard::Credit;

/// Requests of one connection that may be under way; past it the connection is not read.
pub const REQUESTS_IN_FLIGHT_MAX: usize = 256;

/// What a request is answered with.
#[derive(Debug, Default)]
pub struct Answer {
    /// The encoded response; no piece for a request without an answer.
    pub pieces: Vec<Bytes>,
    /// The memory that its records hold, until it has left.
    pub credit: Option<Credit>,
}

impl From<Vec<Bytes>> for Answer {
    fn from(pieces: Vec<Bytes>) -> Self {
        Self {
            pieces,
            credit: None,
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
    /// When its last byte was there.
    pub received_at: MonotonicNs,
    /// Until when a produce waits.
    pub deadline: Option<MonotonicNs>,
    /// How far it is.
    pub progress: Progress,
    /// The memory of its frame, held until the answer has left.
    pub credit: Credit,
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

    /// Answers what is still missing with the request's timeout.
    pub fn time_out(&mut self) -> Outcome {
        match &mut self.progress {
            Progress::Produce(produce) => produce.time_out(),
            _ => Ok(Answer::default()),
        }
    }
}

/// The queue between a connection's reading and its writing side.
#[derive(Default)]
pub struct Pipeline {
    queue: RefCell<VecDeque<InFlight>>,
    /// Requests whose answers have not left, those in the writer's hands included.
    in_flight: Cell<usize>,
    closed: Cell<bool>,
    writer: RefCell<Option<Waker>>,
    reader: RefCell<Option<Waker>>,
}

impl Pipeline {
    /// Queues a request. The caller has waited for room.
    pub fn push(&self, request: InFlight) {
        self.queue.borrow_mut().push_back(request);
        self.in_flight.set(self.in_flight.get() + 1);
        wake(&self.writer);
    }

    /// Waits until there is room for another request, or the pipeline is closed.
    pub async fn room(&self) {
        self.in_flight_below(REQUESTS_IN_FLIGHT_MAX).await;
    }

    /// Waits until every answer has left, or the pipeline is closed.
    pub async fn drained(&self) {
        self.in_flight_below(1).await;
    }

    async fn in_flight_below(&self, limit: usize) {
        std::future::poll_fn(|context| {
            if self.in_flight.get() < limit || self.closed.get() {
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

    /// The answers of `count` requests have left.
    pub fn sent(&self, count: usize) {
        let left = self.in_flight.get().saturating_sub(count);
        self.in_flight.set(left);
        wake(&self.reader);
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
