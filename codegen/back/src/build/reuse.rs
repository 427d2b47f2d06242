//! Reuses the PTX of unchanged kernels.
//!
//! PTX contains the line numbers of its source. If an edit only moves a kernel, its PTX is reused
//! with adjusted line numbers. The first line of the file has a hash of the rest, to detect
//! truncation and damage on disk.

use std::path::Path;

use proc_macro2::{TokenStream, TokenTree};
use quote::ToTokens;
use tma_front::escape::SHARED_LINE;
use tma_front::parse::item::{KernelItem, ModuleItems};
use tma_front::target::Goal;

use crate::hash::Fnv;

/// The inputs that determine the PTX of a kernel, apart from its line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fingerprint {
    hash: u64,
    line: usize,
}

const PREFIX: &str = "// fingerprint: ";

/// Computes the fingerprint of a kernel in the file `source`, whose PTX comes from `origin`: the
/// name of its producer, or [`ORIGIN`](super::kept::ORIGIN).
pub(super) fn fingerprint(
    item: &KernelItem,
    shared: &ModuleItems,
    origin: &str,
    goal: Goal,
    source: &Path,
) -> Fingerprint {
    let all = tokens(item, shared);
    // An import may be renamed.
    let imports = shared.imports.found.iter().map(|import| (import.name.as_str(), import.item.as_str()));
    let imports: Vec<_> = imports.collect();
    let line = line(item);

    let mut hash = Fnv::new();
    surroundings(origin, goal, source, &mut hash);
    hash.tokens(all.clone());
    for (name, item) in imports {
        hash.text(name);
        hash.text(item);
    }
    positions(all, line, &mut hash);
    Fingerprint { hash: hash.value(), line }
}

/// Returns the line of a kernel's name.
fn line(item: &KernelItem) -> usize {
    item.function.sig.ident.span().start().line
}

/// Returns the tokens that a kernel is made from.
fn tokens(item: &KernelItem, shared: &ModuleItems) -> TokenStream {
    let mut all = item.attr.clone();
    all.extend(item.function.to_token_stream());
    all.extend(shared.with_imported().into_iter().flat_map(ModuleItems::iter));
    all
}

/// The source lines of a kernel and of all that it is made from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Lines {
    /// The line of the kernel's name.
    pub(super) name: usize,
    /// A hash of the positions of all tokens, relative to this line.
    pub(super) positions: u64,
}

impl Lines {
    pub(super) fn of(item: &KernelItem, shared: &ModuleItems) -> Self {
        let (name, mut hash) = (line(item), Fnv::new());
        positions(tokens(item, shared), name, &mut hash);
        Self { name, positions: hash.value() }
    }
}

/// Computes the hash of a file with this text, and of the other inputs to its kernels'
/// fingerprints.
pub(super) fn file(text: &str, origin: &str, goal: Goal, source: &Path) -> u64 {
    let mut hash = Fnv::new();
    surroundings(origin, goal, source, &mut hash);
    hash.text(text);
    hash.value()
}

/// Hashes the compiler, its options, the origin of the PTX, and the source file.
fn surroundings(origin: &str, goal: Goal, source: &Path, hash: &mut Fnv) {
    hash.text(env!("TMA_CODEGEN_SOURCES"));
    hash.text(origin);
    hash.text(goal.target.name());
    hash.text(goal.checks.name());
    hash.text(&source.to_string_lossy());
}

/// Hashes the position of each token, relative to the line of the kernel's name.
fn positions(tokens: TokenStream, line: usize, hash: &mut Fnv) {
    for token in tokens {
        let at = token.span().start();
        hash.number(at.line.wrapping_sub(line));
        hash.number(at.column);
        if let TokenTree::Group(group) = token {
            positions(group.stream(), line, hash);
        }
    }
}

impl Fingerprint {
    pub(super) fn new(hash: u64, line: usize) -> Self {
        Self { hash, line }
    }

    /// Returns the hash, which excludes the line.
    pub(super) fn hash(&self) -> u64 {
        self.hash
    }

    /// Returns the line of the kernel's name.
    pub(super) fn line(&self) -> usize {
        self.line
    }

    /// Whether `old` is a PTX file of the same kernel by this compiler, which implies that the
    /// kernel has no errors. The file may be damaged, and its lines may be outdated.
    pub(super) fn heads(&self, old: &str) -> bool {
        split_header(old).is_some_and(|(header, _)| header.hash == self.hash)
    }

    /// Returns the contents of a PTX file of this kernel: a line with the fingerprint and a hash,
    /// followed by the PTX.
    pub(super) fn mark(&self, ptx: &str) -> String {
        format!("{PREFIX}{:016x} {} {:016x}\n{ptx}", self.hash, self.line, contents(ptx))
    }
}

/// Returns the hash of a file's contents.
pub(super) fn contents(text: &str) -> u64 {
    let mut hash = Fnv::new();
    hash.text(text);
    hash.value()
}

/// Returns `old` with its line numbers adjusted to the kernel's current line, if it is the complete
/// PTX of the same kernel.
pub(super) fn reuse(old: &str, now: &Fingerprint) -> Option<String> {
    let (header, body) = split_header(old)?;
    if header.hash != now.hash || header.contents != contents(body) {
        return None;
    }
    Some(now.mark(&moved(body, header.line, now.line)?))
}

/// The first line of a PTX file.
struct Header {
    hash: u64,
    line: usize,
    contents: u64,
}

/// Splits a file into its first line and the PTX.
fn split_header(text: &str) -> Option<(Header, &str)> {
    let (header, body) = text.split_once('\n')?;
    let mut parts = header.strip_prefix(PREFIX)?.split(' ');
    let (hash, line, contents) = (parts.next()?, parts.next()?, parts.next()?);
    let number = |text| u64::from_str_radix(text, 16).ok();
    Some((Header { hash: number(hash)?, line: line.parse().ok()?, contents: number(contents)? }, body))
}

/// Whether PTX has an assertion, whose line number is among the instructions.
pub(super) fn has_assertion(ptx: &str) -> bool {
    ptx.contains("__assertfail")
}

/// Adjusts the PTX of a kernel that moved from line `old` to line `new`. Returns `None` if the PTX
/// has line numbers that cannot be adjusted.
pub(super) fn moved(ptx: &str, old: usize, new: usize) -> Option<String> {
    if old == new {
        return Some(ptx.to_owned());
    }
    if has_assertion(ptx) {
        return None;
    }
    let moved: Option<Vec<_>> = ptx.lines().map(|text| move_line(text, old, new)).collect();
    Some(moved?.join("\n") + "\n")
}

/// Adjusts the reference to the source in a line of PTX.
fn move_line(text: &str, old: usize, new: usize) -> Option<String> {
    let shift = |line: &str| line.parse::<usize>().ok().map(|line| (line + new).checked_sub(old));
    if let Some((path, line)) =
        text.strip_prefix("// source: ").and_then(|location| location.rsplit_once(':'))
    {
        return Some(format!("// source: {path}:{}", shift(line)??));
    }
    if let Some((line, accesses)) = text.strip_prefix(SHARED_LINE).and_then(|rest| rest.split_once(':')) {
        return Some(format!("{SHARED_LINE}{}:{accesses}", shift(line)??));
    }
    let Some(location) = text.trim_start().strip_prefix(".loc") else { return Some(text.to_owned()) };
    let mut parts = location.split_whitespace();
    let (file, line, rest) = (parts.next()?, parts.next()?, parts.collect::<Vec<_>>().join(" "));
    // LLVM uses line 0 for "no line".
    let line = if line == "0" { 0 } else { shift(line)?? };
    let indent = &text[..text.len() - text.trim_start().len()];
    Some(format!("{indent}.loc\t{file} {line} {rest}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PTX: &str = "// source: src/a.rs:10\n\t.loc\t1 12 5\n\t.loc\t1 0 5\nret;\n\
        // shared line 12: reads a b; writes c\n";

    const MOVED: &str = "// source: src/a.rs:13\n\t.loc\t1 15 5\n\t.loc\t1 0 5\nret;\n\
        // shared line 15: reads a b; writes c\n";

    fn at(line: usize) -> Fingerprint {
        Fingerprint { hash: 7, line }
    }

    #[test]
    fn a_kernel_that_moved_keeps_its_ptx_with_lines_moved() {
        let moved = reuse(&at(10).mark(PTX), &at(13)).unwrap();
        assert_eq!(moved, at(13).mark(MOVED));
        assert!(moved.starts_with("// fingerprint: 0000000000000007 13 "), "{moved}");
    }

    #[test]
    fn a_kernel_that_stayed_keeps_its_ptx() {
        let old = at(10).mark(PTX);
        assert_eq!(reuse(&old, &at(10)), Some(old));
    }

    #[test]
    fn another_kernel_is_not_reused() {
        assert_eq!(reuse(&at(10).mark(PTX), &Fingerprint { hash: 8, line: 10 }), None);
        assert_eq!(reuse("ret;\n", &at(10)), None);
    }

    #[test]
    fn a_part_of_a_file_is_not_reused() {
        let whole = at(10).mark(PTX);
        for end in 0..whole.len() {
            assert_eq!(reuse(&whole[..end], &at(10)), None, "{end} of {} bytes", whole.len());
        }
        assert_eq!(reuse(&whole.replace("ret", "nop"), &at(10)), None);
    }
}
