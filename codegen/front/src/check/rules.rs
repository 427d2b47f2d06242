//! The context of the rules of single operations.

use super::low_bits::Variables;
use crate::ir::Kernel;

/// The kernel as far as the rules of an operation need to know it.
pub(super) struct Rules<'k> {
    pub(super) kernel: &'k Kernel,
    /// The most blocks of a cluster, or `None` in a kernel without clusters.
    pub(super) blocks: Option<u64>,
    /// The facts about variables at the current statement.
    pub(super) variables: Variables,
}
