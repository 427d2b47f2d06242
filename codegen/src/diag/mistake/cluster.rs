//! Clusters, and memory shared between blocks.

use super::Word;
use crate::diag::Code;
use crate::diag::text::Text;
use crate::ir::{ClusterAxis, Span, TileType};
use crate::limits::{cluster_blocks, tile_alignment};

/// A mistake about clusters.
#[derive(Clone, Debug)]
pub(crate) enum Cluster {
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
pub(crate) struct Slices {
    /// Name of the tensor map.
    pub(crate) map: String,
    /// The map's tile, and the location of its type.
    pub(crate) slice: TileType,
    pub(crate) ty: Span,
    /// The number of slices, along this dimension of the tile.
    pub(crate) blocks: u32,
    pub(crate) along: usize,
    /// The axis of the blocks that load one slice each, and the location of the cluster's size.
    pub(crate) axis: ClusterAxis,
    pub(crate) cluster: Span,
}

impl Cluster {
    pub(super) fn text(&self) -> Text {
        match self {
            Self::None { word } => {
                Text::new(Code::NoCluster, format!("`{word}` is about clusters, and this kernel has none"))
                    .help("say how many blocks a cluster has: `#[tma_kernel(threads = .., cluster = 2)]`")
            }
            Self::Size { extents, nonportable } => size(*extents, *nonportable),
            Self::Rank { rank, blocks } => {
                let message = format!("a cluster of {blocks} blocks has no block of rank {rank}");
                Text::new(Code::ClusterBlock, message)
                    .help(format!("ranks are 0 to {}", blocks.saturating_sub(1)))
            }
            Self::OwnBlock => elsewhere("a bulk copy to another block names the block itself"),
            Self::OneBlock => elsewhere("a bulk copy to another block, but the cluster has only one"),
            Self::Mask { mask, blocks } => {
                let message = match mask {
                    0 => "the mask names no block".to_owned(),
                    mask => {
                        format!("the mask {mask:#b} names blocks that a cluster of {blocks} does not have")
                    }
                };
                let all = (1i128 << (*blocks).min(16)) - 1;
                Text::new(Code::ClusterBlock, message)
                    .help(format!("bit i is the block of rank i; all of them are {all:#b}"))
            }
            Self::SlicedAtLaunch => {
                Text::new(Code::SlicedLoad, "a load is sliced by a cluster whose size is known")
                    .help("write `cluster = 2` in the attribute, or use `load_multicast` with a mask")
            }
            Self::Sliced { slices, whole, found } => {
                let Slices { map, slice, ty, blocks, along, axis, cluster } = slices;
                let message =
                    format!("{blocks} slices `{slice}` of `{map}` are a `{whole}`, but this is a `{found}`");
                Text::new(Code::SlicedLoad, message)
                    .label(*ty, "the type of a slice")
                    .label(*cluster, "the blocks that share the load")
                    .help(format!(
                        "the map's tile is what one block loads: the whole tile's extent along dimension {along} \
                         divided by the {blocks} blocks along `ClusterAxis::{}`",
                        axis.name()
                    ))
            }
            Self::SliceStart { map, slice, along } => {
                let message = format!(
                    "the slices of `{map}` have {} bytes each, but each must begin at a multiple of {}",
                    slice.panel_bytes(),
                    tile_alignment(slice.swizzle)
                );
                let why = match slice.swizzle.span() {
                    Some(_) => "where the pattern of its swizzle begins anew",
                    None => "as the copy engine asks",
                };
                Text::new(Code::SlicedLoad, message).help(format!(
                    "make the slice's extent along dimension {along} larger, so that the next one begins {why}"
                ))
            }
        }
    }
}

fn size([x, y, z]: [u32; 3], nonportable: bool) -> Text {
    let most = cluster_blocks(nonportable);
    let blocks = [x, y, z].into_iter().fold(1u64, |all, extent| all.saturating_mul(u64::from(extent)));
    let message = format!("a cluster of {x} × {y} × {z} blocks; there may be 1 to {most}");
    Text::new(Code::ClusterSize, message).help(
        match (1..=u64::from(cluster_blocks(true))).contains(&blocks) {
            true => "take fewer, or ask for what not every device has: `nonportable_cluster`",
            false => "take fewer blocks a cluster",
        },
    )
}

fn elsewhere(message: &str) -> Text {
    Text::new(Code::ClusterBlock, message)
        .help("name another block of the cluster; within a block threads copy, with `get` and `set`")
}
