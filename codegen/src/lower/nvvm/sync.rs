//! Where threads meet, and fences.

use std::borrow::Cow;

use super::Operand::{B32, Pred};
use super::{Effect, Instruction, convergent, memory};

// "barrier", "bar.warp.sync", "elect.sync".

pub(in crate::lower) const SYNC_THREADS: Instruction = convergent("barrier.sync.aligned 0;", &[], 60);
pub(in crate::lower) const SYNC_WARP: Instruction = convergent("bar.warp.sync 0xffffffff;", &[], 60);
pub(in crate::lower) const SYNC_NAMED: Instruction = convergent("barrier.sync $0, $1;", &[B32, B32], 60);
pub(in crate::lower) const ELECT: Instruction = Instruction {
    text: Cow::Borrowed("elect.sync _|$0, 0xffffffff;"),
    result: Some(Pred),
    operands: Cow::Borrowed(&[]),
    effect: Effect::Convergent,
    ptx: 80,
};

// "barrier.cluster". The two halves may stand where threads of a warp go different ways.

pub(in crate::lower) const SYNC_CLUSTER: Instruction = convergent(
    "barrier.cluster.arrive.release.aligned;\n\
     \tbarrier.cluster.wait.acquire.aligned;",
    &[],
    80,
);
pub(in crate::lower) const CLUSTER_ARRIVE: Instruction =
    convergent("barrier.cluster.arrive.release;", &[], 80);
pub(in crate::lower) const CLUSTER_WAIT: Instruction = convergent("barrier.cluster.wait.acquire;", &[], 80);

// "membar / fence".

pub(in crate::lower) const FENCE_PROXY_ASYNC: Instruction = memory("fence.proxy.async.shared::cta;", &[], 80);
/// Also for what was written to other blocks of the cluster.
pub(in crate::lower) const FENCE_PROXY_ASYNC_CLUSTER: Instruction =
    memory("fence.proxy.async.shared::cluster;", &[], 80);
pub(in crate::lower) const FENCE_MBARRIER_INIT: Instruction =
    memory("fence.mbarrier_init.release.cluster;", &[], 80);
