//! How operations on the simulated disk are queued and take effect.

use std::io::{self, ErrorKind};
use std::path::Path;
use std::rc::Rc;

use crate::base::limits::BLOCK_BYTES;
use crate::io::directory::{DirectoryEntry, Space};
use crate::io::driver::{
    Completion, DirectoryOperation, Handle, Opened, Operation, OperationId, run_catching,
};
use crate::io::file::Durability;

use super::disk::{Due, InFlight, State};
use super::faults::{FaultEffect, OperationKind};
use super::tree::{DescriptorId, error};

const MICROSECOND: u64 = 1_000;
pub(super) fn text(path: &Path) -> &str {
    path.to_str().unwrap_or("(not UTF-8)")
}

/// The descriptor that `operation` works on.
pub(super) fn descriptor_of(operation: &Operation) -> Option<DescriptorId> {
    match operation {
        Operation::Read { file, .. }
        | Operation::Write { file, .. }
        | Operation::Sync { file, .. }
        | Operation::SyncFilesystem { file }
        | Operation::Preallocate { file, .. }
        | Operation::Truncate { file, .. }
        | Operation::Length { file }
        | Operation::TryLock { file } => Some(DescriptorId(file.0)),
        _ => None,
    }
}

fn kind_of(operation: &Operation) -> OperationKind {
    match operation {
        Operation::Open { .. } => OperationKind::Open,
        Operation::Read { .. } => OperationKind::Read,
        Operation::Write { .. } => OperationKind::Write,
        Operation::Sync { .. } => OperationKind::Flush,
        Operation::SyncFilesystem { .. } => OperationKind::SyncFilesystem,
        Operation::Preallocate { .. } => OperationKind::Preallocate,
        Operation::Truncate { .. } => OperationKind::Truncate,
        Operation::TryLock { .. } => OperationKind::Lock,
        Operation::Directory(operation) => match operation {
            DirectoryOperation::Sync(_) => OperationKind::SyncDirectory,
            DirectoryOperation::List(_)
            | DirectoryOperation::Metadata(_)
            | DirectoryOperation::Space(_) => OperationKind::Look,
            _ => OperationKind::Names,
        },
        _ => OperationKind::Look,
    }
}

/// For the trace: the kind of failure, if any, and the bytes that came back.
fn outcome(completion: &Completion) -> (Option<ErrorKind>, &[u8]) {
    match completion {
        Completion::Done(answer) | Completion::Written(answer, _) => {
            (answer.as_ref().err().map(io::Error::kind), &[])
        }
        Completion::Read(Ok(len), buffer) => (None, buffer.get(..*len).unwrap_or(&[])),
        Completion::Read(Err(failure), _)
        | Completion::Opened(Err(failure))
        | Completion::Length(Err(failure))
        | Completion::Listed(Err(failure))
        | Completion::Described(Err(failure)) => (Some(failure.kind()), &[]),
        _ => (None, &[]),
    }
}

impl State {
    fn path_of(&self, operation: &Operation) -> Rc<str> {
        if let Some(descriptor) = descriptor_of(operation) {
            return self.tree.path_of(descriptor);
        }
        match operation {
            Operation::Open { path, .. } => text(path).into(),
            Operation::Directory(
                DirectoryOperation::Create(path)
                | DirectoryOperation::CreateAll(path)
                | DirectoryOperation::List(path)
                | DirectoryOperation::Metadata(path)
                | DirectoryOperation::SetModified { path, .. }
                | DirectoryOperation::Rename { to: path, .. }
                | DirectoryOperation::RemoveFile(path)
                | DirectoryOperation::RemoveAll(path)
                | DirectoryOperation::Sync(path)
                | DirectoryOperation::Space(path),
            ) => text(path).into(),
            _ => "".into(),
        }
    }

    fn latency(&mut self, operation: &Operation, effect: Option<FaultEffect>) -> u64 {
        let (least, spread) = match operation {
            Operation::Write {
                durability: Durability::Stable,
                ..
            } => (60, 300),
            Operation::Sync { .. } => (60, 900),
            Operation::SyncFilesystem { .. }
            | Operation::Directory(DirectoryOperation::Sync(_)) => (100, 2_000),
            _ => (10, 120),
        };
        let mut micros = least + self.random.below(spread);
        let one_in = self.options.stall_one_in;
        if one_in > 0 && self.random.below(one_in) == 0 {
            micros += self.random.below(20_000);
        }
        if let Some(FaultEffect::Stall(time)) = effect {
            micros += u64::try_from(time.as_micros()).unwrap_or(0);
        }
        micros * MICROSECOND + self.random.below(MICROSECOND)
    }

    /// Counts a point at which the process may die; true when it is dead.
    fn step(&mut self) -> bool {
        self.steps += 1;
        if self.crash_at.is_some_and(|at| self.steps >= at) {
            self.crashed = true;
            self.crash_at = None;
        }
        self.crashed
    }

    pub fn submit(&mut self, process: u32, id: OperationId, operation: Operation) {
        if self.crashed || process != self.process || self.step() {
            return;
        }
        let path = self.path_of(&operation);
        let mut effect = self.faults.strike(kind_of(&operation), &path);
        if let Operation::Write {
            durability: Durability::Stable,
            ..
        } = operation
        {
            effect = effect.or_else(|| self.faults.strike(OperationKind::Flush, &path));
        }
        self.trace_submit(&path, &operation);
        if let Some(descriptor) = descriptor_of(&operation) {
            self.tree.begin(descriptor);
        }
        let latency = self.latency(&operation, effect);
        let in_flight = InFlight {
            process,
            id,
            operation,
            begun: self.tree.sequence,
            effect,
            written: 0,
            limit: usize::MAX,
        };
        self.enqueue(self.clock_ns + latency, in_flight);
    }

    pub fn enqueue(&mut self, due_ns: u64, in_flight: InFlight) {
        self.submitted += 1;
        self.in_flight.insert((due_ns, self.submitted), in_flight);
    }

    fn trace_submit(&mut self, path: &str, operation: &Operation) {
        let clock = self.clock_ns;
        let kind = kind_of(operation);
        match operation {
            Operation::Write {
                position,
                buffer,
                durability,
                ..
            } => {
                let len = buffer.len();
                let what = format_args!("{kind:?} {path} {position}+{len} {durability:?}");
                self.trace.event(clock, what, buffer);
            }
            Operation::Read {
                position, buffer, ..
            } => {
                let len = buffer.len();
                let what = format_args!("{kind:?} {path} {position}+{len}");
                self.trace.event(clock, what, &[]);
            }
            Operation::Preallocate { position, len, .. } => {
                let what = format_args!("{kind:?} {path} {position}+{len}");
                self.trace.event(clock, what, &[]);
            }
            Operation::Truncate { len, .. } => {
                let what = format_args!("{kind:?} {path} to {len}");
                self.trace.event(clock, what, &[]);
            }
            Operation::Directory(operation) => {
                self.trace.event(clock, format_args!("{operation:?}"), &[]);
            }
            _ => self
                .trace
                .event(clock, format_args!("{kind:?} {path}"), &[]),
        }
    }

    /// When the next operation takes effect.
    pub fn next_due_ns(&self) -> Option<u64> {
        self.in_flight.keys().next().map(|due| due.0)
    }

    /// Lets everything that is due take effect, until the process dies.
    pub fn run_due(&mut self) {
        while let Some((due, _)) = self.in_flight.first_key_value() {
            let due: Due = *due;
            if due.0 > self.clock_ns {
                return;
            }
            let alive = self.in_flight[&due].process == self.process;
            if alive && (self.crashed || self.step()) {
                return;
            }
            if let Some(in_flight) = self.in_flight.remove(&due) {
                self.finish(in_flight);
            }
        }
    }

    fn finish(&mut self, in_flight: InFlight) {
        let (process, id) = (in_flight.process, in_flight.id);
        let descriptor = descriptor_of(&in_flight.operation);
        let Some(completion) = self.perform(in_flight) else {
            return;
        };
        if let Some(descriptor) = descriptor {
            self.tree.end(descriptor);
        }
        let clock = self.clock_ns;
        let (failed, bytes) = outcome(&completion);
        let what = format_args!("  process {process} operation {} ended {failed:?}", id.0);
        self.trace.event(clock, what, bytes);
        if process == self.process {
            self.completed.push((id, completion));
        }
    }

    /// Lets the operation take effect; `None` when only a part of it has, and the rest is queued.
    fn perform(&mut self, in_flight: InFlight) -> Option<Completion> {
        let failure = match in_flight.effect {
            Some(FaultEffect::Eio) => Some(libc::EIO),
            Some(FaultEffect::Enospc) => Some(libc::ENOSPC),
            _ => None,
        };
        if let Operation::Write { .. } = in_flight.operation {
            return self.perform_write(in_flight, failure);
        }
        let begun = in_flight.begun;
        let tree = &mut self.tree;
        Some(match in_flight.operation {
            Operation::Open { path, options } => {
                let opened = match failure {
                    Some(code) => Err(error(code)),
                    None => tree.open(text(&path), options),
                };
                Completion::Opened(opened.map(|descriptor| Opened {
                    handle: Handle(descriptor.0),
                    direct: options.direct,
                }))
            }
            Operation::Read {
                file,
                position,
                mut buffer,
            } => {
                let answer = match failure {
                    Some(code) => Err(error(code)),
                    None => tree.read(DescriptorId(file.0), position, &mut buffer),
                };
                Completion::Read(answer, buffer)
            }
            Operation::Sync { file, .. } => {
                Completion::Done(self.flush(DescriptorId(file.0), begun, failure))
            }
            Operation::SyncFilesystem { file } => {
                Completion::Done(self.flush_all(DescriptorId(file.0), begun, failure))
            }
            Operation::Length { file } => Completion::Length(tree.len(DescriptorId(file.0))),
            Operation::Directory(operation) => self.perform_names(operation, begun, failure),
            Operation::Work(work) | Operation::IdleWork(work) => {
                Completion::Worked(run_catching(work))
            }
            Operation::Accept { .. } => Completion::Accepted(Err(error(libc::EOPNOTSUPP))),
            Operation::Connect { .. } => Completion::Connected(Err(error(libc::EOPNOTSUPP))),
            Operation::Receive { buffer, .. } => {
                Completion::Received(Err(error(libc::EOPNOTSUPP)), buffer)
            }
            other => Completion::Done(match (failure, other) {
                (Some(code), _) => Err(error(code)),
                (
                    _,
                    Operation::Preallocate {
                        file,
                        position,
                        len,
                    },
                ) => tree.preallocate(DescriptorId(file.0), position, len),
                (_, Operation::Truncate { file, len }) => tree.truncate(DescriptorId(file.0), len),
                (_, Operation::TryLock { file }) => tree.try_lock(DescriptorId(file.0)),
                _ => Err(error(libc::EOPNOTSUPP)),
            }),
        })
    }

    fn flush(
        &mut self,
        descriptor: DescriptorId,
        begun: u64,
        failure: Option<i32>,
    ) -> io::Result<()> {
        let Some(code) = failure else {
            return self.tree.flush(descriptor, begun);
        };
        self.tree.fail_flush(descriptor, begun, &mut self.random);
        Err(error(code))
    }

    fn flush_all(
        &mut self,
        descriptor: DescriptorId,
        begun: u64,
        failure: Option<i32>,
    ) -> io::Result<()> {
        let Some(code) = failure else {
            return self.tree.flush_all(descriptor, begun);
        };
        self.tree
            .fail_flush_all(descriptor, begun, &mut self.random);
        Err(error(code))
    }

    fn perform_write(
        &mut self,
        mut in_flight: InFlight,
        failure: Option<i32>,
    ) -> Option<Completion> {
        let short = in_flight.effect == Some(FaultEffect::Short) || failure == Some(libc::EIO);
        let (descriptor, position, buffer, durability) = match in_flight.operation {
            Operation::Write {
                file,
                position,
                buffer,
                durability,
            } => (DescriptorId(file.0), position, buffer, durability),
            _ => return None,
        };
        let end = buffer.len().min(in_flight.limit);
        if self.tree.is_misaligned(descriptor, position, buffer.len()) {
            return Some(Completion::Written(Err(error(libc::EINVAL)), buffer));
        }
        let stable = durability == Durability::Stable && failure.is_none();
        let mut from = in_flight.written;
        let mut result = Ok(());
        if short {
            let blocks = (end - from).div_ceil(BLOCK_BYTES) as u64;
            let part = self.random.below(blocks + 1) as usize * BLOCK_BYTES;
            let part = part.min(end - from);
            let bytes = &buffer[from..from + part];
            result = self
                .tree
                .write(descriptor, position + from as u64, bytes, stable);
            from += part;
        }
        if let Some(code) = failure {
            if durability == Durability::Stable {
                let sequence = self.tree.sequence;
                self.tree.fail_flush(descriptor, sequence, &mut self.random);
            }
            return Some(Completion::Written(Err(error(code)), buffer));
        }
        if short && result.is_ok() && from < end {
            in_flight.written = from;
            in_flight.effect = None;
            let file = Handle(descriptor.0);
            in_flight.operation = Operation::Write {
                file,
                position,
                buffer,
                durability,
            };
            let later = self.clock_ns + 50 * MICROSECOND;
            self.enqueue(later, in_flight);
            return None;
        }
        let bytes = &buffer[from..end];
        let result = result.and_then(|()| {
            let at = position + from as u64;
            self.tree.write(descriptor, at, bytes, stable)
        });
        Some(Completion::Written(result, buffer))
    }

    pub fn perform_names(
        &mut self,
        operation: DirectoryOperation,
        begun: u64,
        failure: Option<i32>,
    ) -> Completion {
        use DirectoryOperation as Names;
        let tree = &mut self.tree;
        if let Some(code) = failure {
            return match operation {
                Names::List(_) => Completion::Listed(Err(error(code))),
                Names::Metadata(_) => Completion::Described(Err(error(code))),
                Names::Space(_) => Completion::Room(Err(error(code))),
                _ => Completion::Done(Err(error(code))),
            };
        }
        Completion::Done(match operation {
            Names::List(path) => {
                let listed = tree.list(text(&path)).map(|names| {
                    let entry = |(name, is_directory)| DirectoryEntry { name, is_directory };
                    names.into_iter().map(entry).collect()
                });
                return Completion::Listed(listed);
            }
            Names::Metadata(path) => return Completion::Described(tree.metadata(text(&path))),
            Names::Space(_) => {
                return Completion::Room(Ok(Space {
                    total_bytes: tree.total_bytes,
                    available_bytes: tree.available_bytes(),
                }));
            }
            Names::SetModified { path, modified } => tree.set_modified(text(&path), modified),
            Names::Create(path) => tree.create_directory(text(&path)),
            Names::CreateAll(path) => tree.create_directories(text(&path)),
            Names::Rename { from, to } => tree.rename(text(&from), text(&to)),
            Names::RemoveFile(path) => tree.remove_file(text(&path)),
            Names::RemoveAll(path) => tree.remove_all(text(&path)),
            Names::Sync(path) => tree.flush_directory(text(&path), begun),
        })
    }
}
