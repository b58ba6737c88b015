//! The reading side: bytes to frames to requests under way.

use std::time::Duration;

use bytes::BytesMut;

use super::close::CloseReason;
use super::frame_buffer::{FrameBuffer, capacity_wanted};
use super::pipeline::{InFlight, PRODUCE};
use super::{Connection, hello};
use crate::base::ids::ApiKey;
use crate::base::limits::{FRAME_BYTES_RESERVED, KIB};
use crate::base::time::MonotonicNs;
use crate::cluster::quotas::QuotaKind;
use crate::cluster::quotas::limits::Limit;
use crate::io;
use crate::metrics::{Counter, Stage, StageTimes};
use crate::server::api;
use crate::shard::{Credit, KEPT_SHARE_IDLE_MAX};
use crate::wire::frame::{self, FrameError, FrameLimits, LENGTH_BYTES, Progress};
use crate::wire::header::RequestHeader;
use crate::wire::primitives::Reader;

/// Bytes of frames that are started before other tasks have their turn.
const TURN_BYTES: usize = 64 * KIB;
/// Frames that are started before other tasks have their turn; about 50 µs of work.
const TURN_FRAMES: u32 = 16;

const FETCH: ApiKey = ApiKey(1);
/// Memory that a fetch's partitions take, decoded, for each byte of the frame.
const FETCH_MEMORY_PER_BYTE: usize = 5;

/// A request whose frame has come whole.
struct Whole {
    header: RequestHeader,
    reader: Reader,
    frame_bytes: usize,
    credit: Credit,
    /// When it had come, and room for it.
    received_at: MonotonicNs,
    /// What its bytes took to come.
    arrival: Duration,
}

impl Whole {
    fn of(
        frame: BytesMut,
        credit: Credit,
        (received_at, arrival): (MonotonicNs, Duration),
    ) -> Result<Self, CloseReason> {
        let frame_bytes = frame.len();
        let mut reader = Reader::new(frame);
        let header = RequestHeader::decode(&mut reader)?;
        Ok(Self {
            header,
            reader,
            frame_bytes,
            credit,
            received_at,
            arrival,
        })
    }
}

impl Connection {
    pub(super) async fn read_requests(&self) -> Result<(), CloseReason> {
        let limits = self.node.frame_limits();
        let mut buffer = FrameBuffer::default();
        let mut credit = self.node.shard().budget().credit();
        loop {
            if !self
                .start_requests(&mut buffer, &mut credit, &limits)
                .await?
            {
                return Ok(());
            }
            self.wait_while_muted().await;
            self.make_room(&mut buffer, &mut credit, &limits).await?;
            let Some(count) = self.receive(&mut buffer, credit.is_kept()).await? else {
                return Ok(());
            };
            self.node
                .metrics()
                .add(Counter::BytesReceived, count as u64);
            self.activity.note(io::now(), count);
            self.context.work().note_socket(count);
            buffer.note_arrival(io::now());
        }
    }

    /// Starts every request that has come whole. False when the connection is closing.
    async fn start_requests(
        &self,
        buffer: &mut FrameBuffer,
        credit: &mut Credit,
        limits: &FrameLimits,
    ) -> Result<bool, CloseReason> {
        let (mut turn_bytes, mut turn_frames) = (0, 0);
        while let Progress::Complete { bytes, .. } = inspect(buffer, limits)? {
            self.wait_while_muted().await;
            // First room, then memory: who leaves answers unread takes none from the others.
            self.pipeline.room(api_key_of(buffer)).await;
            let received_at = io::now();
            let taken = taken_by(api_key_of(buffer), bytes);
            let missing = taken.saturating_sub(credit.bytes());
            if !self.pipeline.is_closed() {
                credit.take(missing).await;
            }
            if self.pipeline.is_closed() {
                return Ok(false);
            }
            if self.node.is_stopping() {
                // What was started is answered; nothing further is.
                self.pipeline.drained().await;
                return Ok(false);
            }
            let Some(frame) = frame::split(buffer.bytes_mut(), limits)? else {
                break;
            };
            let arrival = buffer.take_arrival();
            let whole = Whole::of(frame, credit.split(taken), (received_at, arrival))?;
            if self.start_or_charge(whole).await? == PRODUCE {
                buffer.note_logged(bytes);
            }
            turn_bytes += bytes;
            turn_frames += 1;
            if turn_bytes >= TURN_BYTES || turn_frames >= TURN_FRAMES {
                (turn_bytes, turn_frames) = (0, 0);
                io::yield_now().await;
            }
        }
        Ok(!self.pipeline.is_closed())
    }

    /// Starts a request. One that counts towards a limit is counted first.
    async fn start_or_charge(&self, whole: Whole) -> Result<ApiKey, CloseReason> {
        let (api_key, client_id) = (whole.header.api_key, whole.header.client_id.as_deref());
        let limit = match api_key {
            PRODUCE => self.context.limit(QuotaKind::Produce, client_id),
            _ => None,
        };
        match limit {
            None => self.start(whole, Duration::ZERO)?,
            // Few have limits: what they need takes no room in the task of all.
            Some(limit) => Box::pin(self.charge_and_start(whole, limit)).await?,
        }
        Ok(api_key)
    }

    /// Counts a produce's bytes before it is started, so that the next is not read where they are
    /// past the limit; its answer tells the client.
    async fn charge_and_start(&self, whole: Whole, limit: Limit) -> Result<(), CloseReason> {
        let wait = self.context.charge(Some(limit), whole.frame_bytes as f64);
        let wait = wait.await;
        let of = (QuotaKind::Produce, whole.header.client_id.as_deref());
        self.context.mute(of, wait);
        self.start(whole, wait)
    }

    fn start(&self, whole: Whole, throttle: Duration) -> Result<(), CloseReason> {
        let Whole {
            header,
            reader,
            credit,
            received_at,
            arrival,
            ..
        } = whole;
        let mut times = StageTimes::default();
        let limit = (self.context).limit(QuotaKind::Request, header.client_id.as_deref());
        self.context.work().set_counted(limit.is_some());
        let (granted_at, started_at) = (io::now(), io::clock());
        times.add(Stage::Read, granted_at.since(received_at));
        let metrics = self.node.metrics();
        metrics.record_stage(Stage::Read, times.get(Stage::Read) + arrival);
        let api_key = header.api_key;
        let progress = api::start(&self.context, header, reader, throttle)?;
        let decoded = io::clock().since(started_at);
        times.add(Stage::Decode, decoded);
        metrics.record_stage(Stage::Decode, decoded);
        let mut request = InFlight {
            api_key,
            received_at,
            times,
            progress,
            credit,
            owed_bytes: 0,
        };
        if request.is_handled() {
            // The frame has been decoded, and a handler may take its time.
            request.credit.give_back_rights();
        }
        self.pipeline.push(request);
        Ok(())
    }

    /// Waits while the client is throttled, unless the connection is closed.
    async fn wait_while_muted(&self) {
        while let Some(until) = self.context.muted_until() {
            self.activity.note_partial(io::now(), false);
            let closed = io::with_deadline(until, self.pipeline.closed());
            if Box::pin(closed).await.is_some() {
                break;
            }
        }
    }

    /// Reserves for the next read what the rules allow and the budget gives.
    async fn make_room(
        &self,
        buffer: &mut FrameBuffer,
        credit: &mut Credit,
        limits: &FrameLimits,
    ) -> Result<(), CloseReason> {
        match inspect(buffer, limits)? {
            Progress::Partial { bytes, .. } => {
                let arrived = buffer.received().len();
                let missing = capacity_wanted(bytes, arrived).saturating_sub(credit.bytes());
                let api_key = api_key_of(buffer);
                // While an answer is owed a little is read ahead, so that the stream's end is
                // seen, but only from what everybody may take.
                let reads_ahead = arrived < FRAME_BYTES_RESERVED && credit.try_take_common(missing);
                if !reads_ahead {
                    self.activity.note_partial(io::now(), false);
                    self.pipeline.room(api_key).await;
                    credit.take(missing).await;
                }
                buffer.make_room_for(bytes);
                self.activity.note_partial(io::now(), true);
            }
            Progress::Peeking | Progress::Complete { .. } => {
                self.activity
                    .note_partial(io::now(), !buffer.received().is_empty());
                buffer.make_room(self.room.allow(buffer.room()));
            }
        }
        self.context.note_abandoned(buffer.take_abandoned());
        Ok(())
    }

    /// The next bytes; `None` at the end of the stream, however it ended.
    async fn receive(
        &self,
        buffer: &mut FrameBuffer,
        is_kept: bool,
    ) -> Result<Option<usize>, CloseReason> {
        let receive = self.stream.receive(buffer.lend());
        let (result, bytes) = if is_kept {
            let deadline = io::now().after(KEPT_SHARE_IDLE_MAX);
            let received = io::task::with_deadline(deadline, receive).await;
            received.ok_or(CloseReason::KeptShareLapsed)?
        } else {
            receive.await
        };
        let count = result.unwrap_or(0);
        buffer.give_back(bytes, count);
        Ok((count > 0).then_some(count))
    }
}

/// The kind of the first request, once that has come: it stands behind the frame's length.
fn api_key_of(buffer: &FrameBuffer) -> Option<ApiKey> {
    let key = buffer.received().get(LENGTH_BYTES..)?.first_chunk::<2>()?;
    Some(ApiKey(i16::from_be_bytes(*key)))
}

/// What a request of `bytes` takes until it is answered: a partition that is asked for takes more
/// as a fetch knows it than on the wire.
fn taken_by(api_key: Option<ApiKey>, bytes: usize) -> usize {
    match api_key {
        Some(FETCH) => bytes.saturating_mul(FETCH_MEMORY_PER_BYTE),
        _ => bytes,
    }
}

/// Judges the first frame; what is no frame is named where its first bytes tell.
fn inspect(buffer: &FrameBuffer, limits: &FrameLimits) -> Result<Progress, CloseReason> {
    frame::inspect(buffer.received(), limits).map_err(|error| match error {
        FrameError::Negative(_) | FrameError::TooLarge { .. } | FrameError::TooShort(_) => {
            hello::recognise(buffer.received())
                .map_or(CloseReason::Frame(error), CloseReason::Foreign)
        }
    })
}
