//! Stores by the copy engine that may write one place in global memory several times: by several
//! threads of a block, by several statements, or in several iterations of a loop.
//!
//! Copies of different threads and of different bulk groups have no order among themselves (PTX
//! ISA, "Async proxy", "cp.async.bulk.commit_group"), so one of them has to be waited for first.
//! `protocol` follows the coordinates of these stores, and only of these.

use tma_front::ir::{Kernel, ParamId};
use tma_front::quick::QuickSet;

use super::located::{self, GuardKind, Located};
use super::{GlobalAccess, reduction};

/// Returns the parameters in whose memory copies may store one element several times, as far as
/// the expressions of their indices tell.
pub(crate) fn with_repeated_stores(kernel: &Kernel, accesses: &[GlobalAccess<'_>]) -> QuickSet<ParamId> {
    if !accesses.iter().any(is_store) {
        return QuickSet::default();
    }
    let summary = located::all(kernel);
    let stores: Vec<_> = summary.accesses.iter().filter(|one| is_store(&one.access)).collect();
    let is_repeated = |(number, one): (usize, &&Located<'_>)| {
        let mut others = stores.iter().skip(number + 1);
        by_several_threads(one) || in_each_iteration(one) || others.any(|other| may_overlap(one, other))
    };
    let repeated = stores.iter().enumerate().filter(|store| is_repeated(*store));
    repeated.map(|(_, one)| one.access.param).collect()
}

/// Whether an access is a store by the copy engine. Reductions need no order among themselves.
fn is_store(access: &GlobalAccess<'_>) -> bool {
    access.by_copy && access.writes && reduction(access.stmt).is_none()
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
