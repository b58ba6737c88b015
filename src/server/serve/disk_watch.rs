//! Looks at a disk's room from time to time and tells the shards what it means, so that no append
//! asks the file system; warns the operator well before producers are refused.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use super::publisher::Publisher;
use crate::base::time::MonotonicNs;
use crate::io::directory::Space;
use crate::io::{self, TaskClass};
use crate::log::DiskRoom;
use crate::server::disk_gauge::DiskGauge;
use crate::shard::Shard;

/// Between two looks.
const INTERVAL: Duration = Duration::from_secs(1);
/// The same when little is left: what is appended meanwhile must not take the reserve.
const INTERVAL_SHORT: Duration = Duration::from_millis(100);
/// Room that comes and goes is told no more often.
const LINE_INTERVAL: Duration = Duration::from_secs(10);

/// The task that looks.
pub struct DiskWatch {
    publisher: Rc<Publisher>,
    gauge: Arc<DiskGauge>,
    /// What the shards were told.
    room: Cell<DiskRoom>,
    /// What the operator was told, and when.
    told: Cell<(Told, Option<MonotonicNs>)>,
    is_stopping: Cell<bool>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Told {
    Enough,
    Low,
    Refused,
}

impl DiskWatch {
    /// Looks once at each disk, then goes on looking.
    pub async fn start(publisher: &Rc<Publisher>, gauges: Vec<Arc<DiskGauge>>) -> Vec<Rc<Self>> {
        let mut watches = Vec::with_capacity(gauges.len());
        for gauge in gauges {
            let watch = Rc::new(Self {
                publisher: Rc::clone(publisher),
                gauge,
                room: Cell::default(),
                told: Cell::new((Told::Enough, None)),
                is_stopping: Cell::new(false),
            });
            watch.look().await;
            io::spawn_detached(TaskClass::Background, Rc::clone(&watch).go_on());
            watches.push(watch);
        }
        watches
    }

    /// Nothing is told any more.
    pub fn stop(&self) {
        self.is_stopping.set(true);
    }

    async fn go_on(self: Rc<Self>) {
        while !self.is_stopping.get() {
            io::sleep(match self.room.get() {
                DiskRoom::Enough => INTERVAL,
                DiskRoom::Little | DiskRoom::Reserve => INTERVAL_SHORT,
            })
            .await;
            if !self.is_stopping.get() {
                self.look().await;
            }
        }
    }

    async fn look(&self) {
        let directory = self.gauge.directory();
        let space = match io::directory::space(directory).await {
            Ok(space) => space,
            Err(error) => {
                tracing::debug!(%error, "cannot ask {} for its room", directory.display());
                return;
            }
        };
        self.gauge.set(space);
        self.tell_operator(space, io::now());
        let room = self.gauge.bounds(space).room(space.available_bytes);
        if self.room.replace(room) == room {
            return;
        }
        for shard in self.publisher.shards() {
            let directory = directory.to_path_buf();
            let tell = move |shard: Rc<Shard>| async move {
                let mut all = shard.logs().iter();
                if let Some(logs) = all.find(|logs| logs.directory() == directory) {
                    logs.set_disk_room(room);
                }
            };
            // A shard that stands still is told when it goes on.
            drop(self.publisher.run(shard, tell).await);
        }
    }

    fn tell_operator(&self, space: Space, now: MonotonicNs) {
        let free = space.available_bytes;
        let bounds = self.gauge.bounds(space);
        let state = match bounds.room(free) {
            DiskRoom::Reserve => Told::Refused,
            _ if bounds.is_low(free) => Told::Low,
            _ => Told::Enough,
        };
        let (known, at) = self.told.get();
        if state == known || at.is_some_and(|at| now.since(at) < LINE_INTERVAL) {
            return;
        }
        self.told.set((state, Some(now)));
        let (directory, total) = (self.gauge.directory().display(), space.total_bytes);
        let of = format!("{free} of {total} bytes are free on the disk of {directory}");
        let (reserve, low) = (bounds.reserve_bytes, bounds.low_bytes);
        match state {
            Told::Refused => tracing::error!(
                "{of}, less than coreline.disk.reserve.bytes={reserve}: producers are refused, \
                 which they try again until they give up; deletes and reads go on"
            ),
            Told::Low => tracing::warn!(
                "{of}, less than coreline.disk.low.bytes={low}: producers are refused below \
                 coreline.disk.reserve.bytes={reserve}"
            ),
            Told::Enough => tracing::info!("{of}: enough again"),
        }
    }
}
