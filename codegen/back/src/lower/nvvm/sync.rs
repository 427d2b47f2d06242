//! Barriers between threads, and fences.

use std::borrow::Cow;

use tma_front::ir::{Fence, FencedMemory, Scope};
use tma_model::limits::WARPGROUP_THREADS;

use super::Operand::{B32, Global, Pred};
use super::{Effect, Instruction, convergent, memory};

// "barrier", "bar.warp.sync", "elect.sync".

pub(in crate::lower) const SYNC_THREADS: Instruction = convergent("barrier.sync.aligned 0;", &[], 60);
pub(in crate::lower) const SYNC_WARP: Instruction = convergent("bar.warp.sync 0xffffffff;", &[], 60);
pub(in crate::lower) const SYNC_NAMED: Instruction = convergent("barrier.sync $0, $1;", &[B32, B32], 60);
/// Synchronises the threads of a warpgroup at a barrier of its own.
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

// "barrier.cluster". The two halves may be executed by threads of a warp that have diverged.

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

/// Synchronises the blocks of a grid. Operands: the counter's address, the number that this block
/// adds to it, and whether this thread does so for its block. The numbers of all blocks add up to
/// 2^31: each synchronisation flips the highest bit and leaves the others unchanged, so the counter
/// needs no reset. The addition releases the previous writes of the block, which the block's
/// barriers order before it ("Memory Consistency Model", "Causality order").
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

/// Returns a fence. Memory fences have the scope of the device.
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
