//! One move from its beginning to its end.

use std::rc::Rc;
use std::time::Duration;

use super::{Move, Moves};
use crate::io;
use crate::log::{CopyStep, Log, copy_step};
use crate::partition::Departure;
use crate::server::node::Node;

/// Between two tries where there is no room.
const RETRY_PAUSE: Duration = Duration::from_millis(500);
/// After the first try to switch that came to nothing, and at most: each keeps appends waiting.
const SWITCH_PAUSE: Duration = Duration::from_millis(250);
const SWITCH_PAUSE_MAX: Duration = Duration::from_secs(30);
/// How often the limit of the rate is looked at while a move waits for it.
const RATE_PAUSE_MAX: Duration = Duration::from_millis(500);

/// Why a move does not come to its end in this life.
pub(super) enum Ending {
    /// Somebody has called it off, or the topic is gone.
    CalledOff,
    /// The broker stops.
    Stopping,
    /// One of the logs has failed.
    Failed(String),
    /// It may be named in the metadata: neither log may serve.
    Lost(String),
}

impl Move {
    /// Whether nobody has called the move off.
    pub(super) fn is_wanted(&self) -> bool {
        !self.is_cancelled.get() && !self.partition.is_closed()
    }

    /// Nothing, or why the move does not go on.
    pub(super) fn check(&self, moves: &Moves) -> Result<(), Ending> {
        if moves.is_stopping.get() {
            Err(Ending::Stopping)
        } else if self.is_wanted() {
            Ok(())
        } else {
            Err(Ending::CalledOff)
        }
    }

    pub(super) async fn carry_out(&self, node: &Rc<Node>) {
        let folder = self.source.identity().folder();
        match self.copy_and_switch(node).await {
            Ok(given_up) => {
                let directory = self.future.directory().display().to_string();
                tracing::info!("{folder} is in {directory} now");
                self.delete(node, &given_up).await;
            }
            Err(Ending::Stopping) => {}
            Err(Ending::CalledOff) => {
                tracing::info!("{folder}: the move is called off");
                self.give_up(node).await;
            }
            Err(Ending::Failed(reason)) => {
                tracing::error!("{folder}: the move is given up: {reason}");
                node.moves().count_failed(self.partition.id());
                self.give_up(node).await;
            }
            Err(Ending::Lost(reason)) => {
                tracing::error!(
                    "{folder}: nobody knows where the move has come to: {reason}. The partition \
                     does not serve until the broker starts again"
                );
                let id = self.partition.id();
                node.moves().count_failed(id);
                node.groups().release(id);
                node.shard().remove(id, Departure::Released);
            }
        }
    }

    /// The source serves on; the copy goes.
    async fn give_up(&self, node: &Rc<Node>) {
        self.partition.set_future(None);
        self.source.end_move();
        if self.is_marked.get() {
            self.source.unmark_moving().await;
        }
        self.delete(node, &self.future).await;
    }

    async fn delete(&self, node: &Rc<Node>, log: &Rc<Log>) {
        if let Err(error) = node.shard().logs().delete_log(log).await {
            let (folder, directory) = (log.identity().folder(), log.directory().display());
            tracing::warn!("what is left of {folder} in {directory} stays for now: {error}");
        }
    }

    /// Answers the log that is given up, once the copy serves.
    async fn copy_and_switch(&self, node: &Rc<Node>) -> Result<Rc<Log>, Ending> {
        let moves = node.moves();
        let mut switch_pause = SWITCH_PAUSE;
        loop {
            let place = moves.take_place(self).await;
            let step = self.copy(node).await?;
            if step == CopyStep::CaughtUp {
                let is_near = self.future.log_end_offset() >= self.source.durable_end();
                if is_near && let Some(given_up) = self.switch(node).await? {
                    return Ok(given_up);
                }
            }
            // Others have their turn meanwhile.
            drop(place);
            if step == CopyStep::NoRoom {
                moves.pause(self, RETRY_PAUSE).await;
            } else {
                moves.pause(self, switch_pause).await;
                switch_pause = (2 * switch_pause).min(SWITCH_PAUSE_MAX);
            }
        }
    }

    /// Copies until there is nothing more to copy, or no room.
    async fn copy(&self, node: &Rc<Node>) -> Result<CopyStep, Ending> {
        loop {
            self.check(node.moves())?;
            self.wait_for_rate(node).await;
            self.check(node.moves())?;
            match self.step(node).await? {
                CopyStep::Copied(_) => {}
                step => return Ok(step),
            }
        }
    }

    /// One step.
    pub(super) async fn step(&self, node: &Rc<Node>) -> Result<CopyStep, Ending> {
        let step = copy_step(&self.source, &self.future).await;
        let step = step.map_err(|error| Ending::Failed(error.to_string()))?;
        if let CopyStep::Copied(bytes) = step {
            let rate = node.config().move_bytes_per_second;
            node.move_rate().charge(bytes, rate, io::now());
        }
        io::yield_now().await;
        Ok(step)
    }

    async fn wait_for_rate(&self, node: &Rc<Node>) {
        loop {
            let rate = node.config().move_bytes_per_second;
            let wait = node.move_rate().wait(rate, io::now());
            if wait.is_zero() || self.check(node.moves()).is_err() {
                return;
            }
            node.moves().pause(self, wait.min(RATE_PAUSE_MAX)).await;
        }
    }
}
