//! Where threads meet, and fences.

use std::borrow::Cow;

use tma_model::limits::WARPGROUP_THREADS;

use super::Operand::{B32, Global, Pred};
use super::{Effect, Instruction, convergent, memory};
use crate::ir::{Fence, FencedMemory, Scope};

// "barrier", "bar.warp.sync", "elect.sync".

pub(in crate::lower) const SYNC_THREADS: Instruction = convergent("barrier.sync.aligned 0;", &[], 60);
pub(in crate::lower) const SYNC_WARP: Instruction = convergent("bar.warp.sync 0xffffffff;", &[], 60);
pub(in crate::lower) const SYNC_NAMED: Instruction = convergent("barrier.sync $0, $1;", &[B32, B32], 60);
/// The threads of a warpgroup meet at a barrier of their own.
pub(in crate::lower) fn sync_warpgroup(barrier: u32) -> Instruction {
    Instruction {
        text: Cow::Owned(format!("barrier.sync {barrier}, {WARPGROUP_THREADS};")),
        result: None,
        operands: Cow::Borrowed(&[]),
        effect: Effect::Convergent,
        ptx: 60,
    }
}

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

// "griddepcontrol".

pub(in crate::lower) const GRID_DEPENDENCY_WAIT: Instruction = memory("griddepcontrol.wait;", &[], 78);
pub(in crate::lower) const GRID_DEPENDENCY_LAUNCH: Instruction =
    memory("griddepcontrol.launch_dependents;", &[], 78);

/// The blocks of a grid meet. Operands: the counter's address, what this block adds to it, and
/// whether this thread does it for its block. The blocks' numbers add up to 2^31: each meeting
/// turns the highest bit over and leaves the others as they were, so the counter needs no reset.
/// What the block wrote before is released with the addition, as the block's barriers put it before
/// that ("Memory Consistency Model", "Causality order").
pub(in crate::lower) const SYNC_GRID: Instruction = convergent(
    "{\n\
     \t.reg .pred %waits;\n\
     \t.reg .b32 %old, %now;\n\
     \tbarrier.sync.aligned 0;\n\
     \t@!$2 bra met_${:uid};\n\
     \tatom.release.gpu.global.add.u32 %old, [$0], $1;\n\
     wait_${:uid}:\n\
     \tld.acquire.gpu.global.u32 %now, [$0];\n\
     \txor.b32 %now, %now, %old;\n\
     \tsetp.ge.s32 %waits, %now, 0;\n\
     \t@%waits bra wait_${:uid};\n\
     met_${:uid}:\n\
     \tbarrier.sync.aligned 0;\n\
     \t}",
    &[Global, B32, Pred],
    60,
);

// "membar / fence".

/// A fence; those of memory are for the whole device.
pub(in crate::lower) const fn fence(fence: Fence) -> Instruction {
    match fence {
        Fence::ProxyAsync(FencedMemory::All) => memory("fence.proxy.async;", &[], 80),
        Fence::ProxyAsync(FencedMemory::Shared(Scope::Block)) => {
            memory("fence.proxy.async.shared::cta;", &[], 80)
        }
        Fence::ProxyAsync(FencedMemory::Shared(Scope::Cluster)) => {
            memory("fence.proxy.async.shared::cluster;", &[], 80)
        }
        Fence::ProxyAsync(FencedMemory::Global) => memory("fence.proxy.async.global;", &[], 80),
        Fence::MbarrierInit => memory("fence.mbarrier_init.release.cluster;", &[], 80),
        Fence::Memory => memory("fence.acq_rel.gpu;", &[], 60),
        Fence::TensorMapRelease => memory("fence.proxy.tensormap::generic.release.gpu;", &[], 83),
        Fence::ProxyAlias => memory("fence.proxy.alias;", &[], 75),
    }
}
