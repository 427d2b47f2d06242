//! Clusters, and memory shared between blocks.

use super::Word;
use crate::diag::Code;
use crate::diag::text::Text;
use crate::diag::wording::extent;
use crate::ir::{ClusterAxis, Span, TileType};
use crate::limits::{cluster_blocks, tile_alignment};

/// A mistake about clusters.
#[derive(Clone, Debug)]
pub enum Cluster {
    /// A cluster operation in a kernel without clusters.
    None { word: Word },
    /// A cluster with no blocks or too many. One that is `nonportable` may have more.
    Size { extents: [u32; 3], nonportable: bool },
    /// A rank of a block that is not in the cluster.
    Rank { rank: i128, blocks: u64 },
    /// A copy to another block whose destination is the block itself.
    OwnBlock,
    /// A copy to another block in a cluster of one.
    OneBlock,
    /// A mask without blocks, or with blocks that are not in the cluster.
    Mask { mask: i128, blocks: u64 },
    /// A sliced load in a cluster whose size is only known at launch.
    SlicedAtLaunch,
    /// Slices that do not make up the tile: the slices, the tile they form, and the destination.
    Sliced { slices: Slices, whole: TileType, found: TileType },
    /// Slices that do not start at the alignment of a tile.
    SliceStart { map: String, slice: TileType, along: usize },
}

/// The slices of a load.
#[derive(Clone, Debug)]
pub struct Slices {
    /// Name of the tensor map.
    pub map: String,
    /// The map's tile, and the location of its type.
    pub slice: TileType,
    pub ty: Span,
    /// The number of slices, along this dimension of the tile.
    pub blocks: u32,
    pub along: usize,
    /// The axis of the blocks that load one slice each, and the location of the cluster's size.
    pub axis: ClusterAxis,
    pub cluster: Span,
}

impl Cluster {
    pub(super) fn text(&self) -> Text {
        match self {
            Self::None { word } => {
                Text::new(Code::NoCluster, format!("`{word}` requires a kernel with clusters"))
                    .help("set the number of blocks of a cluster: `#[tma_kernel(threads = .., cluster = 2)]`")
            }
            Self::Size { extents, nonportable } => size(*extents, *nonportable),
            Self::Rank { rank, blocks } => {
                let message = format!("block rank {rank} is out of bounds: the cluster has {blocks} blocks");
                Text::new(Code::ClusterBlock, message)
                    .help(format!("use a rank from 0 to {}", blocks.saturating_sub(1)))
            }
            Self::OwnBlock => elsewhere(
                "the destination of this bulk copy is the copying block itself",
                "use the rank of another block of the cluster; within a block, copy with `get` and `set`",
            ),
            Self::OneBlock => elsewhere(
                "a bulk copy to another block needs a cluster of at least 2 blocks",
                "use a cluster of 2 or more blocks; within a block, copy with `get` and `set`",
            ),
            Self::Mask { mask, blocks } => {
                let message = match mask {
                    0 => "the mask selects no block".to_owned(),
                    mask => {
                        format!("the mask {mask:#b} selects blocks that a cluster of {blocks} does not have")
                    }
                };
                let all = (1i128 << (*blocks).min(16)) - 1;
                Text::new(Code::ClusterBlock, message)
                    .help(format!("set bit i for the block of rank i; {all:#b} selects all blocks"))
            }
            Self::SlicedAtLaunch => Text::new(
                Code::SlicedLoad,
                "`load_sliced` requires a cluster size that is known at compile time",
            )
            .help("write `cluster = 2` in the attribute, or use `load_multicast` with a mask"),
            Self::Sliced { slices, whole, found } => {
                let Slices { map, slice, ty, blocks, along, axis, cluster } = slices;
                let message = format!(
                    "{blocks} slices `{slice}` of `{map}` form a `{whole}`, but the destination is a \
                     `{found}`"
                );
                Text::new(Code::SlicedLoad, message)
                    .label(*ty, "the type of a slice")
                    .label(*cluster, "the blocks that share the load")
                    .help(format!(
                        "make the map's tile what one block loads: the destination's {}, divided by the \
                         {blocks} blocks along `ClusterAxis::{}`",
                        extent(*along, found.rank()),
                        axis.name()
                    ))
            }
            Self::SliceStart { map, slice, along } => {
                let message = format!(
                    "each slice must start at a multiple of {} bytes, but the slices of `{map}` have {} \
                     bytes",
                    tile_alignment(slice.swizzle),
                    slice.panel_bytes()
                );
                let why = match slice.swizzle.span() {
                    Some(_) => "where the swizzle pattern repeats",
                    None => "as the copy engine requires",
                };
                Text::new(Code::SlicedLoad, message).help(format!(
                    "increase the {} of a slice, so that the next one starts {why}",
                    extent(*along, slice.rank())
                ))
            }
        }
    }
}

fn size(extents: [u32; 3], nonportable: bool) -> Text {
    let [x, y, z] = extents;
    let most = cluster_blocks(nonportable);
    let blocks = [x, y, z].into_iter().fold(1u64, |all, extent| all.saturating_mul(u64::from(extent)));
    let message = format!("a cluster has 1 to {most} blocks, not {x} × {y} × {z}");
    Text::new(Code::ClusterSize, message).help(match blocks {
        0 => "use at least one block in each dimension",
        _ if blocks <= u64::from(cluster_blocks(true)) => {
            "use fewer blocks, or add `nonportable_cluster`, which not every device supports"
        }
        _ => "use fewer blocks per cluster",
    })
}

fn elsewhere(message: &str, help: &str) -> Text {
    Text::new(Code::ClusterBlock, message).help(help)
}
