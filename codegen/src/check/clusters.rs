//! Clusters: their size, what asks for one, the blocks that are named, and sliced loads.

use crate::diag::{Code, Sink};
use crate::ir::{
    Cluster, ClusterAxis, CopyKind, Expr, ExprKind, Kernel, Multicast, Span, Special, Stmt, StmtKind, Sync,
    TileCopy, TileType, Type, visit,
};
use crate::limits;

pub(super) fn check(kernel: &Kernel, sink: &mut Sink) {
    let Some(blocks) = size(kernel, sink) else {
        words(kernel, sink);
        return;
    };
    visit::for_each_expr(&kernel.body, &mut |expr| {
        if let ExprKind::Remote(_, rank) = &expr.kind {
            rank_within(rank, blocks, sink);
        }
    });
    visit::for_each_stmt(&kernel.body, &mut |stmt| match &stmt.kind {
        StmtKind::TileCopy(copy) => match copy.kind.multicast() {
            Some(Multicast::Mask(mask)) => mask_within(mask, blocks, sink),
            Some(Multicast::Sliced(axis)) => sliced(kernel, copy, *axis, stmt.origin.span, sink),
            None => {}
        },
        StmtKind::BulkCopy(copy) => match copy.kind.multicast() {
            Some(Multicast::Mask(mask)) => mask_within(mask, blocks, sink),
            Some(Multicast::Sliced(_)) | None => {}
        },
        // Source: PTX ISA, "cp.async.bulk": from `.shared::cta` to `.shared::cluster`, the destination is in
        // another block. Reductions have no such rule.
        StmtKind::RemoteCopy(copy) if copy.op.is_none() => elsewhere(&copy.to, blocks, sink),
        _ => {}
    });
}

/// The most blocks that a cluster has; none in a kernel without clusters.
fn size(kernel: &Kernel, sink: &mut Sink) -> Option<u64> {
    let launch = &kernel.launch;
    let most = limits::cluster_blocks(launch.nonportable_cluster);
    match launch.cluster {
        Cluster::None => None,
        Cluster::AtLaunch => Some(u64::from(most)),
        Cluster::Fixed(extents) => {
            let blocks = extents.iter().fold(1u64, |all, &extent| all.saturating_mul(u64::from(extent)));
            if blocks == 0 || blocks > u64::from(most) {
                let [x, y, z] = extents;
                let message = format!("a cluster of {x} × {y} × {z} blocks; there may be 1 to {most}");
                let help = if (1..=u64::from(limits::cluster_blocks(true))).contains(&blocks) {
                    "take fewer, or ask for what not every device has: `nonportable_cluster`"
                } else {
                    "take fewer blocks a cluster"
                };
                sink.error(Code::ClusterSize, launch.spans.cluster, message).help(help);
            }
            Some(blocks)
        }
    }
}

/// What a kernel without clusters must not say.
fn words(kernel: &Kernel, sink: &mut Sink) {
    let mut refuse = |what: &str, span: Span| {
        sink.error(Code::NoCluster, span, format!("`{what}` is about clusters, and this kernel has none"))
            .help("say how many blocks a cluster has: `#[tma_kernel(threads = .., cluster = 2)]`");
    };
    visit::for_each_stmt(&kernel.body, &mut |stmt: &Stmt| {
        let word = match &stmt.kind {
            StmtKind::Sync(Sync::Cluster) => "sync_cluster",
            StmtKind::Sync(Sync::ClusterArrive) => "cluster_arrive",
            StmtKind::Sync(Sync::ClusterWait) => "cluster_wait",
            StmtKind::TileCopy(copy) => match copy.kind.multicast() {
                Some(Multicast::Mask(_)) => "load_multicast",
                Some(Multicast::Sliced(_)) => "load_sliced",
                None => return,
            },
            StmtKind::BulkCopy(copy) if copy.kind.multicast().is_some() => "bulk_load_multicast",
            _ => return,
        };
        refuse(word, stmt.origin.span);
    });
    visit::for_each_expr(&kernel.body, &mut |expr| {
        let word = match expr.kind {
            ExprKind::Remote(..) => "remote",
            ExprKind::Special(Special::ClusterIdx(_)) => "cluster_idx",
            ExprKind::Special(Special::BlockInCluster(_)) => "block_in_cluster",
            ExprKind::Special(Special::ClusterDim(_)) => "cluster_dim",
            ExprKind::Special(Special::ClusterRank) => "cluster_rank",
            _ => return,
        };
        refuse(word, expr.span);
    });
}

fn rank_within(rank: &Expr, blocks: u64, sink: &mut Sink) {
    if let Some(value) = rank.as_int()
        && !(0..i128::from(blocks)).contains(&value)
    {
        let message = format!("a cluster of {blocks} blocks has no block of rank {value}");
        sink.error(Code::ClusterBlock, rank.span, message)
            .help(format!("ranks are 0 to {}", blocks.saturating_sub(1)));
    }
}

fn elsewhere(to: &Expr, blocks: u64, sink: &mut Sink) {
    let ExprKind::Remote(_, rank) = &to.kind else { return };
    let message = match rank.kind {
        ExprKind::Special(Special::ClusterRank) => "a bulk copy to another block names the block itself",
        _ if blocks == 1 => "a bulk copy to another block, but the cluster has only one",
        _ => return,
    };
    sink.error(Code::ClusterBlock, to.span, message)
        .help("name another block of the cluster; within a block threads copy, with `get` and `set`");
}

fn mask_within(mask: &Expr, blocks: u64, sink: &mut Sink) {
    let Some(value) = mask.as_int() else { return };
    let all = (1i128 << blocks.min(16)) - 1;
    let message = if value == 0 {
        "the mask names no block".to_owned()
    } else if value & !all != 0 {
        format!("the mask {value:#b} names blocks that a cluster of {blocks} does not have")
    } else {
        return;
    };
    sink.error(Code::ClusterBlock, mask.span, message)
        .help(format!("bit i is the block of rank i; all of them are {all:#b}"));
}

/// The slices of a tile, one a block along the axis, one after the other along its outermost
/// dimension of more than one element.
fn sliced(kernel: &Kernel, copy: &TileCopy, axis: ClusterAxis, span: Span, sink: &mut Sink) {
    let CopyKind::Load { to: tile, .. } = &copy.kind else { return };
    let map = kernel.param(copy.map.param);
    let (Some(slice), Type::Tile(whole)) = (map.ty.moved(), &tile.ty) else { return };
    let Cluster::Fixed(extents) = kernel.launch.cluster else {
        sink.error(Code::SlicedLoad, span, "a load is sliced by a cluster whose size is known")
            .help("write `cluster = 2` in the attribute, or use `load_multicast` with a mask");
        return;
    };
    let blocks = axis.blocks(extents);
    let along = whole.sliced_dimension();
    let wanted = TileType {
        extents: slice
            .extents
            .iter()
            .enumerate()
            .map(|(dimension, &extent)| extent.saturating_mul(if dimension == along { blocks } else { 1 }))
            .collect(),
        ..slice.clone()
    };
    if *whole != wanted {
        let message =
            format!("{blocks} slices `{slice}` of `{}` are a `{wanted}`, but this is a `{whole}`", map.name);
        sink.error(Code::SlicedLoad, tile.span, message)
            .label(map.ty_span, "the type of a slice")
            .label(kernel.launch.spans.cluster, "the blocks that share the load")
            .help(format!(
            "the map's tile is what one block loads: the whole tile's extent along dimension {along} divided by the \
             {blocks} blocks along `ClusterAxis::{}`",
            axis.name()
        ));
    }
    let (bytes, repeat) = (slice.shared_bytes(), limits::tile_alignment(slice.swizzle));
    if blocks > 1 && !bytes.is_multiple_of(repeat) {
        let message = format!(
            "the slices of `{}` have {bytes} bytes each, but each must begin at a multiple of {repeat}",
            map.name
        );
        let why = match slice.swizzle.span() {
            Some(_) => "where the pattern of its swizzle begins anew",
            None => "as the copy engine asks",
        };
        sink.error(Code::SlicedLoad, tile.span, message).help(format!(
            "make the slice's extent along dimension {along} larger, so that the next one begins {why}"
        ));
    }
}
