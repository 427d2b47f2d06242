//! Clusters: their size, what asks for one, the blocks that are named, and sliced loads.

use super::operations::Rules;
use crate::diag::{Code, Sink, rules};
use crate::ir::{
    BulkCopy, Cluster, ClusterAxis, CopyKind, Expr, ExprKind, Kernel, Multicast, RemoteCopy, Span, Special,
    Sync, TileCopy, TileType, Type,
};
use crate::limits;

/// The most blocks that a cluster has; none in a kernel without clusters.
pub(super) fn size(kernel: &Kernel, sink: &mut Sink) -> Option<u64> {
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

/// A copy by a tensor map: the blocks that it is multicast to.
pub(super) fn tile_copy(rules: &Rules<'_>, copy: &TileCopy, span: Span, sink: &mut Sink) {
    match (copy.kind.multicast(), rules.blocks) {
        (None, _) => {}
        (Some(Multicast::Mask(mask)), Some(blocks)) => mask_within(mask, blocks, sink),
        (Some(Multicast::Mask(_)), None) => sink.push(rules::no_cluster("load_multicast", span)),
        (Some(Multicast::Sliced(axis)), Some(_)) => sliced(rules.kernel, copy, *axis, span, sink),
        (Some(Multicast::Sliced(_)), None) => sink.push(rules::no_cluster("load_sliced", span)),
    }
}

/// A bulk copy likewise.
pub(super) fn bulk_copy(rules: &Rules<'_>, copy: &BulkCopy, span: Span, sink: &mut Sink) {
    match (copy.kind.multicast(), rules.blocks) {
        (None | Some(Multicast::Sliced(_)), _) => {}
        (Some(Multicast::Mask(mask)), Some(blocks)) => mask_within(mask, blocks, sink),
        (Some(Multicast::Mask(_)), None) => sink.push(rules::no_cluster("bulk_load_multicast", span)),
    }
}

/// Source: PTX ISA, "cp.async.bulk": from `.shared::cta` to `.shared::cluster`, the destination is
/// in another block. Reductions have no such rule.
pub(super) fn remote_copy(rules: &Rules<'_>, copy: &RemoteCopy, sink: &mut Sink) {
    if let (None, Some(blocks)) = (copy.op, rules.blocks) {
        elsewhere(&copy.to, blocks, sink);
    }
}

pub(super) fn meeting(rules: &Rules<'_>, sync: Sync, span: Span, sink: &mut Sink) {
    let word = match sync {
        Sync::Cluster => "sync_cluster",
        Sync::ClusterArrive => "cluster_arrive",
        Sync::ClusterWait => "cluster_wait",
        Sync::Threads | Sync::Warp | Sync::Warpgroup => return,
    };
    if rules.blocks.is_none() {
        sink.push(rules::no_cluster(word, span));
    }
}

/// Something of the block of this rank.
pub(super) fn remote(rules: &Rules<'_>, rank: &Expr, span: Span, sink: &mut Sink) {
    match rules.blocks {
        Some(blocks) => rank_within(rank, blocks, sink),
        None => sink.push(rules::no_cluster("remote", span)),
    }
}

pub(super) fn special(rules: &Rules<'_>, special: Special, span: Span, sink: &mut Sink) {
    let word = match special {
        Special::ClusterIdx(_) => "cluster_idx",
        Special::BlockInCluster(_) => "block_in_cluster",
        Special::ClusterDim(_) => "cluster_dim",
        Special::ClusterRank => "cluster_rank",
        Special::ThreadIdx(_)
        | Special::BlockIdx(_)
        | Special::GridDim(_)
        | Special::LaneIdx
        | Special::WarpIdx
        | Special::WarpgroupIdx => return,
    };
    if rules.blocks.is_none() {
        sink.push(rules::no_cluster(word, span));
    }
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
    let message = if let ExprKind::Special(Special::ClusterRank) = rank.kind {
        "a bulk copy to another block names the block itself"
    } else if blocks == 1 {
        "a bulk copy to another block, but the cluster has only one"
    } else {
        return;
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
    let (bytes, repeat) = (slice.panel_bytes(), limits::tile_alignment(slice.swizzle));
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
