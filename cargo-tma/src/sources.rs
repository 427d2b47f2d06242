//! Source files with kernels, as the compiler's front end takes them: with the kernels of modules
//! that are made from those of other packages.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use tma_codegen::{Accepted, Checked, Failure};

use crate::package::Package;

/// Files that have kernels.
#[derive(Debug)]
pub(crate) struct Sources {
    pub(crate) files: Vec<Source>,
    /// The folder of the package; without one, each file is all that is known.
    package: Option<PathBuf>,
    /// The folders of the packages that modules may be made from, by the names that paths begin
    /// with.
    others: BTreeMap<String, PathBuf>,
}

/// A file that has kernels.
#[derive(Debug)]
pub(crate) struct Source {
    /// As messages call it.
    pub(crate) path: String,
    pub(crate) text: String,
}

impl Sources {
    /// Those of these files that have kernels. `root` is left out of their paths.
    ///
    /// # Errors
    ///
    /// If a file cannot be read, or cargo does not find what the package depends on.
    pub(crate) fn read(files: &[PathBuf], root: &Path, package: Option<&Package>) -> Result<Self> {
        let mut found = vec![];
        for path in files {
            let bytes = fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
            // As in the build script: what is not Rust, rustc reports.
            let Ok(text) = String::from_utf8(bytes) else { continue };
            // A module that is made from another one need not name a kernel.
            if text.contains("tma_kernel") || text.contains("tma_module") {
                let path = path.strip_prefix(root).unwrap_or(path).display().to_string();
                found.push(Source { path, text });
            }
        }
        let makes_modules = found.iter().any(|source| source.text.contains("tma_module("));
        let others = match package {
            Some(package) if makes_modules => package.with_links()?,
            Some(_) | None => BTreeMap::new(),
        };
        Ok(Self { files: found, package: package.map(|package| package.folder.clone()), others })
    }

    /// The kernels of a file, as far as its rules for statements go.
    ///
    /// # Errors
    ///
    /// Those of the front end.
    pub(crate) fn check(&self, source: &Source) -> Result<Accepted<Checked>, Failure> {
        match &self.package {
            Some(package) => tma_codegen::check_in(package, &self.others, &source.path, &source.text),
            None => tma_codegen::check(&source.path, &source.text),
        }
    }

    /// The file that a kernel's lines are of, which is another one than `source` if its module is
    /// made from one there.
    pub(crate) fn lines_of(&self, kernel: &Checked, source: &Source) -> Source {
        let Some(file) = &kernel.made_from else {
            return Source { path: source.path.clone(), text: source.text.clone() };
        };
        let mut parts = file.iter();
        let named = parts.next().and_then(|name| self.others.get(name.to_str()?));
        let whole = match (named, &self.package) {
            (Some(folder), _) => folder.join(parts.as_path()),
            (None, Some(folder)) => folder.join(file),
            (None, None) => file.clone(),
        };
        // Without it no line is quoted.
        Source { path: file.display().to_string(), text: fs::read_to_string(whole).unwrap_or_default() }
    }
}
