//! The part of the simulated file system that works on names: directories, renames, removals.

use std::io;

use super::tree::{BLOCK, Body, Tree, error};
use crate::base::time::TimestampMs;
use crate::io::directory::Metadata;

impl Tree {
    pub fn create_directory(&mut self, path: &str) -> io::Result<()> {
        if self.walk(path).is_ok() {
            return Err(error(libc::EEXIST));
        }
        let place = self.place(path)?;
        self.create(place, Body::Directory).map(|_| ())
    }

    pub fn create_directories(&mut self, path: &str) -> io::Result<()> {
        let mut so_far = String::new();
        for name in path.split('/').filter(|name| !name.is_empty()) {
            so_far.push('/');
            so_far.push_str(name);
            match self.walk(&so_far) {
                Ok(inode) if self.is_directory(inode) => {}
                Ok(_) if so_far == path.trim_end_matches('/') => {
                    return Err(error(libc::EEXIST));
                }
                Ok(_) => return Err(error(libc::ENOTDIR)),
                Err(_) => self.create_directory(&so_far)?,
            }
        }
        Ok(())
    }

    /// Names, and whether each is a directory.
    pub fn list(&self, path: &str) -> io::Result<Vec<(String, bool)>> {
        let directory = self.walk(path)?;
        if !self.is_directory(directory) {
            return Err(error(libc::ENOTDIR));
        }
        let named = self.names.list(directory).into_iter();
        Ok(named
            .map(|(name, inode)| (name, self.is_directory(inode)))
            .collect())
    }

    /// What `path` names. The only times that are kept are those that were set: any other file is
    /// as young as can be.
    pub fn metadata(&mut self, path: &str) -> io::Result<Metadata> {
        let inode = self.walk(path)?;
        let is_directory = self.is_directory(inode);
        let set = self.modified.get(&inode).copied();
        Ok(Metadata {
            len: match is_directory {
                true => BLOCK,
                false => self.content(inode)?.visible.size,
            },
            is_directory,
            modified: set.unwrap_or(TimestampMs(i64::MAX)),
        })
    }

    pub fn set_modified(&mut self, path: &str, modified: TimestampMs) -> io::Result<()> {
        let inode = self.walk(path)?;
        self.modified.insert(inode, modified);
        Ok(())
    }

    pub fn rename(&mut self, from_path: &str, to_path: &str) -> io::Result<()> {
        let (from, to) = (self.place(from_path)?, self.place(to_path)?);
        let inode = self.walk(from_path)?;
        if from == to {
            return Ok(());
        }
        let moves_directory = self.is_directory(inode);
        if moves_directory && to_path.starts_with(&format!("{from_path}/")) {
            return Err(error(libc::EINVAL));
        }
        if let Some(replaced) = self.names.lookup(to.0, &to.1) {
            match (moves_directory, self.is_directory(replaced)) {
                (_, true) if from_path.starts_with(&format!("{to_path}/")) => {
                    return Err(error(libc::ENOTEMPTY));
                }
                (false, true) => return Err(error(libc::EISDIR)),
                (true, false) => return Err(error(libc::ENOTDIR)),
                (true, true) if !self.names.list(replaced).is_empty() => {
                    return Err(error(libc::ENOTEMPTY));
                }
                _ => {}
            }
            self.unlink_inode(replaced);
        }
        let sequence = self.next_sequence();
        self.names.rename(sequence, from, to, inode);
        Ok(())
    }

    pub fn remove_file(&mut self, path: &str) -> io::Result<()> {
        let inode = self.walk(path)?;
        if self.is_directory(inode) {
            return Err(error(libc::EISDIR));
        }
        let place = self.place(path)?;
        let sequence = self.next_sequence();
        self.names.unlink(sequence, place);
        self.unlink_inode(inode);
        Ok(())
    }

    /// rmdir.
    pub fn remove_directory(&mut self, path: &str) -> io::Result<()> {
        let inode = self.walk(path)?;
        if !self.is_directory(inode) {
            return Err(error(libc::ENOTDIR));
        }
        if !self.names.list(inode).is_empty() {
            return Err(error(libc::ENOTEMPTY));
        }
        let place = self.place(path)?;
        let sequence = self.next_sequence();
        self.names.unlink(sequence, place);
        self.unlink_inode(inode);
        Ok(())
    }

    pub fn remove_all(&mut self, path: &str) -> io::Result<()> {
        for (name, is_directory) in self.list(path)? {
            let below = format!("{}/{name}", path.trim_end_matches('/'));
            if is_directory {
                self.remove_all(&below)?;
            } else {
                self.remove_file(&below)?;
            }
        }
        self.remove_directory(path)
    }

    pub fn flush_directory(&mut self, path: &str, sequence: u64) -> io::Result<()> {
        let directory = self.walk(path)?;
        self.names.flush(sequence, Some(directory));
        Ok(())
    }
}
