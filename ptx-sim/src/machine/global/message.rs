//! Messages for conflicts in global memory.

use tma_model::sync::{AccessKind, Proxy};

use super::footprint::Extent;
use super::mark::{AccessAttributes, AccessRule};
use crate::report::{Finding, FindingKind};

const BARRIER: &str = "insert a barrier of both threads between the two accesses: \
                       [[`sync_threads()`||`bar.sync`]] within a block, \
                       [[`sync_cluster()`||`barrier.cluster.arrive` and `.wait`]] between blocks of a \
                       cluster; a bulk store must be complete first, \
                       [[`bulk_wait_group::<0>()`||`cp.async.bulk.wait_group 0`]]";
const FLAG: &str = "set a flag in global memory with release semantics after the first access, and read it \
                    with acquire semantics before the second, both at a scope that includes the other thread \
                    (or with [[`fence()`||`fence.acq_rel.gpu`]] around relaxed accesses): nothing else \
                    orders accesses between clusters";
const LAUNCH: &str =
    "write a separate part in each cluster, or use two launches: nothing orders the clusters of this kernel";
const SCOPE: &str = "use the narrowest scope that includes both threads: [[`Scope::Block`||`.cta`]] is a \
    block, [[`Scope::Cluster`||`.cluster`]] a cluster, [[`Scope::Device`||`.gpu`]] the device";
const ONE_SIZE: &str = "use one size for all strong operations on the same bytes, or order them with a \
                        barrier: operations of different sizes are not atomic with respect to each other, \
                        and neither sees all writes of the other";
const ONE_PROXY: &str = "use one proxy: either only atomics of threads, or only reductions of copies";
const FENCE: &str = "insert [[`fence_proxy_async_global()`||`fence.proxy.async.global`]] after the writes, \
                     before the barrier that orders them with the copy";
const READ_FENCE: &str = "insert [[`fence_proxy_async_global()`||`fence.proxy.async.global`]] after the \
                          reads, before the barrier that orders them with the copy; reads whose values were \
                          stored to shared memory before that barrier need no fence";
const FENCE_AFTER: &str = "insert [[`fence_proxy_async_global()`||`fence.proxy.async.global`]] in the block \
                            that issues the copy, between the acquire and the copy";

/// Two accesses that violate a rule.
#[derive(Clone, Copy, Debug)]
pub(in crate::machine) struct Pair {
    pub(in crate::machine) rule: AccessRule,
    pub(in crate::machine) earlier: AccessAttributes,
    pub(in crate::machine) later: AccessAttributes,
    pub(in crate::machine) same_cluster: bool,
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
    let Pair { rule, earlier, later, same_cluster } = pair;
    let location = format!("global memory at {address:#x}");
    let (kind, message, help) = match rule {
        AccessRule::Race => {
            let help = if same_cluster { BARRIER } else { FLAG };
            (FindingKind::Race, format!("{location} {}", race(earlier, later)), help)
        }
        AccessRule::ScopeTooNarrow => {
            let (one, two) = (scope_name(earlier), scope_name(later));
            let message = format!(
                "two threads access {location} with scopes `.{one}` and `.{two}`, one of which does not \
                 include the other thread"
            );
            (FindingKind::ScopeTooNarrow, message, SCOPE)
        }
        AccessRule::ReleaseTooNarrow => {
            let message = format!(
                "{location} {}: a release and its acquire do not order the two, since the scope of one does \
                 not include the other thread",
                race(earlier, later)
            );
            (FindingKind::ScopeTooNarrow, message, SCOPE)
        }
        AccessRule::MixedSizes => {
            return mixed_sizes(&location, [earlier, later].map(|attributes| attributes.sizes.bytes()));
        }
        AccessRule::MixedProxies => {
            let message = format!(
                "a thread's strong operation and a copy's reduction access {location}, and nothing orders \
                 the two"
            );
            (FindingKind::MixedProxies, message, ONE_PROXY)
        }
        AccessRule::MissingProxyFence => {
            let message = format!("{location} {}", crossing(earlier, later));
            let help = match earlier.kind {
                _ if !same_cluster => FENCE_AFTER,
                AccessKind::Read => READ_FENCE,
                AccessKind::Write | AccessKind::Reduce => FENCE,
            };
            (FindingKind::MissingProxyFence, message, help)
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
