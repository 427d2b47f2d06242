//! Source files with kernels, as the compiler's front end reads them, including the kernels of
//! modules that are instantiated from templates in other packages.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use tma_codegen::{Accepted, Checked, Failure};

use crate::package::Package;

/// The files that contain kernels.
#[derive(Debug)]
pub(crate) struct Sources {
    pub(crate) files: Vec<Source>,
    /// Folder of the package. Without one, only the files themselves are known.
    package: Option<PathBuf>,
    /// Folders of the packages that may contain templates, indexed by the first segment of their
    /// paths.
    others: BTreeMap<String, PathBuf>,
}

/// A file that contains kernels.
#[derive(Debug)]
pub(crate) struct Source {
    /// Path of the file in messages.
    pub(crate) path: String,
    pub(crate) text: String,
}

impl Sources {
    /// Reads those of the files that contain kernels. Their paths are relative to `root`.
    ///
    /// # Errors
    ///
    /// If a file cannot be read, or cargo cannot resolve the package's dependencies.
    pub(crate) fn read(files: &[PathBuf], root: &Path, package: Option<&Package>) -> Result<Self> {
        let mut found = vec![];
        for path in files {
            let bytes = fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
            // Like the build script, this leaves files that are not Rust to rustc.
            let Ok(text) = String::from_utf8(bytes) else { continue };
            // A module that is instantiated from a template need not contain a kernel.
            if text.contains("tma_kernel") || text.contains("tma_module") {
                let path = path.strip_prefix(root).unwrap_or(path).display().to_string();
                found.push(Source { path, text });
            }
        }
        let uses_packages = found.iter().any(|source| needs_packages(&source.text));
        let others = match package {
            Some(package) if uses_packages => package.with_links()?,
            Some(_) | None => BTreeMap::new(),
        };
        Ok(Self { files: found, package: package.map(|package| package.folder.clone()), others })
    }

    /// Checks the kernels of a file against the rules for individual statements.
    ///
    /// # Errors
    ///
    /// Errors of the front end.
    pub(crate) fn check(&self, source: &Source) -> Result<Accepted<Checked>, Failure> {
        match &self.package {
            Some(package) => tma_codegen::check_in(package, &self.others, &source.path, &source.text),
            None => tma_codegen::check(&source.path, &source.text),
        }
    }

    /// Returns the file that contains a kernel's lines. This is not `source` if its module is
    /// instantiated from a template in another file.
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
        // Without the file, no lines are quoted.
        Source { path: file.display().to_string(), text: fs::read_to_string(whole).unwrap_or_default() }
    }
}

/// Whether a module may be instantiated from one of another package, or import its items. Cargo is
/// asked only then, since it takes longer than reading the files.
fn needs_packages(text: &str) -> bool {
    let imports = |line: &str| {
        let line = line.trim_start().trim_start_matches("pub ");
        let path = line.strip_prefix("use ").unwrap_or_default();
        let known = ["crate::", "super::", "self::", "std::", "core::", "tma_runtime::", "{"];
        !path.is_empty() && !known.iter().any(|known| path.starts_with(known))
    };
    text.contains("tma_module(") || text.contains("tma_module]") && text.lines().any(imports)
}
