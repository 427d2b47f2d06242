//! Messages for conflicts in global memory.

use tma_model::help::Help;
use tma_model::sync::{AccessKind, Memory, Proxy};

use super::footprint::Extent;
use super::mark::{AccessAttributes, AccessRule};
use crate::report::{Finding, FindingKind};

const LAUNCH: &str =
    "write a separate part in each cluster, or use two launches: nothing orders the clusters of this kernel";
const ONE_SIZE: &str = "use one size for all strong operations on the same bytes, or order them with a \
                        barrier: operations of different sizes are not atomic with respect to each other, \
                        and neither sees all writes of the other";
const ONE_PROXY: &str = "use one proxy: either only atomics of threads, or only reductions of copies";
const COHERENT: &str = "load it without `.nc` (in a kernel in Rust: with `get` or `get_vec`)";

/// Two accesses that violate a rule.
#[derive(Clone, Copy, Debug)]
pub(in crate::machine) struct Pair {
    pub(in crate::machine) rule: AccessRule,
    pub(in crate::machine) earlier: AccessAttributes,
    pub(in crate::machine) later: AccessAttributes,
    pub(in crate::machine) same_cluster: bool,
    /// The ranks of the earlier and the later thread, if they differ.
    pub(in crate::machine) ranks: Option<[u32; 2]>,
}

/// Returns the verb for the thread of an access.
pub(in crate::machine) const fn did(attributes: AccessAttributes) -> &'static str {
    match (attributes.proxy, attributes.kind) {
        (Proxy::Async, _) => "issued the copy",
        (Proxy::Generic, AccessKind::Read) => "read",
        (Proxy::Generic, AccessKind::Write | AccessKind::Reduce) => match attributes.scope {
            Some(_) => "changed it",
            None => "wrote",
        },
    }
}

fn race(earlier: AccessAttributes, later: AccessAttributes) -> &'static str {
    match (later.kind, earlier.kind) {
        (AccessKind::Read, _) => "is read while another thread may still write it",
        (AccessKind::Write, AccessKind::Read) => "is written while another thread may still read it",
        (AccessKind::Write, AccessKind::Write) => "is written by two threads, and nothing orders the writes",
        (AccessKind::Reduce, AccessKind::Read) => "is reduced into while another thread may still read it",
        (AccessKind::Write, AccessKind::Reduce)
        | (AccessKind::Reduce, AccessKind::Write | AccessKind::Reduce) => {
            "is written and reduced into, and nothing orders the two"
        }
    }
}

/// Describes a copy that follows a thread's access without a proxy fence.
fn crossing(earlier: AccessAttributes, later: AccessAttributes) -> &'static str {
    match (earlier.kind, later.kind) {
        (AccessKind::Read, _) => "may be overwritten by a copy before a thread has read it",
        (AccessKind::Write | AccessKind::Reduce, AccessKind::Read | AccessKind::Reduce) => {
            "was written by a thread, but the copy may not see the write"
        }
        (AccessKind::Write | AccessKind::Reduce, AccessKind::Write) => {
            "was written by a thread, but the copy may write it first"
        }
    }
}

fn scope_name(attributes: AccessAttributes) -> &'static str {
    attributes.scope.map_or("weak", |scope| scope.name())
}

/// Returns the finding for a pair of accesses at an address, without the threads that made them.
pub(in crate::machine) fn finding(address: u64, pair: Pair) -> Finding {
    let Pair { rule, earlier, later, same_cluster, ranks } = pair;
    let wider = ranks.map_or(Help::WidenScope, |[from, to]| Help::SystemScope { from, to });
    let location = format!("global memory at {address:#x}");
    let (kind, message, help) = match rule {
        AccessRule::Race => {
            let help = match ranks {
                Some(_) => Help::OrderRanks,
                None if same_cluster => Help::Order(Memory::Global),
                None => Help::OrderByFlag,
            };
            (FindingKind::Race, format!("{location} {}", race(earlier, later)), help)
        }
        AccessRule::ScopeTooNarrow => {
            let (one, two) = (scope_name(earlier), scope_name(later));
            let message = format!(
                "two threads access {location} with scopes `.{one}` and `.{two}`, one of which does not \
                 include the other thread"
            );
            (FindingKind::ScopeTooNarrow, message, wider)
        }
        AccessRule::ReleaseTooNarrow => {
            let message = format!(
                "{location} {}: a release and its acquire do not order the two, since the scope of one does \
                 not include the other thread",
                race(earlier, later)
            );
            (FindingKind::ScopeTooNarrow, message, wider)
        }
        AccessRule::MixedSizes => {
            return mixed_sizes(&location, [earlier, later].map(|attributes| attributes.sizes.bytes()));
        }
        AccessRule::MixedProxies => {
            let message = format!(
                "a thread's strong operation and a copy's reduction access {location}, and nothing orders \
                 the two"
            );
            (FindingKind::MixedProxies, message, ONE_PROXY.into())
        }
        AccessRule::MissingProxyFence => {
            let message = format!("{location} {}", crossing(earlier, later));
            let help = match earlier.kind {
                _ if !same_cluster => Help::FenceAfterAcquire,
                AccessKind::Read => Help::FenceGlobalReads,
                AccessKind::Write | AccessKind::Reduce => Help::FenceWrites(Memory::Global),
            };
            (FindingKind::MissingProxyFence, message, help)
        }
        AccessRule::NonCoherent => {
            let message = format!(
                "{location} is read by a non-coherent load, which need not see what was written to it in \
                 the same launch"
            );
            (FindingKind::Race, message, COHERENT.into())
        }
    };
    Finding::new(kind, message).help(help)
}

/// Returns the finding for strong accesses of two different sizes to one place.
pub(in crate::machine) fn mixed_sizes(location: &str, bytes: [u32; 2]) -> Finding {
    let (great, small) = (bytes[0].max(bytes[1]), bytes[0].min(bytes[1]));
    let message = format!(
        "strong operations of {great} and of {small} bytes access {location}, and nothing orders the \
            two"
    );
    Finding::new(FindingKind::Race, message).help(ONE_SIZE)
}

/// Returns the finding for a race between two clusters that nothing orders.
pub(super) fn between_clusters(address: u64, later: &Extent, earlier: &Extent) -> Finding {
    let weak = |extent: &Extent| AccessAttributes::generic(extent.kind(), None);
    let location = format!("global memory at {address:#x}");
    Finding::new(FindingKind::Race, format!("{location} {}", race(weak(earlier), weak(later))))
        .with(later.party)
        .with(earlier.party)
        .help(LAUNCH)
}
