//! The pages of `docs/errors`, and the kernels that they show.

use std::fs;
use std::path::{Path, PathBuf};

use tma_codegen::diag::Code;

/// A fenced block of a page.
pub(crate) struct Example {
    /// The page's line (from 1) before the block's first.
    #[allow(dead_code, reason = "not every test names the line")]
    pub(crate) before: usize,
    pub(crate) refused: bool,
    pub(crate) source: String,
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
        match line {
            "```rust,refused" | "```rust,accepted" => {
                found.push(Example {
                    before: number + 1,
                    refused: line.ends_with("refused"),
                    source: String::new(),
                });
                open = true;
            }
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
