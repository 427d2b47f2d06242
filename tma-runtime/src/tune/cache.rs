//! Results on disk, with one file per device, task and shape.
//!
//! ```text
//! tma-tune 1
//! NVIDIA H200, compute capability 9.0, 132 multiprocessors
//! "gemm" [4096, 4096, 4096]
//! 3f0c9d2a5b7e8811 "gemm::wide Order { rows: 8 }" 212.5 0.013
//! 98b1c0de77aa0f12 "gemm::tall Order { rows: 8 }" refused TMA0612: ..
//! checksum 0a1b2c3d4e5f6071
//! ```
//!
//! A file is written under another name and then renamed, so that another process sees all of it or
//! none. A file is damaged if it does not end with the checksum of its preceding contents. It is
//! out of date if it has another version or other candidates.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::{fs, io, process};

use super::{Outcome, Unit};
use crate::device::Device;
use crate::layout::DeviceId;
use crate::spec::KernelSpec;

/// The version of the format. It changes whenever the format does.
const VERSION: &str = "tma-tune 1";
const CHECKSUM: &str = "checksum ";
const REFUSED: &str = "refused ";

/// Returns the folder of the cache according to environment variables, or `None` if they disable
/// the cache or determine no folder.
pub(super) fn folder(variable: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    if let Some(folder) = variable("TMA_TUNE_CACHE") {
        return (!folder.is_empty()).then(|| folder.into());
    }
    let absolute = |path: OsString| Some(PathBuf::from(path)).filter(|path| path.is_absolute());
    let caches = variable("XDG_CACHE_HOME").and_then(absolute);
    let caches = caches.or_else(|| Some(variable("HOME").and_then(absolute)?.join(".cache")));
    Some(caches?.join("tma-tune"))
}

/// The key of a result.
pub(super) struct Key {
    device: String,
    task: String,
    /// The unit of measurement on the device.
    pub(super) unit: Unit,
}

impl Key {
    pub(super) fn new(device: &Device, task: &str, shape: &[usize]) -> Self {
        let ((major, minor), count) = (device.compute_capability(), device.multiprocessors());
        let name = device.name();
        Self {
            device: format!("{name}, compute capability {major}.{minor}, {count} multiprocessors"),
            task: format!("{task:?} {shape:?}"),
            unit: match device.id() {
                DeviceId::Cuda(_) | DeviceId::Context(_) => Unit::Microseconds,
                DeviceId::Simulator(_) => Unit::Instructions,
            },
        }
    }

    /// Describes the task and the device for users.
    pub(super) fn title(&self) -> String {
        format!("{} on {}", self.task, self.device)
    }

    /// Returns the path of the result's file.
    pub(super) fn path(&self, folder: &Path) -> PathBuf {
        folder.join(format!("{:016x}.txt", hash([self.device.as_bytes(), self.task.as_bytes()])))
    }
}

/// A candidate as it is identified in a file: the hash of the kernel, and the name.
pub(super) struct Identity {
    pub(super) hash: u64,
    pub(super) name: String,
}

impl Identity {
    /// Returns the beginning of the candidate's line.
    fn head(&self) -> String {
        format!("{:016x} {:?} ", self.hash, self.name)
    }
}

/// Hashes what a kernel's speed depends on: its code, its block, and the version of this crate,
/// which launches it.
pub(super) fn hash_of(kernel: &KernelSpec) -> u64 {
    let block = format!("{:?} {:?} {}", kernel.threads, kernel.cluster, kernel.shared_bytes);
    hash([kernel.ptx, kernel.entry, &block, env!("CARGO_PKG_VERSION")].map(str::as_bytes))
}

/// Computes FNV-1a over the parts, each followed by its length.
fn hash<const N: usize>(parts: [&[u8]; N]) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for part in parts {
        for byte in part.iter().copied().chain((part.len() as u64).to_le_bytes()) {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }
    hash
}

/// Returns the outcomes of these candidates, or `None` if there is no file or it is out of date.
///
/// # Errors
///
/// A description of the damage to the file.
pub(super) fn read(
    folder: &Path,
    key: &Key,
    identities: &[Identity],
) -> Result<Option<Vec<Outcome>>, String> {
    match fs::read(key.path(folder)) {
        Ok(bytes) => {
            let text = String::from_utf8(bytes).map_err(|_| "the file is not text".to_owned())?;
            decoded(&text, key, identities)
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error.to_string()),
    }
}

/// Writes the outcomes of these candidates.
///
/// # Errors
///
/// The error of the operating system.
pub(super) fn write(
    folder: &Path,
    key: &Key,
    identities: &[Identity],
    outcomes: &[Outcome],
) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    let path = key.path(folder);
    let aside = path.with_extension(format!("{}.new", process::id()));
    let written = fs::write(&aside, encoded(key, identities, outcomes));
    let renamed = written.and_then(|()| fs::rename(&aside, &path));
    if renamed.is_err() {
        // A failure to remove the file does not change the error.
        let _ = fs::remove_file(&aside);
    }
    renamed
}

fn encoded(key: &Key, identities: &[Identity], outcomes: &[Outcome]) -> String {
    let mut text = format!("{VERSION}\n{}\n{}\n", key.device, key.task);
    for (identity, outcome) in identities.iter().zip(outcomes) {
        text.push_str(&identity.head());
        match outcome {
            Outcome::Measured { cost, spread } => text.push_str(&format!("{cost} {spread}\n")),
            Outcome::Refused { why } => text.push_str(&format!("{REFUSED}{}\n", why.replace('\n', " "))),
        }
    }
    let sum = hash([text.as_bytes()]);
    text + &format!("{CHECKSUM}{sum:016x}\n")
}

fn decoded(text: &str, key: &Key, identities: &[Identity]) -> Result<Option<Vec<Outcome>>, String> {
    let end = text.rfind(CHECKSUM).ok_or("the checksum is missing")?;
    let (body, sum) = text.split_at(end);
    if sum != format!("{CHECKSUM}{:016x}\n", hash([body.as_bytes()])) {
        return Err("the checksum does not match".to_owned());
    }
    let mut lines = body.lines();
    let head = [VERSION, &key.device, &key.task];
    let is_up_to_date = head.iter().all(|&wanted| lines.next() == Some(wanted));
    let lines: Vec<&str> = lines.collect();
    if !is_up_to_date || lines.len() != identities.len() {
        return Ok(None);
    }
    let mut outcomes = vec![];
    for (line, identity) in lines.into_iter().zip(identities) {
        let Some(rest) = line.strip_prefix(&identity.head()) else { return Ok(None) };
        outcomes.push(outcome(rest).ok_or_else(|| format!("no outcome in `{line}`"))?);
    }
    Ok(Some(outcomes))
}

fn outcome(text: &str) -> Option<Outcome> {
    if let Some(why) = text.strip_prefix(REFUSED) {
        return Some(Outcome::Refused { why: why.to_owned() });
    }
    let (cost, spread) = text.split_once(' ')?;
    Some(Outcome::Measured { cost: cost.parse().ok()?, spread: spread.parse().ok()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key() -> Key {
        Key::new(&Device::simulator(), "gemm", &[64, 128])
    }

    fn identities() -> Vec<Identity> {
        ["gemm::wide", "gemm::tall \"8\"\n"].map(|name| Identity { hash: 7, name: name.to_owned() }).into()
    }

    fn outcomes() -> Vec<Outcome> {
        let refused = Outcome::Refused { why: "TMA0612: too much\nof it".to_owned() };
        vec![Outcome::Measured { cost: 212.5, spread: 0.1 / 3.0 }, refused]
    }

    #[test]
    fn written_results_are_read_back() {
        let text = encoded(&key(), &identities(), &outcomes());
        let read = decoded(&text, &key(), &identities()).unwrap().unwrap();
        assert_eq!(read[0], outcomes()[0], "to the last bit");
        assert_eq!(read[1], Outcome::Refused { why: "TMA0612: too much of it".to_owned() });
    }

    #[test]
    fn every_changed_byte_is_noticed() {
        let text = encoded(&key(), &identities(), &outcomes());
        for at in 0..text.len() {
            let mut bytes = text.clone().into_bytes();
            bytes[at] ^= 1;
            let damaged = String::from_utf8(bytes).unwrap();
            let read = decoded(&damaged, &key(), &identities());
            assert!(read.is_err(), "byte {at}: {damaged}");
        }
        for length in 0..text.len() {
            let read = decoded(&text[..length], &key(), &identities());
            assert!(read.is_err(), "{length} bytes of it: {read:?}");
        }
    }

    #[test]
    fn a_result_of_other_candidates_or_versions_is_out_of_date() {
        let text = encoded(&key(), &identities(), &outcomes());
        let mut others = identities();
        others[1].hash = 8;
        assert_eq!(decoded(&text, &key(), &others), Ok(None), "another kernel");
        assert_eq!(decoded(&text, &key(), &identities()[..1]), Ok(None), "fewer");
        others = identities();
        others.swap(0, 1);
        assert_eq!(decoded(&text, &key(), &others), Ok(None), "another order");
        let other = Key::new(&Device::simulator(), "gemm", &[64, 129]);
        assert_eq!(decoded(&text, &other, &identities()), Ok(None), "another shape");
        let (body, _) = text.split_at(text.find(CHECKSUM).unwrap());
        let older = body.replace(VERSION, "tma-tune 0");
        let older = format!("{older}{CHECKSUM}{:016x}\n", hash([older.as_bytes()]));
        assert_eq!(decoded(&older, &key(), &identities()), Ok(None), "another version");
    }

    #[test]
    fn the_folder_is_that_of_the_environment() {
        let folder_of = |set: &[(&str, &str)]| {
            folder(|name| set.iter().find(|(variable, _)| *variable == name).map(|(_, value)| value.into()))
        };
        let home = ("HOME", "/users/a");
        assert_eq!(folder_of(&[("TMA_TUNE_CACHE", "here"), home]), Some("here".into()));
        assert_eq!(folder_of(&[("TMA_TUNE_CACHE", ""), home]), None);
        assert_eq!(folder_of(&[("XDG_CACHE_HOME", "/c"), home]), Some("/c/tma-tune".into()));
        assert_eq!(folder_of(&[("XDG_CACHE_HOME", "c"), home]), Some("/users/a/.cache/tma-tune".into()));
        assert_eq!(folder_of(&[]), None);
    }

    #[test]
    fn parts_are_hashed_with_their_lengths() {
        assert_ne!(hash([b"ab", b"c"]), hash([b"a", b"bc"]));
    }
}
