//! The kernels that an earlier run found right, which are not parsed again while they stay as they
//! are: of a package with many, an edit changes one or two.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::path::Path;
use std::{fs, io};

use super::reuse::Fingerprint;
use super::store;

/// The file in `OUT_DIR`: a line for each instance, with the fingerprint of its kernel, its name
/// and the file of its PTX.
const FILE: &str = "tma-known";

/// An instance of a kernel that breaks no rule and has no warning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Instance {
    /// `kernel`, or `kernel::instance`.
    pub(super) kernel: String,
    /// `tma/NAME-HASH.ptx`.
    pub(super) file: String,
}

/// All instances of such kernels, by fingerprints.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Known(HashMap<u64, Vec<Instance>>);

impl Known {
    /// What the last run left; nothing if that cannot be read.
    pub(super) fn read(out_dir: &Path) -> Self {
        let text = fs::read_to_string(out_dir.join(FILE)).unwrap_or_default();
        let mut known = Self::default();
        for line in text.lines() {
            let parts: Vec<_> = line.split('\t').collect();
            let [fingerprint, kernel, file] = parts[..] else { return Self::default() };
            let Ok(fingerprint) = u64::from_str_radix(fingerprint, 16) else { return Self::default() };
            let instance = Instance { kernel: kernel.to_owned(), file: file.to_owned() };
            known.0.entry(fingerprint).or_default().push(instance);
        }
        known
    }

    /// The instances of the kernel with this fingerprint.
    pub(super) fn instances(&self, fingerprint: &Fingerprint) -> Option<&[Instance]> {
        self.0.get(&fingerprint.hash()).map(Vec::as_slice)
    }

    pub(super) fn insert(&mut self, fingerprint: &Fingerprint, instances: Vec<Instance>) {
        self.0.insert(fingerprint.hash(), instances);
    }

    /// Leaves them for the next run.
    pub(super) fn write(&self, out_dir: &Path) -> io::Result<()> {
        let mut kernels: Vec<_> = self.0.iter().collect();
        kernels.sort_by_key(|(fingerprint, _)| **fingerprint);
        let mut text = String::new();
        for (fingerprint, instances) in kernels {
            for Instance { kernel, file } in instances {
                // Writing to a string does not fail.
                let _ = writeln!(text, "{fingerprint:016x}\t{kernel}\t{file}");
            }
        }
        store::write(&out_dir.join(FILE), &text)
    }
}
