//! What is said of rules that more than one stage judges.

use super::{Code, Diagnostic};
use crate::ir::Span;

/// `word` is about clusters, and stands in a kernel that has none.
pub(crate) fn no_cluster(word: &str, span: Span) -> Diagnostic {
    let message = format!("`{word}` is about clusters, and this kernel has none");
    let mut error = Diagnostic::new(Code::NoCluster, span, message);
    error.help("say how many blocks a cluster has: `#[tma_kernel(threads = .., cluster = 2)]`");
    error
}
