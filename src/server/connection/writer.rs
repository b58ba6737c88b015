//! The writing side: answers in request order, all that are ready in one vectored send.

use std::future::Future;
use std::pin::pin;
use std::task::Poll;

use bytes::Bytes;

use super::Connection;
use super::close::CloseReason;
use super::pipeline::{Answer, InFlight, Outcome};
use crate::base::limits::MIB;
use crate::io;
use crate::metrics::{Counter, Stage};
use crate::shard::Credit;

/// From here on a send takes no further answer.
const SEND_BYTES_MAX: usize = MIB;
/// From here on a send takes no further answer (`IOV_MAX` is 1024).
const SEND_PIECES_MAX: usize = 512;

impl Connection {
    pub(super) async fn write_answers(&self) -> Result<(), CloseReason> {
        while let Some(mut request) = self.pipeline.next().await {
            let outcome = outcome_of(&mut request).await;
            if self.pipeline.is_closed() {
                break;
            }
            let Answer { mut pieces, credit } = outcome?;
            let mut held = self.finish(request, credit);
            let (mut failure, mut count) = (None, 1);
            while failure.is_none() && !is_full(&pieces) {
                let Some(mut request) = self.pipeline.try_next() else {
                    break;
                };
                match poll_now(&mut request).await {
                    None => {
                        self.pipeline.put_back(request);
                        break;
                    }
                    Some(Ok(more)) => {
                        pieces.extend(more.pieces);
                        held.absorb(self.finish(request, more.credit));
                        count += 1;
                    }
                    Some(Err(reason)) => failure = Some(reason),
                }
            }
            if !self.send(pieces).await {
                break;
            }
            drop(held);
            self.pipeline.sent(count);
            if let Some(reason) = failure {
                return Err(reason);
            }
        }
        Ok(())
    }

    /// Notes the latency; answers the memory to be held until the answer has left.
    fn finish(&self, request: InFlight, credit: Option<Credit>) -> Credit {
        let latency = io::now().since(request.received_at);
        self.node.metrics().record_request(request.api_key, latency);
        let mut held = request.credit;
        if let Some(credit) = credit {
            held.absorb(credit);
        }
        held
    }

    /// False when the connection is gone.
    async fn send(&self, pieces: Vec<Bytes>) -> bool {
        if pieces.is_empty() {
            return true;
        }
        let bytes: usize = pieces.iter().map(Bytes::len).sum();
        let started_at = io::now();
        self.activity.note_sending(Some(started_at));
        let sent = self.stream.send_vectored(pieces).await;
        self.activity.note_sending(None);
        if sent.is_err() {
            return false;
        }
        self.activity.note(io::now(), 0);
        let metrics = self.node.metrics();
        metrics.record_stage(Stage::Respond, io::now().since(started_at));
        metrics.add(Counter::BytesSent, bytes as u64);
        true
    }
}

fn is_full(pieces: &[Bytes]) -> bool {
    let bytes: usize = pieces.iter().map(Bytes::len).sum();
    pieces.len() >= SEND_PIECES_MAX || bytes >= SEND_BYTES_MAX
}

/// Waits for a request's outcome, or answers its timeout.
async fn outcome_of(request: &mut InFlight) -> Outcome {
    if let Some(outcome) = poll_now(request).await {
        return outcome;
    }
    let Some(deadline) = request.deadline else {
        return std::future::poll_fn(|context| request.poll_outcome(context)).await;
    };
    let mut timer = pin!(io::sleep_until(deadline));
    std::future::poll_fn(|context| {
        if let Poll::Ready(outcome) = request.poll_outcome(context) {
            return Poll::Ready(outcome);
        }
        if timer.as_mut().poll(context).is_ready() {
            return Poll::Ready(request.time_out());
        }
        Poll::Pending
    })
    .await
}

/// The outcome if it is there.
async fn poll_now(request: &mut InFlight) -> Option<Outcome> {
    std::future::poll_fn(|context| {
        Poll::Ready(match request.poll_outcome(context) {
            Poll::Ready(outcome) => Some(outcome),
            Poll::Pending => None,
        })
    })
    .await
}
