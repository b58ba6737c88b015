//! The file system of the simulated disk: inodes, descriptors, room and locks. Pure: each call
//! takes effect at once; when an operation takes effect is decided by [`super::execution`].

use std::collections::BTreeMap;
use std::io;
use std::rc::Rc;

use crate::base::limits::BLOCK_BYTES;
use crate::base::random::Random;
use crate::base::time::TimestampMs;
use crate::io::file::OpenOptions;

use super::content::{Change, FileContent, blocks_of};
use super::failures::Failures;
use super::names::{InodeId, Names, Place, ROOT};

pub(super) const BLOCK: u64 = BLOCK_BYTES as u64;

/// Number of an open descriptor, never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DescriptorId(pub u32);

pub(super) fn error(code: i32) -> io::Error {
    io::Error::from_raw_os_error(code)
}

#[derive(Clone, Debug)]
pub(super) enum Body {
    File(FileContent),
    Directory,
}

#[derive(Clone, Debug)]
struct Inode {
    body: Body,
    links: u32,
    opened: u32,
    failures: Failures,
}

#[derive(Clone, Debug)]
struct Descriptor {
    inode: InodeId,
    path: Rc<str>,
    write: bool,
    direct: bool,
    /// Failed write-backs of its file, and of the file system, that it has been told of.
    told: u64,
    told_of_all: u64,
    /// Operations under way, which keep the descriptor and its lock alive after the close.
    in_flight: u32,
    closed: bool,
}

/// Everything that the file system holds.
#[derive(Debug)]
pub struct Tree {
    pub(super) names: Names,
    inodes: BTreeMap<InodeId, Inode>,
    pub(super) modified: BTreeMap<InodeId, TimestampMs>,
    descriptors: BTreeMap<DescriptorId, Descriptor>,
    /// Exclusive locks: which descriptor holds the inode's.
    locks: BTreeMap<InodeId, DescriptorId>,
    next_id: u64,
    failures: Failures,
    /// Numbers changes in the order in which they took effect.
    pub sequence: u64,
    pub total_bytes: u64,
    /// Bytes that another tenant of the disk uses, to make it full.
    pub foreign_bytes: u64,
}

impl Tree {
    pub fn new(total_bytes: u64) -> Self {
        let root = Inode {
            body: Body::Directory,
            links: 1,
            opened: 0,
            failures: Failures::default(),
        };
        Self {
            names: Names::default(),
            inodes: BTreeMap::from([(ROOT, root)]),
            modified: BTreeMap::new(),
            descriptors: BTreeMap::new(),
            locks: BTreeMap::new(),
            next_id: 1,
            failures: Failures::default(),
            sequence: 0,
            total_bytes,
            foreign_bytes: 0,
        }
    }

    pub(super) fn next_sequence(&mut self) -> u64 {
        self.sequence += 1;
        self.sequence
    }

    fn fresh(&mut self) -> u64 {
        self.next_id += 1;
        self.next_id
    }

    /// Bytes taken by files that have a name or are open.
    pub fn used_bytes(&self) -> u64 {
        let mut blocks = 0;
        for inode in self.inodes.values() {
            if inode.links > 0 || inode.opened > 0 {
                blocks += match &inode.body {
                    Body::File(content) => content.visible.allocated.len(),
                    Body::Directory => 1,
                };
            }
        }
        blocks * BLOCK + self.foreign_bytes
    }

    pub fn available_bytes(&self) -> u64 {
        self.total_bytes.saturating_sub(self.used_bytes())
    }

    fn reserve(&self, blocks: u64) -> io::Result<()> {
        if blocks > 0 && blocks * BLOCK > self.available_bytes() {
            return Err(error(libc::ENOSPC));
        }
        Ok(())
    }

    pub(super) fn walk(&self, path: &str) -> io::Result<InodeId> {
        let mut inode = ROOT;
        for name in path.split('/').filter(|name| !name.is_empty()) {
            if !self.is_directory(inode) {
                return Err(error(libc::ENOTDIR));
            }
            let found = self.names.lookup(inode, name);
            inode = found.ok_or_else(|| error(libc::ENOENT))?;
        }
        Ok(inode)
    }

    /// Parent directory and last name of `path`.
    pub(super) fn place(&self, path: &str) -> io::Result<Place> {
        let path = path.trim_end_matches('/');
        let (parent, name) = path.rsplit_once('/').unwrap_or(("", path));
        let parent = self.walk(parent)?;
        if name.is_empty() || !self.is_directory(parent) {
            return Err(error(libc::ENOTDIR));
        }
        Ok((parent, name.to_owned()))
    }

    pub(super) fn is_directory(&self, inode: InodeId) -> bool {
        let body = self.inodes.get(&inode).map(|inode| &inode.body);
        matches!(body, Some(Body::Directory))
    }

    pub(super) fn content(&mut self, inode: InodeId) -> io::Result<&mut FileContent> {
        match self.inodes.get_mut(&inode).map(|inode| &mut inode.body) {
            Some(Body::File(content)) => Ok(content),
            _ => Err(error(libc::EISDIR)),
        }
    }

    pub(super) fn unlink_inode(&mut self, inode: InodeId) {
        if let Some(inode) = self.inodes.get_mut(&inode) {
            inode.links = inode.links.saturating_sub(1);
        }
    }

    pub(super) fn create(&mut self, place: Place, body: Body) -> io::Result<InodeId> {
        self.reserve(1)?;
        let inode = InodeId(self.fresh());
        let made = Inode {
            body,
            links: 1,
            opened: 0,
            failures: Failures::default(),
        };
        self.inodes.insert(inode, made);
        let sequence = self.next_sequence();
        self.names.link(sequence, place, inode);
        Ok(inode)
    }

    pub fn open(&mut self, path: &str, options: OpenOptions) -> io::Result<DescriptorId> {
        let inode = match self.walk(path) {
            Ok(_) if options.create_new => return Err(error(libc::EEXIST)),
            Ok(inode) => inode,
            Err(failure) if failure.raw_os_error() != Some(libc::ENOENT) => return Err(failure),
            Err(failure) if !(options.create || options.create_new) => return Err(failure),
            Err(_) => {
                let place = self.place(path)?;
                self.create(place, Body::File(FileContent::default()))?
            }
        };
        if self.is_directory(inode) {
            // The kernel's own refusal, else that of the seam.
            let code = if options.write {
                libc::EISDIR
            } else {
                libc::EINVAL
            };
            return Err(error(code));
        }
        if options.truncate {
            let sequence = self.next_sequence();
            self.content(inode)?
                .change(sequence, Change::Truncate(0), false);
        }
        let mut told = 0;
        if let Some(inode) = self.inodes.get_mut(&inode) {
            inode.opened += 1;
            told = inode.failures.known_at_open();
        }
        let descriptor = DescriptorId(self.fresh() as u32);
        let opened = Descriptor {
            inode,
            path: path.into(),
            write: options.write,
            direct: options.direct,
            told,
            told_of_all: self.failures.known_at_open(),
            in_flight: 0,
            closed: false,
        };
        self.descriptors.insert(descriptor, opened);
        Ok(descriptor)
    }

    /// The path by which `descriptor` was opened.
    pub fn path_of(&self, descriptor: DescriptorId) -> Rc<str> {
        let found = self.descriptors.get(&descriptor);
        found.map_or_else(|| Rc::from("(closed)"), |found| found.path.clone())
    }

    fn inode_of(&self, descriptor: DescriptorId) -> io::Result<InodeId> {
        let found = self.descriptors.get(&descriptor);
        Ok(found.ok_or_else(|| error(libc::EBADF))?.inode)
    }

    fn written_inode(&self, descriptor: DescriptorId) -> io::Result<InodeId> {
        let found = self.descriptors.get(&descriptor);
        match found {
            Some(found) if found.write => Ok(found.inode),
            _ => Err(error(libc::EBADF)),
        }
    }

    /// Whether direct I/O refuses this range.
    pub fn is_misaligned(&self, descriptor: DescriptorId, position: u64, len: usize) -> bool {
        let direct = self.descriptors.get(&descriptor);
        direct.is_some_and(|found| found.direct)
            && !(position.is_multiple_of(BLOCK) && len.is_multiple_of(BLOCK_BYTES))
    }

    /// An operation on `descriptor` is under way: it stays open, and locked, until that has ended.
    pub fn begin(&mut self, descriptor: DescriptorId) {
        if let Some(descriptor) = self.descriptors.get_mut(&descriptor) {
            descriptor.in_flight += 1;
        }
    }

    pub fn end(&mut self, descriptor: DescriptorId) {
        if let Some(found) = self.descriptors.get_mut(&descriptor) {
            found.in_flight = found.in_flight.saturating_sub(1);
        }
        self.release(descriptor);
    }

    pub fn close(&mut self, descriptor: DescriptorId) {
        if let Some(found) = self.descriptors.get_mut(&descriptor) {
            found.closed = true;
        }
        self.release(descriptor);
    }

    /// Closes every descriptor: their process is gone.
    pub fn close_all(&mut self) {
        let all: Vec<DescriptorId> = self.descriptors.keys().copied().collect();
        for descriptor in all {
            self.close(descriptor);
        }
    }

    /// Descriptors that are open and not merely kept by operations under way.
    pub fn open_count(&self) -> usize {
        let open = |descriptor: &&Descriptor| !descriptor.closed;
        self.descriptors.values().filter(open).count()
    }

    fn release(&mut self, descriptor: DescriptorId) {
        let Some(found) = self.descriptors.get(&descriptor) else {
            return;
        };
        if !found.closed || found.in_flight > 0 {
            return;
        }
        let inode = found.inode;
        self.descriptors.remove(&descriptor);
        self.locks.retain(|_, holder| *holder != descriptor);
        if let Some(inode) = self.inodes.get_mut(&inode) {
            inode.opened = inode.opened.saturating_sub(1);
        }
    }

    /// flock(LOCK_EX | LOCK_NB).
    pub fn try_lock(&mut self, descriptor: DescriptorId) -> io::Result<()> {
        let inode = self.inode_of(descriptor)?;
        match self.locks.get(&inode) {
            Some(holder) if *holder != descriptor => Err(error(libc::EWOULDBLOCK)),
            _ => {
                self.locks.insert(inode, descriptor);
                Ok(())
            }
        }
    }

    pub fn read(
        &mut self,
        descriptor: DescriptorId,
        position: u64,
        out: &mut [u8],
    ) -> io::Result<usize> {
        if self.is_misaligned(descriptor, position, out.len()) {
            return Err(error(libc::EINVAL));
        }
        let inode = self.inode_of(descriptor)?;
        Ok(self.content(inode)?.visible.read(position, out))
    }

    pub fn write(
        &mut self,
        descriptor: DescriptorId,
        position: u64,
        bytes: &[u8],
        stable: bool,
    ) -> io::Result<()> {
        let inode = self.written_inode(descriptor)?;
        if bytes.is_empty() {
            return Ok(());
        }
        let blocks = blocks_of(position, bytes.len() as u64);
        let missing = self.content(inode)?.visible.allocated.missing(&blocks);
        self.reserve(missing)?;
        let sequence = self.next_sequence();
        let bytes = bytes.into();
        self.content(inode)?
            .change(sequence, Change::Write { position, bytes }, stable);
        Ok(())
    }

    /// fdatasync or fsync of what had taken effect at `sequence`.
    pub fn flush(&mut self, descriptor: DescriptorId, sequence: u64) -> io::Result<()> {
        let inode = self.inode_of(descriptor)?;
        self.content(inode)?.flush(sequence);
        self.tell(descriptor)
    }

    /// Fails when the descriptor's file lost something of which it has not been told.
    fn tell(&mut self, descriptor: DescriptorId) -> io::Result<()> {
        let Some(found) = self.descriptors.get_mut(&descriptor) else {
            return Err(error(libc::EBADF));
        };
        match self.inodes.get_mut(&found.inode) {
            Some(inode) => inode.failures.tell(&mut found.told),
            None => Ok(()),
        }
    }

    /// The flush fails and forgets what it should have written.
    pub fn fail_flush(&mut self, descriptor: DescriptorId, sequence: u64, random: &mut Random) {
        let Ok(inode) = self.inode_of(descriptor) else {
            return;
        };
        if let Some(inode) = self.inodes.get_mut(&inode)
            && let Body::File(content) = &mut inode.body
            && content.fail_flush(sequence, random)
        {
            inode.failures.add();
            self.failures.add();
        }
        let _ = self.tell(descriptor);
    }

    pub fn preallocate(
        &mut self,
        descriptor: DescriptorId,
        position: u64,
        len: u64,
    ) -> io::Result<()> {
        let inode = self.written_inode(descriptor)?;
        let blocks = blocks_of(position, len);
        let missing = self.content(inode)?.visible.allocated.missing(&blocks);
        self.reserve(missing)?;
        let sequence = self.next_sequence();
        self.content(inode)?
            .change(sequence, Change::Allocate(blocks), false);
        Ok(())
    }

    pub fn truncate(&mut self, descriptor: DescriptorId, len: u64) -> io::Result<()> {
        let inode = self.written_inode(descriptor);
        let inode = inode.map_err(|_| error(libc::EINVAL))?;
        let sequence = self.next_sequence();
        self.content(inode)?
            .change(sequence, Change::Truncate(len), false);
        Ok(())
    }

    pub fn len(&mut self, descriptor: DescriptorId) -> io::Result<u64> {
        let inode = self.inode_of(descriptor)?;
        Ok(self.content(inode)?.visible.size)
    }

    /// syncfs of what had taken effect at `sequence`: all files and names, and a failure for each
    /// write-back that failed since the descriptor was opened or last told.
    pub fn flush_all(&mut self, descriptor: DescriptorId, sequence: u64) -> io::Result<()> {
        self.names.flush(sequence, None);
        for inode in self.inodes.values_mut() {
            if let Body::File(content) = &mut inode.body {
                content.flush(sequence);
            }
        }
        match self.descriptors.get_mut(&descriptor) {
            Some(found) => self.failures.tell(&mut found.told_of_all),
            None => Err(error(libc::EBADF)),
        }
    }

    /// A failed syncfs: as a failed flush of every file, of which each file's own descriptors are
    /// told too.
    pub fn fail_flush_all(&mut self, descriptor: DescriptorId, sequence: u64, random: &mut Random) {
        for inode in self.inodes.values_mut() {
            if let Body::File(content) = &mut inode.body
                && content.fail_flush(sequence, random)
            {
                inode.failures.add();
                self.failures.add();
            }
        }
        if let Some(found) = self.descriptors.get_mut(&descriptor) {
            let _ = self.failures.tell(&mut found.told_of_all);
        }
    }

    /// Damages the file at `path` from outside.
    pub fn damage(
        &mut self,
        path: &str,
        position: u64,
        edit: &dyn Fn(&mut [u8; BLOCK_BYTES], usize),
    ) -> io::Result<()> {
        let inode = self.walk(path)?;
        self.content(inode)?.damage(position, edit);
        Ok(())
    }

    /// The whole of a file as a reader would see it now.
    pub fn contents(&mut self, path: &str) -> io::Result<Vec<u8>> {
        let inode = self.walk(path)?;
        let content = self.content(inode)?;
        let mut bytes = vec![0; content.visible.size as usize];
        content.visible.read(0, &mut bytes);
        Ok(bytes)
    }

    /// The power fails. `in_flight` are the changes under way, by descriptor, in the order in
    /// which they might have landed.
    pub fn power_cut(&mut self, in_flight: Vec<(DescriptorId, Change)>, random: &mut Random) {
        let mut by_inode: BTreeMap<InodeId, Vec<Change>> = BTreeMap::new();
        for (descriptor, change) in in_flight {
            if let Ok(inode) = self.inode_of(descriptor) {
                by_inode.entry(inode).or_default().push(change);
            }
        }
        self.descriptors.clear();
        self.locks.clear();
        self.failures = Failures::default();
        self.names.power_cut(random);
        let linked = self.names.linked();
        self.inodes.retain(|inode, _| linked.contains(inode));
        for (id, inode) in &mut self.inodes {
            inode.links = 1;
            inode.opened = 0;
            inode.failures = Failures::default();
            if let Body::File(content) = &mut inode.body {
                let changes = by_inode.remove(id).unwrap_or_default();
                content.power_cut(&changes, random);
            }
        }
    }
}
