//! Conflicts between accesses to the same memory, and the ordering that each conflict requires.
//!
//! Source: PTX ISA, "Memory Consistency Model", "Proxies", "Causality order" and "Async proxy". The
//! rules:
//!
//! * Two reads, two reductions and two strong accesses do not conflict.
//! * An access that follows a write or a reduction must *see* it: the write happens before the
//!   access, at a sufficient scope. For an asynchronous write that replaces what an asynchronous
//!   operation wrote, that operation only has to be *over*.
//! * From the generic to the asynchronous proxy, a proxy fence is required as well, anywhere
//!   between the two accesses.
//! * The effects of an asynchronous operation are visible, without a fence, to every thread that
//!   observes its completion.
//! * Before memory that was read is written again, the read only has to be *over*.

use super::clock::Epoch;
use super::fence::Memory;
use super::view::View;

/// The path by which an access reaches memory. Source: PTX ISA, "Proxies".
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Proxy {
    /// Loads, stores and atomics of threads. Also `cp.async`, `st.async` and `red.async`.
    Generic,
    /// `cp.async.bulk`, with or without a tensor map, and `wgmma`.
    Async,
}

/// The effect of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AccessKind {
    /// Reads the value.
    Read,
    /// Replaces the value.
    Write,
    /// Combines with the value. Reductions commute with each other: `red.async`,
    /// `cp.reduce.async.bulk`.
    Reduce,
}

/// An access, reduced to the properties that determine conflicts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Access {
    /// Proxy through which it reaches memory.
    pub proxy: Proxy,
    /// Effect of the access.
    pub kind: AccessKind,
    /// Whether it is an atomic or another strong operation. Strong accesses do not race with each
    /// other.
    pub strong: bool,
}

/// The ordering that is required between two accesses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Requirement {
    /// None: the accesses do not conflict.
    Nothing,
    /// The earlier access is over.
    Complete,
    /// The earlier access is over, and a proxy fence follows it.
    CompleteAndFenced,
    /// The writes of the earlier access are seen.
    Visible,
    /// The writes of the earlier access are seen, and a proxy fence follows them.
    VisibleAndFenced,
}

/// The reason why two accesses conflict.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Hazard {
    /// The earlier access is not known to be over.
    Unordered,
    /// The earlier access is over, but its writes were released or acquired within the scope of one
    /// block only, and the later access is in another.
    ScopeTooNarrow,
    /// The earlier access is ordered before the later one, but no proxy fence separates them.
    NoProxyFence,
}

impl Access {
    /// Creates a weak access.
    #[inline]
    pub const fn weak(proxy: Proxy, kind: AccessKind) -> Self {
        Self { proxy, kind, strong: false }
    }

    /// Returns the ordering that is required between this access and a `later` one to the same
    /// bytes.
    pub const fn before(self, later: Self) -> Requirement {
        use AccessKind::{Read, Reduce, Write};
        use Proxy::{Async, Generic};
        match (self.kind, later.kind) {
            (Read, Read) | (Reduce, Reduce) => Requirement::Nothing,
            _ if self.strong && later.strong => Requirement::Nothing,
            (Read, Write | Reduce) => match (self.proxy, later.proxy) {
                (Generic, Async) => Requirement::CompleteAndFenced,
                (Generic, Generic) | (Async, Generic | Async) => Requirement::Complete,
            },
            (Write | Reduce, _) => match (self.proxy, later.proxy, later.kind) {
                (Generic, Async, Read | Write | Reduce) => Requirement::VisibleAndFenced,
                // A value that is overwritten need not be seen.
                (Async, Async, Write) => Requirement::Complete,
                (Async, Async, Read | Reduce) | (Generic | Async, Generic, Read | Write | Reduce) => {
                    Requirement::Visible
                }
            },
        }
    }
}

impl Requirement {
    /// Returns the first part of the requirement that does not hold between `step`, an access to
    /// `memory`, and the current operation of the agent of `view`.
    pub fn missing(self, step: Epoch, view: &View, memory: Memory) -> Option<Hazard> {
        let is_complete = || (!view.knows_complete(step)).then_some(Hazard::Unordered);
        let is_visible = || match view.follows(step) {
            true => None,
            false => is_complete().or(Some(Hazard::ScopeTooNarrow)),
        };
        let unless = |fenced: bool| (!fenced).then_some(Hazard::NoProxyFence);
        match self {
            Self::Nothing => None,
            Self::Complete => is_complete(),
            Self::CompleteAndFenced => is_complete().or_else(|| unless(view.has_fenced_read(step, memory))),
            Self::Visible => is_visible(),
            Self::VisibleAndFenced => is_visible().or_else(|| unless(view.is_visible_to_async(step, memory))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROXIES: [Proxy; 2] = [Proxy::Generic, Proxy::Async];
    const KINDS: [AccessKind; 3] = [AccessKind::Read, AccessKind::Write, AccessKind::Reduce];

    fn all() -> impl Iterator<Item = Access> {
        let strengths = |proxy, kind| [false, true].map(|strong| Access { proxy, kind, strong });
        PROXIES
            .into_iter()
            .flat_map(move |proxy| KINDS.into_iter().flat_map(move |kind| strengths(proxy, kind)))
    }

    #[test]
    fn only_a_write_conflicts() {
        for (earlier, later) in all().flat_map(|earlier| all().map(move |later| (earlier, later))) {
            let reads = earlier.kind == AccessKind::Read && later.kind == AccessKind::Read;
            let reductions = earlier.kind == AccessKind::Reduce && later.kind == AccessKind::Reduce;
            let atomics = earlier.strong && later.strong;
            let free = earlier.before(later) == Requirement::Nothing;
            assert_eq!(free, reads || reductions || atomics, "{earlier:?}, then {later:?}");
        }
    }

    #[test]
    fn a_fence_is_needed_from_the_generic_to_the_asynchronous_proxy_alone() {
        for (earlier, later) in all().flat_map(|earlier| all().map(move |later| (earlier, later))) {
            let fenced = match earlier.before(later) {
                Requirement::CompleteAndFenced | Requirement::VisibleAndFenced => true,
                Requirement::Nothing | Requirement::Complete | Requirement::Visible => false,
            };
            let crosses = earlier.proxy == Proxy::Generic && later.proxy == Proxy::Async;
            assert!(!fenced || crosses, "{earlier:?}, then {later:?}");
            let free = earlier.before(later) == Requirement::Nothing;
            assert!(!crosses || fenced || free, "{earlier:?}, then {later:?}");
        }
    }
}
