//! Room for what users are told in one answer. A request of a few megabytes can name millions of
//! partitions; each gets its code, but texts only while there is room.

use super::Refusal;

/// Bytes of all messages of one answer.
pub(super) const MESSAGES_BYTES_MAX: usize = 1024 * 1024;

/// What is left of it.
#[derive(Debug)]
pub(super) struct MessageRoom(usize);

impl Default for MessageRoom {
    fn default() -> Self {
        Self(MESSAGES_BYTES_MAX)
    }
}

impl MessageRoom {
    /// The refusal's message, if it has one and there is room for it.
    pub(super) fn tell(&mut self, refusal: Refusal) -> Option<String> {
        if refusal.message.is_empty() {
            return None;
        }
        self.0 = self.0.checked_sub(refusal.message.len())?;
        Some(refusal.message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::error_code::ErrorCode;

    #[test]
    fn messages_are_told_up_to_the_limit() {
        let mut room = MessageRoom::default();
        let refusal = Refusal::new(ErrorCode::NONE, "x".repeat(1024));
        for _ in 0..MESSAGES_BYTES_MAX / 1024 {
            assert!(room.tell(refusal.clone()).is_some());
        }
        assert_eq!(room.tell(Refusal::new(ErrorCode::NONE, "x")), None);
    }
}
