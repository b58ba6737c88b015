//! Whole brokers in this process, on real rings, sockets and files: for tests of the paths that
//! clients take.
#![allow(dead_code, clippy::unwrap_used, clippy::expect_used)]

pub mod admin;
pub mod process;
pub mod requests;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};

use coreline::base::config::{BrokerConfig, Budgets, Listener};
use coreline::base::error_code::ErrorCode;
use coreline::base::ids::{BrokerId, CorrelationId, Uuid};
use coreline::base::limits::MIB;
use coreline::io::uring::ShardFaults;
use coreline::server::serve::{Broker, StopReport};
use coreline::server::startup::{DirectoryLock, Prepared, StartupError};
use coreline::wire::api;
use coreline::wire::codec::Message;
use coreline::wire::frame::encode_request;
use coreline::wire::header::decode_response_header;
use coreline::wire::messages::create_topics::{
    CreatableTopic, CreatableTopicConfig, CreateTopicsRequest, CreateTopicsResponse,
};
use coreline::wire::messages::delete_topics::{
    DeleteTopicState, DeleteTopicsRequest, DeleteTopicsResponse,
};
use coreline::wire::primitives::Reader;

/// What a harness is started with.
#[derive(Clone, Debug)]
pub struct HarnessOptions {
    pub shards: usize,
    pub requests_bytes: u64,
    pub request_bytes_max: usize,
    pub fetch_sessions_max: usize,
    pub has_admin: bool,
    pub latency_log: Option<PathBuf>,
    pub faults: Option<ShardFaults>,
    /// The names of its data folders within the folder; none for the folder itself.
    pub directories: Vec<&'static str>,
    /// Where it is told why the broker cannot go on.
    pub told: Told,
    /// Sets whatever else is wanted.
    pub set: fn(&mut BrokerConfig),
}

impl Default for HarnessOptions {
    fn default() -> Self {
        Self {
            shards: 1,
            requests_bytes: 256 * MIB as u64,
            request_bytes_max: 100 * MIB,
            fetch_sessions_max: 1_000,
            has_admin: false,
            latency_log: None,
            faults: None,
            directories: Vec::new(),
            told: Told::default(),
            set: |_| (),
        }
    }
}

/// Why a broker said that it cannot go on.
#[derive(Clone, Debug, Default)]
pub struct Told(Arc<Mutex<Vec<String>>>);

impl Told {
    pub fn reasons(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }
}

/// A whole broker in a folder of its own.
pub struct Harness {
    pub address: SocketAddr,
    broker: Option<Broker>,
    folder: tempfile::TempDir,
}

pub const NODE: BrokerId = BrokerId(1);

impl Harness {
    pub fn start(options: HarnessOptions) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (broker, address) = start(folder.path(), &options);
        Self {
            address,
            broker: Some(broker),
            folder,
        }
    }

    /// Starts again after a stop.
    pub fn start_again(&mut self, options: &HarnessOptions) {
        assert!(self.broker.is_none(), "it was stopped");
        let (broker, address) = start(self.folder.path(), options);
        (self.broker, self.address) = (Some(broker), address);
    }

    /// Stops in order and starts again on the same folder.
    pub fn restart(&mut self, options: &HarnessOptions) {
        self.restart_after(options, |_| ());
    }

    /// The same, with something done to the folder in between.
    pub fn restart_after(&mut self, options: &HarnessOptions, change: impl FnOnce(&Path)) {
        let report = self.broker.take().unwrap().stop();
        assert!(
            report.is_clean && report.duration < STOPPED_WITHIN,
            "{report:?}"
        );
        change(self.folder.path());
        let (broker, address) = start(self.folder.path(), options);
        (self.broker, self.address) = (Some(broker), address);
    }

    /// Where its files are.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Creates a topic; answers its id.
    pub fn create_topic(&mut self, name: &str, partitions: i32) -> Uuid {
        self.create_topic_with(name, partitions, &[])
    }

    /// The same with settings of its own.
    pub fn create_topic_with(
        &mut self,
        name: &str,
        partitions: i32,
        settings: &[(&str, &str)],
    ) -> Uuid {
        self.connect().create_topic_with(name, partitions, settings)
    }

    /// Deletes a topic.
    pub fn delete_topic(&mut self, topic_id: Uuid) {
        let request = DeleteTopicsRequest {
            topics: vec![DeleteTopicState {
                name: None,
                topic_id,
            }],
            timeout_ms: 10_000,
            ..DeleteTopicsRequest::default()
        };
        let deleted: DeleteTopicsResponse = self.connect().ask(&request, 6);
        assert_eq!(
            deleted.responses[0].error_code,
            ErrorCode::NONE,
            "{deleted:?}"
        );
    }

    pub fn connect(&self) -> Client {
        Client::connect(self.address)
    }

    /// Where its data is.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The admin port's address.
    pub fn admin(&self) -> SocketAddr {
        let broker = self.broker.as_ref().unwrap();
        broker.admin_address().expect("an admin port")
    }

    /// Stops it in order and keeps its folder.
    pub fn stop(&mut self) -> StopReport {
        self.broker.take().unwrap().stop()
    }
}

impl Drop for Harness {
    fn drop(&mut self) {
        let Some(broker) = self.broker.take() else {
            return;
        };
        let report = broker.stop();
        if !std::thread::panicking() {
            assert!(report.is_clean, "{report:?}");
        }
    }
}

/// Within this a broker with little to close has stopped, on a disk that others keep busy too.
const STOPPED_WITHIN: Duration = Duration::from_secs(10);

/// The lock of a folder. One that was let go of stays for a moment where another test starts a
/// process: until that is the other program, it holds all that this process had open.
fn locked(directory: &Path) -> DirectoryLock {
    let until = Instant::now() + Duration::from_secs(10);
    loop {
        match DirectoryLock::take(directory) {
            Err(StartupError::FolderInUse { .. }) if Instant::now() < until => {
                std::thread::sleep(Duration::from_millis(10));
            }
            taken => return taken.unwrap(),
        }
    }
}

fn start(folder: &Path, options: &HarnessOptions) -> (Broker, SocketAddr) {
    let address = process::free_address();
    let mut log_dirs: Vec<PathBuf> = (options.directories.iter())
        .map(|name| folder.join(name))
        .collect();
    if log_dirs.is_empty() {
        log_dirs.push(folder.to_owned());
    }
    let claim = |directory: &PathBuf| {
        std::fs::create_dir_all(directory).unwrap();
        locked(directory)
    };
    let locks = log_dirs.iter().map(claim).collect();
    let mut config = BrokerConfig {
        node_id: NODE,
        log_dirs: log_dirs.clone(),
        socket_request_bytes_max: options.request_bytes_max,
        fetch_sessions_max: options.fetch_sessions_max,
        admin_listener: None,
        latency_log: options.latency_log.clone(),
        ..BrokerConfig::default()
    };
    (options.set)(&mut config);
    config.listeners.clients.push(Listener {
        name: "PLAINTEXT".to_owned(),
        host: "127.0.0.1".to_owned(),
        port: address.port(),
        advertised_host: "localhost".to_owned(),
        advertised_port: address.port(),
    });
    let prepared = Prepared {
        config,
        budgets: Budgets {
            memory_bytes: 1024 * MIB as u64,
            cache_bytes: 256 * MIB as u64,
            requests_bytes: options.requests_bytes,
            connections_bytes: 64 * MIB as u64,
            cleaner_bytes: 16 * MIB as u64,
            journal_bytes: 64 * MIB as u64,
        },
        cpus: vec![None; options.shards],
        admin: options.has_admin.then(admin::bind),
        faults: options.faults.clone(),
        locks,
        offline: Vec::new(),
        warnings: Vec::new(),
    };
    let told = options.told.clone();
    let on_failure = move |reason: String| {
        eprintln!("{reason}");
        told.0.lock().unwrap().push(reason);
    };
    let broker = Broker::start(prepared, Box::new(on_failure)).unwrap();
    (broker, address)
}

/// A client that knows what it sends.
pub struct Client {
    pub stream: TcpStream,
    next: i32,
}

/// A client's requests are answered within this.
const ANSWERED_WITHIN: Duration = Duration::from_secs(20);
/// Topics are made within this.
const CREATED_WITHIN: Duration = Duration::from_secs(60);

impl Client {
    /// Creates a topic, which must work; answers its id.
    pub fn create_topic_with(
        &mut self,
        name: &str,
        partitions: i32,
        settings: &[(&str, &str)],
    ) -> Uuid {
        let configs = settings.iter().map(|(name, value)| CreatableTopicConfig {
            name: (*name).to_owned(),
            value: Some((*value).to_owned()),
        });
        let request = CreateTopicsRequest {
            topics: vec![CreatableTopic {
                name: name.to_owned(),
                num_partitions: partitions,
                replication_factor: 1,
                configs: configs.collect(),
                ..CreatableTopic::default()
            }],
            timeout_ms: CREATED_WITHIN.as_millis() as i32,
            ..CreateTopicsRequest::default()
        };
        // Thousands of folders take their time on a disk that a compiler writes to.
        self.stream.set_read_timeout(Some(CREATED_WITHIN)).unwrap();
        let created: CreateTopicsResponse = self.ask(&request, 7);
        self.stream.set_read_timeout(Some(ANSWERED_WITHIN)).unwrap();
        assert_eq!(created.topics[0].error_code, ErrorCode::NONE, "{created:?}");
        created.topics[0].topic_id
    }

    pub fn connect(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_nodelay(true).unwrap();
        let wait = Some(Duration::from_secs(20));
        stream.set_read_timeout(wait).unwrap();
        Self { stream, next: 0 }
    }

    /// The same where the broker may be gone.
    pub fn try_connect(address: SocketAddr) -> Option<Self> {
        let stream = TcpStream::connect(address).ok()?;
        stream.set_nodelay(true).ok()?;
        stream.set_read_timeout(Some(ANSWERED_WITHIN)).ok()?;
        Some(Self { stream, next: 0 })
    }

    /// The same as [`Self::send`] where the broker may be gone.
    pub fn try_send<M: Message>(&mut self, request: &M, version: i16) -> Option<()> {
        let bytes = self.encode(request, version);
        self.stream.write_all(&bytes).ok()
    }

    /// Sends a request without waiting; answers its correlation id.
    pub fn send<M: Message>(&mut self, request: &M, version: i16) -> i32 {
        let bytes = self.encode(request, version);
        self.stream.write_all(&bytes).unwrap();
        self.next
    }

    pub fn encode<M: Message>(&mut self, request: &M, version: i16) -> Vec<u8> {
        self.next += 1;
        let pieces =
            encode_request(request, version, CorrelationId(self.next), Some("test")).unwrap();
        pieces.concat()
    }

    /// The next response; its correlation id and body.
    pub fn receive<M: Message>(&mut self, version: i16) -> (i32, M) {
        let (mut reader, correlation_id) = self.receive_header::<M>(version);
        (correlation_id, M::decode(&mut reader, version).unwrap())
    }

    /// The next response, unless the connection is closed before it is here.
    pub fn try_receive<M: Message>(&mut self, version: i16) -> Option<M> {
        let frame = self.receive_frame().ok()?;
        let (mut reader, _) = Self::header::<M>(frame, version);
        Some(M::decode(&mut reader, version).unwrap())
    }

    fn receive_frame(&mut self) -> std::io::Result<Vec<u8>> {
        let mut length = [0; 4];
        self.stream.read_exact(&mut length)?;
        let mut body = vec![0; u32::from_be_bytes(length) as usize];
        self.stream.read_exact(&mut body)?;
        Ok(body)
    }

    fn receive_header<M: Message>(&mut self, version: i16) -> (Reader, i32) {
        let frame = self.receive_frame().expect("a whole answer");
        Self::header::<M>(frame, version)
    }

    fn header<M: Message>(frame: Vec<u8>, version: i16) -> (Reader, i32) {
        let mut reader = Reader::new(Bytes::from(frame));
        let api = api::find(M::API_KEY).unwrap();
        let correlation_id = decode_response_header(&mut reader, api, version).unwrap();
        (reader, correlation_id.0)
    }

    pub fn ask<Q: Message, R: Message>(&mut self, request: &Q, version: i16) -> R {
        let sent = self.send(request, version);
        let (received, response) = self.receive(version);
        assert_eq!(sent, received);
        response
    }

    /// Whether the broker closes the connection within `limit`.
    pub fn is_closed_within(&mut self, limit: Duration) -> bool {
        self.stream.set_read_timeout(Some(limit)).unwrap();
        let mut byte = [0];
        let read = self.stream.read(&mut byte);
        self.stream.set_read_timeout(Some(ANSWERED_WITHIN)).unwrap();
        match read {
            Ok(count) => count == 0,
            Err(error) => error.kind() == std::io::ErrorKind::ConnectionReset,
        }
    }
}

/// A batch of `count` records with values of `value_bytes`.
pub fn batch(count: usize, value_bytes: usize) -> BytesMut {
    use coreline::base::ids::Offset;
    use coreline::base::time::TimestampMs;
    use coreline::wire::record_batch::{BatchBuilder, NewRecord};
    let value = vec![b'v'; value_bytes];
    let mut builder = BatchBuilder::new(Offset(0));
    for _ in 0..count {
        builder.append(NewRecord {
            timestamp: TimestampMs(1_700_000_000_000),
            key: Some(b"k"),
            value: Some(&value),
            headers: &[],
        });
    }
    builder.build().unwrap()
}
