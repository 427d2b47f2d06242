//! What a compiled kernel is, to the host: its PTX, its block and its parameters.
//!
//! Everything here is plain constant data. `#[tma_kernel]` writes one [`KernelSpec`] an instance; the backends only
//! read it.

pub(crate) mod ptx;

use std::ops::Deref;

pub use tma_model::{Scalar, TileSwizzle};

/// A kernel that may be launched: its [parts](KernelParts), which can be read as fields, and the promise that they are
/// true. `#[tma_kernel]` makes it, and promises it for the PTX that its compiler emits.
///
/// For PTX from elsewhere the promise is yours, so that nothing but `unsafe` code makes a specification of it:
///
/// ```
/// use tma_runtime::launch::{KernelParts, KernelSpec, ParamKind, ParamSpec};
/// use tma_runtime::spec::Cluster;
///
/// const PARTS: KernelParts = KernelParts {
///     name: "nothing",
///     entry: "nothing",
///     ptx: ".version 8.0\n.target sm_90a\n.address_size 64\n.visible .entry nothing(.param .u32 n) { ret; }",
///     threads: [32, 1, 1],
///     cluster: Cluster::None,
///     cooperative: false,
///     dependency_wait: false,
///     shared_bytes: 0,
///     params: &[ParamSpec { name: "n", kind: ParamKind::Scalar { bytes: 4 } }],
/// };
/// // SAFETY: the entry takes one number and touches no memory.
/// static SPEC: KernelSpec = unsafe { KernelSpec::from_parts(PARTS) };
/// assert_eq!(SPEC.threads, [32, 1, 1]);
/// ```
///
/// ```compile_fail,E0133
/// # use tma_runtime::launch::{KernelParts, KernelSpec};
/// fn refused(parts: KernelParts) -> KernelSpec {
///     KernelSpec::from_parts(parts)
/// }
/// ```
///
/// ```compile_fail,E0451
/// # use tma_runtime::launch::{KernelParts, KernelSpec};
/// fn refused(parts: KernelParts) -> KernelSpec {
///     KernelSpec { parts }
/// }
/// ```
///
/// ```compile_fail,E0594
/// # use tma_runtime::launch::KernelSpec;
/// fn refused(spec: &mut KernelSpec) {
///     spec.ptx = "";
/// }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KernelSpec {
    parts: KernelParts,
}

impl KernelSpec {
    /// Promises that a kernel is what its parts say.
    ///
    /// # Safety
    ///
    /// Launched over any grid, with arguments that fit `params`, the threads of `entry` touch no memory but
    ///
    /// * shared and local memory of their own, and variables of the PTX itself;
    /// * of a [`Map`](ParamKind::Map) what the tensor map reaches, and of a [`Global`](ParamKind::Global) the elements from
    ///   its address on, as many as it has. They write there only where the parameter is `written`;
    /// * what tensor maps reach that an earlier launch published in a workspace.
    ///
    /// So no number that is passed as a scalar is used as an address. `threads`, `cluster`, `cooperative`,
    /// `dependency_wait` and `shared_bytes` are what the entry was compiled for.
    pub const unsafe fn from_parts(parts: KernelParts) -> Self {
        Self { parts }
    }

    /// What the kernel is, also in constants, where `spec.threads` cannot be written.
    pub const fn parts(&self) -> &KernelParts {
        &self.parts
    }
}

impl Deref for KernelSpec {
    type Target = KernelParts;

    fn deref(&self) -> &KernelParts {
        &self.parts
    }
}

/// A compiled kernel and all that is needed to launch it, as plain data, of which nothing is promised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KernelParts {
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

impl KernelParts {
    /// Bytes of the PTX parameters that `params` become.
    pub(crate) fn ptx_params(&self) -> Vec<Option<u64>> {
        let sizes = self.params.iter().flat_map(|param| match param.kind {
            ParamKind::Map(_) => vec![Some(128)],
            ParamKind::Global { .. } => vec![Some(8), Some(8)],
            ParamKind::Scalar { bytes } => vec![Some(u64::from(bytes))],
        });
        sizes.collect()
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
        element: Scalar,
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

impl ParamKind {
    /// Whether the kernel writes to the memory that it is given here.
    pub const fn written(&self) -> bool {
        match self {
            Self::Map(map) => map.written,
            Self::Global { written, .. } => *written,
            Self::Scalar { .. } => false,
        }
    }
}

/// The part of a tensor map that the kernel decides: the box, which is the tile that one copy moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MapSpec {
    /// The element's type.
    pub element: Scalar,
    /// Which elements one copy moves.
    pub mode: MapMode,
    /// Extents of the tile in elements, outermost first: those of the box, or pixels and channels of a column.
    pub box_extents: &'static [u32],
    /// How rows of the tile are permuted in shared memory.
    pub swizzle: TileSwizzle,
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
