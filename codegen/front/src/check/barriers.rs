//! The barriers of a block that `sync_warpgroup` uses: one for each warpgroup, which no other
//! operation names.
//!
//! Their numbers are constants in the PTX. If one were computed, ptxas would reserve all 16.

use std::collections::BTreeSet;

use tma_model::limits::WARPGROUP_THREADS;

use crate::diag::Sink;
use crate::diag::mistake::Warpgroup;
use crate::ir::{Expr, Kernel, Span, StmtKind, Sync, visit};
use crate::limits::NAMED_BARRIERS;

/// The barriers of the warpgroups, by warpgroup index. Empty if no warpgroup synchronises on its
/// own.
#[derive(Clone, Debug, Default)]
pub struct Barriers {
    of_warpgroups: Vec<u32>,
    /// The first of the barriers at the end that belong to the warpgroups. A number that is
    /// computed at run time must be less.
    end_of_named: u32,
}

impl Barriers {
    /// Returns the barrier of each warpgroup.
    pub fn of_warpgroups(&self) -> &[u32] {
        &self.of_warpgroups
    }

    /// Returns the exclusive bound of the numbers of named barriers.
    pub fn end_of_named(&self) -> u32 {
        self.end_of_named
    }
}

/// Assigns a barrier to each warpgroup, and reports if there are not enough.
///
/// If all named barriers have known numbers, the least unused numbers are assigned: ptxas reserves
/// the barriers up to the greatest. Otherwise the last numbers are assigned, which no computed
/// number may then be.
pub(super) fn assign(kernel: &Kernel, sink: &mut Sink) -> Barriers {
    let mut named = Named::default();
    visit::for_each_stmt(&kernel.body, &mut |stmt| {
        if let StmtKind::Sync(Sync::Warpgroup) = stmt.kind {
            named.sync_warpgroup.get_or_insert(stmt.origin.span);
        } else if let StmtKind::NamedBarrierSync { id, .. } | StmtKind::NamedBarrierArrive { id, .. } =
            &stmt.kind
        {
            named.add(id);
        }
    });
    let Some(sync_warpgroup) = named.sync_warpgroup else {
        return Barriers { of_warpgroups: vec![], end_of_named: NAMED_BARRIERS };
    };
    let warpgroups = kernel.launch.thread_count() / u64::from(WARPGROUP_THREADS);
    let warpgroups = usize::try_from(warpgroups).unwrap_or(usize::MAX);
    let free = (1..NAMED_BARRIERS).filter(|number| !named.numbers.contains(number));
    let mut of_warpgroups: Vec<u32> = match named.computed {
        None => free.take(warpgroups).collect(),
        Some(_) => (1..NAMED_BARRIERS).rev().take(warpgroups).collect(),
    };
    of_warpgroups.sort_unstable();
    let end_of_named = match named.computed {
        None => NAMED_BARRIERS,
        Some(_) => of_warpgroups.first().copied().unwrap_or(NAMED_BARRIERS),
    };
    let clash = named.numbers.range(end_of_named..).next();
    if of_warpgroups.len() < warpgroups || clash.is_some() {
        too_few(&named, warpgroups, sync_warpgroup, sink);
    }
    Barriers { of_warpgroups, end_of_named }
}

/// The barriers that a kernel names.
#[derive(Default)]
struct Named {
    numbers: BTreeSet<u32>,
    /// The first number that is not known at compile time.
    computed: Option<Span>,
    /// The first `sync_warpgroup`.
    sync_warpgroup: Option<Span>,
}

impl Named {
    fn add(&mut self, id: &Expr) {
        match id.as_int() {
            Some(number) => self.numbers.extend(u32::try_from(number)),
            None => _ = self.computed.get_or_insert(id.span),
        }
    }
}

fn too_few(named: &Named, warpgroups: usize, sync_warpgroup: Span, sink: &mut Sink) {
    let greatest = named.numbers.last().copied().unwrap_or_default();
    let (named, computed) = (named.numbers.len(), named.computed);
    sink.error(Warpgroup::Barriers { warpgroups, named, greatest, computed }, sync_warpgroup);
}
