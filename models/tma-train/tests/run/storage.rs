//! File systems whose changes fail or are recorded.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use tma_train::checkpoint::{Disk, Storage};

/// The kind of failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The process ends: nothing after it is done, and a write is done by half.
    Kill,
    /// The disk is full: nothing more is written, but folders can be removed.
    Full,
    /// Folders cannot be removed.
    Remove,
}

/// The kind of change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Change {
    /// Also of folders, and syncs.
    Write,
    Rename,
    Remove,
}

/// A file system on which a change fails, and all changes of its kind after it.
pub(crate) struct Faulty {
    fault: Fault,
    /// Changes that do not fail.
    left: usize,
    pub(crate) has_failed: bool,
}

impl Faulty {
    pub(crate) fn after(changes: usize, fault: Fault) -> Self {
        Self { fault, left: changes, has_failed: false }
    }

    /// Counts a change, and returns the error if it fails.
    fn change(&mut self, change: Change) -> io::Result<()> {
        match (self.fault, change) {
            (Fault::Full, Change::Rename | Change::Remove) => return Ok(()),
            (Fault::Remove, Change::Write | Change::Rename) => return Ok(()),
            (Fault::Full | Fault::Kill | Fault::Remove, _) => {}
        }
        match self.left.checked_sub(1) {
            Some(left) => {
                self.left = left;
                Ok(())
            }
            None => {
                self.has_failed = true;
                Err(match self.fault {
                    Fault::Kill => io::Error::other("killed"),
                    Fault::Full => io::Error::from(io::ErrorKind::StorageFull),
                    Fault::Remove => io::Error::from(io::ErrorKind::PermissionDenied),
                })
            }
        }
    }
}

impl Storage for Faulty {
    fn create_folder(&mut self, path: &Path) -> io::Result<()> {
        self.change(Change::Write)?;
        Disk.create_folder(path)
    }

    fn create(&mut self, path: &Path) -> io::Result<File> {
        self.change(Change::Write)?;
        Disk.create(path)
    }

    fn write(&mut self, file: &mut File, bytes: &[u8]) -> io::Result<()> {
        let has_failed = self.has_failed;
        self.change(Change::Write).or_else(|error| {
            if !has_failed {
                Disk.write(file, &bytes[..bytes.len() / 2])?;
            }
            Err(error)
        })?;
        Disk.write(file, bytes)
    }

    fn sync(&mut self, file: &File, path: &Path) -> io::Result<()> {
        self.change(Change::Write)?;
        Disk.sync(file, path)
    }

    fn rename(&mut self, from: &Path, to: &Path) -> io::Result<()> {
        self.change(Change::Rename)?;
        Disk.rename(from, to)
    }

    fn remove(&mut self, folder: &Path) -> io::Result<()> {
        self.change(Change::Remove)?;
        Disk.remove(folder)
    }
}

/// A file system that records changes, without those of the contents of files.
#[derive(Default)]
pub(crate) struct Recorder {
    all: Vec<(&'static str, PathBuf, Option<PathBuf>)>,
}

impl Recorder {
    /// Returns all changes, with paths relative to a folder.
    pub(crate) fn changes(&self, folder: &Path) -> Vec<String> {
        let name = |path: &Path| path.strip_prefix(folder).unwrap_or(path).display().to_string();
        let to =
            |path: &Option<PathBuf>| path.as_ref().map_or_else(String::new, |to| format!(" to {}", name(to)));
        self.all.iter().map(|(change, from, path)| format!("{change} {}{}", name(from), to(path))).collect()
    }
}

impl Storage for Recorder {
    fn create_folder(&mut self, path: &Path) -> io::Result<()> {
        self.all.push(("create", path.into(), None));
        Disk.create_folder(path)
    }

    fn create(&mut self, path: &Path) -> io::Result<File> {
        self.all.push(("create", path.into(), None));
        Disk.create(path)
    }

    fn write(&mut self, file: &mut File, bytes: &[u8]) -> io::Result<()> {
        // A file is synced after its last byte.
        assert!(self.all.last().is_some_and(|(change, ..)| *change == "create"));
        Disk.write(file, bytes)
    }

    fn sync(&mut self, file: &File, path: &Path) -> io::Result<()> {
        self.all.push(("sync", path.into(), None));
        Disk.sync(file, path)
    }

    fn rename(&mut self, from: &Path, to: &Path) -> io::Result<()> {
        self.all.push(("rename", from.into(), Some(to.into())));
        Disk.rename(from, to)
    }

    fn remove(&mut self, folder: &Path) -> io::Result<()> {
        self.all.push(("remove", folder.into(), None));
        Disk.remove(folder)
    }
}
