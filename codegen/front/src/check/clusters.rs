//! Clusters: their size, operations that need one, ranks and masks of blocks, and sliced loads.

use super::rules::Rules;
use crate::diag::Sink;
use crate::diag::mistake::{self, Slices};
use crate::ir::{
    BulkCopy, Cluster, ClusterAxis, CopyKind, Expr, ExprKind, Kernel, Multicast, RemoteCopy, Span, Special,
    Sync, TileCopy, TileType, Type,
};
use crate::limits;

/// Returns the most blocks of a cluster, or `None` in a kernel without clusters.
pub(super) fn size(kernel: &Kernel, sink: &mut Sink) -> Option<u64> {
    let launch = &kernel.launch;
    let most = limits::cluster_blocks(launch.nonportable_cluster);
    match launch.cluster {
        Cluster::None => None,
        Cluster::AtLaunch => Some(u64::from(most)),
        Cluster::Fixed(extents) => {
            let blocks = extents.iter().fold(1u64, |all, &extent| all.saturating_mul(u64::from(extent)));
            if blocks == 0 || blocks > u64::from(most) {
                let nonportable = launch.nonportable_cluster;
                sink.error(mistake::Cluster::Size { extents, nonportable }, launch.spans.cluster);
            }
            Some(blocks)
        }
    }
}

/// Checks a copy by a tensor map: the blocks that it is multicast to.
pub(super) fn tile_copy(rules: &Rules<'_>, copy: &TileCopy, span: Span, sink: &mut Sink) {
    match (copy.kind.multicast(), rules.blocks) {
        (None, _) => {}
        (Some(Multicast::Mask(mask)), Some(blocks)) => mask_within(mask, blocks, sink),
        (Some(Multicast::Mask(_)), None) => no_cluster("load_multicast", span, sink),
        (Some(Multicast::Sliced(axis)), Some(_)) => sliced(rules.kernel, copy, *axis, span, sink),
        (Some(Multicast::Sliced(_)), None) => no_cluster("load_sliced", span, sink),
    }
}

/// Checks a bulk copy: the blocks that it is multicast to.
pub(super) fn bulk_copy(rules: &Rules<'_>, copy: &BulkCopy, span: Span, sink: &mut Sink) {
    match (copy.kind.multicast(), rules.blocks) {
        (None | Some(Multicast::Sliced(_)), _) => {}
        (Some(Multicast::Mask(mask)), Some(blocks)) => mask_within(mask, blocks, sink),
        (Some(Multicast::Mask(_)), None) => no_cluster("bulk_load_multicast", span, sink),
    }
}

/// Checks a copy into another block. Source: PTX ISA, "cp.async.bulk": from `.shared::cta` to
/// `.shared::cluster`, the destination is in another block. Reductions have no such rule.
pub(super) fn remote_copy(rules: &Rules<'_>, copy: &RemoteCopy, sink: &mut Sink) {
    if let (None, Some(blocks)) = (copy.op, rules.blocks) {
        elsewhere(&copy.to, blocks, sink);
    }
}

pub(super) fn sync(rules: &Rules<'_>, sync: Sync, span: Span, sink: &mut Sink) {
    let word = match sync {
        Sync::Cluster => "sync_cluster",
        Sync::ClusterArrive => "cluster_arrive",
        Sync::ClusterWait => "cluster_wait",
        Sync::Threads | Sync::Warp | Sync::Warpgroup => return,
    };
    if rules.blocks.is_none() {
        no_cluster(word, span, sink);
    }
}

/// Checks a handle to an object in the block of this rank.
pub(super) fn remote(rules: &Rules<'_>, rank: &Expr, span: Span, sink: &mut Sink) {
    match rules.blocks {
        Some(blocks) => rank_within(rank, blocks, sink),
        None => no_cluster("remote", span, sink),
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
        no_cluster(word, span, sink);
    }
}

/// Reports an operation on clusters in a kernel that has none.
fn no_cluster(word: &'static str, span: Span, sink: &mut Sink) {
    sink.error(mistake::Cluster::None { word: word.into() }, span);
}

fn rank_within(rank: &Expr, blocks: u64, sink: &mut Sink) {
    if let Some(value) = rank.as_int()
        && !(0..i128::from(blocks)).contains(&value)
    {
        sink.error(mistake::Cluster::Rank { rank: value, blocks }, rank.span);
    }
}

fn elsewhere(to: &Expr, blocks: u64, sink: &mut Sink) {
    let ExprKind::Remote(_, rank) = &to.kind else { return };
    if let ExprKind::Special(Special::ClusterRank) = rank.kind {
        sink.error(mistake::Cluster::OwnBlock, to.span);
    } else if blocks == 1 {
        sink.error(mistake::Cluster::OneBlock, to.span);
    }
}

fn mask_within(mask: &Expr, blocks: u64, sink: &mut Sink) {
    let Some(value) = mask.as_int() else { return };
    let all = (1i128 << blocks.min(16)) - 1;
    if value == 0 || value & !all != 0 {
        sink.error(mistake::Cluster::Mask { mask: value, blocks }, mask.span);
    }
}

/// Checks the slices of a tile: one for each block along the axis, one after the other along the
/// tile's outermost dimension of more than one element.
fn sliced(kernel: &Kernel, copy: &TileCopy, axis: ClusterAxis, span: Span, sink: &mut Sink) {
    let CopyKind::Load { to: tile, .. } = &copy.kind else { return };
    let map = kernel.param(copy.map.param);
    let (Some(slice), Type::Tile(whole)) = (map.ty.moved(), &tile.ty) else { return };
    let Cluster::Fixed(extents) = kernel.launch.cluster else {
        sink.error(mistake::Cluster::SlicedAtLaunch, span);
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
        let slices = Slices {
            map: map.name.clone(),
            slice: slice.clone(),
            ty: map.ty_span,
            blocks,
            along,
            axis,
            cluster: kernel.launch.spans.cluster,
        };
        let mistake = mistake::Cluster::Sliced { slices, whole: wanted, found: whole.clone() };
        sink.error(mistake, tile.span);
    }
    let (bytes, repeat) = (slice.panel_bytes(), limits::tile_alignment(slice.swizzle));
    if blocks > 1 && !bytes.is_multiple_of(repeat) {
        let (map, slice) = (map.name.clone(), slice.clone());
        sink.error(mistake::Cluster::SliceStart { map, slice, along }, tile.span);
    }
}
