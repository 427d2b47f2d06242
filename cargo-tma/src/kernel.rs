//! The PTX of one kernel, and the data in its header.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

/// A kernel, or an instance of one.
#[derive(Clone, Debug)]
pub(crate) struct Kernel {
    /// `name`, or `name::instance`.
    pub(crate) name: String,
    /// Name of the entry point.
    pub(crate) entry: String,
    /// Architecture, such as `sm_90a`.
    pub(crate) target: String,
    pub(crate) path: PathBuf,
    pub(crate) text: String,
    /// Files that `.loc` directives refer to by number: name in the PTX, and lines.
    files: BTreeMap<u32, (String, Vec<String>)>,
}

impl Kernel {
    /// Parses the output of `tma-codegen`. Sources are read relative to the folder of the package.
    ///
    /// # Errors
    ///
    /// If there is no code, because LLVM was missing, or if the text is not from `tma-codegen`.
    pub(crate) fn read(path: PathBuf, text: String, package: &Path) -> Result<Self> {
        if let Some((_, why)) = text.split_once("// no code: ") {
            bail!(
                "the kernels of this package are checked but not compiled: {}; pass the package's \
                 feature that enables LLVM with --features, and leave `TMA_PTX` unset",
                why.trim_end()
            );
        }
        let after = |prefix: &str| text.lines().find_map(|line| line.strip_prefix(prefix)).map(str::to_owned);
        let entry = text.split_once(".entry ").and_then(|(_, rest)| rest.split('(').next());
        let incomplete = || format!("{} was not written by tma-codegen", path.display());
        let (name, target) = (after("// kernel: "), after(".target "));
        let (name, entry) =
            (name.with_context(incomplete)?, entry.with_context(incomplete)?.trim().to_owned());
        let target = target.with_context(incomplete)?.split(',').next().unwrap_or_default().trim().to_owned();
        let files = text.lines().filter_map(file).map(|(number, name)| {
            let source = fs::read_to_string(package.join(&name)).unwrap_or_default();
            (number, (name, source.lines().map(str::to_owned).collect()))
        });
        let files = files.collect();
        Ok(Self { name, entry, target, path, text, files })
    }

    /// Returns the source line of a `.loc`: `src/lib.rs:12`, and its text if the file exists.
    pub(crate) fn source(&self, file: u32, line: usize) -> Option<(String, &str)> {
        let (name, lines) = self.files.get(&file)?;
        let text = line.checked_sub(1).and_then(|line| lines.get(line));
        Some((format!("{name}:{line}"), text.map_or("", |text| text.trim())))
    }

    /// Returns the number of a source file, given its path, which may be absolute.
    pub(crate) fn file_number(&self, path: &str) -> Option<u32> {
        let path = Path::new(path);
        self.files.iter().find(|(_, (name, _))| path.ends_with(name)).map(|(number, _)| *number)
    }

    /// Returns each line of the PTX with the file and line of its source, which `.loc` directives
    /// set.
    pub(crate) fn lines(&self) -> impl Iterator<Item = (&str, Option<(u32, usize)>)> {
        let mut at = None;
        self.text.lines().map(move |line| {
            at = location(line).or(at);
            (line, at)
        })
    }
}

/// Parses `.file 1 "src/lib.rs"`.
fn file(line: &str) -> Option<(u32, String)> {
    let (number, name) = line.trim_start().strip_prefix(".file")?.trim().split_once(char::is_whitespace)?;
    Some((number.parse().ok()?, name.trim().trim_matches('"').to_owned()))
}

/// Parses the file and line of `.loc 1 12 5`. LLVM uses line 0 for "no line".
pub(crate) fn location(line: &str) -> Option<(u32, usize)> {
    let mut numbers = line.trim_start().strip_prefix(".loc")?.split_whitespace();
    let (file, line) = (numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?);
    (line != 0).then_some((file, line))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PTX: &str = "// kernel: scale::wide\n.version 8.0\n.target sm_90a\n.visible .entry scale__wide(\n)\n{\n\
        \t.loc\t1 2 5\n\tmov.u32 %r1, %tid.x;\n\t.loc\t1 0 5\n\tret;\n}\n\t.file\t1 \"src/lib.rs\"\n";

    #[test]
    fn the_header_and_the_lines_are_read() {
        let kernel = Kernel::read("a.ptx".into(), PTX.to_owned(), Path::new("nowhere")).unwrap();
        assert_eq!((kernel.name.as_str(), kernel.entry.as_str()), ("scale::wide", "scale__wide"));
        assert_eq!(kernel.target, "sm_90a");
        assert_eq!(kernel.source(1, 2), Some(("src/lib.rs:2".to_owned(), "")));
        assert_eq!(kernel.file_number("/a/b/src/lib.rs"), Some(1));
        assert_eq!(kernel.file_number("/a/b/src/main.rs"), None);
        let lines: Vec<_> = kernel.lines().filter(|(line, _)| line.ends_with(';')).collect();
        assert_eq!(lines, [("\tmov.u32 %r1, %tid.x;", Some((1, 2))), ("\tret;", Some((1, 2)))]);
    }

    #[test]
    fn other_ptx_is_rejected() {
        let read = |text: &str| Kernel::read("a.ptx".into(), text.to_owned(), Path::new("nowhere"));
        let error = read("// no code: `tma-codegen` was built without its feature `llvm`\n").unwrap_err();
        assert!(error.to_string().contains("without its feature `llvm`; pass the package's"), "{error}");
        assert!(read("ret;\n").unwrap_err().to_string().contains("was not written by tma-codegen"));
    }
}
