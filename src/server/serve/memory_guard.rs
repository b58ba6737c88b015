//! Near `coreline.memory` what the allocator keeps of freed memory goes back to the system, and if
//! that is not enough caches shrink, and requests and answers get less.
//!
//! The budgets bound what is charged; holes between what lives are nobody's, and what requests take
//! beside their bytes is charged by estimates. After minutes of overload with batches of very
//! different sizes each came to a fifth of what was charged. Caches are what can be done without.

use std::time::Duration;

use crate::io::{self, memory};

/// From this part of the cap on, in hundredths, freed memory is given back. Below it is kept, which
/// saves a page fault for every page that is used again.
const GIVES_BACK_PERCENT: u64 = 85;
/// Caches shrink while more than this part is resident, and grow again below the other. The nearer
/// the cap the faster: what comes in within one look must find room below it.
const SHRINKS_PERCENT: u64 = 90;
const GROWS_PERCENT: u64 = 80;
/// From this part on it is looked at often.
const NEAR_PERCENT: u64 = 70;
/// How often far from the cap.
const FAR_INTERVAL: Duration = Duration::from_secs(1);
/// How often near it.
const NEAR_INTERVAL: Duration = Duration::from_millis(10);
/// Between two times that memory is given back: it takes milliseconds.
const GIVE_BACK_LOOKS: u32 = 5;
/// By how much caches shrink for each hundredth of the cap, and grow, at a time, and how much is
/// withheld at most; thousandths.
const SHRINK_STEP: u32 = 10;
const GROW_STEP: u32 = 1;
const WITHHELD_MAX: u32 = 700;

/// Looks after it for as long as it is polled. For a thread that serves nobody.
pub async fn keep_within(memory_bytes: u64) {
    let percent_of = |bytes: u64| bytes * 100 / memory_bytes.max(1);
    let (mut withheld, mut looks) = (0, 0u32);
    while memory::is_broker_process() {
        let mut percent = percent_of(memory::resident_bytes().unwrap_or(0));
        looks = looks.wrapping_add(1);
        if percent >= GIVES_BACK_PERCENT && looks.is_multiple_of(GIVE_BACK_LOOKS) {
            memory::give_back_freed();
            percent = percent_of(memory::resident_bytes().unwrap_or(0));
        }
        withheld = next_withheld(withheld, percent);
        memory::withhold(withheld);
        let is_near = percent >= NEAR_PERCENT || withheld > 0;
        io::sleep(if is_near { NEAR_INTERVAL } else { FAR_INTERVAL }).await;
    }
}

/// What is withheld of caches next, with so much of the cap resident.
fn next_withheld(withheld: u32, percent: u64) -> u32 {
    if percent >= SHRINKS_PERCENT {
        let past = u32::try_from(percent - SHRINKS_PERCENT).unwrap_or(u32::MAX);
        let step = SHRINK_STEP.saturating_mul(past.saturating_add(1));
        withheld.saturating_add(step).min(WITHHELD_MAX)
    } else if percent < GROWS_PERCENT {
        withheld.saturating_sub(GROW_STEP)
    } else {
        withheld
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn caches_shrink_near_the_cap_and_grow_again() {
        assert_eq!(next_withheld(0, SHRINKS_PERCENT - 1), 0);
        assert_eq!(next_withheld(0, SHRINKS_PERCENT), SHRINK_STEP);
        assert_eq!(next_withheld(0, SHRINKS_PERCENT + 4), 5 * SHRINK_STEP);
        assert_eq!(next_withheld(9, u64::MAX), WITHHELD_MAX);
        assert_eq!(next_withheld(WITHHELD_MAX, 120), WITHHELD_MAX, "the limit");
        assert_eq!(next_withheld(WITHHELD_MAX, GROWS_PERCENT), WITHHELD_MAX);
        let less = WITHHELD_MAX - GROW_STEP;
        assert_eq!(next_withheld(WITHHELD_MAX, GROWS_PERCENT - 1), less);
        assert_eq!(next_withheld(1, 0), 0);
    }
}
