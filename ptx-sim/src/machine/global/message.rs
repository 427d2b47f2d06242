//! Messages for conflicts in global memory.

use tma_model::sync::{AccessKind, Proxy};

use super::footprint::Extent;
use super::mark::{Manner, Rule};
use crate::report::{Finding, FindingKind};

const BARRIER: &str = "a barrier that both threads take part in, between the two: [[`sync_threads()`||`bar.sync`]] within a \
                       block, [[`sync_cluster()`||`barrier.cluster.arrive` and `.wait`]] between blocks of a cluster; a bulk \
                       store has to be complete first ([[`bulk_wait_group::<0>()`||`cp.async.bulk.wait_group 0`]])";
const FLAG: &str = "between clusters only release and acquire through a flag in global memory order accesses: the first thread \
                    sets the flag after its access with release semantics, and the second reads it before its access with acquire \
                    semantics, both at a scope that includes the other ([[`fence()`||`fence.acq_rel.gpu`]] around relaxed accesses)";
const LAUNCH: &str =
    "nothing orders the clusters of this kernel: let each write its own part, or use two launches";
const SCOPE: &str = "use the narrowest scope that includes both threads: `.cta` is a block, `.cluster` a cluster, `.gpu` the device";
const ONE_SIZE: &str = "use one size for all strong operations on the same bytes: two of different \
                        sizes are not atomic to each other, and neither sees all that the other \
                        writes; or order them by a barrier";
const ONE_PROXY: &str =
    "combine through one proxy: either all by atomics of threads, or all by reductions of copies";
const FENCE: &str = "[[`fence_proxy_async_global()`||`fence.proxy.async.global`]] between the write and the copy: after the \
                     writes, before the barrier that orders them";
const READ_FENCE: &str = "[[`fence_proxy_async_global()`||`fence.proxy.async.global`]] between the read and the copy: after the \
                          reads, before the barrier that orders them. What was written to shared memory before that barrier has \
                          been read";
const FENCE_BEHIND: &str = "[[`fence_proxy_async_global()`||`fence.proxy.async.global`]] in the block that issues the copy, between \
                            the acquire and the copy";

/// Two accesses that violate a rule.
#[derive(Clone, Copy, Debug)]
pub(in crate::machine) struct Pair {
    pub(in crate::machine) rule: Rule,
    pub(in crate::machine) earlier: Manner,
    pub(in crate::machine) later: Manner,
    pub(in crate::machine) same_cluster: bool,
}

/// Returns the verb for the thread of an access.
pub(in crate::machine) const fn did(manner: Manner) -> &'static str {
    match (manner.proxy, manner.kind) {
        (Proxy::Async, _) => "issued the copy",
        (Proxy::Generic, AccessKind::Read) => "read",
        (Proxy::Generic, AccessKind::Write | AccessKind::Reduce) => match manner.scope {
            Some(_) => "changed it",
            None => "wrote",
        },
    }
}

fn race(earlier: Manner, later: Manner) -> &'static str {
    match (later.kind, earlier.kind) {
        (AccessKind::Read, _) => "is read while another thread may still write it",
        (AccessKind::Write, AccessKind::Read) => "is written while another thread may still read it",
        (AccessKind::Write, AccessKind::Write) => "is written by two threads in no order",
        (AccessKind::Reduce, AccessKind::Read) => "is reduced into while another thread may still read it",
        (AccessKind::Write, AccessKind::Reduce)
        | (AccessKind::Reduce, AccessKind::Write | AccessKind::Reduce) => {
            "is written and reduced into in no order"
        }
    }
}

/// Describes a copy that follows a thread's access without a proxy fence.
fn crossing(earlier: Manner, later: Manner) -> &'static str {
    match (earlier.kind, later.kind) {
        (AccessKind::Read, _) => "was read by a thread, and a copy that writes it may overtake the read",
        (AccessKind::Write | AccessKind::Reduce, AccessKind::Read | AccessKind::Reduce) => {
            "was written by a thread, and a copy that reads it need not see that"
        }
        (AccessKind::Write | AccessKind::Reduce, AccessKind::Write) => {
            "was written by a thread, and a copy that writes it may come first"
        }
    }
}

fn scope_name(manner: Manner) -> &'static str {
    manner.scope.map_or("weak", |scope| scope.name())
}

/// Returns the finding for a pair of accesses at an address, without the threads that made them.
pub(in crate::machine) fn finding(address: u64, pair: Pair) -> Finding {
    let Pair { rule, earlier, later, same_cluster } = pair;
    let place = format!("global memory at {address:#x}");
    let (kind, what, help) = match rule {
        Rule::Race => {
            let help = if same_cluster { BARRIER } else { FLAG };
            (FindingKind::Race, format!("{place} {}", race(earlier, later)), help)
        }
        Rule::ScopeTooNarrow => {
            let (one, two) = (scope_name(earlier), scope_name(later));
            let what = format!(
                "{place} is accessed by two threads with scopes `.{one}` and `.{two}`, of which one does not include the other thread"
            );
            (FindingKind::ScopeTooNarrow, what, SCOPE)
        }
        Rule::ReleaseTooNarrow => {
            let what = format!(
                "{place} {}: of a release and its acquire, the scope of one does not include the other thread",
                race(earlier, later)
            );
            (FindingKind::ScopeTooNarrow, what, SCOPE)
        }
        Rule::MixedSizes => {
            return mixed_sizes(&place, [earlier, later].map(|manner| manner.sizes.bytes()));
        }
        Rule::MixedProxies => {
            let what = format!(
                "{place} is accessed by a thread's strong operation and by a reduction of the async proxy in no order"
            );
            (FindingKind::MixedProxies, what, ONE_PROXY)
        }
        Rule::MissingProxyFence => {
            let what =
                format!("{place} {}: no proxy fence of global memory lies between", crossing(earlier, later));
            let help = match earlier.kind {
                _ if !same_cluster => FENCE_BEHIND,
                AccessKind::Read => READ_FENCE,
                AccessKind::Write | AccessKind::Reduce => FENCE,
            };
            (FindingKind::MissingProxyFence, what, help)
        }
    };
    Finding::new(kind, what).help(help)
}

/// Returns the finding for strong accesses of two different sizes to one place.
pub(in crate::machine) fn mixed_sizes(place: &str, bytes: [u32; 2]) -> Finding {
    let (great, small) = (bytes[0].max(bytes[1]), bytes[0].min(bytes[1]));
    let what =
        format!("{place} is accessed by strong operations of {great} and of {small} bytes in no order");
    Finding::new(FindingKind::Race, what).help(ONE_SIZE)
}

/// Returns the finding for a race between two clusters that nothing orders.
pub(super) fn between_clusters(address: u64, later: &Extent, earlier: &Extent) -> Finding {
    let weak = |extent: &Extent| Manner::generic(extent.kind(), None);
    let place = format!("global memory at {address:#x}");
    Finding::new(FindingKind::Race, format!("{place} {}", race(weak(earlier), weak(later))))
        .with(later.party)
        .with(earlier.party)
        .help(LAUNCH)
}
