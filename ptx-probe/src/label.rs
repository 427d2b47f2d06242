//! Names of sites and intervals, as the simulator's timeline has them.

use tma_model::shared_name::SharedName;

use crate::site::{Awaited, Direction, SiteKind};
use crate::trace::{Interval, Row, Trace};

/// Names a block by its index.
pub(crate) fn block(trace: &Trace, block: u32) -> String {
    let [x, y, z] = trace.block_index(block);
    format!("block ({x},{y},{z})")
}

/// Names a row of a block's timeline.
pub(crate) fn row(row: Row) -> String {
    match row {
        Row::Warp(warp) => format!("warp {warp}"),
        Row::Loads => "loads".to_owned(),
        Row::Stores => "stores".to_owned(),
        Row::Reductions => "reductions".to_owned(),
        Row::BetweenBlocks => "copies in the cluster".to_owned(),
        Row::Prefetches => "prefetches".to_owned(),
        Row::Multiplications(warp) => format!("multiplications of warp {warp}"),
    }
}

/// Says what an interval waits for or does, with the variable's name.
pub(crate) fn subject(trace: &Trace, interval: &Interval) -> String {
    let named = || variable(&trace.names, interval.operand);
    match trace.sites[interval.site].kind {
        SiteKind::Wait(awaited) => match awaited {
            Awaited::Mbarrier => {
                named().unwrap_or_else(|| format!("the mbarrier at {:#x}", interval.operand))
            }
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
            Direction::Load | Direction::BetweenBlocks => match named() {
                Some(mbarrier) => format!("counted by {mbarrier}"),
                None => format!("counted by the mbarrier at {:#x}", interval.operand),
            },
            Direction::Store | Direction::Reduction => match named() {
                Some(tile) => format!("of {tile}"),
                None => format!("of {:#x}", interval.operand),
            },
            Direction::Prefetch => "into the L2 cache".to_owned(),
        },
        SiteKind::CommitCopies | SiteKind::CommitMultiplications => "multiplications".to_owned(),
    }
}

/// Returns the name of the shared variable at this offset, such as `ring.full[2]`.
pub(crate) fn variable(names: &[SharedName], offset: u32) -> Option<String> {
    let found = names.iter().find(|name| (name.from..name.to).contains(&offset))?;
    Some(format!("`{}`", found.object_at(offset).0))
}

/// Returns the name of the variable without the number of a stage.
pub(crate) fn whole_variable(names: &[SharedName], offset: u32) -> Option<String> {
    let found = names.iter().find(|name| (name.from..name.to).contains(&offset))?;
    Some(format!("`{}`", found.name))
}

/// Returns the name of an instruction with its modifiers.
pub(crate) fn mnemonic(instruction: &str) -> &str {
    instruction.split_whitespace().next().unwrap_or("instruction")
}
