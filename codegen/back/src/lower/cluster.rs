//! Other blocks of the cluster: their shared memory, and this block's slice of a load.

use inkwell::values::{BasicValueEnum, IntValue};
use tma_front::ir::{Axis, Cluster, ClusterAxis, Expr, TileType};

use super::types::int;
use super::{Cx, Lower, expr};
use crate::backend::BackendError;

/// Emits the address of `thing` in the block of this rank.
pub(super) fn remote<'c>(cx: &mut Cx<'c, '_>, thing: &Expr, rank: &Expr) -> Lower<BasicValueEnum<'c>> {
    let own = expr::value(cx, thing)?;
    let rank = expr::value(cx, rank)?;
    cx.intrinsic_value("llvm.nvvm.mapa.shared.cluster", &[], &[own.into(), rank.into()])
}

/// Emits the rank of this block in its cluster.
pub(super) fn rank<'c>(cx: &Cx<'c, '_>) -> Lower<IntValue<'c>> {
    cx.intrinsic_value("llvm.nvvm.read.ptx.sreg.cluster.ctarank", &[], &[]).and_then(int)
}

/// This block's part of a sliced load.
pub(super) struct Slice<'c> {
    /// The offset in bytes in each panel of the whole tile.
    pub(super) bytes: IntValue<'c>,
    /// The dimension along which the tile is divided, counted from the innermost.
    pub(super) dimension: usize,
    /// The start along that dimension, in coordinates of the hardware.
    pub(super) start: IntValue<'c>,
    /// The mask of the receiving blocks, 16 bits.
    pub(super) mask: IntValue<'c>,
}

/// Emits this block's slice, of type `tile`, of the tile `whole` along `axis`. Returns `None` if
/// there is only one block.
pub(super) fn slice<'c>(
    cx: &Cx<'c, '_>,
    tile: &TileType,
    whole: &TileType,
    axis: ClusterAxis,
) -> Lower<Option<Slice<'c>>> {
    let Cluster::Fixed(extents) = cx.kernel.kernel().launch.cluster else {
        return Err(BackendError::Unchecked("a sliced load in clusters of unknown size".to_owned()));
    };
    if axis.blocks(extents) == 1 {
        return Ok(None);
    }
    let number = match axis {
        ClusterAxis::Along(axis) => expr::register(cx, "cluster.ctaid", axis)?,
        ClusterAxis::All => rank(cx)?,
    };
    let along = whole.sliced_dimension();
    let dimension = whole.rank().saturating_sub(along + 1);
    // A slice of rows has a part in each panel. A slice along a row consists of whole panels.
    let bytes = if dimension == 0 { tile.shared_bytes() } else { tile.panel_bytes() };
    let bytes = cx.bytes_const(bytes)?;
    // Along dimension 0 of an interleaved layout, the hardware counts pixels.
    let unit = tile.pixel_elements().filter(|_| dimension == 0).unwrap_or(1);
    let extent = cx.u32_const(tile.extents.get(along).copied().unwrap_or(1) / unit);
    let first = first_rank(cx, extents, axis)?;
    let peers = cx.u32_const(peers(extents, axis));
    let mask = cx.builder.build_left_shift(peers, first, "")?;
    Ok(Some(Slice {
        bytes: cx.builder.build_int_mul(number, bytes, "")?,
        dimension,
        start: cx.builder.build_int_mul(number, extent, "")?,
        mask: cx.builder.build_int_truncate(mask, cx.context.i16_type(), "mask")?,
    }))
}

/// Returns the mask of the blocks along `axis` from rank 0 on. Ranks count along x, then y, then z.
///
/// Source: PTX ISA, "Special Registers: %cluster_ctarank".
fn peers(extents: [u32; 3], axis: ClusterAxis) -> u32 {
    let [x, y, _] = extents;
    let stride = match axis {
        ClusterAxis::Along(Axis::X) | ClusterAxis::All => 1,
        ClusterAxis::Along(Axis::Y) => x,
        ClusterAxis::Along(Axis::Z) => x * y,
    };
    (0..axis.blocks(extents)).fold(0, |mask, block| mask | 1 << (block * stride))
}

/// Emits the rank of the first of the blocks along `axis` to which this one belongs.
fn first_rank<'c>(cx: &Cx<'c, '_>, extents: [u32; 3], axis: ClusterAxis) -> Lower<IntValue<'c>> {
    let [x, y, z] = extents;
    let mut first = cx.u32_const(0);
    let ClusterAxis::Along(along) = axis else { return Ok(first) };
    for (other, extent, stride) in [(Axis::X, x, 1), (Axis::Y, y, x), (Axis::Z, z, x * y)] {
        if other != along && extent > 1 {
            let position = expr::register(cx, "cluster.ctaid", other)?;
            let step = cx.builder.build_int_mul(position, cx.u32_const(stride), "")?;
            first = cx.builder.build_int_add(first, step, "")?;
        }
    }
    Ok(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn peers_are_those_along_the_axis() {
        let along = ClusterAxis::Along;
        assert_eq!(peers([2, 2, 1], along(Axis::X)), 0b0011);
        assert_eq!(peers([2, 2, 1], along(Axis::Y)), 0b0101);
        assert_eq!(peers([2, 2, 2], along(Axis::Z)), 0b0001_0001);
        assert_eq!(peers([2, 2, 2], ClusterAxis::All), 0xff);
        assert_eq!(peers([1, 3, 2], along(Axis::Y)), 0b111);
        assert_eq!(peers([4, 2, 2], ClusterAxis::All), 0xffff);
    }

    #[test]
    fn with_one_block_along_the_axis_a_sliced_load_is_a_load() {
        let load = |cluster: &str| {
            let source = format!(
                "#[tma_kernel(threads = 32, cluster = {cluster})]
                 pub fn kernel(map: TensorMap<Tile<u32, Shape2<8, 32>>>) {{
                     let tile: Tile<u32, Shape2<8, 32>> = shared();
                     let full: Barrier = shared();
                     map.load_sliced(tile, [0, 0], full, ClusterAxis::Y);
                 }}"
            );
            let compiled = crate::compile("src/kernel.rs", &source, crate::Target::Sm90a);
            compiled.unwrap_or_else(|error| panic!("{error}")).kernels.remove(0).text
        };
        assert!(load("[2, 1]").contains("cp.async.bulk.tensor"));
        assert!(!load("[2, 1]").contains(".multicast::cluster"));
    }
}
