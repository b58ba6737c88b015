//! The few frames that the load generator sends, written by hand: it must run against any broker,
//! so it shares no code with the one under test.

use std::io::{self, Read, Write};
use std::net::TcpStream;

pub const PRODUCE: i16 = 0;
pub const FETCH: i16 = 1;
pub const CREATE_TOPICS: i16 = 19;
const BATCH_HEADER_BYTES: usize = 61;
const FRAME_BYTES_MAX: usize = 256 << 20;

pub fn put_uvarint(out: &mut Vec<u8>, mut value: u32) {
    while value >= 0x80 {
        out.push((value as u8 & 0x7f) | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn put_varint(out: &mut Vec<u8>, value: i32) {
    put_uvarint(out, ((value << 1) ^ (value >> 31)) as u32);
}

pub fn put_compact_string(out: &mut Vec<u8>, text: &str) {
    put_uvarint(out, text.len() as u32 + 1);
    out.extend_from_slice(text.as_bytes());
}

/// A frame with a version-2 request header; the correlation id stands at bytes 8..12.
pub fn frame(key: i16, version: i16, body: &[u8]) -> Vec<u8> {
    let client = b"load";
    let mut out = vec![0; 4];
    out.extend_from_slice(&key.to_be_bytes());
    out.extend_from_slice(&version.to_be_bytes());
    out.extend_from_slice(&0i32.to_be_bytes());
    out.extend_from_slice(&(client.len() as i16).to_be_bytes());
    out.extend_from_slice(client);
    out.push(0);
    out.extend_from_slice(body);
    let len = out.len() as i32 - 4;
    out[..4].copy_from_slice(&len.to_be_bytes());
    out
}

/// A v2 record batch of `count` records with values of `record_bytes` printable bytes, and of so
/// many keys, if any.
pub fn batch(record_bytes: usize, count: usize, seed: u64, keys: Option<u64>) -> Vec<u8> {
    let mut records = Vec::with_capacity(count * (record_bytes + 12));
    let mut state = seed | 1;
    for delta in 0..count {
        let mut record = vec![0, 0];
        put_varint(&mut record, delta as i32);
        match keys {
            Some(keys) => {
                put_varint(&mut record, 8);
                record.extend_from_slice(&(state % keys.max(1)).to_be_bytes());
            }
            None => put_varint(&mut record, -1),
        }
        put_varint(&mut record, record_bytes as i32);
        for _ in 0..record_bytes {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            record.push(b'A' + (state % 26) as u8);
        }
        put_varint(&mut record, 0);
        put_varint(&mut records, record.len() as i32);
        records.extend_from_slice(&record);
    }
    let now = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .map_or(0, |elapsed| elapsed.as_millis() as i64);
    let mut tail = Vec::with_capacity(records.len() + BATCH_HEADER_BYTES);
    tail.extend_from_slice(&0i16.to_be_bytes());
    tail.extend_from_slice(&(count as i32 - 1).to_be_bytes());
    tail.extend_from_slice(&now.to_be_bytes());
    tail.extend_from_slice(&now.to_be_bytes());
    tail.extend_from_slice(&(-1i64).to_be_bytes());
    tail.extend_from_slice(&(-1i16).to_be_bytes());
    tail.extend_from_slice(&(-1i32).to_be_bytes());
    tail.extend_from_slice(&(count as i32).to_be_bytes());
    tail.extend_from_slice(&records);
    let mut out = Vec::with_capacity(tail.len() + 21);
    out.extend_from_slice(&0i64.to_be_bytes());
    out.extend_from_slice(&(tail.len() as i32 + 9).to_be_bytes());
    out.extend_from_slice(&(-1i32).to_be_bytes());
    out.push(2);
    out.extend_from_slice(&crc32c::crc32c(&tail).to_be_bytes());
    out.extend_from_slice(&tail);
    out
}

/// A Produce v9 frame with one batch for one partition.
pub fn produce_frame(topic: &str, partition: i32, acks: i16, batch: &[u8]) -> Vec<u8> {
    let mut body = vec![0];
    body.extend_from_slice(&acks.to_be_bytes());
    body.extend_from_slice(&30_000i32.to_be_bytes());
    put_uvarint(&mut body, 2);
    put_compact_string(&mut body, topic);
    put_uvarint(&mut body, 2);
    body.extend_from_slice(&partition.to_be_bytes());
    put_uvarint(&mut body, batch.len() as u32 + 1);
    body.extend_from_slice(batch);
    body.extend_from_slice(&[0, 0, 0]);
    frame(PRODUCE, 9, &body)
}

/// A Fetch v12 frame for some partitions, outside any session.
pub fn fetch_frame(topic: &str, positions: &[(i32, i64)], bytes_max: i32) -> Vec<u8> {
    let mut body = Vec::new();
    body.extend_from_slice(&(-1i32).to_be_bytes());
    body.extend_from_slice(&500i32.to_be_bytes());
    body.extend_from_slice(&1i32.to_be_bytes());
    body.extend_from_slice(&bytes_max.to_be_bytes());
    body.push(0);
    body.extend_from_slice(&0i32.to_be_bytes());
    body.extend_from_slice(&(-1i32).to_be_bytes());
    put_uvarint(&mut body, 2);
    put_compact_string(&mut body, topic);
    put_uvarint(&mut body, positions.len() as u32 + 1);
    for (partition, offset) in positions {
        body.extend_from_slice(&partition.to_be_bytes());
        body.extend_from_slice(&(-1i32).to_be_bytes());
        body.extend_from_slice(&offset.to_be_bytes());
        body.extend_from_slice(&(-1i32).to_be_bytes());
        body.extend_from_slice(&0i64.to_be_bytes());
        body.extend_from_slice(&(1i32 << 20).to_be_bytes());
        body.push(0);
    }
    body.push(0);
    put_uvarint(&mut body, 1);
    put_compact_string(&mut body, "");
    body.push(0);
    frame(FETCH, 12, &body)
}

/// A CreateTopics v5 frame.
pub fn create_topic_frame(topic: &str, partitions: i32) -> Vec<u8> {
    let mut body = Vec::new();
    put_uvarint(&mut body, 2);
    put_compact_string(&mut body, topic);
    body.extend_from_slice(&partitions.to_be_bytes());
    body.extend_from_slice(&1i16.to_be_bytes());
    body.extend_from_slice(&[1, 1, 0]);
    body.extend_from_slice(&30_000i32.to_be_bytes());
    body.extend_from_slice(&[0, 0]);
    frame(CREATE_TOPICS, 5, &body)
}

/// Sends `frame` with this correlation id.
pub fn send(stream: &mut TcpStream, frame: &mut [u8], correlation: i32) -> io::Result<()> {
    frame[8..12].copy_from_slice(&correlation.to_be_bytes());
    stream.write_all(frame)
}

/// Reads one response into `buffer`: correlation id first, length prefix gone.
pub fn receive(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> io::Result<i32> {
    let mut len = [0; 4];
    stream.read_exact(&mut len)?;
    let len = u32::from_be_bytes(len) as usize;
    if !(5..=FRAME_BYTES_MAX).contains(&len) {
        return Err(io::Error::other(format!("a response of {len} bytes")));
    }
    buffer.resize(len, 0);
    stream.read_exact(buffer)?;
    Ok(i32::from_be_bytes([
        buffer[0], buffer[1], buffer[2], buffer[3],
    ]))
}

/// Walks a response's bytes; out-of-range reads are errors of the broker, so they may panic here.
pub struct Cursor<'a> {
    pub bytes: &'a [u8],
    pub at: usize,
}

impl<'a> Cursor<'a> {
    pub fn take(&mut self, len: usize) -> &'a [u8] {
        let taken = &self.bytes[self.at..self.at + len];
        self.at += len;
        taken
    }

    pub fn i16(&mut self) -> i16 {
        i16::from_be_bytes(self.take(2).try_into().expect("two bytes"))
    }

    pub fn i32(&mut self) -> i32 {
        i32::from_be_bytes(self.take(4).try_into().expect("four bytes"))
    }

    pub fn i64(&mut self) -> i64 {
        i64::from_be_bytes(self.take(8).try_into().expect("eight bytes"))
    }

    pub fn uvarint(&mut self) -> usize {
        let (mut value, mut shift) = (0usize, 0);
        loop {
            let byte = self.take(1)[0];
            value |= usize::from(byte & 0x7f) << shift;
            shift += 7;
            if byte & 0x80 == 0 {
                return value;
            }
        }
    }

    pub fn skip_tags(&mut self) {
        for _ in 0..self.uvarint() {
            self.uvarint();
            let len = self.uvarint();
            self.take(len);
        }
    }

    pub fn skip_compact(&mut self) {
        let len = self.uvarint().saturating_sub(1);
        self.take(len);
    }
}

/// The error code of a Produce v9 response with one partition.
pub fn produce_error(response: &[u8]) -> i16 {
    let mut cursor = Cursor {
        bytes: response,
        at: 4,
    };
    cursor.skip_tags();
    cursor.uvarint();
    cursor.skip_compact();
    cursor.uvarint();
    cursor.i32();
    cursor.i16()
}

/// The error code and message-free code of a CreateTopics v5 response with one topic.
pub fn create_topic_error(response: &[u8]) -> i16 {
    let mut cursor = Cursor {
        bytes: response,
        at: 4,
    };
    cursor.skip_tags();
    cursor.i32();
    cursor.uvarint();
    cursor.skip_compact();
    cursor.i16()
}

/// One partition's part of a Fetch v12 response.
pub struct Fetched {
    pub partition: i32,
    pub error: i16,
    pub high_watermark: i64,
    pub records: usize,
    pub bytes: usize,
    pub next_offset: Option<i64>,
}

pub fn fetched(response: &[u8]) -> Vec<Fetched> {
    let mut cursor = Cursor {
        bytes: response,
        at: 4,
    };
    cursor.skip_tags();
    cursor.i32();
    let error = cursor.i16();
    assert_eq!(error, 0, "the fetch failed with error {error}");
    cursor.i32();
    let mut out = Vec::new();
    for _ in 1..cursor.uvarint() {
        cursor.skip_compact();
        for _ in 1..cursor.uvarint() {
            let partition = cursor.i32();
            let error = cursor.i16();
            let high_watermark = cursor.i64();
            cursor.take(16);
            for _ in 1..cursor.uvarint() {
                cursor.take(16);
                cursor.skip_tags();
            }
            cursor.i32();
            let len = cursor.uvarint().saturating_sub(1);
            let (records, next_offset) = walk_batches(cursor.take(len));
            cursor.skip_tags();
            out.push(Fetched {
                partition,
                error,
                high_watermark,
                records,
                bytes: len,
                next_offset,
            });
        }
        cursor.skip_tags();
    }
    out
}

fn walk_batches(bytes: &[u8]) -> (usize, Option<i64>) {
    let (mut at, mut records, mut next) = (0, 0, None);
    while at + BATCH_HEADER_BYTES <= bytes.len() {
        let mut cursor = Cursor { bytes, at };
        let base = cursor.i64();
        let len = cursor.i32() as usize + 12;
        if at + len > bytes.len() {
            break;
        }
        cursor.at = at + 23;
        next = Some(base + i64::from(cursor.i32()) + 1);
        cursor.at = at + 57;
        records += cursor.i32() as usize;
        at += len;
    }
    (records, next)
}
