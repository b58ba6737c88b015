use bytes::{BufMut, Bytes, BytesMut};

use super::*;

const PLAIN: Version = Version {
    number: 0,
    flexible: false,
};
const FLEXIBLE: Version = Version {
    number: 0,
    flexible: true,
};

fn read<T: WireType>(bytes: &[u8], version: Version) -> Result<T, DecodeError> {
    let mut reader = Reader::new(Bytes::copy_from_slice(bytes));
    let value = T::read(&mut reader, version)?;
    reader.finish()?;
    Ok(value)
}

fn written<T: WireType>(value: &T, version: Version) -> Result<Bytes, EncodeError> {
    let mut writer = Writer::default();
    value.write(&mut writer, version)?;
    Ok(writer.into_bytes())
}

#[test]
fn varints_are_read_up_to_their_last_bit_and_no_further() {
    let cases: [(u32, &[u8]); 6] = [
        (0, &[0]),
        (127, &[0x7f]),
        (128, &[0x80, 1]),
        (16_383, &[0xff, 0x7f]),
        (16_384, &[0x80, 0x80, 1]),
        (u32::MAX, &[0xff, 0xff, 0xff, 0xff, 0x0f]),
    ];
    for (value, bytes) in cases {
        let mut writer = Writer::default();
        writer.put_unsigned_varint(value);
        assert_eq!(writer.into_bytes(), bytes);
        let mut reader = Reader::new(Bytes::copy_from_slice(bytes));
        assert_eq!(reader.unsigned_varint(), Ok(value));
        for end in 0..bytes.len() {
            let mut reader = Reader::new(Bytes::copy_from_slice(&bytes[..end]));
            assert_eq!(reader.unsigned_varint(), Err(DecodeError::Truncated));
        }
    }
    // A 33rd bit, and a sixth byte.
    for bytes in [
        [0xff, 0xff, 0xff, 0xff, 0x10, 0],
        [0x80, 0x80, 0x80, 0x80, 0x80, 0],
    ] {
        let mut reader = Reader::new(Bytes::copy_from_slice(&bytes));
        assert_eq!(reader.unsigned_varint(), Err(DecodeError::VarintTooLong));
    }
    // Longer than needed but within 5 bytes, as encoders that reserve a length write.
    let mut reader = Reader::new(Bytes::from_static(&[0x81, 0x80, 0x80, 0x80, 0]));
    assert_eq!(reader.unsigned_varint(), Ok(1));
}

#[test]
fn strings_keep_their_limit_in_both_directions() {
    let longest = "x".repeat(STRING_BYTES_MAX);
    let longer = "x".repeat(STRING_BYTES_MAX + 1);
    for version in [PLAIN, FLEXIBLE] {
        let bytes = written(&longest, version).unwrap();
        assert_eq!(read(&bytes, version), Ok(longest.clone()));
        assert_eq!(
            written(&longer, version),
            Err(EncodeError::TooLong(STRING_BYTES_MAX + 1))
        );
    }
    let mut compact = Writer::default();
    compact.put_unsigned_varint(STRING_BYTES_MAX as u32 + 2);
    compact.put(longer.as_bytes());
    assert_eq!(
        read::<String>(&compact.into_bytes(), FLEXIBLE),
        Err(DecodeError::StringTooLong(STRING_BYTES_MAX + 1))
    );
}

#[test]
fn lengths_below_minus_one_and_nulls_where_none_may_be_are_errors() {
    let negative = Err(DecodeError::NegativeLength(-2));
    assert_eq!(read::<String>(&[0xff, 0xfe], PLAIN), negative);
    let negative = Err(DecodeError::NegativeLength(-2));
    assert_eq!(read::<Vec<i8>>(&(-2i32).to_be_bytes(), PLAIN), negative);
    let negative = Err(DecodeError::NegativeLength(i64::from(i32::MIN)));
    assert_eq!(read::<Bytes>(&i32::MIN.to_be_bytes(), PLAIN), negative);
    let null = Err(DecodeError::UnexpectedNull);
    assert_eq!(read::<String>(&[0xff, 0xff], PLAIN), null);
    assert_eq!(read::<String>(&[0], FLEXIBLE), null);
    assert_eq!(
        read::<Vec<i8>>(&[0], FLEXIBLE),
        Err(DecodeError::UnexpectedNull)
    );
    assert_eq!(
        read::<Bytes>(&[0xff; 4], PLAIN),
        Err(DecodeError::UnexpectedNull)
    );
}

#[test]
fn bytes_that_are_no_text_are_refused() {
    assert_eq!(
        read::<String>(&[0, 2, 0xc3, 0x28], PLAIN),
        Err(DecodeError::InvalidUtf8)
    );
    assert_eq!(read(&[0, 2, 0xc3, 0xa9], PLAIN), Ok("é".to_owned()));
}

#[test]
fn an_array_counts_no_more_than_its_limit() {
    let mut bytes = BytesMut::new();
    bytes.put_u32(ARRAY_LEN_MAX as u32);
    bytes.put_bytes(1, ARRAY_LEN_MAX);
    let read_all: Vec<i8> = read(&bytes, PLAIN).unwrap();
    assert_eq!(read_all.len(), ARRAY_LEN_MAX);
    bytes[..4].copy_from_slice(&(ARRAY_LEN_MAX as u32 + 1).to_be_bytes());
    bytes.put_u8(1);
    assert_eq!(
        read::<Vec<i8>>(&bytes, PLAIN),
        Err(DecodeError::ArrayTooLong(ARRAY_LEN_MAX + 1))
    );
}

#[test]
fn an_array_counts_no_more_than_the_bytes_left_could_hold() {
    // Two longs are announced where one and seven bytes follow.
    let mut bytes = BytesMut::new();
    bytes.put_u32(2);
    bytes.put_bytes(0, 15);
    assert_eq!(read::<Vec<i64>>(&bytes, PLAIN), Err(DecodeError::Truncated));
    bytes.put_u8(0);
    assert_eq!(read(&bytes, PLAIN), Ok(vec![0i64, 0]));
}

#[test]
fn a_decoded_message_takes_no_more_memory_than_its_bytes_justify() {
    assert_eq!(decoded_bytes_max(0), DECODED_BYTES_FLOOR);
    let at_floor = DECODED_BYTES_FLOOR / DECODED_BYTES_PER_BYTE;
    assert_eq!(decoded_bytes_max(at_floor), DECODED_BYTES_FLOOR);
    assert_eq!(
        decoded_bytes_max(at_floor + 1),
        DECODED_BYTES_FLOOR + DECODED_BYTES_PER_BYTE
    );
    assert_eq!(decoded_bytes_max(usize::MAX), DECODED_BYTES_MAX);
    // Empty strings: 1 byte each on the wire, `size_of::<String>()` in memory.
    let fitting = DECODED_BYTES_FLOOR / size_of::<String>();
    for (count, expected) in [
        (fitting, Ok(fitting)),
        (fitting + 1, Err(DecodeError::DecodedTooLarge)),
    ] {
        let mut writer = Writer::default();
        writer.put_unsigned_varint(count as u32 + 1);
        writer.put(&vec![1; count]);
        let strings = read::<Vec<String>>(&writer.into_bytes(), FLEXIBLE);
        assert_eq!(strings.map(|strings| strings.len()), expected);
    }
}

fn skip_unknown(bytes: &[u8]) -> Result<Vec<u32>, DecodeError> {
    let mut seen = Vec::new();
    let mut reader = Reader::new(Bytes::copy_from_slice(bytes));
    reader.tagged_fields(|reader, tag| {
        seen.push(tag);
        // Tag 7 is known: a byte.
        if tag == 7 {
            let _: [u8; 1] = reader.array()?;
        }
        Ok(tag == 7)
    })?;
    reader.finish()?;
    Ok(seen)
}

#[test]
fn unknown_tagged_fields_are_stepped_over() {
    assert_eq!(skip_unknown(&[0]), Ok(vec![]));
    let bytes = [3, 1, 2, 0xaa, 0xbb, 7, 1, 0xcc, 9, 0];
    assert_eq!(skip_unknown(&bytes), Ok(vec![1, 7, 9]));
}

#[test]
fn tagged_fields_fill_their_size() {
    let too_small = [1, 7, 0];
    assert!(skip_unknown(&too_small).is_err());
    let too_large = [1, 7, 2, 0xcc, 0xcc];
    assert_eq!(
        skip_unknown(&too_large),
        Err(DecodeError::TaggedFieldSize(7))
    );
    let beyond_the_end = [1, 1, 3, 0, 0];
    assert_eq!(skip_unknown(&beyond_the_end), Err(DecodeError::Truncated));
    let more_than_there_are = [0xff, 0xff, 0xff, 0xff, 0x0f, 1, 0];
    assert_eq!(
        skip_unknown(&more_than_there_are),
        Err(DecodeError::Truncated)
    );
}

#[test]
fn a_field_larger_than_its_tag_says_does_not_reach_into_the_next() {
    // Tag 7 is announced with no byte, its reader takes one that belongs to the next field.
    assert_eq!(
        skip_unknown(&[2, 7, 0, 9, 0]),
        Err(DecodeError::TaggedFieldSize(7))
    );
}

#[test]
fn records_stay_parts_of_the_received_buffer() {
    let mut received = BytesMut::new();
    received.put_u32(3);
    received.put_slice(b"abc");
    let start = received[4..].as_ptr();
    let mut reader = Reader::new(received);
    let mut batch = BytesMut::read(&mut reader, PLAIN).unwrap();
    assert_eq!(batch.as_ptr(), start);
    batch[0] = b'z';
    assert_eq!(batch.as_ref(), b"zbc");
}

#[test]
fn slices_are_shared_from_their_least_length_on() {
    for (len, is_shared) in [(SHARED_BYTES_MIN - 1, false), (SHARED_BYTES_MIN, true)] {
        let records = Bytes::from(vec![5; len]);
        let mut writer = Writer::default();
        writer.put(b"head");
        writer.put_shared(&records);
        writer.put(b"tail");
        assert_eq!(writer.len(), 8 + len);
        let pieces = writer.into_pieces();
        assert_eq!(pieces.len(), if is_shared { 3 } else { 1 });
        let found = pieces
            .iter()
            .any(|piece| piece.as_ptr() == records.as_ptr());
        assert_eq!(found, is_shared);
        assert_eq!(pieces.concat().len(), 8 + len);
    }
}

#[test]
fn a_start_can_be_replaced_whether_or_not_slices_followed() {
    let records = Bytes::from(vec![5; SHARED_BYTES_MIN]);
    for shared in [0, 1, 2] {
        let mut writer = Writer::default();
        writer.put(&[0; 4]);
        for _ in 0..shared {
            writer.put_shared(&records);
        }
        assert!(writer.replace_start(b"head"));
        assert!(writer.into_bytes().starts_with(b"head"));
    }
    assert!(!Writer::default().replace_start(b"head"));
}

#[test]
fn record_slices_are_equal_when_their_bytes_are() {
    let whole = RecordSlices::from(Bytes::from_static(b"abcd"));
    let parts = [&b"ab"[..], b"", b"cd"].map(Bytes::from_static);
    assert_eq!(whole, RecordSlices::from(parts.to_vec()));
    let other = RecordSlices::from(Bytes::from_static(b"abce"));
    assert_ne!(whole, other);
    assert_ne!(whole, RecordSlices::from(Bytes::from_static(b"abc")));
}
