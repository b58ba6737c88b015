//! Reads of partitions that this shard owns, each request a task of the fetch class.

use std::rc::Rc;

use super::core::Shard;
use super::message::{
    DirectorySizes, EpochEndsMessage, LogSize, LogSizesMessage, OffsetsMessage, ProducersMessage,
    ReadMessage,
};
use crate::io;
use crate::log::ShardLogs;
use crate::metrics::Stage;
use crate::partition::{PartitionRead, ReadBounds, Waiter};

/// Logs whose sizes are told before others have their turn.
const LOGS_AT_A_TURN: usize = 64;

impl Shard {
    /// Reads all partitions of a fetch in order, then parks on them if too little was found and
    /// nothing is urgent. Between a partition's read and its parking its end may move: then it
    /// counts as woken at once.
    pub(super) async fn handle_read(self: Rc<Self>, message: ReadMessage) {
        let mut visit = message.visit;
        visit.started_at = io::now();
        self.metrics().record_stage(Stage::Queue, visit.queue());
        if visit.is_hop {
            self.metrics().record_stage(Stage::Hop, visit.hop());
        }
        let read = self.read_all(&message);
        let (answers, busy) = io::busy_time(message.is_timed, read).await;
        visit.busy = busy;
        message.reply.send((answers, visit));
    }

    async fn read_all(&self, message: &ReadMessage) -> Vec<PartitionRead> {
        let mut answers: Vec<PartitionRead> = Vec::with_capacity(message.specs.len());
        let (mut found, mut memory, mut needed, mut urgent) = (0, 0, 0, false);
        for spec in &message.specs {
            let bounds = ReadBounds {
                isolation: message.isolation,
                max_bytes: message.max_bytes.saturating_sub(found),
                memory_max: message.memory_max.saturating_sub(memory),
                first_batch_max: if found == 0 {
                    message.first_batch_max
                } else {
                    0
                },
            };
            let answer = match self.partition(spec.partition) {
                Some(partition) => partition.read(spec, bounds).await,
                None => PartitionRead::failed(spec.place, self.absence(spec.partition)),
            };
            found += answer.bytes;
            memory += answer.memory;
            needed = needed.max(answer.needed);
            urgent |= answer.is_urgent();
            answers.push(answer);
        }
        // What waits for memory alone is read again as soon as that is there.
        if found < message.park_below && !urgent && needed == 0 {
            self.park(message, &mut answers);
        }
        answers
    }

    fn park(&self, message: &ReadMessage, answers: &mut [PartitionRead]) {
        for (spec, answer) in message.specs.iter().zip(answers) {
            let waiter = Waiter {
                fetch: message.fetch,
                place: spec.place,
            };
            // A client ahead of the visible end hears nothing before it is passed.
            answer.visible_end = answer.visible_end.max(spec.fetch_offset);
            let parked = self
                .partition(spec.partition)
                .is_some_and(|hosted| hosted.park(message.isolation, answer.visible_end, waiter));
            if !parked {
                self.wake(&[waiter]);
            }
        }
    }

    pub(super) async fn handle_offsets(self: Rc<Self>, message: OffsetsMessage) {
        let mut answers = Vec::with_capacity(message.queries.len());
        for (id, query, seen) in message.queries {
            answers.push(match self.partition(id) {
                Some(partition) => partition.list_offset(query, seen, message.isolation).await,
                None => Err(self.absence(id)),
            });
        }
        message.reply.send(answers);
    }

    pub(super) async fn handle_log_sizes(self: Rc<Self>, message: LogSizesMessage) {
        let partitions = match message.partitions {
            None => self.partitions(),
            Some(wanted) => wanted.iter().filter_map(|id| self.partition(*id)).collect(),
        };
        let of_none = |logs: &Rc<ShardLogs>| DirectorySizes {
            path: logs.directory().to_owned(),
            is_offline: logs.is_offline(),
            sizes: Vec::new(),
        };
        let mut told: Vec<DirectorySizes> = self.logs().iter().map(of_none).collect();
        for some in partitions.chunks(LOGS_AT_A_TURN) {
            for partition in some {
                let current = (partition.log(), None);
                let future = partition.future().map(|future| {
                    let lag = partition.future_lag(&future);
                    (future, Some(lag))
                });
                for (log, future_lag) in [Some(current), future].into_iter().flatten() {
                    let of = told.iter_mut().find(|of| of.path == log.directory());
                    of.into_iter().for_each(|of| {
                        of.sizes.push(LogSize {
                            id: partition.id(),
                            bytes: log.size_bytes(),
                            future_lag,
                        });
                    });
                }
            }
            io::yield_now().await;
        }
        message.reply.send(told);
    }

    pub(super) async fn handle_producers(self: Rc<Self>, message: ProducersMessage) {
        let mut answers = Vec::with_capacity(message.partitions.len());
        for id in message.partitions {
            answers.push(match self.partition(id) {
                Some(partition) => partition.producers(),
                None => Err(self.absence(id)),
            });
            io::yield_now().await;
        }
        message.reply.send(answers);
    }

    pub(super) fn handle_epoch_ends(&self, message: EpochEndsMessage) {
        let queries = message.queries.into_iter();
        let answers = queries
            .map(|(id, seen, requested)| match self.partition(id) {
                Some(partition) => partition.epoch_end_offset(seen, requested),
                None => Err(self.absence(id)),
            })
            .collect();
        message.reply.send(answers);
    }
}
