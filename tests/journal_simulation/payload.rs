//! Record batches that name the append they came from: what is found in a log tells which attempt
//! put it there, and every byte of it can be built again and compared.

use coreline::base::random::Random;

use crate::compaction;

/// Bytes of a batch before its records.
pub const HEADER_BYTES: usize = 61;
const CRC_AT: usize = 17;
const ATTRIBUTES_AT: usize = 21;
const LARGEST_TIMESTAMP_AT: usize = 35;

/// Who produces, for idempotence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Producer {
    pub id: i64,
    pub base_sequence: i32,
}

/// Everything that a batch is built from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Payload {
    /// Unique in the simulation; stands in the first record.
    pub attempt: u64,
    /// Records in the batch.
    pub records: i32,
    /// Length of the first record's value; the others are empty.
    pub value_bytes: usize,
    pub timestamp: i64,
    pub producer: Option<Producer>,
}

pub fn put_varint(out: &mut Vec<u8>, value: i64) {
    let mut rest = ((value << 1) ^ (value >> 63)) as u64;
    while rest >= 0x80 {
        out.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    out.push(rest as u8);
}

fn varint_len(value: i64) -> i64 {
    let mut out = Vec::new();
    put_varint(&mut out, value);
    out.len() as i64
}

impl Payload {
    fn put_record(&self, out: &mut Vec<u8>, offset_delta: i64) {
        let value_len = if offset_delta == 0 {
            self.value_bytes.max(8)
        } else {
            0
        };
        // Attributes, timestamp delta and absent key take a byte each, as does the header count.
        let body = 4 + varint_len(offset_delta) + varint_len(value_len as i64) + value_len as i64;
        put_varint(out, body);
        out.push(0);
        put_varint(out, 0);
        put_varint(out, offset_delta);
        put_varint(out, -1);
        put_varint(out, value_len as i64);
        if offset_delta == 0 {
            out.extend_from_slice(&self.attempt.to_be_bytes());
            let end = out.len() + value_len - 8;
            let mut random = Random::new(self.attempt);
            while out.len() < end {
                let fill = random.next_u64().to_be_bytes();
                let len = fill.len().min(end - out.len());
                out.extend_from_slice(&fill[..len]);
            }
        }
        put_varint(out, 0);
    }

    /// The batch as a producer sends it.
    pub fn build(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(HEADER_BYTES + self.value_bytes + 64);
        out.extend_from_slice(&0i64.to_be_bytes());
        out.extend_from_slice(&0i32.to_be_bytes());
        out.extend_from_slice(&(-1i32).to_be_bytes());
        out.push(2);
        out.extend_from_slice(&0u32.to_be_bytes());
        out.extend_from_slice(&0i16.to_be_bytes());
        out.extend_from_slice(&(self.records - 1).to_be_bytes());
        out.extend_from_slice(&self.timestamp.to_be_bytes());
        out.extend_from_slice(&self.timestamp.to_be_bytes());
        let producer = self.producer;
        out.extend_from_slice(&producer.map_or(-1, |producer| producer.id).to_be_bytes());
        let epoch: i16 = if producer.is_some() { 0 } else { -1 };
        out.extend_from_slice(&epoch.to_be_bytes());
        let sequence = producer.map_or(-1, |producer| producer.base_sequence);
        out.extend_from_slice(&sequence.to_be_bytes());
        out.extend_from_slice(&self.records.to_be_bytes());
        for delta in 0..self.records {
            match compaction::is_keyed(self.timestamp) {
                true => compaction::put_record(&mut out, self, delta),
                false => self.put_record(&mut out, i64::from(delta)),
            }
        }
        let len = (out.len() - 12) as i32;
        out[8..12].copy_from_slice(&len.to_be_bytes());
        let checksum = crc32c::crc32c(&out[ATTRIBUTES_AT..]);
        out[CRC_AT..ATTRIBUTES_AT].copy_from_slice(&checksum.to_be_bytes());
        out
    }
}

/// A batch as it was found in a log.
#[derive(Clone, Debug)]
pub struct Found<'a> {
    pub base_offset: i64,
    pub last_offset: i64,
    pub leader_epoch: i32,
    /// [`NO_ATTEMPT`] where nothing but its offsets is left.
    pub attempt: u64,
    /// The whole of it.
    pub bytes: &'a [u8],
}

/// Of a batch that a cleaning has left of a segment's end. No attempt has so high a number.
pub const NO_ATTEMPT: u64 = u64::MAX;

fn field<const N: usize>(bytes: &[u8], at: usize) -> Result<[u8; N], String> {
    let found = bytes
        .get(at..at + N)
        .and_then(|found| found.try_into().ok());
    found.ok_or_else(|| format!("the log ends inside a batch header, at byte {at}"))
}

/// The first batch in `bytes`, and what follows it.
pub fn take_batch(bytes: &[u8]) -> Result<(Found<'_>, &[u8]), String> {
    let base_offset = i64::from_be_bytes(field(bytes, 0)?);
    let len = i32::from_be_bytes(field(bytes, 8)?);
    let end = usize::try_from(len).unwrap_or(0) + 12;
    if len < (HEADER_BYTES - 12) as i32 || end > bytes.len() {
        return Err(format!("a batch of length {len} at offset {base_offset}"));
    }
    let (batch, rest) = bytes.split_at(end);
    let checksum = u32::from_be_bytes(field(batch, CRC_AT)?);
    if crc32c::crc32c(&batch[ATTRIBUTES_AT..]) != checksum {
        return Err(format!(
            "a batch with a wrong checksum at offset {base_offset}"
        ));
    }
    let largest_timestamp = i64::from_be_bytes(field(batch, LARGEST_TIMESTAMP_AT)?);
    let attempt = match compaction::is_keyed(largest_timestamp) {
        true => compaction::attempt_at(largest_timestamp),
        false if compaction::is_bare(batch) => NO_ATTEMPT,
        false => first_attempt(batch)?,
    };
    let found = Found {
        base_offset,
        last_offset: base_offset + i64::from(i32::from_be_bytes(field(batch, 23)?)),
        leader_epoch: i32::from_be_bytes(field(batch, 12)?),
        attempt,
        bytes: batch,
    };
    Ok((found, rest))
}

/// The attempt that the first record names.
fn first_attempt(batch: &[u8]) -> Result<u64, String> {
    // Length (up to 4 bytes), attributes, timestamp delta, offset delta, key length, value length.
    let mut at = HEADER_BYTES;
    let mut skip_varint = || -> Result<(), String> {
        while field::<1>(batch, at)?[0] & 0x80 != 0 {
            at += 1;
        }
        at += 1;
        Ok(())
    };
    for _ in 0..6 {
        skip_varint()?;
    }
    Ok(u64::from_be_bytes(field(batch, at)?))
}

/// Whether `found` is `payload` with nothing but base offset and leader epoch stamped.
pub fn is_same(payload: &Payload, found: &[u8]) -> bool {
    let built = payload.build();
    built.len() == found.len() && built[8..12] == found[8..12] && built[16..] == found[16..]
}

#[test]
fn a_built_batch_is_found_again() {
    for value_bytes in [0, 8, 100, 20_000] {
        let payload = Payload {
            attempt: 77,
            records: 3,
            value_bytes,
            timestamp: 5,
            producer: None,
        };
        let mut bytes = payload.build();
        bytes[..8].copy_from_slice(&40i64.to_be_bytes());
        bytes.extend_from_slice(b"rest");
        let (found, rest) = take_batch(&bytes).expect("whole");
        assert_eq!((found.base_offset, found.last_offset), (40, 42));
        assert_eq!((found.attempt, rest), (77, &b"rest"[..]));
        assert!(is_same(&payload, found.bytes));
        let mut damaged = found.bytes.to_vec();
        *damaged.last_mut().expect("not empty") ^= 1;
        assert!(take_batch(&damaged).is_err());
    }
}

#[test]
fn batches_are_what_kafka_calls_batches() {
    use kafka_protocol::records::RecordBatchDecoder;
    let payload = Payload {
        attempt: 77,
        records: 3,
        value_bytes: 1_000,
        timestamp: 5,
        producer: Some(Producer {
            id: 4,
            base_sequence: 9,
        }),
    };
    let mut bytes = bytes::Bytes::from(payload.build());
    let set = RecordBatchDecoder::decode(&mut bytes).expect("decodes");
    assert_eq!(set.records.len(), 3);
    let value = set.records[0].value.as_ref().expect("a value");
    assert_eq!(value.len(), 1_000);
    assert_eq!(set.records[2].sequence, 11);
}
