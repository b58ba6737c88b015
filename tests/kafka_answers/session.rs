//! The same request to both brokers, and their answers side by side.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::ops::RangeInclusive;
use std::time::Duration;

use bytes::BytesMut;
use coreline::base::ids::{BrokerId, CorrelationId, Uuid};
use coreline::wire::api;
use coreline::wire::codec::Message;
use coreline::wire::frame::encode_request;
use coreline::wire::header::decode_response_header;
use coreline::wire::messages::metadata::{MetadataRequest, MetadataResponse};
use coreline::wire::primitives::Reader;

/// How long an answer may take.
const ANSWER_MAX: Duration = Duration::from_secs(60);

/// Versions of a key.
pub type Versions = RangeInclusive<i16>;

/// Every version that a key has.
pub const ALL: Versions = 0..=i16::MAX;

/// The versions from this one on.
pub fn from(version: i16) -> Versions {
    version..=i16::MAX
}

/// One broker with a connection to it.
pub struct Peer {
    pub is_kafka: bool,
    port: u16,
    stream: TcpStream,
    next: i32,
    cluster_id: String,
    topics: BTreeMap<String, Uuid>,
}

impl Peer {
    pub fn connect(is_kafka: bool, port: u16) -> Self {
        let stream = TcpStream::connect(("127.0.0.1", port)).expect("the broker listens");
        stream.set_nodelay(true).expect("an option");
        stream
            .set_read_timeout(Some(ANSWER_MAX))
            .expect("an option");
        let mut peer = Self {
            is_kafka,
            port,
            stream,
            next: 0,
            cluster_id: String::new(),
            topics: BTreeMap::new(),
        };
        peer.learn();
        peer
    }

    /// The id of a topic, as last learnt; zero for one that is not known.
    pub fn id(&self, topic: &str) -> Uuid {
        self.topics.get(topic).copied().unwrap_or(Uuid::ZERO)
    }

    /// Sends a request and reads its answer.
    pub fn ask<Q: Message, R: Message>(&mut self, version: i16, request: &Q) -> R {
        let name = api::find(Q::API_KEY).map_or("?", |api| api.name);
        self.next += 1;
        let correlation_id = CorrelationId(self.next);
        let pieces = encode_request(request, version, correlation_id, Some("answers"))
            .unwrap_or_else(|error| panic!("{name} v{version}: {error}"));
        for piece in pieces {
            self.stream.write_all(&piece).expect("the broker reads");
        }
        let who = if self.is_kafka { "Kafka" } else { "Coreline" };
        let mut len = [0; 4];
        self.stream
            .read_exact(&mut len)
            .unwrap_or_else(|error| panic!("{who} does not answer {name} v{version}: {error}"));
        let mut frame = BytesMut::zeroed(u32::from_be_bytes(len) as usize);
        self.stream
            .read_exact(&mut frame)
            .expect("the whole answer");
        let mut reader = Reader::new(frame);
        let api = api::find(Q::API_KEY).expect("a key that is served");
        let answered = decode_response_header(&mut reader, api, version).expect("a header");
        assert_eq!(answered, correlation_id, "{who} {name} v{version}");
        R::decode(&mut reader, version)
            .unwrap_or_else(|error| panic!("{who} {name} v{version} does not decode: {error}"))
    }

    /// Learns the ids of all topics.
    pub fn learn(&mut self) {
        let request = MetadataRequest {
            topics: None,
            ..MetadataRequest::default()
        };
        let response: MetadataResponse = self.ask(12, &request);
        self.cluster_id = response.cluster_id.expect("a cluster id");
        self.topics = (response.topics.into_iter())
            .map(|topic| (topic.name.expect("a name"), topic.topic_id))
            .collect();
    }

    /// The answer as text in which what must differ has one name on both sides: ports, cluster
    /// ids, ids of topics.
    fn told(&self, answer: &impl Debug) -> String {
        let mut text = format!("{answer:?}")
            .replace(&format!("port: {}", self.port), "port: PORT")
            .replace(&format!("{:?}", self.cluster_id), "CLUSTER");
        for (name, id) in &self.topics {
            text = text.replace(&format!("{id:?}"), &format!("ID OF {name}"));
        }
        text
    }
}

/// Both brokers, and what was found.
pub struct Session {
    pub kafka: Peer,
    pub coreline: Peer,
    pub is_accept: bool,
    pub compared: usize,
    pub faults: Vec<String>,
}

impl Session {
    /// Those of `within` to compare that the key has: the lowest and the highest, or all of them.
    fn versions<Q: Message>(&self, within: Versions) -> Vec<i16> {
        let low = *within.start().max(Q::VERSIONS.start());
        let high = *within.end().min(Q::VERSIONS.end());
        if self.is_accept {
            (low..=high).collect()
        } else if low == high {
            vec![low]
        } else {
            vec![low, high]
        }
    }

    /// Sends what `request` makes for each broker, in each version of `within`, and compares the
    /// answers after `even` has taken out what may differ, each with its reason.
    pub fn compare<Q: Message, R: Message + Debug>(
        &mut self,
        case: &str,
        within: Versions,
        request: impl Fn(&Peer) -> Q,
        even: impl Fn(&Peer, &mut R),
    ) {
        for version in self.versions::<Q>(within) {
            let mut told = [&mut self.kafka, &mut self.coreline].map(|peer| {
                let request = request(peer);
                let mut answer: R = peer.ask(version, &request);
                even(peer, &mut answer);
                peer.told(&answer)
            });
            self.compared += 1;
            let name = api::find(Q::API_KEY).map_or("?", |api| api.name);
            let [kafka, coreline] = &mut told;
            if kafka != coreline {
                let difference = difference(kafka, coreline);
                self.faults
                    .push(format!("{name} v{version}, {case}:\n{difference}"));
            }
        }
    }

    /// Learns the ids of new topics on both sides.
    pub fn learn(&mut self) {
        self.kafka.learn();
        self.coreline.learn();
    }
}

/// Where the two answers part, with what stands around it.
fn difference(kafka: &str, coreline: &str) -> String {
    const BEFORE: usize = 160;
    const AFTER: usize = 240;
    let pairs = kafka.bytes().zip(coreline.bytes());
    let part = pairs.take_while(|(theirs, ours)| theirs == ours).count();
    let around = |text: &str| {
        let bytes = text.as_bytes();
        let (from, to) = (part.saturating_sub(BEFORE), (part + AFTER).min(bytes.len()));
        String::from_utf8_lossy(&bytes[from..to]).into_owned()
    };
    format!(
        "  Kafka    {}\n  Coreline {}",
        around(kafka),
        around(coreline)
    )
}

/// The one node of both.
pub const NODE: BrokerId = BrokerId(1);
