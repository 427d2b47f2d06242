//! What a compiled kernel is, to the host: its PTX, its block and its parameters.
//!
//! Everything here is plain constant data. `#[tma_kernel]` writes one [`KernelSpec`] an instance; the backends only
//! read it.

pub use tma_model::{Scalar as Element, TileSwizzle as Swizzle};

use crate::ptx::Params;

/// A compiled kernel and all that is needed to launch it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KernelSpec {
    /// The name as the user knows it: `copy`, or `copy::large` for a named instance.
    pub name: &'static str,
    /// The symbol of the PTX entry.
    pub entry: &'static str,
    /// The PTX. A text without `.entry` means that the build had no LLVM to make it with. The parameters that the entry
    /// declares are those that `params` become: a launch refuses others.
    pub ptx: &'static str,
    /// Threads of a block along x, y and z.
    pub threads: [u32; 3],
    /// The clusters that its blocks come in.
    pub cluster: Cluster,
    /// Whether its blocks wait for each other (`sync_grid`), so that all of them must run at the same time.
    pub cooperative: bool,
    /// Whether it waits for the kernels before it (`grid_dependency_wait`), so that it may start before they have ended.
    pub dependency_wait: bool,
    /// Shared memory of a block, in bytes. All of it is dynamic.
    pub shared_bytes: u32,
    /// The kernel's parameters, in the order of its signature.
    pub params: &'static [ParamSpec],
}

impl KernelSpec {
    /// The PTX parameters that `params` become.
    pub(crate) fn ptx_params(&self) -> Params {
        let sizes = self.params.iter().flat_map(|param| match param.kind {
            ParamKind::Map(_) => vec![Some(128)],
            ParamKind::Global { .. } => vec![Some(8), Some(8)],
            ParamKind::Scalar { bytes } => vec![Some(u64::from(bytes))],
        });
        Params(sizes.collect())
    }
}

/// The clusters that a kernel's blocks come in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cluster {
    /// None.
    None,
    /// Blocks of a cluster along x, y and z.
    Fixed([u32; 3]),
    /// As many as the launch says.
    AtLaunch {
        /// The most blocks that it may say.
        most: u32,
    },
}

impl Cluster {
    /// The most blocks that a cluster may have.
    pub const fn most_blocks(self) -> u32 {
        match self {
            Self::None => 1,
            Self::Fixed([x, y, z]) => x.saturating_mul(y).saturating_mul(z),
            Self::AtLaunch { most } => most,
        }
    }
}

/// A parameter of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParamSpec {
    /// Its name in the kernel's signature.
    pub name: &'static str,
    /// What it takes.
    pub kind: ParamKind,
}

/// What a parameter takes, and so which PTX parameters it becomes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParamKind {
    /// `TensorMap<Tile>` or `Im2colMap<Tile, RANK>`: one parameter of 128 bytes.
    Map(MapSpec),
    /// `Global<T>`: two parameters, the address (`u64`) and the number of elements (`u64`).
    Global {
        /// The element's type.
        element: Element,
        /// Whether the kernel writes through it.
        written: bool,
        /// What the address must be a multiple of, in bytes: the element's size, or what bulk copies take.
        alignment: u32,
    },
    /// A scalar: one parameter.
    Scalar {
        /// Its size in bytes: 1, 2, 4 or 8.
        bytes: u32,
    },
}

/// The part of a tensor map that the kernel decides: the box, which is the tile that one copy moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MapSpec {
    /// The element's type.
    pub element: Element,
    /// Which elements one copy moves.
    pub mode: MapMode,
    /// Extents of the tile in elements, outermost first: those of the box, or pixels and channels of a column.
    pub box_extents: &'static [u32],
    /// How rows of the tile are permuted in shared memory.
    pub swizzle: Swizzle,
    /// Whether the kernel stores or reduces through the map.
    pub written: bool,
}

/// Which elements one copy by a tensor map moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MapMode {
    /// A box of the tensor, which has as many dimensions.
    Tiled,
    /// A column of the pixels of a tensor with so many dimensions: images, 1 to 3 dimensions of pixels, channels.
    Im2col {
        /// Dimensions of the tensor.
        rank: usize,
    },
}
