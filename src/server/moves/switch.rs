//! The moment in which the copy takes over: steps 3 to 6 of `log::moving`.

use std::rc::Rc;
use std::time::Duration;

use super::carry_out::Ending;
use super::{Move, Moves};
use crate::base::time::MonotonicNs;
use crate::io;
use crate::log::{CopyStep, Log, LogError};
use crate::partition::Partition;
use crate::server::node::Node;

/// How long those behind a change that is under way wait for it, and how long all may wait for the
/// last steps, before they go on and the copy catches up again.
const CHANGES_MAX: Duration = Duration::from_millis(200);
const CLOSED_MAX: Duration = Duration::from_secs(1);
/// Between two tries to give the copy its name where the disk is full.
const NAME_RETRY: Duration = Duration::from_secs(1);

/// Opens the partition to changes unless that is somebody else's to do.
struct Closed<'a>(Option<&'a Partition>);

impl Drop for Closed<'_> {
    fn drop(&mut self) {
        if let Some(partition) = self.0 {
            partition.open_to_changes();
        }
    }
}

/// False where a disk is full, which may pass.
fn has_room(outcome: Result<(), LogError>) -> Result<bool, Ending> {
    match outcome {
        Ok(()) => Ok(true),
        Err(error) if error.is_full_disk() => Ok(false),
        Err(error) => Err(Ending::Failed(error.to_string())),
    }
}

impl Move {
    /// Answers the log that is given up; `None` when the copy has not caught up in time.
    pub(super) async fn switch(&self, node: &Rc<Node>) -> Result<Option<Rc<Log>>, Ending> {
        if !self.is_marked.get() {
            let is_copied = has_room(self.future.copy_aborted(&self.source).await)?;
            if !is_copied || !has_room(self.source.mark_moving(self.to).await)? {
                return Ok(None);
            }
            self.is_marked.set(true);
        }
        let begun = io::now();
        if !(self.partition.close_to_changes(begun.after(CHANGES_MAX))).await {
            return Ok(None);
        }
        let deadline = begun.after(CLOSED_MAX);
        let mut closed = Closed(Some(&self.partition));
        if !self.copy_rest(node, deadline).await? {
            return Ok(None);
        }
        if !has_room(self.future.take_over(&self.source).await)? {
            return Ok(None);
        }
        // Else the source serves on.
        let may = self.partition.check_switch(&self.future);
        may.map_err(|fault| Ending::Failed(fault.to_string()))?;
        self.check(node.moves())?;
        let id = self.partition.id();
        match node.control().assign_directory(id, self.to).await {
            Ok(true) => {}
            Ok(false) => return Err(Ending::CalledOff),
            Err(error) => {
                closed.0 = None;
                return Err(Ending::Lost(error.to_string()));
            }
        }
        // From here on the source is void, whatever comes.
        closed.0 = None;
        self.take_name(node.moves()).await?;
        if self.partition.is_closed() {
            // The topic went meanwhile, and the source with it.
            return Err(Ending::CalledOff);
        }
        let switched = self.partition.switch_to(Rc::clone(&self.future));
        (switched.map(Some)).map_err(|fault| Ending::Lost(fault.to_string()))
    }

    /// Copies what is left while nothing is added. False when that takes too long.
    async fn copy_rest(&self, node: &Rc<Node>, deadline: MonotonicNs) -> Result<bool, Ending> {
        while !self.future.has_all_of(&self.source) {
            if io::now() >= deadline || self.check(node.moves()).is_err() {
                return Ok(false);
            }
            match self.step(node).await? {
                CopyStep::Copied(_) => {}
                CopyStep::NoRoom => return Ok(false),
                CopyStep::CaughtUp => {
                    let end = self.source.log_end_offset();
                    if self.source.durable_end() == end {
                        return Ok(self.future.has_all_of(&self.source));
                    }
                    let durable = self.source.wait_durable(end);
                    match io::with_deadline(deadline, durable).await {
                        None => return Ok(false),
                        Some(Ok(())) => {}
                        Some(Err(error)) => return Err(Ending::Failed(error.to_string())),
                    }
                }
            }
        }
        Ok(true)
    }

    async fn take_name(&self, moves: &Moves) -> Result<(), Ending> {
        while let Err(error) = self.future.take_name().await {
            if !error.is_full_disk() || moves.is_stopping.get() {
                return Err(Ending::Lost(error.to_string()));
            }
            tracing::warn!("{}: {error}; trying again", self.source.identity().folder());
            io::sleep(NAME_RETRY).await;
        }
        Ok(())
    }
}
