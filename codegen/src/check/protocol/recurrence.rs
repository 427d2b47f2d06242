//! Loops whose end is not known: when their state comes around, what was looked at is all.

use super::run::{Run, Step};
use crate::ir::StmtId;

/// The states that a world has been in where it decided freely.
#[derive(Debug, Default)]
pub(super) struct Seen {}

/// A free decision is taken.
pub(super) fn look(_run: &mut Run<'_, '_>, _stmt: StmtId) -> Step {
    Ok(())
}
