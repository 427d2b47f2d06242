//! Who accessed global memory, and which two accesses conflict.
//!
//! Source: PTX ISA, "Morally strong operations", "Race", "Proxies". Two accesses that overlap, at
//! least one of them a write, have to be ordered, unless both are strong, each has a scope that
//! includes the other's thread, both go through one proxy, and they overlap completely.

use tma_model::sync::{AccessKind, Epoch, MemoryScope, Proxy};

use crate::machine::sizes::Sizes;

/// How an access is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::machine) struct Manner {
    pub(in crate::machine) kind: AccessKind,
    pub(in crate::machine) proxy: Proxy,
    /// None of a weak access.
    pub(in crate::machine) scope: Option<MemoryScope>,
    /// Of a strong one.
    pub(in crate::machine) sizes: Sizes,
}

impl Manner {
    /// A thread's access.
    pub(in crate::machine) const fn generic(kind: AccessKind, scope: Option<MemoryScope>) -> Self {
        Self { kind, proxy: Proxy::Generic, scope, sizes: Sizes::ANY }
    }

    /// The same of these sizes.
    pub(in crate::machine) const fn of(self, sizes: Sizes) -> Self {
        Self { sizes, ..self }
    }

    /// A copy's access through the async proxy.
    pub(in crate::machine) const fn of_copy(kind: AccessKind) -> Self {
        let scope = match kind {
            AccessKind::Reduce => Some(MemoryScope::Device),
            AccessKind::Read | AccessKind::Write => None,
        };
        Self { kind, proxy: Proxy::Async, scope, sizes: Sizes::ANY }
    }
}

/// A thread, as all clusters of a launch name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(in crate::machine) struct Author {
    pub(in crate::machine) cluster: u32,
    /// The number of the thread in its cluster.
    pub(in crate::machine) thread: u32,
}

impl Author {
    /// Whether a scope of this thread includes the other one. Blocks have `threads` threads.
    pub(in crate::machine) fn reaches(self, scope: MemoryScope, other: Self, threads: u32) -> bool {
        let same_cluster = self.cluster == other.cluster;
        let threads = threads.max(1);
        scope.includes(same_cluster && self.thread / threads == other.thread / threads, same_cluster)
    }
}

/// An access that was made.
#[derive(Clone, Copy, Debug)]
pub(in crate::machine) struct GlobalAccess {
    /// The step of its cluster's clocks that stands for it.
    pub(in crate::machine) step: Epoch,
    /// The thread that made it, or issued the copy.
    pub(in crate::machine) author: Author,
    /// The PTX line.
    pub(in crate::machine) line: u32,
    pub(in crate::machine) manner: Manner,
}

impl GlobalAccess {
    /// No access.
    pub(in crate::machine) const NONE: Self = Self {
        step: Epoch::new(tma_model::sync::Component::new(0), 0),
        author: Author { cluster: 0, thread: 0 },
        line: 0,
        manner: Manner::generic(AccessKind::Read, None),
    };
}

/// The rule that two accesses break.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::machine) enum Rule {
    /// They are in no order.
    Race,
    /// Both are strong, but not for each other.
    ScopeTooNarrow,
    /// They are in no order, and would be if the scopes of a release and its acquire were wider.
    ReleaseTooNarrow,
    /// Both are strong, but of different sizes.
    MixedSizes,
    /// Both are strong, but one is a reduction of the async proxy and the other is not.
    MixedProxies,
    /// They are ordered, but the later one is in the async proxy, and there is no proxy fence between them.
    MissingProxyFence,
}

impl Rule {
    /// Whether it is that of a race, which two writes of the same bytes are not.
    pub(in crate::machine) fn is_race(self) -> bool {
        match self {
            Self::Race | Self::ReleaseTooNarrow => true,
            Self::ScopeTooNarrow | Self::MixedSizes | Self::MixedProxies | Self::MissingProxyFence => false,
        }
    }
}

/// An access that does not go with an earlier one.
#[derive(Clone, Copy, Debug)]
pub(in crate::machine) struct GlobalConflict {
    pub(in crate::machine) rule: Rule,
    /// The address of the first byte that was compared.
    pub(in crate::machine) address: u64,
    /// The earlier access.
    pub(in crate::machine) other: GlobalAccess,
}

/// The rule that two accesses in no order break.
pub(super) fn unordered(earlier: &GlobalAccess, later: &GlobalAccess, threads: u32) -> Option<Rule> {
    match (earlier.manner.kind, later.manner.kind) {
        (AccessKind::Read, AccessKind::Read) | (AccessKind::Reduce, AccessKind::Reduce) => return None,
        (AccessKind::Read | AccessKind::Write | AccessKind::Reduce, _) => {}
    }
    let (Some(one), Some(two)) = (earlier.manner.scope, later.manner.scope) else { return Some(Rule::Race) };
    if earlier.manner.proxy != later.manner.proxy {
        return Some(Rule::MixedProxies);
    }
    if !earlier.manner.sizes.meet(later.manner.sizes) {
        return Some(Rule::MixedSizes);
    }
    let reach = earlier.author.reaches(one, later.author, threads)
        && later.author.reaches(two, earlier.author, threads);
    (!reach).then_some(Rule::ScopeTooNarrow)
}
