//! Accesses to global memory, and the rule for conflicts between two of them.
//!
//! Source: PTX ISA, "Morally strong operations", "Race", "Proxies". Two overlapping accesses, at
//! least one of them a write, must be ordered unless they are morally strong: both are strong, each
//! has a scope that includes the other's thread, both use the same proxy, and they overlap
//! completely.

use tma_model::sync::{AccessKind, Epoch, MemoryScope, Proxy};

use super::team::TeamLayout;
use crate::machine::sizes::Sizes;

/// The properties of an access that decide whether it conflicts with another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::machine) struct AccessAttributes {
    pub(in crate::machine) kind: AccessKind,
    pub(in crate::machine) proxy: Proxy,
    /// The scope; `None` for a weak access.
    pub(in crate::machine) scope: Option<MemoryScope>,
    /// The sizes, for a strong access.
    pub(in crate::machine) sizes: Sizes,
}

impl AccessAttributes {
    /// Returns the manner of a thread's access.
    pub(in crate::machine) const fn generic(kind: AccessKind, scope: Option<MemoryScope>) -> Self {
        Self { kind, proxy: Proxy::Generic, scope, sizes: Sizes::ANY }
    }

    /// Returns the same manner with these sizes.
    pub(in crate::machine) const fn of(self, sizes: Sizes) -> Self {
        Self { sizes, ..self }
    }

    /// Returns the manner of a copy's access through the asynchronous proxy.
    pub(in crate::machine) const fn of_copy(kind: AccessKind) -> Self {
        let scope = match kind {
            AccessKind::Reduce => Some(MemoryScope::Device),
            AccessKind::Read | AccessKind::Write => None,
        };
        Self { kind, proxy: Proxy::Async, scope, sizes: Sizes::ANY }
    }
}

/// A thread, identified across all clusters of a launch. Clusters are numbered through all ranks of
/// a team.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(in crate::machine) struct GridThread {
    pub(in crate::machine) cluster: u32,
    /// The number of the thread in its cluster.
    pub(in crate::machine) thread: u32,
}

/// A recorded access.
#[derive(Clone, Copy, Debug)]
pub(in crate::machine) struct GlobalAccess {
    /// The step in the clocks of its cluster that represents the access.
    pub(in crate::machine) step: Epoch,
    /// The thread that made the access or issued the copy.
    pub(in crate::machine) grid_thread: GridThread,
    /// The PTX line.
    pub(in crate::machine) line: u32,
    pub(in crate::machine) attributes: AccessAttributes,
}

impl GlobalAccess {
    /// The absence of an access.
    pub(in crate::machine) const NONE: Self = Self {
        step: Epoch::new(tma_model::sync::Component::new(0), 0),
        grid_thread: GridThread { cluster: 0, thread: 0 },
        line: 0,
        attributes: AccessAttributes::generic(AccessKind::Read, None),
    };
}

/// The rule that two accesses violate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::machine) enum AccessRule {
    /// The accesses are unordered.
    Race,
    /// Both are strong, but their scopes do not include each other's threads.
    ScopeTooNarrow,
    /// The accesses are unordered, but would be ordered if the scopes of a release and its acquire
    /// were wider.
    ReleaseTooNarrow,
    /// Both are strong, but of different sizes.
    MixedSizes,
    /// Both are strong, but one is a reduction of the asynchronous proxy and the other is not.
    MixedProxies,
    /// The accesses are ordered, but the later one uses the asynchronous proxy and no proxy fence
    /// separates them.
    MissingProxyFence,
    /// The later access is a non-coherent load, which need not see the earlier one, even if they
    /// are ordered.
    NonCoherent,
}

impl AccessRule {
    /// Returns whether this is a data race, which two writes of the same bytes are exempt from.
    pub(in crate::machine) fn is_race(self) -> bool {
        match self {
            Self::Race | Self::ReleaseTooNarrow => true,
            Self::ScopeTooNarrow
            | Self::MixedSizes
            | Self::MixedProxies
            | Self::MissingProxyFence
            | Self::NonCoherent => false,
        }
    }
}

/// An access that conflicts with an earlier one.
#[derive(Clone, Copy, Debug)]
pub(in crate::machine) struct GlobalConflict {
    pub(in crate::machine) rule: AccessRule,
    /// The first address that was compared.
    pub(in crate::machine) address: u64,
    /// The earlier access.
    pub(in crate::machine) other: GlobalAccess,
}

/// Returns the rule that two unordered accesses violate.
pub(super) fn unordered(
    earlier: &GlobalAccess,
    later: &GlobalAccess,
    layout: TeamLayout,
) -> Option<AccessRule> {
    match (earlier.attributes.kind, later.attributes.kind) {
        (AccessKind::Read, AccessKind::Read) | (AccessKind::Reduce, AccessKind::Reduce) => return None,
        (AccessKind::Read | AccessKind::Write | AccessKind::Reduce, _) => {}
    }
    let (Some(one), Some(two)) = (earlier.attributes.scope, later.attributes.scope) else {
        return Some(AccessRule::Race);
    };
    if earlier.attributes.proxy != later.attributes.proxy {
        return Some(AccessRule::MixedProxies);
    }
    if !earlier.attributes.sizes.intersects(later.attributes.sizes) {
        return Some(AccessRule::MixedSizes);
    }
    let reach = layout.includes(one.min(two), earlier.grid_thread, later.grid_thread);
    (!reach).then_some(AccessRule::ScopeTooNarrow)
}
