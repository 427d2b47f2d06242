//! A kernel instance and what it declares.

use super::{Block, Call, Const, Pipeline, Scalar, Span, TileSwizzle, TileType, Type};

/// One instance of a kernel, every constant known.
#[derive(Clone, Debug)]
pub struct Kernel {
    /// The function's name.
    pub name: String,
    /// The name of this instance of its const generics, if it has any.
    pub instance: Option<String>,
    /// What its generics stand for in this instance, in order. Its launcher alone asks for them.
    pub arguments: Vec<Argument>,
    /// What the attribute asks of every launch.
    pub launch: LaunchBounds,
    /// Whether the attribute says `checked` or `unchecked`; else the build decides
    /// ([`Checks`](crate::Checks)).
    pub checked: Option<bool>,
    /// The reason, if the attribute says `protocol = trusted("reason")`: then the order in which
    /// threads use barriers and memory is not judged.
    pub trusted: Option<String>,
    /// The parameters, in order.
    pub params: Vec<Param>,
    /// Every register variable, in order of appearance; [`LocalId`] counts these.
    pub locals: Vec<Local>,
    /// Every `shared()`, in order of appearance; [`SharedId`] counts these.
    pub shared: Vec<SharedVar>,
    /// Every pipeline, in order of appearance; [`PipelineId`](super::PipelineId) counts these.
    pub pipelines: Vec<Pipeline>,
    /// Every call that was taken apart; [`CallId`](super::CallId) counts these.
    pub calls: Vec<Call>,
    /// Every variable that the source names, also those that take no register, with the type that
    /// it turned out to have; those of an inlined function once a call.
    pub variables: Vec<Local>,
    /// What a thread does.
    pub body: Block,
    /// The function's name in the source.
    pub span: Span,
}

/// What one of a kernel's generics stands for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Argument {
    /// A constant of this type.
    Const(Const, Scalar),
    /// The type of elements or numbers.
    Element(Scalar),
    /// A swizzle.
    Swizzle(TileSwizzle),
    /// Any other type.
    Other,
}

/// What is fixed about every launch of a kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaunchBounds {
    /// Threads a block along x, y, z.
    pub threads: [u32; 3],
    /// Blocks that should fit one multiprocessor at once (PTX `.minnctapersm`).
    pub min_blocks: Option<u32>,
    /// Registers a thread may use (PTX `.maxnreg`).
    pub max_registers: Option<u32>,
    /// The clusters that its blocks come in.
    pub cluster: Cluster,
    /// Whether clusters may have more blocks than every device takes.
    pub nonportable_cluster: bool,
    /// Where the attribute says so.
    pub spans: LaunchSpans,
}

/// The clusters that a kernel's blocks come in: those of one run at the same time, and reach each
/// other's shared memory. Source: PTX ISA, "Cluster of Cooperative Thread Arrays".
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Cluster {
    /// None: each block is on its own.
    #[default]
    None,
    /// Blocks of a cluster along x, y, z (PTX `.reqnctapercluster`).
    Fixed([u32; 3]),
    /// As many as each launch says.
    AtLaunch,
}

/// The places of [`LaunchBounds`] in the source; equal to any other.
#[derive(Clone, Debug)]
pub struct LaunchSpans {
    /// Of `threads = ..`.
    pub threads: Span,
    /// Of `min_blocks = ..`.
    pub min_blocks: Span,
    /// Of `max_registers = ..`.
    pub max_registers: Span,
    /// Of `cluster = ..`.
    pub cluster: Span,
}

impl PartialEq for LaunchSpans {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for LaunchSpans {}

impl LaunchBounds {
    /// Threads a block in all.
    pub fn thread_count(&self) -> u64 {
        self.threads.iter().map(|&n| u64::from(n)).product()
    }
}

/// A parameter of the kernel: a tensor map, a slice of global memory, or a scalar.
#[derive(Clone, Debug)]
pub struct Param {
    /// Its name in the source.
    pub name: String,
    /// `TensorMap`, `Global` or a scalar.
    pub ty: Type,
    /// Whether the kernel stores to it: the launcher then asks for `&mut`.
    pub written: bool,
    /// Of a slice, the bytes that bulk copies and vectors move at once, or 1: the launcher asks for
    /// an address that is a multiple of them.
    pub unit: u32,
    /// Its name in the source.
    pub span: Span,
    /// Its type in the source.
    pub ty_span: Span,
}

/// What a parameter is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParamKind<'t> {
    /// A tensor that is moved tile by tile.
    Tiles(&'t TileType),
    /// A tensor of this many dimensions, of which columns of pixels are moved.
    Columns(&'t TileType, u32),
    /// Room for maps that the kernel makes.
    Maps(&'t TileType),
    /// A slice of global memory.
    Global(Scalar),
    /// A number or a truth value.
    Scalar(Scalar),
}

impl Param {
    /// What it is; none if its type has been refused.
    pub fn kind(&self) -> Option<ParamKind<'_>> {
        match &self.ty {
            Type::TensorMap(tile) => Some(ParamKind::Tiles(tile)),
            Type::Im2colMap(tile, rank) => Some(ParamKind::Columns(tile, *rank)),
            Type::Maps(tile) => Some(ParamKind::Maps(tile)),
            Type::Global(element) => Some(ParamKind::Global(*element)),
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
            | Type::Compound(_)
            | Type::Infer(_)
            | Type::Error => None,
        }
    }
}

/// A variable in registers.
#[derive(Clone, Debug)]
pub struct Local {
    /// Its name in the source, or a made-up one for an intermediate value.
    pub name: String,
    /// A scalar, an array of scalars, or a shared handle.
    pub ty: Type,
    /// Where it is declared.
    pub span: Span,
}

/// A variable in shared memory.
#[derive(Clone, Debug)]
pub struct SharedVar {
    /// Its name in the source.
    pub name: String,
    /// `Tile`, `Barrier`, `SharedArray`, or `Stages` of these.
    pub ty: Type,
    /// The `shared()` that makes it.
    pub span: Span,
}

/// Counts [`Kernel::params`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ParamId(pub u32);

/// Counts [`Kernel::locals`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LocalId(pub u32);

/// Counts [`Kernel::shared`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SharedId(pub u32);

impl Kernel {
    /// `name`, or `name::instance`: how messages and the launcher call it.
    pub fn path(&self) -> String {
        match &self.instance {
            Some(instance) => format!("{}::{instance}", self.name),
            None => self.name.clone(),
        }
    }

    /// The parameter `id`.
    pub fn param(&self, id: ParamId) -> &Param {
        &self.params[id.0 as usize]
    }

    /// The shared variable `id`.
    pub fn shared_var(&self, id: SharedId) -> &SharedVar {
        &self.shared[id.0 as usize]
    }

    /// The local `id`.
    pub fn local(&self, id: LocalId) -> &Local {
        &self.locals[id.0 as usize]
    }
}
