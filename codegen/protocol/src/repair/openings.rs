//! Positions for new statements: between lines of the source, next to the violation.

use tma_front::diag::mistake::SourceLocation;
use tma_front::ir::{Block, Kernel, Stmt, StmtId, visit};

use super::edit::Gap;

/// A position for a new statement.
pub(super) struct Opening {
    pub(super) gap: Gap,
    pub(super) location: SourceLocation,
    /// The distance from the violation, by the number of blocks in between.
    distance: u32,
}

/// Returns the positions for a new statement, those next to the violation first: around the lines
/// of the statements that take part, and of the blocks that contain them.
pub(super) fn openings(body: &Block, parties: &[StmtId]) -> Vec<Opening> {
    let mut all: Vec<Opening> = vec![];
    open(body, None, parties, &mut all);
    all.sort_by_key(|opening| opening.distance);
    all
}

/// Adds the positions of a block inside the statement `around`. Returns the depth of the nearest
/// statement that takes part.
fn open(block: &Block, around: Option<&Stmt>, parties: &[StmtId], all: &mut Vec<Opening>) -> Option<u32> {
    let mut nearest: Option<u32> = None;
    for (index, stmt) in block.stmts.iter().enumerate() {
        let inside = visit::blocks(&stmt.kind).into_iter();
        let inside: Vec<_> = inside.filter_map(|inner| open(inner, Some(stmt), parties, all)).collect();
        let own = parties.contains(&stmt.id).then_some(0);
        let Some(depth) = inside.into_iter().map(|depth| depth + 1).chain(own).min() else { continue };
        nearest = Some(nearest.map_or(depth, |nearest| nearest.min(depth)));
        let found = [before(block, index, around), after(block, index, around), at_end(block, index, around)];
        for ((gap, location), rank) in found.into_iter().flatten().zip(0..) {
            all.push(Opening { gap, location, distance: 3 * depth + rank });
        }
    }
    nearest
}

/// Returns the gap before the line in which the statement at `index` begins, if no statement from a
/// line before extends into that line.
fn before(block: &Block, index: usize, around: Option<&Stmt>) -> Option<(Gap, SourceLocation)> {
    let line = block.stmts.get(index)?.origin.span.first_line();
    let first = block.stmts[..index].iter().rposition(|stmt| stmt.origin.span.last_line() < line);
    let first = block.stmts.get(first.map_or(0, |before| before + 1))?;
    let is_alone = around.is_none_or(|around| around.origin.span.first_line() < line);
    let span = first.origin.span;
    (is_alone && span.first_line() == line).then_some((Gap::Before(first.id), SourceLocation::Before(span)))
}

/// Returns the gap after the line in which the statement at `index` ends, if no statement extends
/// beyond that line.
fn after(block: &Block, index: usize, around: Option<&Stmt>) -> Option<(Gap, SourceLocation)> {
    let line = block.stmts.get(index)?.origin.span.last_line();
    let next = block.stmts[index..].iter().position(|stmt| stmt.origin.span.first_line() > line);
    let last = block.stmts.get(next.map_or(block.stmts.len(), |next| index + next).checked_sub(1)?)?;
    let is_alone = around.is_none_or(|around| line < around.origin.span.last_line());
    let span = last.origin.span;
    (is_alone && span.last_line() == line).then_some((Gap::After(last.id), SourceLocation::After(span)))
}

/// Returns the gap at the end of the block, unless it directly follows the statement.
fn at_end(block: &Block, index: usize, around: Option<&Stmt>) -> Option<(Gap, SourceLocation)> {
    let (stmt, last) = (block.stmts.get(index)?, block.stmts.last()?);
    let is_alone = around.is_none_or(|around| last.origin.span.last_line() < around.origin.span.last_line());
    let is_other = last.origin.span.last_line() > stmt.origin.span.last_line();
    (is_alone && is_other).then_some((Gap::AtEnd(stmt.id), SourceLocation::AtEnd(stmt.origin.span)))
}

/// Whether the lines of a statement contain nothing but the statement.
pub(super) fn is_alone(kernel: &Kernel, stmt: &Stmt) -> bool {
    let span = stmt.origin.span;
    let mut inside = vec![stmt.id];
    for block in visit::blocks(&stmt.kind) {
        visit::for_each_stmt(block, &mut |inner| inside.push(inner.id));
    }
    let mut alone = true;
    visit::for_each_stmt(&kernel.body, &mut |other| {
        let (first, last) = (other.origin.span.first_line(), other.origin.span.last_line());
        let is_apart = last < span.first_line() || first > span.last_line();
        let is_around = first < span.first_line() && last > span.last_line();
        alone &= is_apart || is_around || inside.contains(&other.id);
    });
    alone
}

/// Returns the gap before the line of a statement, in whatever block it is.
pub(super) fn before_stmt(block: &Block, around: Option<&Stmt>, id: StmtId) -> Option<(Gap, SourceLocation)> {
    if let Some(index) = block.stmts.iter().position(|stmt| stmt.id == id) {
        return before(block, index, around);
    }
    block.stmts.iter().find_map(|stmt| {
        visit::blocks(&stmt.kind).into_iter().find_map(|inner| before_stmt(inner, Some(stmt), id))
    })
}
