//! The pages of `docs/errors`, and the kernels that they show.

use std::fs;
use std::path::{Path, PathBuf};

use tma_codegen::diag::{Code, Diagnostics};
use tma_codegen::{Failure, Target, check, check_for, check_protocol};

/// A fenced block of a page.
pub(crate) struct Example {
    /// The page's line (from 1) before the block's first.
    #[allow(dead_code, reason = "not every test names the line")]
    pub(crate) before: usize,
    pub(crate) outcome: Outcome,
    /// What it is compiled for, where the block says so: ```` ```rust,refused,sm_90 ````.
    pub(crate) target: Option<Target>,
    pub(crate) source: String,
}

/// What a page says becomes of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Accepted,
    /// Accepted, with warnings.
    Warned,
    Refused,
}

/// What is said of a text that is Rust.
pub(crate) struct Judged {
    #[allow(dead_code, reason = "not every test counts them")]
    pub(crate) accepted_kernels: usize,
    #[allow(dead_code, reason = "not every test takes it apart")]
    pub(crate) diagnostics: Diagnostics,
    /// The same, as it is shown.
    #[allow(dead_code, reason = "not every test reads it")]
    pub(crate) rendered: String,
}

impl Outcome {
    fn named(name: &str) -> Option<Self> {
        match name {
            "accepted" => Some(Self::Accepted),
            "warned" => Some(Self::Warned),
            "refused" => Some(Self::Refused),
            _ => None,
        }
    }
}

pub(crate) fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/errors")
}

pub(crate) fn page(code: Code) -> Option<String> {
    fs::read_to_string(folder().join(format!("{code}.md"))).ok()
}

/// The blocks that are kernels.
pub(crate) fn examples(page: &str) -> Vec<Example> {
    let mut found: Vec<Example> = vec![];
    let mut open = false;
    for (number, line) in page.lines().enumerate() {
        if let Some((outcome, target)) = line.strip_prefix("```rust,").and_then(fence) {
            found.push(Example { before: number + 1, outcome, target, source: String::new() });
            open = true;
            continue;
        }
        match line {
            "```" => open = false,
            line if open => {
                if let Some(example) = found.last_mut() {
                    example.source.push_str(line);
                    example.source.push('\n');
                }
            }
            _ => {}
        }
    }
    found
}

/// What the words behind the opening of a block say: the outcome, and perhaps a target.
fn fence(words: &str) -> Option<(Outcome, Option<Target>)> {
    let (outcome, target) =
        words.split_once(',').map_or((words, None), |(word, target)| (word, Some(target)));
    Some((Outcome::named(outcome)?, target.map(|name| name.parse().expect("the target of a block"))))
}

/// The errors and the warnings of a text: as the macro finds them, or those for a target. A text
/// that is no Rust is an error.
pub(crate) fn judge(path: &str, source: &str, target: Option<Target>) -> Result<Judged, String> {
    // Most pages show parts of kernels; those about the protocol show all of it.
    let is_whole = source.contains("//~ TMA07") || source.contains("// As a whole.");
    let result =
        match target {
            None if is_whole => check_protocol(path, source)
                .map(|found| (found.kernels.len(), found.warnings, found.rendered)),
            None => check(path, source).map(|found| (found.kernels.len(), found.warnings, found.rendered)),
            Some(target) => check_for(path, source, target)
                .map(|found| (found.kernels.len(), found.warnings, found.rendered)),
        };
    let (accepted_kernels, diagnostics, rendered) = match result {
        Ok((kernels, warnings, rendered)) => (kernels, Diagnostics { errors: vec![], warnings }, rendered),
        Err(Failure::Rules { errors, warnings, rendered }) => (0, Diagnostics { errors, warnings }, rendered),
        Err(other) => return Err(other.to_string()),
    };
    Ok(Judged { accepted_kernels, diagnostics, rendered })
}
