//! What an earlier run found right, and is not parsed again while it stays as it is: whole files,
//! and in other files single kernels. An edit changes one or two of many.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::{fs, io};

use super::reuse::Fingerprint;
use super::store;

/// The file in `OUT_DIR`. It has a line for each instance of a kernel, with the fingerprint of that,
/// the instance's name and the file of its PTX; and for each kernel of a file a line with the file's
/// hash, the fingerprint of the kernel, and where it stands.
const FILE: &str = "tma-known";

/// An instance of a kernel that breaks no rule and has no warning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Instance {
    /// `kernel`, or `kernel::instance`.
    pub(super) kernel: String,
    /// `tma/NAME-HASH.ptx`.
    pub(super) file: String,
}

/// All such kernels, and the files that have no others, by their hashes: in their order, so that the
/// same text is written each time.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Known {
    kernels: BTreeMap<u64, Vec<Instance>>,
    files: BTreeMap<u64, Vec<Fingerprint>>,
}

impl Known {
    /// What the last run left; nothing if that cannot be read.
    pub(super) fn read(out_dir: &Path) -> Self {
        fs::read_to_string(out_dir.join(FILE)).ok().and_then(|text| Self::parsed(&text)).unwrap_or_default()
    }

    fn parsed(text: &str) -> Option<Self> {
        let number = |text| u64::from_str_radix(text, 16).ok();
        let mut known = Self::default();
        for line in text.lines() {
            match line.split('\t').collect::<Vec<_>>()[..] {
                ["kernel", fingerprint, kernel, file] => {
                    let instance = Instance { kernel: kernel.to_owned(), file: file.to_owned() };
                    known.kernels.entry(number(fingerprint)?).or_default().push(instance);
                }
                ["file", file, hash, line] => {
                    let fingerprint = Fingerprint::new(number(hash)?, line.parse().ok()?);
                    known.files.entry(number(file)?).or_default().push(fingerprint);
                }
                _ => return None,
            }
        }
        Some(known)
    }

    /// The instances of the kernel with this fingerprint.
    pub(super) fn instances(&self, fingerprint: &Fingerprint) -> Option<&[Instance]> {
        self.kernels.get(&fingerprint.hash()).map(Vec::as_slice)
    }

    pub(super) fn insert(&mut self, fingerprint: &Fingerprint, instances: Vec<Instance>) {
        self.kernels.insert(fingerprint.hash(), instances);
    }

    /// The kernels of the file with this hash.
    pub(super) fn file(&self, hash: u64) -> Option<&[Fingerprint]> {
        self.files.get(&hash).map(Vec::as_slice)
    }

    /// Notes a file with these kernels, if they are known: a file with another one is parsed each
    /// time, so that what is said of that is said again.
    pub(super) fn insert_file(&mut self, hash: u64, kernels: Vec<Fingerprint>) {
        if !kernels.is_empty() && kernels.iter().all(|kernel| self.instances(kernel).is_some()) {
            self.files.insert(hash, kernels);
        }
    }

    /// Leaves them for the next run.
    pub(super) fn write(&self, out_dir: &Path) -> io::Result<()> {
        let mut text = String::new();
        for (fingerprint, instances) in &self.kernels {
            for Instance { kernel, file } in instances {
                // Writing to a string does not fail.
                let _ = writeln!(text, "kernel\t{fingerprint:016x}\t{kernel}\t{file}");
            }
        }
        for (file, kernels) in &self.files {
            for kernel in kernels {
                let _ = writeln!(text, "file\t{file:016x}\t{:016x}\t{}", kernel.hash(), kernel.line());
            }
        }
        store::write(&out_dir.join(FILE), &text)
    }
}
