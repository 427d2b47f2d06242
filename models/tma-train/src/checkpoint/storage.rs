//! Changes of the file system, each of which may fail.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;

/// The changes that saving a checkpoint consists of. Tests let each of them fail.
pub trait Storage {
    /// Creates a folder.
    ///
    /// # Errors
    ///
    /// Those of the file system, as for all others.
    fn create_folder(&mut self, path: &Path) -> io::Result<()>;

    /// Creates a file.
    ///
    /// # Errors
    ///
    /// Those of the file system.
    fn create(&mut self, path: &Path) -> io::Result<File>;

    /// Appends bytes to a file.
    ///
    /// # Errors
    ///
    /// Those of the file system.
    fn write(&mut self, file: &mut File, bytes: &[u8]) -> io::Result<()>;

    /// Waits until a file, or the names in a folder, would survive a loss of power. `path` is that of
    /// `file`.
    ///
    /// # Errors
    ///
    /// Those of the file system.
    fn sync(&mut self, file: &File, path: &Path) -> io::Result<()>;

    /// Gives a folder another name, in one step.
    ///
    /// # Errors
    ///
    /// Those of the file system.
    fn rename(&mut self, from: &Path, to: &Path) -> io::Result<()>;

    /// Removes a folder with its files.
    ///
    /// # Errors
    ///
    /// Those of the file system.
    fn remove(&mut self, folder: &Path) -> io::Result<()>;
}

/// The file system itself.
#[derive(Clone, Copy, Debug, Default)]
pub struct Disk;

impl Storage for Disk {
    fn create_folder(&mut self, path: &Path) -> io::Result<()> {
        fs::create_dir(path)
    }

    fn create(&mut self, path: &Path) -> io::Result<File> {
        File::create_new(path)
    }

    fn write(&mut self, file: &mut File, bytes: &[u8]) -> io::Result<()> {
        file.write_all(bytes)
    }

    fn sync(&mut self, file: &File, _: &Path) -> io::Result<()> {
        file.sync_all()
    }

    fn rename(&mut self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn remove(&mut self, folder: &Path) -> io::Result<()> {
        fs::remove_dir_all(folder)
    }
}
