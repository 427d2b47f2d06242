//! Kernels in source files, and the results of the compiler's checks on them.

use anyhow::Result;
use tma_codegen::diag::Diagnostic;
use tma_codegen::ir::{Kernel, StmtKind, visit};
use tma_codegen::protocol::{self, Budget, Verdict};
use tma_codegen::{Checked, Failure, abi};

use crate::progress;
use crate::sources::Sources;

/// A kernel instance that breaks no rule for individual statements.
#[derive(Debug)]
pub(super) struct CheckedKernel {
    /// `kernel`, or `kernel::instance`.
    pub(super) name: String,
    /// File of its source lines, relative to the package. Files of other packages begin with the
    /// package's name.
    pub(super) file: String,
    /// File of the module, if it is instantiated from a template in `file` and is in another file.
    pub(super) made_in: Option<String>,
    pub(super) line: usize,
    /// End of the path of its PTX.
    pub(super) ptx: String,
    /// The reason for which the macro and the build script skip its protocol, if they do.
    pub(super) trusted: Option<String>,
    /// Other statements and conditions that it asks to be trusted, in the order of their lines,
    /// without repetitions.
    pub(super) exceptions: Vec<Exception>,
    pub(super) report: protocol::Report,
}

/// A statement or a condition that a kernel asks to be trusted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Exception {
    pub(super) line: usize,
    pub(super) item: TrustedItem,
}

/// The subject of an exception.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum TrustedItem {
    /// A statement, with the reason.
    Statement(String),
    /// A condition, as the text of its line.
    Assumption(String),
    /// A `ptx!`.
    Ptx,
}

/// A file with kernels that break rules. None of its kernels is checked further.
#[derive(Debug)]
pub(super) struct RejectedFile {
    pub(super) file: String,
    /// Errors, rendered with their source lines.
    pub(super) text: String,
    pub(super) errors: Vec<Fault>,
}

/// An error of a source file.
#[derive(Debug)]
pub(super) struct Fault {
    /// Code of the error. `None` if the file is not Rust.
    pub(super) code: Option<String>,
    pub(super) line: usize,
    pub(super) text: String,
}

/// The results of the checks.
#[derive(Debug, Default)]
pub(super) struct CheckResults {
    pub(super) kernels: Vec<CheckedKernel>,
    pub(super) rejected: Vec<RejectedFile>,
}

/// Checks the kernels of some files.
///
/// # Errors
///
/// None. Errors in the sources are part of the results.
pub(super) fn check_kernels(sources: &Sources, budget: Budget) -> Result<CheckResults> {
    let (mut found, mut checked) = (CheckResults::default(), vec![]);
    for source in &sources.files {
        match sources.check(source) {
            Ok(accepted) => checked.extend(accepted.kernels.into_iter().map(|kernel| {
                let lines = sources.lines_of(&kernel, source);
                let made_in = (lines.path != source.path).then(|| source.path.clone());
                let exceptions = exceptions(kernel.kernel.kernel(), &lines.text);
                let at = KernelLocation { file: lines.path, made_in, exceptions };
                (at, kernel)
            })),
            Err(failure) => found.rejected.push(rejected_file(source.path.clone(), &failure)),
        }
    }
    let follow =
        |(at, checked): &(KernelLocation, Checked)| Ok::<_, anyhow::Error>(check_kernel(at, checked, budget));
    found.kernels = progress::over("checking kernels", &checked, follow)?;
    Ok(found)
}

/// The location of a kernel, and its exceptions.
#[derive(Debug)]
struct KernelLocation {
    file: String,
    made_in: Option<String>,
    exceptions: Vec<Exception>,
}

fn check_kernel(at: &KernelLocation, checked: &Checked, budget: Budget) -> CheckedKernel {
    let KernelLocation { file, made_in, exceptions } = at;
    let kernel = checked.kernel.kernel();
    let mut report = protocol::report(&checked.kernel, budget);
    if let Verdict::Broken(found) = report.judgement.verdict {
        // The macro and the build script search with the same budget, so that all report the same.
        let found = protocol::with_missing_step(&checked.kernel, found, Budget::MACRO);
        report.judgement.verdict = Verdict::Broken(found);
    }
    CheckedKernel {
        name: kernel.path(),
        file: file.clone(),
        made_in: made_in.clone(),
        line: kernel.span.start().line,
        ptx: abi::ptx_file(kernel, checked.hash),
        trusted: kernel.trusted.clone(),
        exceptions: exceptions.clone(),
        report,
    }
}

/// Returns the statements of a kernel that are trusted, and its assumptions.
fn exceptions(kernel: &Kernel, source: &str) -> Vec<Exception> {
    let statements = kernel.trusted_statements().map(|(span, reason)| Exception {
        line: span.start().line,
        item: TrustedItem::Statement(reason.to_owned()),
    });
    let mut exceptions: Vec<_> = statements.collect();
    visit::for_each_stmt(&kernel.body, &mut |stmt| {
        let line = stmt.origin.span.start().line;
        if let StmtKind::Ptx(_) = stmt.kind {
            exceptions.push(Exception { line, item: TrustedItem::Ptx });
        } else if let StmtKind::Assert { assumed: true, .. } = stmt.kind {
            let text = source.lines().nth(line.saturating_sub(1)).unwrap_or_default().trim();
            exceptions.push(Exception { line, item: TrustedItem::Assumption(text.to_owned()) });
        }
    });
    exceptions.sort_by_key(|exception| exception.line);
    exceptions.dedup();
    exceptions
}

fn rejected_file(file: String, failure: &Failure) -> RejectedFile {
    if let Failure::Rules { errors, rendered, .. } = failure {
        return RejectedFile { file, text: rendered.clone(), errors: errors.iter().map(Fault::of).collect() };
    }
    // Every other failure is a single error without a code.
    let (line, text) = match failure {
        Failure::Syntax(error) => (error.span().start().line, error.to_string()),
        other => (1, other.to_string()),
    };
    RejectedFile { text: format!("{file}:{failure}"), file, errors: vec![Fault { code: None, line, text }] }
}

impl Fault {
    pub(super) fn of(diagnostic: &Diagnostic) -> Self {
        let code = Some(diagnostic.code().to_string());
        Self { code, line: diagnostic.span.start().line, text: diagnostic.text() }
    }
}
