//! Runnable tasks by class. Each class has shares of the CPU: the class that has used least of
//! what its shares give it runs next; on a tie the more urgent one does.

use std::collections::VecDeque;
use std::time::Duration;

use super::task::TaskKey;
use crate::io::task::TaskClass;

/// Shares of the classes, in the order of [`TaskClass`]: when all have work, the CPU is split
/// like this. A class without work leaves its part to the others.
pub(super) const CLASS_SHARES: [u64; CLASSES] = [1_000, 500, 100];
const CLASSES: usize = 3;

/// What one turn of a task costs at least, so that order is fair also where the clock stands
/// still (in a simulation).
const CHARGE_NS_MIN: u64 = 1_000;
/// Scales use by shares without losing the fraction.
const USE_SCALE: u64 = 1_000;

#[derive(Default)]
struct Class {
    tasks: VecDeque<TaskKey>,
    /// CPU time used, divided by the shares.
    used: u64,
}

#[derive(Default)]
pub(super) struct RunQueues {
    classes: [Class; CLASSES],
    /// Tasks that yielded: runnable again after the next look at completions.
    yielded: Vec<(TaskClass, TaskKey)>,
    /// Use of the class that ran last: where a class that wakes up joins in.
    floor: u64,
}

impl RunQueues {
    pub(super) fn push(&mut self, class: TaskClass, key: TaskKey) {
        let floor = self.floor;
        let class = &mut self.classes[class as usize];
        if class.tasks.is_empty() {
            // A class that was idle must not save up its share and then shut out the others.
            class.used = class.used.max(floor);
        }
        class.tasks.push_back(key);
    }

    pub(super) fn push_yielded(&mut self, class: TaskClass, key: TaskKey) {
        self.yielded.push((class, key));
    }

    /// Makes the tasks that yielded runnable.
    pub(super) fn resume_yielded(&mut self) {
        let mut yielded = std::mem::take(&mut self.yielded);
        for (class, key) in yielded.drain(..) {
            self.push(class, key);
        }
        // Its memory serves the next ones.
        self.yielded = yielded;
    }

    pub(super) fn is_empty(&self) -> bool {
        self.yielded.is_empty() && self.classes.iter().all(|class| class.tasks.is_empty())
    }

    /// The next task to run, with its class.
    pub(super) fn pop(&mut self) -> Option<TaskKey> {
        let chosen = self
            .classes
            .iter_mut()
            .filter(|class| !class.tasks.is_empty())
            .min_by_key(|class| class.used)?;
        self.floor = self.floor.max(chosen.used);
        chosen.tasks.pop_front()
    }

    /// Charges a class for one turn of one of its tasks.
    pub(super) fn charge(&mut self, class: TaskClass, used: Duration) {
        let ns = u64::try_from(used.as_nanos()).unwrap_or(u64::MAX);
        let cost = ns.max(CHARGE_NS_MIN).saturating_mul(USE_SCALE);
        let shares = CLASS_SHARES[class as usize];
        let class = &mut self.classes[class as usize];
        class.used = class.used.saturating_add(cost / shares);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(class: TaskClass) -> TaskKey {
        TaskKey {
            index: class as u32,
            generation: 0,
        }
    }

    /// Turns that each class gets out of `turns`, when the given classes always have work and a
    /// turn lasts as long as `lasts` says.
    fn turns(classes: &[(TaskClass, u64)], turns: usize) -> [usize; CLASSES] {
        let mut queues = RunQueues::default();
        for (class, _) in classes {
            queues.push(*class, key(*class));
        }
        let mut got = [0; CLASSES];
        for _ in 0..turns {
            let ran = queues.pop().expect("always work").index as usize;
            got[ran] += 1;
            let (class, us) = *classes
                .iter()
                .find(|(class, _)| *class as usize == ran)
                .expect("a class that was given");
            queues.charge(class, Duration::from_micros(us));
            queues.push(class, key(class));
        }
        got
    }

    #[test]
    fn time_is_split_by_shares() {
        use TaskClass::{Background, Fetch, Produce};
        let got = turns(&[(Produce, 1), (Fetch, 1), (Background, 1)], 1_600);
        assert_eq!(got, [1_000, 500, 100]);
        // Longer turns are fewer turns.
        let got = turns(&[(Produce, 10), (Background, 100)], 1_010);
        assert!((9..=11).contains(&got[2]), "{got:?}");
        // Work alone runs alone.
        assert_eq!(turns(&[(Background, 1)], 10), [0, 0, 10]);
    }

    #[test]
    fn an_idle_class_does_not_save_up() {
        let mut queues = RunQueues::default();
        for _ in 0..1_000 {
            queues.push(TaskClass::Background, key(TaskClass::Background));
            queues.pop();
            queues.charge(TaskClass::Background, Duration::from_micros(100));
        }
        queues.push(TaskClass::Background, key(TaskClass::Background));
        let mut waited = 0;
        loop {
            queues.push(TaskClass::Produce, key(TaskClass::Produce));
            if queues.pop() == Some(key(TaskClass::Background)) {
                break;
            }
            queues.charge(TaskClass::Produce, Duration::from_micros(100));
            waited += 1;
        }
        assert!(waited <= 11, "background waited for {waited} turns");
    }

    #[test]
    fn tasks_that_yielded_wait_for_the_next_look_at_completions() {
        let mut queues = RunQueues::default();
        queues.push_yielded(TaskClass::Produce, key(TaskClass::Produce));
        assert_eq!(queues.pop(), None);
        assert!(!queues.is_empty());
        queues.resume_yielded();
        assert_eq!(queues.pop(), Some(key(TaskClass::Produce)));
        assert!(queues.is_empty());
    }
}
