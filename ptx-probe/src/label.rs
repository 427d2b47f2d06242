//! Names of sites and intervals, as the simulator's timeline has them.

use tma_model::shared_name::SharedName;

use crate::site::{Awaited, Direction, SiteKind};
use crate::trace::{Interval, Trace};

/// Names a block by its index.
pub(crate) fn block(trace: &Trace, block: u32) -> String {
    let [x, y, z] = trace.block_index(block);
    format!("block ({x},{y},{z})")
}

/// Says what an interval waits for or does, with the variable's name.
pub(crate) fn subject(trace: &Trace, interval: &Interval) -> String {
    let mbarrier = || mbarrier(&trace.names, interval.operand);
    match trace.sites[interval.site].kind {
        SiteKind::Wait(awaited) => match awaited {
            Awaited::Mbarrier => mbarrier(),
            Awaited::Barrier => format!("barrier {} of the block", interval.operand),
            Awaited::Cluster => "the cluster's barrier".to_owned(),
            Awaited::Memory => "a value in global memory".to_owned(),
            Awaited::BulkGroups { pending, read } => {
                format!("all but {pending} bulk groups{}", if read { " to be read" } else { "" })
            }
            Awaited::MultiplyGroups(pending) => format!("all but {pending} groups of multiplications"),
            Awaited::Registers => "registers".to_owned(),
            Awaited::Grids => "the previous grids".to_owned(),
        },
        SiteKind::Copy(direction) => match direction {
            Direction::Load | Direction::BetweenBlocks => format!("counted by {}", mbarrier()),
            Direction::Store | Direction::Reduction => match variable(&trace.names, interval.operand) {
                Some(tile) => format!("of `{}`", tile.object_at(interval.operand).0),
                None => format!("of {:#x}", interval.operand),
            },
            Direction::Prefetch => "into the L2 cache".to_owned(),
        },
        SiteKind::CommitCopies | SiteKind::CommitMultiplications => "multiplications".to_owned(),
        SiteKind::Span(_) => trace.sites[interval.site].span().unwrap_or_default().to_owned(),
    }
}

/// Returns the shared variable at this offset.
pub(crate) fn variable(names: &[SharedName], offset: u32) -> Option<&SharedName> {
    names.iter().find(|name| name.has(offset))
}

/// Names the mbarrier at this offset: `` `ring.full[2]` ``, or its offset.
pub(crate) fn mbarrier(names: &[SharedName], offset: u32) -> String {
    match variable(names, offset) {
        Some(variable) => format!("`{}`", variable.object_at(offset).0),
        None => format!("the mbarrier at {offset:#x}"),
    }
}

/// Returns the name of an instruction with its modifiers.
pub(crate) fn mnemonic(instruction: &str) -> &str {
    instruction.split_whitespace().next().unwrap_or("instruction")
}
