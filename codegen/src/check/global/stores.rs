//! Stores by the copy engine that may write one place in global memory several times: by several
//! threads of a block, by several statements, or in several iterations of a loop.
//!
//! Copies of different threads and of different bulk groups have no order among themselves (PTX
//! ISA, "Async proxy", "cp.async.bulk.commit_group"), so one of them has to be waited for first.
//! `protocol` follows the coordinates of these stores, and only of these.

use super::located::{self, GuardKind, Located};
use super::reduction;
use crate::ir::{Accessor, Kernel, ParamId, visit};
use crate::quick::QuickSet;

/// Returns the parameters in whose memory copies may store one element several times, as far as
/// the expressions of their indices tell.
pub(in crate::check) fn with_repeated_stores(kernel: &Kernel) -> QuickSet<ParamId> {
    let mut has_stores = false;
    visit::for_each_stmt(&kernel.body, &mut |stmt| {
        let mut accesses = stmt.facts().accesses.into_iter();
        has_stores |= accesses
            .any(|access| access.by == Accessor::Copy && access.writes && access.object.global().is_some());
    });
    if !has_stores {
        return QuickSet::default();
    }
    let summary = located::all(kernel);
    // Reductions need no order among themselves.
    let is_store =
        |one: &&Located<'_>| one.access.by_copy && one.access.writes && reduction(one.access.stmt).is_none();
    let stores: Vec<_> = summary.accesses.iter().filter(is_store).collect();
    let is_repeated = |(number, one): (usize, &&Located<'_>)| {
        let mut others = stores.iter().skip(number + 1);
        by_several_threads(one) || in_each_iteration(one) || others.any(|other| may_overlap(one, other))
    };
    let repeated = stores.iter().enumerate().filter(|store| is_repeated(*store));
    repeated.map(|(_, one)| one.access.param).collect()
}

/// Whether several threads of a block may store to one place.
fn by_several_threads(one: &Located<'_>) -> bool {
    !one.is_of_one_thread && one.indices.iter().all(|index| !index.by_thread)
}

/// Whether all iterations of a loop store to one place.
fn in_each_iteration(one: &Located<'_>) -> bool {
    let is_in_loop = one.guards.iter().any(|guard| guard.kind == GuardKind::Loop);
    is_in_loop && one.indices.iter().all(|index| !index.by_iteration)
}

/// Whether two statements may store to one place: their indices are equal or known numbers.
fn may_overlap(one: &Located<'_>, other: &Located<'_>) -> bool {
    let mut indices = one.indices.iter().zip(&other.indices);
    one.access.param == other.access.param
        && indices.all(|(one, other)| one.id == other.id || one.int.is_some() && other.int.is_some())
}
