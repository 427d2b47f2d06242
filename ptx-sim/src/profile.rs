//! Counts of the instructions that the warps of a launch ran, by class, and of accesses to shared
//! memory with their bank conflicts.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::AddAssign;

pub use crate::isa::{Class, StateSpace};
use crate::machine::Site;

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Integer => f.write_str("integer, logic, moves"),
            Self::Float => f.write_str("floating point"),
            Self::Convert => f.write_str("conversions"),
            Self::Load(named) => write!(f, "loads, {named}"),
            Self::Store(named) => write!(f, "stores, {named}"),
            Self::Atomic(named) => write!(f, "atomics, {named}"),
            Self::Copy => f.write_str("asynchronous copies"),
            Self::BulkGroup => f.write_str("bulk groups"),
            Self::Tensor => f.write_str("tensor cores"),
            Self::Mbarrier => f.write_str("mbarriers"),
            Self::Barrier => f.write_str("barriers"),
            Self::Fence => f.write_str("fences"),
            Self::Warp => f.write_str("lanes together"),
            Self::Control => f.write_str("control flow"),
        }
    }
}

impl fmt::Display for StateSpace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Global => "global",
            Self::Shared => "shared",
            Self::Cluster => "shared of the cluster",
            Self::Generic => "generic",
            Self::Local => "local",
            Self::Param => "parameters",
        })
    }
}

/// The number of times that instructions were run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Executed {
    /// Counted once for each warp, even if a predicate left no lane active.
    pub warps: u64,
    /// Counted once for each thread that took part.
    pub threads: u64,
}

impl AddAssign for Executed {
    fn add_assign(&mut self, other: Self) {
        self.warps += other.warps;
        self.threads += other.threads;
    }
}

/// Accesses of warps to the shared memory of their own block.
///
/// [`tma_model::banks`] documents the model and its sources.
///
/// The accesses of `ld`, `st`, `atom` and `red` are counted, with the sizes that the PTX states;
/// ptxas may join or split them. Not counted are `cp.async`, mbarriers, the asynchronous engines,
/// and accesses to the shared memory of other blocks, which go over another network.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SharedAccesses {
    /// Instructions of a warp with at least one active lane.
    pub accesses: u64,
    /// The wavefronts that they need.
    pub wavefronts: u64,
    /// The wavefronts that they would need if no two words lay in the same bank.
    pub ideal: u64,
}

impl SharedAccesses {
    /// Returns the number of wavefronts beyond the ideal.
    pub fn conflicts(&self) -> u64 {
        self.wavefronts.saturating_sub(self.ideal)
    }
}

impl AddAssign for SharedAccesses {
    fn add_assign(&mut self, other: Self) {
        self.accesses += other.accesses;
        self.wavefronts += other.wavefronts;
        self.ideal += other.ideal;
    }
}

/// The counts of the instructions of one class on one PTX line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LineCounts {
    /// The line, and the source line that it comes from.
    pub site: Site,
    /// The class.
    pub class: Class,
    /// The number of times that they were run.
    pub executed: Executed,
    /// Their accesses to shared memory.
    pub shared: SharedAccesses,
}

/// The counts of a launch, if [`LaunchConfig::profile`](crate::LaunchConfig::profile) was set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Profile {
    lines: Vec<LineCounts>,
}

impl Profile {
    /// Merges the counts of instructions of one class on the same PTX line.
    pub(crate) fn new(counts: impl Iterator<Item = LineCounts>) -> Self {
        let mut lines = BTreeMap::new();
        for count in counts {
            let sum: &mut (Executed, SharedAccesses) = lines.entry((count.site, count.class)).or_default();
            sum.0 += count.executed;
            sum.1 += count.shared;
        }
        let line = |((site, class), (executed, shared))| LineCounts { site, class, executed, shared };
        Self { lines: lines.into_iter().map(line).collect() }
    }

    /// Returns the counts by PTX line, including lines that were never run.
    pub fn lines(&self) -> &[LineCounts] {
        &self.lines
    }

    /// Returns the counts by class. Classes that were not run are left out.
    pub fn by_class(&self) -> BTreeMap<Class, Executed> {
        let mut classes = BTreeMap::new();
        for line in self.lines.iter().filter(|line| line.executed.warps > 0) {
            *classes.entry(line.class).or_insert_with(Executed::default) += line.executed;
        }
        classes
    }

    /// Returns the accesses to shared memory by source line, or by PTX line where the PTX names no
    /// source. For a source line, `ptx_line` is the first of its PTX lines. The result is in the
    /// order of the sources, without lines that have no access.
    pub fn shared_by_source(&self) -> Vec<(Site, SharedAccesses)> {
        let mut sums: BTreeMap<_, (Site, SharedAccesses)> = BTreeMap::new();
        for line in self.lines.iter().filter(|line| line.shared.accesses > 0) {
            let alone = line.site.source.is_none().then_some(line.site.ptx_line);
            let sum = sums.entry((line.site.source, alone)).or_insert((line.site, SharedAccesses::default()));
            sum.1 += line.shared;
        }
        sums.into_values().collect()
    }

    /// Returns the sum of all accesses to shared memory.
    pub fn shared(&self) -> SharedAccesses {
        let mut sum = SharedAccesses::default();
        self.lines.iter().for_each(|line| sum += line.shared);
        sum
    }
}
