//! Kernels in source files, and what the compiler's checks find of them.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use tma_codegen::check::protocol::{self, Budget, Verdict};
use tma_codegen::diag::Diagnostic;
use tma_codegen::ir::{Kernel, StmtKind, visit};
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
    /// Why macro and build script leave its protocol unjudged, if they do.
    pub(super) trusted: Option<String>,
    /// What else it asks to be believed, in the order of its lines.
    pub(super) exceptions: Vec<Exception>,
    pub(super) report: protocol::Report,
}

/// Something that a kernel asks to be believed.
#[derive(Clone, Debug)]
pub(super) struct Exception {
    pub(super) line: usize,
    pub(super) what: Believed,
}

/// What is believed.
#[derive(Clone, Debug)]
pub(super) enum Believed {
    /// A statement, for this reason.
    Statement(String),
    /// A condition, by the text of its line.
    Assumption(String),
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
            Ok(accepted) => checked.extend(accepted.kernels.into_iter().map(|kernel| {
                let exceptions = exceptions(kernel.kernel.kernel(), &source);
                (file.clone(), kernel, exceptions)
            })),
            Err(failure) => found.refused.push(refused(file, &failure)),
        }
    }
    found.kernels =
        progress::over("following threads through kernels", &checked, |(file, checked, exceptions)| {
            Ok::<_, anyhow::Error>(judged(file, checked, exceptions, budget))
        })?;
    Ok(found)
}

fn judged(file: &str, checked: &Checked, exceptions: &[Exception], budget: Budget) -> Judged {
    let kernel = checked.kernel.kernel();
    let mut report = protocol::report(&checked.kernel, budget);
    if let Verdict::Broken(found) = report.judgement.verdict {
        // As macro and build script search for it, so that all say the same.
        let found = protocol::with_missing_step(&checked.kernel, found, Budget::MACRO);
        report.judgement.verdict = Verdict::Broken(found);
    }
    Judged {
        name: kernel.path(),
        file: file.to_owned(),
        line: kernel.span.start().line,
        ptx: abi::ptx_file(kernel, checked.hash),
        trusted: kernel.trusted.clone(),
        exceptions: exceptions.to_vec(),
        report,
    }
}

/// The statements of a kernel that are not judged, and what it assumes.
fn exceptions(kernel: &Kernel, source: &str) -> Vec<Exception> {
    let statements = kernel.trusted_statements().map(|(span, reason)| Exception {
        line: span.start().line,
        what: Believed::Statement(reason.to_owned()),
    });
    let mut exceptions: Vec<_> = statements.collect();
    visit::for_each_stmt(&kernel.body, &mut |stmt| {
        if let StmtKind::Assert { assumed: true, .. } = stmt.kind {
            let line = stmt.origin.span.start().line;
            let text = source.lines().nth(line.saturating_sub(1)).unwrap_or_default().trim();
            exceptions.push(Exception { line, what: Believed::Assumption(text.to_owned()) });
        }
    });
    exceptions.sort_by_key(|exception| exception.line);
    exceptions
}

fn refused(file: String, failure: &Failure) -> Refused {
    if let Failure::Rules { errors, rendered, .. } = failure {
        return Refused { file, text: rendered.clone(), errors: errors.iter().map(Fault::of).collect() };
    }
    // All others are one error, without a code.
    let (line, text) = match failure {
        Failure::Syntax(error) => (error.span().start().line, error.to_string()),
        other => (1, other.to_string()),
    };
    Refused { text: format!("{file}:{failure}"), file, errors: vec![Fault { code: None, line, text }] }
}

impl Fault {
    pub(super) fn of(diagnostic: &Diagnostic) -> Self {
        let code = Some(diagnostic.code().to_string());
        Self { code, line: diagnostic.span.start().line, text: diagnostic.text() }
    }
}
