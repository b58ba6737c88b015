//! Near `coreline.memory` what the allocator keeps of freed memory goes back to the system.
//!
//! The budgets bound what lives; holes between it are nobody's. After minutes of overload with
//! batches of very different sizes they came to a fifth of what lived.

use std::time::Duration;

use crate::io::{self, memory};

/// From this part of the cap on, in hundredths, freed memory is given back. Below it is kept, which
/// saves a page fault for every page that is used again.
const GIVES_BACK_PERCENT: u64 = 85;
/// From this part on it is looked at often.
const NEAR_PERCENT: u64 = 70;
/// How often far from the cap.
const FAR_INTERVAL: Duration = Duration::from_secs(1);
/// How often near it.
const NEAR_INTERVAL: Duration = Duration::from_millis(50);

/// Looks after it for as long as it is polled. For a thread that serves nobody.
pub async fn keep_within(memory_bytes: u64) {
    let percent = |part: u64| memory_bytes / 100 * part;
    loop {
        let resident = memory::resident_bytes().unwrap_or(0);
        if resident > percent(GIVES_BACK_PERCENT) {
            memory::give_back_freed();
        }
        let is_near = resident > percent(NEAR_PERCENT);
        io::sleep(if is_near { NEAR_INTERVAL } else { FAR_INTERVAL }).await;
    }
}
