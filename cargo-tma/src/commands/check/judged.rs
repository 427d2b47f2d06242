//! Kernels in source files, and what the compiler's checks find of them.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use tma_codegen::check::protocol::{self, Budget};
use tma_codegen::diag::Diagnostic;
use tma_codegen::{Checked, Failure, abi};

use crate::progress;

/// A kernel instance that breaks no rule for statements.
#[derive(Debug)]
pub(super) struct Judged {
    /// `kernel`, or `kernel::instance`.
    pub(super) name: String,
    /// Its source file, relative to the package.
    pub(super) file: String,
    pub(super) line: usize,
    /// The end of the path of its PTX.
    pub(super) ptx: String,
    /// Whether macro and build script leave its protocol unjudged.
    pub(super) is_trusted: bool,
    pub(super) report: protocol::Report,
}

/// A file with kernels that break rules. None of its kernels is judged.
#[derive(Debug)]
pub(super) struct Refused {
    pub(super) file: String,
    /// The errors, with the lines that they are about.
    pub(super) text: String,
    pub(super) errors: Vec<Fault>,
}

/// An error of a source file.
#[derive(Debug)]
pub(super) struct Fault {
    /// None if the file is not Rust.
    pub(super) code: Option<String>,
    pub(super) line: usize,
    pub(super) text: String,
}

/// All that was found.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) kernels: Vec<Judged>,
    pub(super) refused: Vec<Refused>,
}

/// Judges the kernels of some files; `root` is left out of their paths.
///
/// # Errors
///
/// If a file cannot be read.
pub(super) fn judge(files: &[PathBuf], root: &Path, budget: Budget) -> Result<Found> {
    let (mut found, mut checked) = (Found::default(), vec![]);
    for path in files {
        let bytes = fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
        // As in the build script: what is not Rust, rustc reports.
        let Ok(source) = String::from_utf8(bytes) else { continue };
        if !source.contains("tma_kernel") {
            continue;
        }
        let file = path.strip_prefix(root).unwrap_or(path).display().to_string();
        match tma_codegen::check(&file, &source) {
            Ok(accepted) => checked.extend(accepted.kernels.into_iter().map(|kernel| (file.clone(), kernel))),
            Err(failure) => found.refused.push(refused(file, &failure)),
        }
    }
    found.kernels = progress::over("following threads through kernels", &checked, |(file, checked)| {
        Ok::<_, anyhow::Error>(judged(file, checked, budget))
    })?;
    Ok(found)
}

fn judged(file: &str, checked: &Checked, budget: Budget) -> Judged {
    let kernel = checked.kernel.kernel();
    Judged {
        name: kernel.path(),
        file: file.to_owned(),
        line: kernel.span.start().line,
        ptx: abi::ptx_file(&kernel.name, kernel.instance.as_deref(), checked.hash),
        is_trusted: kernel.trusted,
        report: protocol::report(&checked.kernel, budget),
    }
}

fn refused(file: String, failure: &Failure) -> Refused {
    let errors = match failure {
        Failure::Syntax(error) => {
            vec![Fault { code: None, line: error.span().start().line, text: error.to_string() }]
        }
        Failure::Rules { errors, .. } => errors.iter().map(Fault::of).collect(),
    };
    let text = match failure {
        Failure::Syntax(_) => format!("{file}:{failure}"),
        Failure::Rules { rendered, .. } => rendered.clone(),
    };
    Refused { file, text, errors }
}

impl Fault {
    pub(super) fn of(diagnostic: &Diagnostic) -> Self {
        let code = Some(diagnostic.code().to_string());
        Self { code, line: diagnostic.span.start().line, text: diagnostic.text() }
    }
}
