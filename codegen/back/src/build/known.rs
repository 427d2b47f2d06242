//! Results of earlier runs. Kernels that were found correct are not parsed again until they change:
//! whole files, or single kernels of a file. A typical edit changes one or two of many.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::{fs, io};

use super::reuse::Fingerprint;
use super::store;

/// The file in `OUT_DIR`. For each instance of a kernel it has a line with the kernel's
/// fingerprint, the instance's name and its PTX file. For each kernel of a file it has a line with
/// the file's hash, and the kernel's fingerprint and line.
const FILE: &str = "tma-known";

/// An instance of a kernel without errors and warnings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Instance {
    /// `kernel`, or `kernel::instance`.
    pub(super) kernel: String,
    /// The name of the form `tma/NAME-HASH.ptx`.
    pub(super) file: String,
}

/// All such kernels, and the files that contain no others, by their hashes. Sorted, so that the
/// same text is written each time.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Known {
    kernels: BTreeMap<u64, Vec<Instance>>,
    files: BTreeMap<u64, Vec<Fingerprint>>,
}

impl Known {
    /// Reads the results of the last run. They are empty if they cannot be read.
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

    /// Returns the instances of the kernel with this fingerprint.
    pub(super) fn instances(&self, fingerprint: &Fingerprint) -> Option<&[Instance]> {
        self.kernels.get(&fingerprint.hash()).map(Vec::as_slice)
    }

    pub(super) fn insert(&mut self, fingerprint: &Fingerprint, instances: Vec<Instance>) {
        self.kernels.insert(fingerprint.hash(), instances);
    }

    /// Returns the kernels of the file with this hash.
    pub(super) fn file(&self, hash: u64) -> Option<&[Fingerprint]> {
        self.files.get(&hash).map(Vec::as_slice)
    }

    /// Records a file with these kernels, if all of them are known. Any other file is parsed in
    /// each run, to repeat its errors and warnings.
    pub(super) fn insert_file(&mut self, hash: u64, kernels: Vec<Fingerprint>) {
        if !kernels.is_empty() && kernels.iter().all(|kernel| self.instances(kernel).is_some()) {
            self.files.insert(hash, kernels);
        }
    }

    /// Writes the results for the next run.
    pub(super) fn write(&self, out_dir: &Path) -> io::Result<()> {
        let mut text = String::new();
        for (fingerprint, instances) in &self.kernels {
            for Instance { kernel, file } in instances {
                // Writing to a string cannot fail.
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
