//! A kernel instance and its declarations.

use super::{Block, Call, Const, PeerMemory, Pipeline, Scalar, Span, TileSwizzle, TileType, Type};

/// One instance of a kernel, with every constant known.
#[derive(Clone, Debug)]
pub struct Kernel {
    /// The function's name.
    pub name: String,
    /// The name of this instance of the const generics, if the kernel has any.
    pub instance: Option<String>,
    /// The arguments of the generics in this instance, in order. Read by the launcher alone.
    pub arguments: Vec<Argument>,
    /// The launch bounds of the attribute.
    pub launch: LaunchBounds,
    /// The attribute's choice between `checked` and `unchecked`. Without one, the build decides
    /// ([`Checks`](crate::Checks)).
    pub checked: Option<bool>,
    /// The reason in `protocol = trusted("reason")`, if the attribute has it. The order in which
    /// such a kernel's threads use barriers and memory is not checked.
    pub trusted: Option<String>,
    /// Whether the attribute has `local_arrays`: register arrays may be in local memory.
    pub local_arrays: bool,
    /// The parameters, in order.
    pub params: Vec<Param>,
    /// Every register variable, in order of appearance, indexed by [`LocalId`].
    pub locals: Vec<Local>,
    /// Every `shared()` and `reuse()`, in order of appearance, indexed by [`SharedId`].
    pub shared: Vec<SharedVar>,
    /// Every pipeline, in order of appearance, indexed by [`PipelineId`](super::PipelineId).
    pub pipelines: Vec<Pipeline>,
    /// Every call that was inlined or expanded, indexed by [`CallId`](super::CallId).
    pub calls: Vec<Call>,
    /// Every variable named in the source with its inferred type, including variables that take no
    /// register. Variables of an inlined function appear once per call.
    pub variables: Vec<Local>,
    /// The code of one thread.
    pub body: Block,
    /// The function's name in the source.
    pub span: Span,
}

/// The argument of one generic parameter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Argument {
    /// A constant and its type.
    Const(Const, Scalar),
    /// An element or number type.
    Element(Scalar),
    /// A swizzle.
    Swizzle(TileSwizzle),
    /// Any other type.
    Other,
}

/// The constraints on every launch of a kernel.
#[derive(Clone, Debug)]
pub struct LaunchBounds {
    /// Threads per block along x, y, z.
    pub threads: [u32; 3],
    /// Blocks that should fit on one multiprocessor at once (PTX `.minnctapersm`).
    pub min_blocks: Option<u32>,
    /// Registers that a thread may use (PTX `.maxnreg`).
    pub max_registers: Option<u32>,
    /// The cluster shape.
    pub cluster: Cluster,
    /// Whether clusters may have more blocks than every device supports.
    pub nonportable_cluster: bool,
    /// Spans of the attribute's arguments.
    pub spans: LaunchSpans,
}

/// The clusters that the blocks of a kernel form. The blocks of a cluster run at the same time and
/// can access each other's shared memory. Source: PTX ISA, "Cluster of Cooperative Thread Arrays".
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Cluster {
    /// No clusters: each block is on its own.
    #[default]
    None,
    /// Blocks per cluster along x, y, z (PTX `.reqnctapercluster`).
    Fixed([u32; 3]),
    /// A shape that each launch sets.
    AtLaunch,
}

/// Source spans of [`LaunchBounds`].
#[derive(Clone, Debug)]
pub struct LaunchSpans {
    /// Span of `threads = ..`.
    pub threads: Span,
    /// Span of `min_blocks = ..`.
    pub min_blocks: Span,
    /// Span of `max_registers = ..`.
    pub max_registers: Span,
    /// Span of `cluster = ..`.
    pub cluster: Span,
}

impl LaunchBounds {
    /// Returns the number of threads per block.
    pub fn thread_count(&self) -> u64 {
        self.threads.iter().map(|&n| u64::from(n)).product()
    }
}

/// A kernel parameter: a tensor map, tensor maps that the kernel creates, a slice of global memory,
/// a map or a slice of each rank of a team, or a scalar.
#[derive(Clone, Debug)]
pub struct Param {
    /// The name in the source.
    pub name: String,
    /// A tensor map type, `Maps`, `Global` or a scalar.
    pub ty: Type,
    /// Whether the kernel stores to it. If so, its launcher takes `&mut`.
    pub written: bool,
    /// For a slice, the number of bytes that one bulk copy or vector access moves, or 1. The
    /// launcher requires an address that is a multiple of it.
    pub unit: u32,
    /// Whether a launch may leave it out.
    pub presence: Presence,
    /// The span of the name.
    pub span: Span,
    /// The span of the type.
    pub ty_span: Span,
}

/// The relation of a parameter to the arguments of a launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence {
    /// The launch passes it.
    Required,
    /// The launch may leave it out: an `Option<Global<T>>`. This parameter says whether the argument
    /// is there.
    Optional(ParamId),
    /// It is the `bool` of this optional parameter, and none of the signature.
    FlagOf(ParamId),
    /// It is this rank's slice of these peers', and none of the signature. No launch passes it: the
    /// kernel takes it from the slices of all ranks.
    OwnOf(ParamId),
    /// It is a number of the launch on a team, and none of the signature.
    Team(TeamNumber),
}

/// A number that every launch of a team kernel passes, a `u32`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TeamNumber {
    /// The rank of this device.
    Rank,
    /// The number of ranks.
    Ranks,
}

impl TeamNumber {
    /// Returns the word that reads it.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Rank => "rank()",
            Self::Ranks => "ranks()",
        }
    }
}

/// The kind of a parameter, with the types it depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParamKind<'t> {
    /// A tensor that is copied tile by tile.
    Tiles(&'t TileType),
    /// A tensor of this many dimensions that is copied by columns of pixels.
    Columns(&'t TileType, u32),
    /// Storage for tensor maps that the kernel creates.
    Maps(&'t TileType),
    /// A slice of global memory.
    Global(Scalar),
    /// A slice of the global memory of each rank.
    PeerGlobals(Scalar),
    /// A tensor of each rank that is copied tile by tile.
    PeerMaps(&'t TileType),
    /// A number or a `bool`.
    Scalar(Scalar),
}

impl Param {
    /// Returns the parameter's kind, or `None` if its type was rejected.
    pub fn kind(&self) -> Option<ParamKind<'_>> {
        match &self.ty {
            Type::TensorMap(tile) => Some(ParamKind::Tiles(tile)),
            Type::Im2colMap(tile, rank) => Some(ParamKind::Columns(tile, *rank)),
            Type::Maps(tile) => Some(ParamKind::Maps(tile)),
            Type::Global(element) => Some(ParamKind::Global(*element)),
            Type::Peers(PeerMemory::Global(element)) => Some(ParamKind::PeerGlobals(*element)),
            Type::Peers(PeerMemory::TensorMap(tile)) => Some(ParamKind::PeerMaps(tile)),
            Type::Scalar(scalar) => Some(ParamKind::Scalar(*scalar)),
            Type::Unit
            | Type::Never
            | Type::Dim3
            | Type::CachePolicy
            | Type::Array(..)
            | Type::Accumulator(_)
            | Type::Rows(_)
            | Type::Fragment(_)
            | Type::WarpFragment(_)
            | Type::Tile(_)
            | Type::Barrier
            | Type::Token
            | Type::SharedArray(..)
            | Type::Stages(..)
            | Type::Remote(_)
            | Type::Choice(_)
            | Type::SharedMap(_)
            | Type::Peer(_)
            | Type::Compound(_)
            | Type::Infer(_)
            | Type::Error => None,
        }
    }
}

/// A variable in registers.
#[derive(Clone, Debug)]
pub struct Local {
    /// The name in the source, or a generated one for an intermediate value.
    pub name: String,
    /// A type that [is storable](Type::is_storable): a scalar, an array, a matrix or a handle.
    pub ty: Type,
    /// The span of the declaration.
    pub span: Span,
}

/// A variable in shared memory.
#[derive(Clone, Debug)]
pub struct SharedVar {
    /// The name in the source.
    pub name: String,
    /// `Tile`, `Barrier`, `SharedArray`, or `Stages` of these.
    pub ty: Type,
    /// The variables whose memory it reuses, which lie one after the other. Empty if it has memory
    /// of its own.
    pub reuses: Vec<SharedId>,
    /// The `shared()` or `reuse()` that creates it.
    pub span: Span,
}

/// Index into [`Kernel::params`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ParamId(pub u32);

/// Index into [`Kernel::locals`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LocalId(pub u32);

/// Index into [`Kernel::shared`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SharedId(pub u32);

impl Kernel {
    /// Returns `name` or `name::instance`, as messages and the launcher write it.
    pub fn path(&self) -> String {
        match &self.instance {
            Some(instance) => format!("{}::{instance}", self.name),
            None => self.name.clone(),
        }
    }

    /// Returns the parameters of the signature.
    pub fn declared_params(&self) -> impl Iterator<Item = &Param> {
        self.params.iter().filter(|param| match param.presence {
            Presence::Required | Presence::Optional(_) => true,
            Presence::FlagOf(_) | Presence::OwnOf(_) | Presence::Team(_) => false,
        })
    }

    /// Returns the parameters that a launch passes: those of the signature, the flags of optional
    /// ones, and the numbers of a team.
    pub fn passed_params(&self) -> impl Iterator<Item = &Param> {
        self.params.iter().filter(|param| !matches!(param.presence, Presence::OwnOf(_)))
    }

    /// Whether it is launched on all ranks of a team.
    pub fn is_of_team(&self) -> bool {
        self.params.iter().any(|param| matches!(param.presence, Presence::Team(_)))
    }

    /// Returns the parameter that holds the memory of `id`: that of all ranks for this rank's own.
    pub fn holder_of(&self, id: ParamId) -> ParamId {
        match self.param(id).presence {
            Presence::OwnOf(peers) => peers,
            Presence::Required | Presence::Optional(_) | Presence::FlagOf(_) | Presence::Team(_) => id,
        }
    }

    /// Returns the parameter `id`.
    pub fn param(&self, id: ParamId) -> &Param {
        &self.params[id.0 as usize]
    }

    /// Returns the shared variable `id`.
    pub fn shared_var(&self, id: SharedId) -> &SharedVar {
        &self.shared[id.0 as usize]
    }

    /// Returns the ids of all shared variables.
    pub fn shared_ids(&self) -> impl Iterator<Item = SharedId> {
        (0..).map(SharedId).take(self.shared.len())
    }

    /// Whether other variables have some of the bytes of the shared variable `id`.
    pub fn is_overlapped(&self, id: SharedId) -> bool {
        !self.shared_var(id).reuses.is_empty() || self.shared.iter().any(|var| var.reuses.contains(&id))
    }

    /// Returns the local `id`.
    pub fn local(&self, id: LocalId) -> &Local {
        &self.locals[id.0 as usize]
    }
}
