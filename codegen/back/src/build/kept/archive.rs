//! A file of the folder `tma-ptx`: the PTX of all instances of a kernel.
//!
//! The first line is text: `kept: TARGET VERSION LINE POSITIONS HASH`, with the target, the version
//! of the compiler, the line of the kernel's name, a hash of the positions of its tokens relative
//! to this line, and a hash of the other bytes. These are LZMA, of one line `KERNEL BYTES` before
//! the PTX of each instance. Instances of a kernel are alike: compressed together, they take a
//! twentieth of what they take one by one.
//!
//! LZMA, because its decoder is small and fast enough without optimisation, as build scripts are
//! compiled, and because it exists in Rust.

use std::collections::BTreeMap;
use std::io::Read;
#[cfg(any(feature = "llvm", test))]
use std::io::{self, Write};

use lzma_rust2::LzmaReader;
#[cfg(any(feature = "llvm", test))]
use lzma_rust2::{LzmaOptions, LzmaWriter};

use super::StaleReason;
use crate::Target;
use crate::build::reuse::Lines;
use crate::hash::Fnv;

/// The start of the first line.
pub(super) const PREFIX: &str = "kept: ";

/// The limit for an archive's text. No kernel comes near it.
const MOST_BYTES: u64 = 1 << 30;

/// The PTX of each instance of a kernel, by its name `kernel` or `kernel::instance`.
pub(in crate::build) type Texts = BTreeMap<String, String>;

/// The contents of an archive.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Archive {
    /// The lines of the kernel when the PTX was made.
    pub(super) lines: Lines,
    pub(super) texts: Texts,
}

/// Returns the bytes of the archive of a kernel at these lines. The same PTX gives the same bytes.
///
/// # Errors
///
/// If there is more PTX than an archive can have.
#[cfg(any(feature = "llvm", test))]
pub(super) fn write(texts: &Texts, lines: Lines, target: Target) -> io::Result<Vec<u8>> {
    let mut plain = String::new();
    for (kernel, ptx) in texts {
        plain += &format!("{kernel} {}\n{ptx}", ptx.len());
    }
    let size = u32::try_from(plain.len()).ok().filter(|size| u64::from(*size) <= MOST_BYTES);
    let size = size.ok_or_else(|| io::Error::other("the PTX of one kernel takes more than 1 GiB"))?;
    let mut options = LzmaOptions::with_preset(6);
    // An instance may repeat what is in any other.
    options.dict_size = size.max(4096);
    let mut writer = LzmaWriter::new_use_header(vec![], &options, Some(u64::from(size)))?;
    writer.write_all(plain.as_bytes())?;
    Ok(with_header(&writer.finish()?, lines, target))
}

/// Returns the file of these bytes.
#[cfg(any(feature = "llvm", test))]
pub(super) fn with_header(packed: &[u8], lines: Lines, target: Target) -> Vec<u8> {
    let (version, hash) = (env!("CARGO_PKG_VERSION"), contents(packed));
    let Lines { name, positions } = lines;
    let header = format!("{PREFIX}{target} {version} {name} {positions:016x} {hash:016x}\n");
    [header.as_bytes(), packed].concat()
}

/// Reads an archive for `target`.
///
/// # Errors
///
/// The reason why it cannot be used.
pub(super) fn read(bytes: &[u8], target: Target) -> Result<Archive, StaleReason> {
    let (header, packed) = split(bytes).ok_or(StaleReason::Damaged)?;
    let parts: Vec<_> = header.strip_prefix(PREFIX).unwrap_or_default().split(' ').collect();
    let [found, version, name, positions, hash] = parts[..] else { return Err(StaleReason::Damaged) };
    let name = name.parse().map_err(|_| StaleReason::Damaged)?;
    let positions = u64::from_str_radix(positions, 16).map_err(|_| StaleReason::Damaged)?;
    if u64::from_str_radix(hash, 16) != Ok(contents(packed)) {
        return Err(StaleReason::Damaged);
    }
    if found != target.name() {
        return Err(StaleReason::OtherTarget { found: found.to_owned(), wanted: target });
    }
    if !is_compatible(version, env!("CARGO_PKG_VERSION")) {
        return Err(StaleReason::OtherGenerator { found: version.to_owned() });
    }
    let texts = unpacked(packed).and_then(|plain| texts(&plain)).ok_or(StaleReason::Damaged)?;
    Ok(Archive { lines: Lines { name, positions }, texts })
}

/// Splits a file into its first line and the other bytes.
fn split(bytes: &[u8]) -> Option<(&str, &[u8])> {
    let end = bytes.iter().position(|byte| *byte == b'\n')?;
    let (header, rest) = bytes.split_at(end);
    Some((str::from_utf8(header).ok()?, rest.get(1..)?))
}

fn unpacked(packed: &[u8]) -> Option<String> {
    // LZMA's header has the size of the dictionary, which the decoder allocates, and that of the
    // text. Source: LZMA specification, "Lzma file format".
    let number = |bytes: &[u8]| bytes.iter().rev().fold(0_u64, |all, byte| all << 8 | u64::from(*byte));
    let (dictionary, size) = (number(packed.get(1..5)?), number(packed.get(5..13)?));
    if size > MOST_BYTES || dictionary > size.max(4096) {
        return None;
    }
    let mut plain = String::new();
    let reader = LzmaReader::new_mem_limit(packed, u32::MAX, None).ok()?;
    reader.take(size).read_to_string(&mut plain).ok()?;
    (plain.len() as u64 == size).then_some(plain)
}

fn texts(mut plain: &str) -> Option<Texts> {
    let mut texts = Texts::new();
    while !plain.is_empty() {
        let (header, rest) = plain.split_once('\n')?;
        let (kernel, bytes) = header.rsplit_once(' ')?;
        let (ptx, rest) = rest.split_at_checked(bytes.parse().ok()?)?;
        texts.insert(kernel.to_owned(), ptx.to_owned());
        plain = rest;
    }
    Some(texts)
}

fn contents(bytes: &[u8]) -> u64 {
    let mut hash = Fnv::new();
    hash.bytes(bytes);
    hash.value()
}

/// Whether launchers of one version can use PTX of another. Releases that cargo treats as
/// compatible do not change the parameters or layouts of kernels. Source: The Cargo Book, "SemVer
/// Compatibility".
fn is_compatible(found: &str, own: &str) -> bool {
    let compatible = |version: &str| {
        let mut numbers = version.split('.').map(|number| number.parse::<u32>().ok());
        let (major, minor) = (numbers.next()??, numbers.next()??);
        Some(if major == 0 { (0, minor) } else { (major, 0) })
    };
    compatible(found).is_some() && compatible(found) == compatible(own)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_that_cargo_exchanges_agree() {
        for (found, own, agree) in [
            ("0.1.0", "0.1.7", true),
            ("0.1.0", "0.2.0", false),
            ("1.2.0", "1.9.1", true),
            ("1.2.0", "2.2.0", false),
            ("", "0.1.0", false),
        ] {
            assert_eq!(is_compatible(found, own), agree, "{found} and {own}");
        }
    }

    #[test]
    fn sizes_that_a_file_claims_are_not_believed() {
        let header = |dictionary: u32, size: u64| {
            let mut packed = vec![0x5d];
            packed.extend(dictionary.to_le_bytes());
            packed.extend(size.to_le_bytes());
            packed.extend([0; 8]);
            packed
        };
        for packed in
            [header(u32::MAX, 10), header(1 << 30, 10), header(4096, u64::MAX), header(4096, 1 << 30)]
        {
            assert_eq!(unpacked(&packed), None);
        }
        for packed in [&[][..], &[0x5d], &[0xff; 30], &[0; 13], &[0x5d; 13]] {
            assert_eq!(unpacked(packed), None);
        }
    }

    #[test]
    fn texts_end_where_their_lengths_say() {
        let all = Texts::from([("a".to_owned(), "x\n".to_owned()), ("a::b".to_owned(), String::new())]);
        assert_eq!(texts("a 2\nx\na::b 0\n"), Some(all));
        for plain in ["a", "a\n", "a 3\nx\n", "a -1\nx\n", "a 2\nx\nrest", "a 1\n\u{e9}"] {
            assert_eq!(texts(plain), None, "{plain:?}");
        }
    }
}
