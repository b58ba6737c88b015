//! Heap memory aligned for direct I/O. A buffer is owned: whoever hands it to the driver has it no
//! longer, so nothing can read or free it before the completion.

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

use bytes::Bytes;

use crate::base::limits::BLOCK_BYTES;

/// A growable-up-to-its-capacity byte buffer at a multiple of 4 KiB, its capacity a multiple too.
#[derive(Debug)]
pub struct AlignedBuffer {
    memory: NonNull<u8>,
    capacity: usize,
    len: usize,
}

// SAFETY: the buffer owns its allocation alone, as a `Vec<u8>` does.
unsafe impl Send for AlignedBuffer {}
// SAFETY: shared access only reads; there is no interior mutability.
unsafe impl Sync for AlignedBuffer {}

impl AlignedBuffer {
    /// An empty buffer with room for at least `bytes` (rounded up to whole blocks, at least one).
    /// All of its memory is zeroed, what lies past `len` included, until written.
    #[must_use]
    pub fn with_capacity(bytes: usize) -> Self {
        let capacity = bytes.max(1).next_multiple_of(BLOCK_BYTES);
        let layout = Self::layout(capacity);
        // SAFETY: the layout's size is not zero.
        let memory = unsafe { alloc_zeroed(layout) };
        let Some(memory) = NonNull::new(memory) else {
            handle_alloc_error(layout)
        };
        Self {
            memory,
            capacity,
            len: 0,
        }
    }

    /// A buffer of `len` zero bytes.
    #[must_use]
    pub fn zeroed(len: usize) -> Self {
        let mut buffer = Self::with_capacity(len);
        buffer.len = len;
        buffer
    }

    fn layout(capacity: usize) -> Layout {
        match Layout::from_size_align(capacity, BLOCK_BYTES) {
            Ok(layout) => layout,
            Err(_) => unreachable!("a capacity is at most isize::MAX rounded to blocks"),
        }
    }

    /// Bytes that the buffer can hold; a multiple of 4 KiB.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// Bytes that can still be appended.
    #[must_use]
    pub fn remaining(&self) -> usize {
        self.capacity - self.len
    }

    /// Sets the length to 0 and keeps the memory; bytes keep their values.
    pub fn clear(&mut self) {
        self.len = 0;
    }

    /// Appends `bytes`; asserts that they fit, since a caller reserves before it fills.
    pub fn extend_from_slice(&mut self, bytes: &[u8]) {
        assert!(bytes.len() <= self.remaining(), "aligned buffer overfilled");
        // SAFETY: the range [len, len + bytes.len()) lies in the allocation and `bytes` cannot
        // overlap it, since it would borrow `self`.
        unsafe {
            let end = self.memory.as_ptr().add(self.len);
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), end, bytes.len());
        }
        self.len += bytes.len();
    }

    /// Sets the length to `len` ≤ capacity. Bytes never written are zero; bytes written before a
    /// shrink come back as they were.
    pub fn resize_within_capacity(&mut self, len: usize) {
        assert!(
            len <= self.capacity,
            "length past the aligned buffer's capacity"
        );
        self.len = len;
    }

    /// Appends zeros up to the next multiple of 4 KiB.
    pub fn pad_to_block(&mut self) {
        let padded = self.len.next_multiple_of(BLOCK_BYTES);
        let old = self.len;
        self.len = padded;
        if let Some(padding) = self.get_mut(old..) {
            padding.fill(0);
        }
    }

    /// Gives the buffer to a reference-counted view; the memory is freed with the last view.
    #[must_use]
    pub fn freeze(self) -> Bytes {
        Bytes::from_owner(self)
    }
}

impl Drop for AlignedBuffer {
    fn drop(&mut self) {
        // SAFETY: allocated in `with_capacity` with this very layout, freed once.
        unsafe { dealloc(self.memory.as_ptr(), Self::layout(self.capacity)) }
    }
}

impl Deref for AlignedBuffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: the first `len` bytes are allocated and initialised (zeroed at allocation).
        unsafe { std::slice::from_raw_parts(self.memory.as_ptr(), self.len) }
    }
}

impl DerefMut for AlignedBuffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `deref`; `&mut self` makes the access exclusive.
        unsafe { std::slice::from_raw_parts_mut(self.memory.as_ptr(), self.len) }
    }
}

impl AsRef<[u8]> for AlignedBuffer {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_aligned_and_zeroed() {
        let mut buffer = AlignedBuffer::with_capacity(5_000);
        assert_eq!(buffer.capacity(), 8_192);
        assert_eq!(buffer.as_ptr() as usize % BLOCK_BYTES, 0);
        buffer.extend_from_slice(b"abc");
        buffer.pad_to_block();
        assert_eq!(buffer.len(), 4_096);
        assert_eq!(&buffer[..4], b"abc\0");
        assert!(buffer[4..].iter().all(|byte| *byte == 0));
        buffer.resize_within_capacity(8_192);
        assert_eq!(buffer.remaining(), 0);
        assert_eq!(buffer.freeze().len(), 8_192);
    }

    #[test]
    #[should_panic(expected = "overfilled")]
    fn one_byte_past_the_capacity_is_refused() {
        let mut buffer = AlignedBuffer::zeroed(4_096);
        buffer.extend_from_slice(b"x");
    }
}
