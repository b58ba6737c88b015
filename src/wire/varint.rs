//! The variable-length integers of records (`ByteUtils`): zigzag, 7 bits a byte, low bits first.
//! Kafka's compact arrays and tagged fields use the unsigned form, which the primitives hold.

/// Bytes of the longest `varint` (32 bits).
pub const VARINT_BYTES_MAX: usize = 5;
/// Bytes of the longest `varlong` (64 bits).
pub const VARLONG_BYTES_MAX: usize = 10;

/// Reads an unsigned integer of `bits` bits at the start of `bytes`; gives it and its length.
/// `None` when the bytes end within it, or when it is longer or larger than `bits` allow.
fn read_unsigned(bytes: &[u8], bits: u32) -> Option<(u64, usize)> {
    let mut value = 0u64;
    let mut shift = 0u32;
    for (index, byte) in bytes.iter().enumerate() {
        let part = u64::from(byte & 0x7f);
        // The last byte may hold only what is left of the width: anything above would be lost.
        if shift >= bits || (bits - shift < 7 && part >> (bits - shift) != 0) {
            return None;
        }
        value |= part << shift;
        if byte & 0x80 == 0 {
            return Some((value, index + 1));
        }
        shift += 7;
    }
    None
}

/// An unsigned integer of one or two bytes, by far the most frequent lengths: deltas within a
/// batch, fields of less than 8 KiB. `None`: longer, or malformed.
#[inline]
fn read_short(bytes: &[u8]) -> Option<(u16, usize)> {
    match *bytes {
        [first, ..] if first < 0x80 => Some((u16::from(first), 1)),
        [first, second, ..] if second < 0x80 => {
            Some((u16::from(first & 0x7f) | u16::from(second) << 7, 2))
        }
        _ => None,
    }
}

/// Reads a zigzag `varint`; gives it and the bytes it took.
#[must_use]
#[inline]
pub fn read_varint(bytes: &[u8]) -> Option<(i32, usize)> {
    if let Some((raw, len)) = read_short(bytes) {
        return Some((i32::from(raw >> 1) ^ -i32::from(raw & 1), len));
    }
    let (raw, len) = read_unsigned(bytes, 32)?;
    let raw = raw as u32;
    Some(((raw >> 1).cast_signed() ^ -(raw & 1).cast_signed(), len))
}

/// Reads a zigzag `varlong`; gives it and the bytes it took.
#[must_use]
#[inline]
pub fn read_varlong(bytes: &[u8]) -> Option<(i64, usize)> {
    if let Some((raw, len)) = read_short(bytes) {
        return Some((i64::from(raw >> 1) ^ -i64::from(raw & 1), len));
    }
    let (raw, len) = read_unsigned(bytes, 64)?;
    Some(((raw >> 1).cast_signed() ^ -(raw & 1).cast_signed(), len))
}

/// Appends a zigzag `varint`.
pub fn write_varint(out: &mut Vec<u8>, value: i32) {
    write_varlong(out, i64::from(value));
}

/// Appends a zigzag `varlong`.
pub fn write_varlong(out: &mut Vec<u8>, value: i64) {
    let mut rest = ((value << 1) ^ (value >> 63)).cast_unsigned();
    while rest >= 0x80 {
        out.push((rest as u8 & 0x7f) | 0x80);
        rest >>= 7;
    }
    out.push(rest as u8);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_written_is_read(int: i32, long: i64, tail: Vec<u8>) {
            let mut bytes = Vec::new();
            write_varint(&mut bytes, int);
            let len = bytes.len();
            prop_assert!(len <= VARINT_BYTES_MAX);
            bytes.extend_from_slice(&tail);
            prop_assert_eq!(read_varint(&bytes), Some((int, len)));

            let mut bytes = Vec::new();
            write_varlong(&mut bytes, long);
            let len = bytes.len();
            prop_assert!(len <= VARLONG_BYTES_MAX);
            bytes.extend_from_slice(&tail);
            prop_assert_eq!(read_varlong(&bytes), Some((long, len)));
        }

        #[test]
        fn any_bytes_give_a_number_or_nothing(bytes: Vec<u8>) {
            if let Some((_, len)) = read_varint(&bytes) {
                prop_assert!(len <= VARINT_BYTES_MAX && len <= bytes.len());
            }
            if let Some((_, len)) = read_varlong(&bytes) {
                prop_assert!(len <= VARLONG_BYTES_MAX && len <= bytes.len());
            }
        }
    }

    #[test]
    fn widths_end_where_they_must() {
        // i32::MIN is the largest 32-bit value in zigzag; one more bit is refused.
        assert_eq!(
            read_varint(&[0xff, 0xff, 0xff, 0xff, 0x0f]),
            Some((i32::MIN, 5))
        );
        assert_eq!(read_varint(&[0xff, 0xff, 0xff, 0xff, 0x1f]), None);
        assert_eq!(read_varint(&[0x80, 0x80, 0x80, 0x80, 0x80, 0x00]), None);
        assert_eq!(read_varint(&[0x80]), None);
        assert_eq!(read_varint(&[]), None);
        let longest = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01];
        assert_eq!(read_varlong(&longest), Some((i64::MIN, 10)));
        let past = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02];
        assert_eq!(read_varlong(&past), None);
        // A longer form than needed is legal, as in Kafka.
        assert_eq!(read_varint(&[0x80, 0x00]), Some((0, 2)));
    }
}
