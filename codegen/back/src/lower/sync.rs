//! Barriers between threads, and fences.

use inkwell::IntPredicate;
use inkwell::values::IntValue;
use tma_front::ir::{
    Axis, Expr, ExprKind, Fence, FencedMemory, GridDependency, Kernel, LocalId, ParamId, Scalar, Scope, Span,
    Special, Sync, Type, visit,
};

use super::{Cx, Lower, bounds, expr, locals, memory, nvvm};
use crate::backend::BackendError;

const AXES: [Axis; 3] = [Axis::X, Axis::Y, Axis::Z];

/// Lowers a synchronisation of threads.
pub(super) fn sync(cx: &mut Cx<'_, '_>, sync: Sync, span: Span) -> Lower<()> {
    let instruction = match sync {
        Sync::Threads => &nvvm::SYNC_THREADS,
        Sync::Warp => &nvvm::SYNC_WARP,
        Sync::Warpgroup => return sync_warpgroup(cx, span),
        Sync::Cluster => &nvvm::SYNC_CLUSTER,
        Sync::ClusterArrive => &nvvm::CLUSTER_ARRIVE,
        Sync::ClusterWait => &nvvm::CLUSTER_WAIT,
    };
    nvvm::emit(cx, instruction, &[])?;
    Ok(())
}

/// Lowers a synchronisation of the warpgroup's threads. Each warpgroup has a barrier of its own. A
/// branch selects the instruction that names it as a constant.
fn sync_warpgroup(cx: &mut Cx<'_, '_>, span: Span) -> Lower<()> {
    let Some((&last, others)) = cx.kernel.barriers().of_warpgroups().split_last() else {
        return Err(BackendError::Unchecked("a meeting of a warpgroup without a barrier".to_owned()));
    };
    let end = cx.new_block("met");
    let mine = Expr { kind: ExprKind::Special(Special::WarpgroupIdx), ty: Scalar::U32.into(), span };
    let mine = expr::int_value(cx, &mine)?;
    for (warpgroup, &barrier) in (0..).zip(others) {
        let (here, next) = (cx.new_block("sync_warpgroup"), cx.new_block("next_warpgroup"));
        let number = cx.u32_const(warpgroup);
        let is_mine = cx.builder.build_int_compare(IntPredicate::EQ, mine, number, "")?;
        cx.builder.build_conditional_branch(is_mine, here, next)?;
        cx.builder.position_at_end(here);
        nvvm::emit(cx, &nvvm::sync_warpgroup(barrier), &[])?;
        cx.branch_to(end)?;
        cx.builder.position_at_end(next);
    }
    nvvm::emit(cx, &nvvm::sync_warpgroup(last), &[])?;
    cx.branch_to(end)?;
    cx.builder.position_at_end(end);
    Ok(())
}

/// Lowers a synchronisation of `threads` threads at barrier `id`.
pub(super) fn sync_named(cx: &mut Cx<'_, '_>, id: &Expr, threads: &Expr) -> Lower<()> {
    let (id_value, thread_count) = (expr::int_value(cx, id)?, expr::int_value(cx, threads)?);
    bounds::named_barrier(cx, (id_value, id.span), (thread_count, threads.span))?;
    nvvm::emit(cx, &nvvm::SYNC_NAMED, &[id_value.into(), thread_count.into()])?;
    Ok(())
}

/// Lowers an arrival at barrier `id` of `threads` threads.
pub(super) fn arrive_at(cx: &mut Cx<'_, '_>, id: &Expr, threads: &Expr) -> Lower<()> {
    let (id_value, thread_count) = (expr::int_value(cx, id)?, expr::int_value(cx, threads)?);
    bounds::named_barrier(cx, (id_value, id.span), (thread_count, threads.span))?;
    nvvm::emit(cx, &nvvm::ARRIVE_NAMED, &[id_value.into(), thread_count.into()])?;
    Ok(())
}

/// Lowers a synchronisation of all threads of the grid, counted in `counter[0]`.
pub(super) fn sync_grid(cx: &mut Cx<'_, '_>, counter: ParamId, span: Span) -> Lower<()> {
    let first = cx.context.i64_type().const_zero();
    let (address, _) = memory::checked_address(cx, counter, first, span)?;
    let mut blocks = cx.u32_const(1);
    for axis in AXES {
        let extent = expr::register(cx, "nctaid", axis)?;
        blocks = cx.builder.build_int_mul(blocks, extent, "")?;
    }
    let others = cx.builder.build_int_sub(blocks, cx.u32_const(1), "")?;
    let rest = cx.builder.build_int_sub(cx.u32_const(1 << 31), others, "")?;
    let of_first_block = is_first(cx, "ctaid")?;
    let addend = cx.builder.build_select(of_first_block, rest, cx.u32_const(1), "")?;
    let of_first_thread = is_first(cx, "tid")?;
    nvvm::emit(cx, &nvvm::SYNC_GRID, &[address.into(), addend, of_first_thread.into()])?;
    Ok(())
}

/// Emits whether the special register `name` is 0 along all axes.
fn is_first<'c>(cx: &Cx<'c, '_>, name: &str) -> Lower<IntValue<'c>> {
    let mut any = cx.u32_const(0);
    for axis in AXES {
        any = cx.builder.build_or(any, expr::register(cx, name, axis)?, "")?;
    }
    Ok(cx.builder.build_int_compare(IntPredicate::EQ, any, cx.u32_const(0), "")?)
}

/// Lowers a dependency on the preceding or following grids.
pub(super) fn depend(cx: &mut Cx<'_, '_>, dependency: GridDependency) -> Lower<()> {
    let instruction = match dependency {
        GridDependency::Wait => &nvvm::GRID_DEPENDENCY_WAIT,
        GridDependency::Launch => &nvvm::GRID_DEPENDENCY_LAUNCH,
    };
    nvvm::emit(cx, instruction, &[])?;
    Ok(())
}

/// Whether threads access tiles or arrays in the shared memory of other blocks. Barriers do not
/// count, as no proxy fence concerns them.
pub(super) fn reaches_others(kernel: &Kernel) -> bool {
    let mut found = false;
    visit::for_each_expr(&kernel.body, &mut |expr| {
        let ty = expr.ty.local();
        let thing = if let Type::Stages(thing, _) = ty { thing } else { ty };
        found |= matches!(&expr.kind, ExprKind::Remote(..)) && *thing != Type::Barrier;
    });
    found
}

/// Lowers a fence. If no thread accesses another block's memory, a fence for the block's own shared
/// memory suffices. ptxas makes a fence for the cluster's wait for all earlier accesses of the
/// thread, including those of global memory (`MEMBAR.ALL.GPU`).
pub(super) fn fence(cx: &mut Cx<'_, '_>, fence: Fence) -> Lower<()> {
    let fence = match fence {
        Fence::ProxyAsync(FencedMemory::Shared(Scope::Cluster)) if !cx.reaches_others => {
            Fence::ProxyAsync(FencedMemory::Shared(Scope::Block))
        }
        Fence::ProxyAsync(_)
        | Fence::MbarrierInit
        | Fence::Memory
        | Fence::TensorMapRelease
        | Fence::ProxyAlias => fence,
    };
    nvvm::emit(cx, &nvvm::fence(fence), &[])?;
    Ok(())
}

/// Lowers the election of one thread of the warp: `dest` is true in that thread.
pub(super) fn elect_one(cx: &mut Cx<'_, '_>, dest: LocalId) -> Lower<()> {
    let elected = nvvm::emit_value(cx, &nvvm::ELECT, &[])?;
    locals::store(cx, dest, elected)
}

#[cfg(test)]
mod tests {
    use crate::{Target, compile};

    #[track_caller]
    fn fences(options: &str, body: &str, scope: &str) {
        let source = format!(
            "#[tma_kernel(threads = 32{options})]
             pub fn kernel(map: TensorMap<Tile<u32, Shape1<32>>>) {{
                 let tile: Tile<u32, Shape1<32>> = shared();
                 let full: Stages<Barrier, 2> = shared();
                 let i = thread_idx().x;
                 {body}
                 fence_proxy_async();
                 sync_threads();
                 if i == 0 {{ map.store([0], tile); bulk_commit_group(); bulk_wait_group_read::<0>(); }}
             }}"
        );
        let compiled =
            compile("src/kernel.rs", &source, Target::Sm90a).unwrap_or_else(|error| panic!("{error}"));
        let text = &compiled.kernels[0].text;
        assert!(
            text.contains(&format!("fence.proxy.async.shared::{scope};")),
            "no fence of {scope} in\n{text}"
        );
    }

    #[test]
    fn a_fence_is_for_as_far_as_threads_reach() {
        let own = "tile.set([i], i);";
        fences("", own, "cta");
        fences(", cluster = 2", own, "cta");
        fences(", cluster = 2", &format!("{own} remote(full[0], 1).arrive();"), "cta");
        fences(", cluster = 2", &format!("{own} remote(full, 1)[1].arrive();"), "cta");
        fences(", cluster = 2", "remote(tile, 1).set([i], i); sync_cluster();", "cluster");
        fences(", cluster = 2", "tile.set([i], remote(tile, 1).get([i])); sync_cluster();", "cluster");
    }
}
