//! The file of a wheel: a zip archive with the hashes of its files.
//! Source: Python's binary distribution format, version 1.0.

use std::fs;
use std::io::{Cursor, Write as _};
use std::path::Path;

use anyhow::{Context, Result};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest as _, Sha256};
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

use crate::progress;

/// A file in a wheel.
#[derive(Debug)]
pub(super) struct File {
    pub(super) path: String,
    pub(super) bytes: Vec<u8>,
}

/// The name of a wheel in parts.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wheel<'a> {
    pub(super) name: &'a str,
    pub(super) version: &'a str,
    pub(super) tag: &'a str,
}

impl Wheel<'_> {
    pub(super) fn file_name(&self) -> String {
        format!("{}-{}-py3-none-{}.whl", self.name, self.version, self.tag)
    }

    /// Returns the folder with the wheel's metadata.
    pub(super) fn information(&self) -> String {
        format!("{}-{}.dist-info", self.name, self.version)
    }

    /// Writes the wheel, and returns its size in bytes. The same files make the same bytes.
    pub(super) fn write(&self, path: &Path, files: Vec<File>, metadata: &str) -> Result<u64> {
        let archive = progress::during("packing", || self.archive(files, metadata))?;
        fs::write(path, &archive).with_context(|| format!("cannot write {}", path.display()))?;
        Ok(archive.len() as u64)
    }

    fn archive(&self, mut files: Vec<File>, metadata: &str) -> Result<Vec<u8>> {
        let folder = self.information();
        let wheel = format!(
            "Wheel-Version: 1.0\nGenerator: cargo-tma {}\nRoot-Is-Purelib: false\nTag: py3-none-{}\n",
            env!("CARGO_PKG_VERSION"),
            self.tag
        );
        files.push(File { path: format!("{folder}/METADATA"), bytes: metadata.into() });
        files.push(File { path: format!("{folder}/WHEEL"), bytes: wheel.into() });
        let record = format!("{folder}/RECORD");
        let lines: String = files.iter().map(File::record).collect();
        files.push(File { bytes: format!("{lines}{record},,\n").into(), path: record });

        let mut archive = ZipWriter::new(Cursor::new(vec![]));
        for file in files {
            let mode = if file.path.ends_with(".so") { 0o755 } else { 0o644 };
            let options = SimpleFileOptions::default()
                .compression_method(zip::CompressionMethod::Deflated)
                .last_modified_time(zip::DateTime::default())
                .unix_permissions(mode);
            archive.start_file(file.path, options)?;
            archive.write_all(&file.bytes)?;
        }
        Ok(archive.finish()?.into_inner())
    }
}

impl File {
    /// Returns the file's line of `RECORD`.
    fn record(&self) -> String {
        let hash = URL_SAFE_NO_PAD.encode(Sha256::digest(&self.bytes));
        format!("{},sha256={hash},{}\n", self.path, self.bytes.len())
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::*;

    #[test]
    fn a_wheel_records_its_files() {
        let wheel = Wheel { name: "a", version: "1.0", tag: "linux_x86_64" };
        let files = || vec![File { path: "a/x.py".to_owned(), bytes: b"abc".to_vec() }];
        let bytes = wheel.archive(files(), "Metadata-Version: 2.1\n").unwrap();
        assert_eq!(bytes, wheel.archive(files(), "Metadata-Version: 2.1\n").unwrap());
        let mut archive = zip::ZipArchive::new(Cursor::new(bytes)).unwrap();
        let mut record = String::new();
        archive.by_name("a-1.0.dist-info/RECORD").unwrap().read_to_string(&mut record).unwrap();
        // The hash of `abc` in FIPS 180-2, appendix B.1.
        let first = "a/x.py,sha256=ungWv48Bz-pBQUDeXa4iI7ADYaOWF3qctBD_YfIAFa0,3";
        assert_eq!(record.lines().next(), Some(first));
        assert_eq!(record.lines().count(), 4);
        assert_eq!(record.lines().last(), Some("a-1.0.dist-info/RECORD,,"));
        assert_eq!(wheel.file_name(), "a-1.0-py3-none-linux_x86_64.whl");
    }
}
