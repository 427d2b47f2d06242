//! Groups of threads that are followed together.

use std::collections::BTreeMap;
use std::rc::Rc;

use super::code::{Op, Steps};
use crate::check::uniform::is_of_warp;
use crate::ir::{Kernel, StmtKind, Sync};
use crate::limits::{WARP_THREADS, WARPGROUP_THREADS};
use crate::quick::QuickMap;

/// Groups of threads that are followed together at first: those that do something together.
pub(super) fn first(kernel: &Kernel, code: &Steps<'_>) -> Vec<Rc<[u32]>> {
    let threads = u32::try_from(kernel.launch.thread_count()).unwrap_or(u32::MAX);
    let (mut of_warp, mut of_warpgroup) = (false, false);
    for step in code.steps() {
        let Op::Do(stmt) = &step.op else { continue };
        let is_apart = is_of_warp(&stmt.kind) && !code.slice.is_whole_warp(stmt.id);
        of_warp |= is_apart || matches!(stmt.kind, StmtKind::Sync(Sync::Warp) | StmtKind::Warp { .. });
        of_warpgroup |= matches!(
            stmt.kind,
            StmtKind::Sync(Sync::Warpgroup)
                | StmtKind::Mma(_)
                | StmtKind::MmaWait { .. }
                | StmtKind::StoreAccumulator { .. }
                | StmtKind::SetMaxRegisters { .. }
        );
    }
    let size = if of_warp {
        WARP_THREADS
    } else if of_warpgroup {
        WARPGROUP_THREADS
    } else {
        threads
    };
    let all: Vec<u32> = (0..threads).collect();
    all.chunks(size.max(1) as usize).map(Rc::from).collect()
}

/// Tells these classes of threads apart in all groups; false if they were.
pub(super) fn refine(groups: &mut Vec<Rc<[u32]>>, classes: &[Vec<u32>]) -> bool {
    let before = groups.len();
    let mut class_of = QuickMap::default();
    for (index, class) in classes.iter().enumerate() {
        class.iter().for_each(|&thread| _ = class_of.entry(thread).or_insert(index));
    }
    let mut refined: Vec<Rc<[u32]>> = vec![];
    for group in groups.iter() {
        // Those of no class come last.
        let mut parts: BTreeMap<usize, Vec<u32>> = BTreeMap::new();
        for &thread in group.iter() {
            parts.entry(class_of.get(&thread).copied().unwrap_or(usize::MAX)).or_default().push(thread);
        }
        refined.extend(parts.into_values().map(Rc::from));
    }
    *groups = refined;
    groups.len() > before
}
