//! Keeps the PTX of kernels that have not changed.
//!
//! PTX carries the lines of its source. When an edit further up only moves a kernel, its PTX is kept and the
//! lines in it are moved along.

use std::path::Path;

use proc_macro2::{TokenStream, TokenTree};
use quote::ToTokens;

use crate::hash::Fnv;
use crate::parse::item::{KernelItem, Shared};
use crate::target::Goal;

/// What the PTX of a kernel depends on, but for the line it starts at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fingerprint {
    hash: u64,
    line: usize,
}

const PREFIX: &str = "// fingerprint: ";

/// The fingerprint of a kernel in the file `source`.
pub(super) fn fingerprint(item: &KernelItem, shared: &Shared, goal: Goal, source: &Path) -> Fingerprint {
    let mut all = item.attr.clone();
    all.extend(item.function.to_token_stream());
    all.extend(shared.iter());
    let line = item.function.sig.ident.span().start().line;

    let mut hash = Fnv::new();
    hash.text(env!("TMA_CODEGEN_SOURCES"));
    hash.text(if cfg!(feature = "llvm") { "llvm" } else { "" });
    hash.text(goal.target.name());
    hash.text(goal.checks.name());
    hash.text(&source.to_string_lossy());
    hash.tokens(all.clone());
    positions(all, line, &mut hash);
    Fingerprint { hash: hash.value(), line }
}

/// Where each token stands, relative to the line of the kernel's name.
fn positions(tokens: TokenStream, line: usize, hash: &mut Fnv) {
    for token in tokens {
        let at = token.span().start();
        hash.text(&format!("{}:{}", at.line.wrapping_sub(line) as isize, at.column));
        if let TokenTree::Group(group) = token {
            positions(group.stream(), line, hash);
        }
    }
}

impl Fingerprint {
    /// The line that a PTX file starts with.
    pub(super) fn header(&self) -> String {
        format!("{PREFIX}{:016x} {}", self.hash, self.line)
    }
}

/// `old` with its lines moved to where the kernel is now, if it is the PTX of the same kernel.
pub(super) fn reuse(old: &str, now: &Fingerprint) -> Option<String> {
    let (header, body) = old.split_once('\n')?;
    let (hash, line) = header.strip_prefix(PREFIX)?.split_once(' ')?;
    if u64::from_str_radix(hash, 16).ok()? != now.hash {
        return None;
    }
    let line: usize = line.parse().ok()?;
    if line == now.line {
        return Some(old.to_owned());
    }
    // What stops the grid with a message has its line among the instructions.
    if body.contains("__assertfail") {
        return None;
    }
    let moved: Option<Vec<_>> = body.lines().map(|text| move_line(text, line, now.line)).collect();
    Some(format!("{}\n{}\n", now.header(), moved?.join("\n")))
}

/// A line of PTX, its reference to the source moved from `old` to `new`.
fn move_line(text: &str, old: usize, new: usize) -> Option<String> {
    let shift = |line: &str| line.parse::<usize>().ok().map(|line| (line + new).checked_sub(old));
    if let Some((path, line)) = text.strip_prefix("// source: ").and_then(|place| place.rsplit_once(':')) {
        return Some(format!("// source: {path}:{}", shift(line)??));
    }
    let Some(location) = text.trim_start().strip_prefix(".loc") else { return Some(text.to_owned()) };
    let mut parts = location.split_whitespace();
    let (file, line, rest) = (parts.next()?, parts.next()?, parts.collect::<Vec<_>>().join(" "));
    // Line 0 is LLVM's word for "no line".
    let line = if line == "0" { 0 } else { shift(line)?? };
    let indent = &text[..text.len() - text.trim_start().len()];
    Some(format!("{indent}.loc\t{file} {line} {rest}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const OLD: &str =
        "// fingerprint: 0000000000000007 10\n// source: src/a.rs:10\n\t.loc\t1 12 5\n\t.loc\t1 0 5\nret;\n";

    #[test]
    fn a_kernel_that_moved_keeps_its_ptx_with_lines_moved() {
        let moved = reuse(OLD, &Fingerprint { hash: 7, line: 13 }).unwrap();
        let wanted = "// fingerprint: 0000000000000007 13\n// source: src/a.rs:13\n\t.loc\t1 15 5\n\t.loc\t1 0 5\nret;\n";
        assert_eq!(moved, wanted);
    }

    #[test]
    fn a_kernel_that_stayed_keeps_its_ptx() {
        assert_eq!(reuse(OLD, &Fingerprint { hash: 7, line: 10 }).as_deref(), Some(OLD));
    }

    #[test]
    fn another_kernel_is_not_reused() {
        assert_eq!(reuse(OLD, &Fingerprint { hash: 8, line: 10 }), None);
        assert_eq!(reuse("ret;\n", &Fingerprint { hash: 7, line: 10 }), None);
    }
}
