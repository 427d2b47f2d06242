//! Which two accesses to the same memory conflict, and what has to lie between them.
//!
//! Source: PTX ISA, "Memory Consistency Model", "Proxies", "Causality order" and "Async proxy". An
//! access needs the writes before it to be *seen*. Between accesses of different proxies a proxy
//! fence has to lie as well, anywhere on the way. What an asynchronous operation has done is seen
//! by whoever learns of its completion, without a fence. A read has only to be *over* before the
//! memory is written again.

use super::clock::Epoch;
use super::fence::Memory;
use super::view::View;

/// How an access reaches memory. Source: PTX ISA, "Proxies".
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Proxy {
    /// Loads, stores and atomics of threads; also `cp.async`, `st.async` and `red.async`.
    Generic,
    /// `cp.async.bulk`, with a tensor map and without, and `wgmma`.
    Async,
}

/// What an access does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AccessKind {
    /// Reads.
    Read,
    /// Replaces what is there.
    Write,
    /// Combines with what is there, in any order with its like: `red.async`,
    /// `cp.reduce.async.bulk`.
    Reduce,
}

/// An access, as far as conflicts are concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Access {
    /// How it reaches memory.
    pub proxy: Proxy,
    /// What it does.
    pub kind: AccessKind,
    /// Whether it is an atomic or another strong operation, which does not race with its like.
    pub strong: bool,
}

/// What has to lie between two accesses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Requirement {
    /// Nothing: they do not conflict.
    Nothing,
    /// The earlier one is over.
    Over,
    /// The earlier one is over, and a proxy fence lies behind it.
    OverAndFenced,
    /// What the earlier one wrote is seen.
    Seen,
    /// What the earlier one wrote is seen, and a proxy fence lies behind it.
    SeenAndFenced,
}

/// Why two accesses do not go together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Hazard {
    /// The earlier one is not known to be over.
    Unordered,
    /// It is over, but what it wrote was told to its own block only.
    Untold,
    /// It is ordered before, but in the other proxy.
    NoProxyFence,
}

impl Access {
    /// A weak access.
    #[inline]
    pub const fn weak(proxy: Proxy, kind: AccessKind) -> Self {
        Self { proxy, kind, strong: false }
    }

    /// What has to lie between this access and a `later` one to the same bytes.
    pub const fn before(self, later: Self) -> Requirement {
        use AccessKind::{Read, Reduce, Write};
        use Proxy::{Async, Generic};
        match (self.kind, later.kind) {
            (Read, Read) | (Reduce, Reduce) => Requirement::Nothing,
            _ if self.strong && later.strong => Requirement::Nothing,
            (Read, Write | Reduce) => match (self.proxy, later.proxy) {
                (Generic, Async) => Requirement::OverAndFenced,
                (Generic, Generic) | (Async, Generic | Async) => Requirement::Over,
            },
            (Write | Reduce, _) => match (self.proxy, later.proxy, later.kind) {
                (Generic, Async, Read | Write | Reduce) => Requirement::SeenAndFenced,
                // What is replaced need not be seen.
                (Async, Async, Write) => Requirement::Over,
                (Async, Async, Read | Reduce) | (Generic | Async, Generic, Read | Write | Reduce) => {
                    Requirement::Seen
                }
            },
        }
    }
}

impl Requirement {
    /// What is missing between `step`, an access to `memory`, and what the agent of `view` does
    /// now.
    pub fn missing(self, step: Epoch, view: &View, memory: Memory) -> Option<Hazard> {
        let is_over = || (!view.knows_over(step)).then_some(Hazard::Unordered);
        let is_seen = || match view.follows(step) {
            true => None,
            false => is_over().or(Some(Hazard::Untold)),
        };
        let unless = |fenced: bool| (!fenced).then_some(Hazard::NoProxyFence);
        match self {
            Self::Nothing => None,
            Self::Over => is_over(),
            Self::OverAndFenced => is_over().or_else(|| unless(view.fences_read(step, memory))),
            Self::Seen => is_seen(),
            Self::SeenAndFenced => is_seen().or_else(|| unless(view.sees_async(step, memory))),
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
                Requirement::OverAndFenced | Requirement::SeenAndFenced => true,
                Requirement::Nothing | Requirement::Over | Requirement::Seen => false,
            };
            let crosses = earlier.proxy == Proxy::Generic && later.proxy == Proxy::Async;
            assert!(!fenced || crosses, "{earlier:?}, then {later:?}");
            let free = earlier.before(later) == Requirement::Nothing;
            assert!(!crosses || fenced || free, "{earlier:?}, then {later:?}");
        }
    }
}
