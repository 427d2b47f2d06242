//! Where threads meet, and fences.

use super::{Cx, Lower, expr, nvvm, place};
use crate::ir::{Expr, Fence, LocalId, Sync};

/// Lowers a meeting of threads.
pub(super) fn meet(cx: &mut Cx<'_, '_>, sync: Sync) -> Lower<()> {
    let instruction = match sync {
        Sync::Threads => &nvvm::SYNC_THREADS,
        Sync::Warp => &nvvm::SYNC_WARP,
        Sync::Cluster => &nvvm::SYNC_CLUSTER,
        Sync::ClusterArrive => &nvvm::CLUSTER_ARRIVE,
        Sync::ClusterWait => &nvvm::CLUSTER_WAIT,
    };
    nvvm::emit(cx, instruction, &[])?;
    Ok(())
}

/// Lowers a meeting of `threads` threads at barrier `id`.
pub(super) fn meet_at(cx: &mut Cx<'_, '_>, id: &Expr, threads: &Expr) -> Lower<()> {
    let args = [expr::value(cx, id)?, expr::value(cx, threads)?];
    nvvm::emit(cx, &nvvm::SYNC_NAMED, &args)?;
    Ok(())
}

/// Lowers a fence.
pub(super) fn fence(cx: &mut Cx<'_, '_>, fence: Fence) -> Lower<()> {
    let instruction = match fence {
        Fence::ProxyAsync if cx.has_clusters() => &nvvm::FENCE_PROXY_ASYNC_CLUSTER,
        Fence::ProxyAsync => &nvvm::FENCE_PROXY_ASYNC,
        Fence::BarrierInit => &nvvm::FENCE_MBARRIER_INIT,
    };
    nvvm::emit(cx, instruction, &[])?;
    Ok(())
}

/// `dest` is true in one thread of the warp.
pub(super) fn elect_one(cx: &mut Cx<'_, '_>, dest: LocalId) -> Lower<()> {
    let elected = nvvm::emit_value(cx, &nvvm::ELECT, &[])?;
    place::store(cx, dest, elected)
}
