//! A compiled kernel as the host sees it: its PTX, its block and its parameters.
//!
//! Everything here is plain constant data. `#[tma_kernel]` generates one [`KernelSpec`] per
//! instance; the backends only read it.

pub(crate) mod ptx;

use std::ops::Deref;

use tma_model::limits::{MAP_BYTES, TEAM_RANKS};

pub use tma_model::{Scalar, TileSwizzle};

/// A kernel that may be launched: its [parts](KernelParts), which can be read as fields, and the
/// promise that they are true. `#[tma_kernel]` generates it, and makes that promise for the PTX
/// that its compiler emits.
///
/// For PTX from elsewhere the promise is the user's, so that a specification of it takes `unsafe`
/// code:
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
///     team: false,
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
    /// Promises that the parts describe the kernel correctly.
    ///
    /// # Safety
    ///
    /// When launched over any grid with arguments that fit `params`, the threads of `entry` access
    /// only
    ///
    /// * their own shared and local memory, and variables of the PTX itself;
    /// * the memory that the tensor map of a [`Map`](ParamKind::Map) covers, and the elements of a
    ///   [`Global`](ParamKind::Global), or those of each rank of a [`PeerMaps`](ParamKind::PeerMaps)
    ///   or a [`PeerGlobals`](ParamKind::PeerGlobals). They write there only if the parameter is
    ///   `written`;
    /// * the memory covered by tensor maps that an earlier launch published in a workspace.
    ///
    /// In particular, no scalar argument is used as an address. `threads`, `cluster`,
    /// `cooperative`, `dependency_wait`, `team` and `shared_bytes` are those that the entry was compiled
    /// for.
    pub const unsafe fn from_parts(parts: KernelParts) -> Self {
        Self { parts }
    }

    /// Returns this kernel with another text and more shared memory. It is never freed, as kernels
    /// are not.
    ///
    /// # Safety
    ///
    /// With the text, the kernel does what this one promises, or stops, and accesses other memory
    /// only where that is allowed.
    #[cfg(feature = "trace")]
    pub(crate) unsafe fn rewritten(&self, ptx: String, shared_bytes: u32) -> &'static Self {
        let parts = KernelParts { ptx: Box::leak(ptx.into_boxed_str()), shared_bytes, ..self.parts };
        Box::leak(Box::new(Self { parts }))
    }

    /// Returns the kernel's parts, also in constants, where `spec.threads` is not allowed.
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

/// A compiled kernel and everything needed to launch it, as plain data that promises nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KernelParts {
    /// The name as the user sees it: `copy`, or `copy::large` for a named instance.
    pub name: &'static str,
    /// The symbol of the PTX entry.
    pub entry: &'static str,
    /// The PTX, without `.entry` if the package was built without LLVM. The entry must declare
    /// exactly the PTX parameters that follow from `params`; a launch rejects any others.
    pub ptx: &'static str,
    /// Threads per block along x, y and z.
    pub threads: [u32; 3],
    /// The clusters that the blocks are grouped into.
    pub cluster: Cluster,
    /// Whether the blocks wait for each other (`sync_grid`), which requires all of them to run at
    /// the same time.
    pub cooperative: bool,
    /// Whether the kernel waits for previous kernels (`grid_dependency_wait`), which allows it to
    /// start before they have ended.
    pub dependency_wait: bool,
    /// Whether the kernel runs on all ranks of a team. Its last two parameters, scalars of 4 bytes,
    /// are then its rank and the number of ranks.
    pub team: bool,
    /// Shared memory per block, in bytes. All of it is dynamic.
    pub shared_bytes: u32,
    /// The kernel's parameters, in the order of its signature.
    pub params: &'static [ParamSpec],
}

impl KernelParts {
    /// Returns the sizes in bytes of the PTX parameters that follow from `params`.
    pub(crate) fn ptx_params(&self) -> Vec<Option<u64>> {
        let sizes = self.params.iter().flat_map(|param| match param.kind {
            ParamKind::Map(_) => vec![Some(u64::from(MAP_BYTES))],
            ParamKind::PeerMaps(_) => vec![Some(u64::from(MAP_BYTES * TEAM_RANKS))],
            ParamKind::Global { .. } => vec![Some(8), Some(8)],
            ParamKind::PeerGlobals { .. } => vec![Some(8 * u64::from(TEAM_RANKS)), Some(8)],
            ParamKind::Scalar { bytes } => vec![Some(u64::from(bytes))],
        });
        sizes.collect()
    }
}

#[cfg(test)]
impl KernelParts {
    /// A kernel of one warp that does nothing. Each test changes the parts that it is about.
    pub(crate) const NOTHING: Self = Self {
        name: "k",
        entry: "k",
        ptx: ".version 8.0\n.target sm_90a\n.address_size 64\n.visible .entry k() { ret; }",
        threads: [32, 1, 1],
        cluster: Cluster::None,
        cooperative: false,
        dependency_wait: false,
        team: false,
        shared_bytes: 0,
        params: &[],
    };
}

/// The clusters that a kernel's blocks are grouped into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cluster {
    /// No clusters.
    None,
    /// A fixed number of blocks per cluster along x, y and z.
    Fixed([u32; 3]),
    /// A size chosen by the launch.
    AtLaunch {
        /// The maximum number of blocks.
        most: u32,
    },
}

impl Cluster {
    /// Returns the maximum number of blocks per cluster.
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
    /// The parameter's name in the kernel's signature.
    pub name: &'static str,
    /// The kind of argument that it takes.
    pub kind: ParamKind,
}

/// The kind of argument that a parameter takes, which determines its PTX parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParamKind {
    /// `TensorMap<Tile>` or `Im2colMap<Tile, RANK>`: one parameter of 128 bytes.
    Map(MapSpec),
    /// `Global<T>`: two parameters, the address (`u64`) and the number of elements (`u64`).
    Global {
        /// The element's type.
        element: Scalar,
        /// Whether the kernel writes to the memory.
        written: bool,
        /// Required alignment of the address in bytes: the element's size, or the alignment of bulk
        /// copies or vectors.
        alignment: u32,
    },
    /// `Peers<TensorMap<Tile>>`: one parameter of 8 × 128 bytes, the maps of the ranks in order. The
    /// last one repeats for ranks that the team does not have.
    PeerMaps(MapSpec),
    /// `Peers<Global<T>>`: two parameters, the addresses of 8 ranks (`u64`), of which the last one
    /// repeats, and the number of elements of each (`u64`).
    PeerGlobals {
        /// The element's type.
        element: Scalar,
        /// Whether the kernel writes to the memory of any rank.
        written: bool,
        /// Required alignment of each address in bytes.
        alignment: u32,
    },
    /// A scalar: one parameter.
    Scalar {
        /// The scalar's size in bytes: 1, 2, 4 or 8.
        bytes: u32,
    },
}

impl ParamKind {
    /// Returns whether the kernel writes to the argument's memory.
    pub const fn written(&self) -> bool {
        match self {
            Self::Map(map) | Self::PeerMaps(map) => map.written,
            Self::Global { written, .. } | Self::PeerGlobals { written, .. } => *written,
            Self::Scalar { .. } => false,
        }
    }
}

/// The part of a tensor map that the kernel determines: the tile that one copy moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MapSpec {
    /// The element's type.
    pub element: Scalar,
    /// The selection of the elements that one copy moves.
    pub mode: MapMode,
    /// Extents of the tile in elements, outermost first: the box, or the pixels and channels of a
    /// column.
    pub box_extents: &'static [u32],
    /// The permutation of the tile's rows in shared memory.
    pub swizzle: TileSwizzle,
    /// Whether the kernel stores or reduces through the map.
    pub written: bool,
}

/// The selection of the elements that one copy by a tensor map moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MapMode {
    /// A box of the tensor, with the tensor's rank.
    Tiled,
    /// A column of pixels of a tensor with this rank: images, 1 to 3 spatial dimensions, channels.
    Im2col {
        /// The rank of the tensor.
        rank: usize,
    },
}
