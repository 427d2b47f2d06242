//! Kernels in source files, and what the compiler's checks find of them.

use anyhow::Result;
use tma_codegen::check::protocol::{self, Budget, Verdict};
use tma_codegen::diag::Diagnostic;
use tma_codegen::ir::{Kernel, StmtKind, visit};
use tma_codegen::{Checked, Failure, abi};

use crate::progress;
use crate::sources::Sources;

/// A kernel instance that breaks no rule for statements.
#[derive(Debug)]
pub(super) struct Judged {
    /// `kernel`, or `kernel::instance`.
    pub(super) name: String,
    /// The file of its lines, relative to the package; those of other packages begin with the
    /// package's name.
    pub(super) file: String,
    /// The file whose module is made from one in `file`, if it is another.
    pub(super) made_in: Option<String>,
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

/// Judges the kernels of some files.
///
/// # Errors
///
/// None of its own: what is wrong is found.
pub(super) fn judge(sources: &Sources, budget: Budget) -> Result<Found> {
    let (mut found, mut checked) = (Found::default(), vec![]);
    for source in &sources.files {
        match sources.check(source) {
            Ok(accepted) => checked.extend(accepted.kernels.into_iter().map(|kernel| {
                let lines = sources.lines_of(&kernel, source);
                let made_in = (lines.path != source.path).then(|| source.path.clone());
                let exceptions = exceptions(kernel.kernel.kernel(), &lines.text);
                let at = Place { file: lines.path, made_in, exceptions };
                (at, kernel)
            })),
            Err(failure) => found.refused.push(refused(source.path.clone(), &failure)),
        }
    }
    let follow = |(at, checked): &(Place, Checked)| Ok::<_, anyhow::Error>(judged(at, checked, budget));
    found.kernels = progress::over("following threads through kernels", &checked, follow)?;
    Ok(found)
}

/// Where a kernel is, and what it asks to be believed there.
#[derive(Debug)]
struct Place {
    file: String,
    made_in: Option<String>,
    exceptions: Vec<Exception>,
}

fn judged(at: &Place, checked: &Checked, budget: Budget) -> Judged {
    let Place { file, made_in, exceptions } = at;
    let kernel = checked.kernel.kernel();
    let mut report = protocol::report(&checked.kernel, budget);
    if let Verdict::Broken(found) = report.judgement.verdict {
        // As macro and build script search for it, so that all say the same.
        let found = protocol::with_missing_step(&checked.kernel, found, Budget::MACRO);
        report.judgement.verdict = Verdict::Broken(found);
    }
    Judged {
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
