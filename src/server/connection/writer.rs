//! The writing side: answers in request order, all that are ready in one vectored send.

use std::collections::VecDeque;
use std::task::Poll;

use bytes::Bytes;

use super::Connection;
use super::close::CloseReason;
use super::pipeline::{Answer, InFlight, Outcome, Sent};
use crate::base::ids::ApiKey;
use crate::base::limits::MIB;
use crate::base::time::MonotonicNs;
use crate::io;
use crate::metrics::{Counter, Stage, StageTimes};
use crate::shard::Credit;

/// Most bytes of one send; from here on it takes no further answer.
const SEND_BYTES_MAX: usize = MIB;
/// Most pieces of one send; from here on it takes no further answer (`IOV_MAX` is 1024).
const SEND_PIECES_MAX: usize = 512;

impl Connection {
    pub(super) async fn write_answers(&self) -> Result<(), CloseReason> {
        let mut finished = Vec::new();
        while let Some(mut request) = self.pipeline.next().await {
            let outcome = outcome_of(&mut request).await;
            if self.pipeline.is_closed() {
                break;
            }
            let mut leaving = Leaving {
                finished,
                ..Leaving::default()
            };
            self.take_in(&mut leaving, request, outcome?);
            let mut failure = None;
            while failure.is_none() && !is_full(&leaving) {
                let Some(mut request) = self.pipeline.try_next() else {
                    break;
                };
                match poll_now(&mut request).await {
                    None => {
                        self.pipeline.put_back(request);
                        break;
                    }
                    Some(Ok(more)) => self.take_in(&mut leaving, request, more),
                    Some(Err(reason)) => failure = Some(reason),
                }
            }
            if !self.send(leaving.pieces).await {
                break;
            }
            drop(leaving.credit);
            finished = leaving.finished;
            finished.drain(..).for_each(|one| self.record(one));
            self.pipeline.sent(&leaving.sent);
            if let Some(reason) = failure {
                return Err(reason);
            }
        }
        Ok(())
    }

    /// Puts the answer to those that leave. What the request held beyond
    /// the answer's size is free again: its frame is with the log, or has been decoded.
    fn take_in(&self, leaving: &mut Leaving, request: InFlight, answer: Answer) {
        let mut times = request.times;
        times.merge(&answer.times);
        leaving.finished.push(Finished {
            api_key: request.api_key,
            received_at: request.received_at,
            times,
        });
        let bytes = answer.bytes();
        self.pipeline.owes(bytes.saturating_sub(request.owed_bytes));
        leaving.sent.requests += 1;
        leaving.sent.handled += usize::from(request.is_handled());
        leaving.sent.bytes += bytes;
        if leaving.pieces.is_empty() {
            leaving.pieces = answer.pieces;
        } else {
            leaving.pieces.extend(answer.pieces);
        }
        let mut credit = request.credit;
        if answer.credit.is_some() {
            // The records, nearly all of the answer, have credit of their own.
            credit.shrink(0);
        } else {
            credit.shrink(bytes);
        }
        for credit in [Some(credit), answer.credit].into_iter().flatten() {
            match &mut leaving.credit {
                Some(held) => held.absorb(credit),
                None => leaving.credit = Some(credit),
            }
        }
    }

    /// Sends in portions, so that a peer that reads slowly is told from one that does not read.
    /// False when the connection is gone.
    async fn send(&self, pieces: Vec<Bytes>) -> bool {
        let bytes: usize = pieces.iter().map(Bytes::len).sum();
        if bytes == 0 {
            return true;
        }
        if bytes <= SEND_BYTES_MAX && pieces.len() <= SEND_PIECES_MAX {
            return self.send_portion(pieces).await;
        }
        let mut left = VecDeque::from(pieces);
        while !left.is_empty() {
            let portion = next_portion(&mut left);
            if !self.send_portion(portion).await {
                return false;
            }
        }
        true
    }

    async fn send_portion(&self, pieces: Vec<Bytes>) -> bool {
        let bytes: usize = pieces.iter().map(Bytes::len).sum();
        let started_at = io::now();
        self.activity.note_sending(Some(started_at));
        let sent = self.stream.send_vectored(pieces).await;
        self.activity.note_sending(None);
        if sent.is_err() {
            return false;
        }
        self.activity.note(io::now(), 0);
        self.context.work().note_socket(bytes);
        self.node.metrics().add(Counter::BytesSent, bytes as u64);
        true
    }

    /// Notes how long a request took whose answer is with the socket, and says so if it was slow.
    fn record(&self, finished: Finished) {
        let Finished {
            api_key,
            received_at,
            mut times,
        } = finished;
        let taken = io::now().since(received_at);
        times.add(Stage::Respond, taken.saturating_sub(times.sum()));
        let metrics = self.node.metrics();
        metrics.record_stage(Stage::Respond, times.get(Stage::Respond));
        for stage in [Stage::Handle, Stage::Park] {
            if !times.get(stage).is_zero() {
                metrics.record_stage(stage, times.get(stage));
            }
        }
        let latency = taken.saturating_sub(times.get(Stage::Park));
        metrics.record_request(api_key, latency, &times);
        self.node
            .slow_requests()
            .judge(api_key, (latency, &times), self.context.peer());
    }
}

/// Answers that leave together.
#[derive(Default)]
struct Leaving {
    pieces: Vec<Bytes>,
    credit: Option<Credit>,
    sent: Sent,
    finished: Vec<Finished>,
}

/// A request whose answer leaves.
struct Finished {
    api_key: ApiKey,
    received_at: MonotonicNs,
    times: StageTimes,
}

fn is_full(leaving: &Leaving) -> bool {
    leaving.pieces.len() >= SEND_PIECES_MAX || leaving.sent.bytes >= SEND_BYTES_MAX
}

/// Takes from the front of `left` what one send carries: [`SEND_BYTES_MAX`], a larger piece in
/// parts, and [`SEND_PIECES_MAX`] pieces.
fn next_portion(left: &mut VecDeque<Bytes>) -> Vec<Bytes> {
    let mut portion = Vec::with_capacity(left.len().min(SEND_PIECES_MAX));
    let mut room = SEND_BYTES_MAX;
    while room > 0 && portion.len() < SEND_PIECES_MAX {
        let Some(mut piece) = left.pop_front() else {
            break;
        };
        if piece.len() > room {
            left.push_front(piece.split_off(room));
        }
        room -= piece.len();
        if !piece.is_empty() {
            portion.push(piece);
        }
    }
    portion
}

/// Waits for a request's outcome.
async fn outcome_of(request: &mut InFlight) -> Outcome {
    std::future::poll_fn(|context| request.poll_outcome(context)).await
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_send_carries_no_more_than_its_limits_and_loses_nothing() {
        for sizes in [
            vec![SEND_BYTES_MAX],
            vec![SEND_BYTES_MAX + 1],
            vec![5, 3 * SEND_BYTES_MAX, 0, 7],
            vec![1; SEND_PIECES_MAX],
            vec![1; SEND_PIECES_MAX + 1],
        ] {
            let pieces: Vec<Bytes> = (0..sizes.len())
                .map(|place| Bytes::from(vec![place as u8; sizes[place]]))
                .collect();
            let whole = pieces.concat();
            let mut left = VecDeque::from(pieces);
            let mut portions = Vec::new();
            while !left.is_empty() {
                let portion = next_portion(&mut left);
                assert!(portion.len() <= SEND_PIECES_MAX);
                let bytes = portion.concat();
                assert!(bytes.len() <= SEND_BYTES_MAX);
                portions.push(bytes);
            }
            assert_eq!(portions.concat(), whole);
            let most = whole.len().div_ceil(SEND_BYTES_MAX);
            let pieces = sizes.len().div_ceil(SEND_PIECES_MAX);
            assert!(portions.len() <= most.max(pieces), "{}", portions.len());
        }
    }
}
