//! A Kafka client of four requests over a plain socket, in the versions whose layout is simplest.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

pub struct Kafka {
    address: String,
    stream: TcpStream,
    correlation: i32,
}

pub struct Produced {
    pub code: i16,
    pub base_offset: i64,
    pub log_append_time: i64,
    /// Kafka's words, for who looks into a difference.
    pub message: String,
}

struct Body<'a>(&'a [u8]);

impl Body<'_> {
    fn take<const N: usize>(&mut self) -> [u8; N] {
        let (taken, rest) = self.0.split_first_chunk::<N>().expect("the answer goes on");
        self.0 = rest;
        *taken
    }

    fn short(&mut self) -> i16 {
        i16::from_be_bytes(self.take())
    }

    fn int(&mut self) -> i32 {
        i32::from_be_bytes(self.take())
    }

    fn long(&mut self) -> i64 {
        i64::from_be_bytes(self.take())
    }

    fn bytes(&mut self, len: usize) -> Vec<u8> {
        let (taken, rest) = self.0.split_at(len);
        self.0 = rest;
        taken.to_vec()
    }

    fn string(&mut self) -> String {
        let len = self.short();
        String::from_utf8(self.bytes(len.max(0) as usize)).expect("text")
    }
}

fn write_string(out: &mut Vec<u8>, text: &str) {
    out.extend_from_slice(&(text.len() as i16).to_be_bytes());
    out.extend_from_slice(text.as_bytes());
}

impl Kafka {
    pub fn connect(address: &str) -> Self {
        let stream = TcpStream::connect(address).expect("Apache Kafka answers at KAFKA_BOOTSTRAP");
        stream
            .set_read_timeout(Some(Duration::from_secs(20)))
            .expect("a timeout");
        Self {
            address: address.to_owned(),
            stream,
            correlation: 0,
        }
    }

    /// Sends a request; `None` when the broker closed the connection instead of answering.
    fn ask(&mut self, key: i16, version: i16, body: &[u8]) -> Option<Vec<u8>> {
        self.correlation += 1;
        let mut frame = Vec::new();
        frame.extend_from_slice(&key.to_be_bytes());
        frame.extend_from_slice(&version.to_be_bytes());
        frame.extend_from_slice(&self.correlation.to_be_bytes());
        write_string(&mut frame, "validation");
        frame.extend_from_slice(body);
        let len = (frame.len() as i32).to_be_bytes();
        self.stream
            .write_all(&[&len[..], &frame].concat())
            .expect("the broker reads");
        let mut len = [0; 4];
        if self.stream.read_exact(&mut len).is_err() {
            *self = Self::connect(&self.address.clone());
            return None;
        }
        let mut answer = vec![0; i32::from_be_bytes(len) as usize];
        self.stream
            .read_exact(&mut answer)
            .expect("the whole answer");
        assert_eq!(answer[..4], self.correlation.to_be_bytes());
        Some(answer.split_off(4))
    }

    pub fn create_topic(&mut self, name: &str, settings: &[(&str, &str)]) {
        let mut body = 1i32.to_be_bytes().to_vec();
        write_string(&mut body, name);
        body.extend_from_slice(&1i32.to_be_bytes());
        body.extend_from_slice(&1i16.to_be_bytes());
        body.extend_from_slice(&0i32.to_be_bytes());
        body.extend_from_slice(&(settings.len() as i32).to_be_bytes());
        for (name, value) in settings {
            write_string(&mut body, name);
            write_string(&mut body, value);
        }
        body.extend_from_slice(&10_000i32.to_be_bytes());
        body.push(0);
        let answer = self.ask(19, 2, &body).expect("an answer");
        let mut answer = Body(&answer);
        answer.int();
        answer.int();
        answer.string();
        let code = answer.short();
        assert!(matches!(code, 0 | 36), "creating {name} gives {code}");
    }

    pub fn produce(&mut self, version: i16, topic: &str, records: &[u8]) -> Option<Produced> {
        let mut body = (-1i16).to_be_bytes().to_vec();
        body.extend_from_slice(&(-1i16).to_be_bytes());
        body.extend_from_slice(&5_000i32.to_be_bytes());
        body.extend_from_slice(&1i32.to_be_bytes());
        write_string(&mut body, topic);
        body.extend_from_slice(&1i32.to_be_bytes());
        body.extend_from_slice(&0i32.to_be_bytes());
        body.extend_from_slice(&(records.len() as i32).to_be_bytes());
        body.extend_from_slice(records);
        let answer = self.ask(0, version, &body)?;
        let mut answer = Body(&answer);
        assert_eq!(answer.int(), 1);
        answer.string();
        assert_eq!(answer.int(), 1);
        answer.int();
        let code = answer.short();
        let (base_offset, log_append_time) = (answer.long(), answer.long());
        if version >= 5 {
            answer.long();
        }
        let mut message = String::new();
        if version >= 8 {
            for _ in 0..answer.int() {
                let index = answer.int();
                message.push_str(&format!("[{index}: {}] ", answer.string()));
            }
            message.push_str(&answer.string());
        }
        Some(Produced {
            code,
            base_offset,
            log_append_time,
            message,
        })
    }

    /// The batch that stands at an offset.
    pub fn fetch(&mut self, topic: &str, offset: i64) -> Vec<u8> {
        let mut body = (-1i32).to_be_bytes().to_vec();
        body.extend_from_slice(&1_000i32.to_be_bytes());
        body.extend_from_slice(&1i32.to_be_bytes());
        body.extend_from_slice(&1i32.to_be_bytes());
        body.push(0);
        body.extend_from_slice(&1i32.to_be_bytes());
        write_string(&mut body, topic);
        body.extend_from_slice(&1i32.to_be_bytes());
        body.extend_from_slice(&0i32.to_be_bytes());
        body.extend_from_slice(&offset.to_be_bytes());
        body.extend_from_slice(&1i32.to_be_bytes());
        let answer = self.ask(1, 4, &body).expect("an answer");
        let mut answer = Body(&answer);
        answer.int();
        assert_eq!(answer.int(), 1);
        answer.string();
        assert_eq!(answer.int(), 1);
        answer.int();
        assert_eq!(answer.short(), 0, "the fetch succeeds");
        answer.long();
        answer.long();
        for _ in 0..answer.int().max(0) {
            answer.long();
            answer.long();
        }
        let len = answer.int();
        answer.bytes(len as usize)
    }
}
