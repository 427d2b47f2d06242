//! Expressions: pure values.

use super::{IntegerOp, LocalId, MemoryScope, Order, ParamId, Scalar, SharedId, Span, Type};

/// A value, its type, and where it stands in the source.
#[derive(Clone, Debug)]
pub struct Expr {
    /// How it is computed.
    pub kind: ExprKind,
    /// What it is.
    pub ty: Type,
    /// Where it is written.
    pub span: Span,
}

/// How a value is computed.
#[derive(Clone, Debug)]
pub enum ExprKind {
    /// A known value of the expression's scalar type.
    Const(Const),
    /// What a local holds now.
    Local(LocalId),
    /// The tile, barrier, array or stages of a `shared()`.
    Shared(SharedId),
    /// A parameter: a scalar's value, or the map or slice itself.
    Param(ParamId),
    /// The number of elements behind a `Global` parameter (`u64`).
    GlobalLen(ParamId),
    /// Where this thread is.
    Special(Special),
    /// `-a`, `!a`.
    Unary(UnaryOp, Box<Expr>),
    /// `a + b` and the rest. Integers wrap, as in a release build of Rust; shift amounts are taken
    /// modulo the width; what an integer division by zero gives is unspecified. Both sides are
    /// always evaluated.
    Binary(BinaryOp, Box<Expr>, Box<Expr>),
    /// A conversion between scalars, by value. Float to integer saturates and takes NaN to 0, as
    /// Rust's `as`.
    Cast(Box<Expr>),
    /// The same bits as another scalar of the same size.
    Bits(Box<Expr>),
    /// A function that the hardware has an instruction for.
    Math(MathOp, Vec<Expr>),
    /// A function of an integer's bits.
    Integer(IntegerOp, Vec<Expr>),
    /// The elements of a register array.
    Array(Vec<Expr>),
    /// A register array of one value repeated.
    Repeat(Box<Expr>),
    /// An accumulator of zeros.
    ZeroAccumulator,
    /// An element of a register array, of an accumulator or of its rows, by a `usize`.
    Index(Box<Expr>, Box<Expr>),
    /// One of `Stages`, by a `u32`.
    Stage(Box<Expr>, Box<Expr>),
    /// A cache policy that gives a fraction (f32) of the accesses this priority.
    CachePolicy(EvictionPriority, Box<Expr>),
    /// A map or a slice whose copies carry a cache policy. Only `parse` sees it: operations hold
    /// the two apart.
    Hinted(Box<Expr>, Box<Expr>),
    /// A shared thing as the block of this rank (a `u32`) in the cluster has it (`mapa`).
    Remote(Box<Expr>, Box<Expr>),
    /// A variant of an enum of the language.
    Choice(Choice),
    /// The parts of a [`Compound`](super::Compound). No operand of a checked kernel is one.
    Compound(Vec<Expr>),
    /// One of `Maps`, by a `u32`. Only `parse` sees it: operations hold the two apart.
    MapAt(ParamId, Box<Expr>),
    /// Nothing: what a block without a last expression gives. No operand of a checked kernel is
    /// one.
    Unit,
    /// What was already reported. Nothing in a checked kernel is one.
    Error,
}

/// A value known at compile time.
#[derive(Clone, Copy, Debug, PartialEq)]
#[allow(missing_docs)]
pub enum Const {
    Bool(bool),
    Int(i128),
    Float(f64),
    /// A float as it is written, rounded from its digits to each type that it may turn out to have.
    /// Only `parse` sees it: with its type it becomes a [`Const::Float`].
    Literal {
        single: f32,
        double: f64,
    },
}

impl Const {
    /// The value that a literal has as `ty`. An `f32` must not come from the `f64`: that may be a
    /// tie between two `f32` where the digits are none, and be rounded the other way.
    #[must_use]
    pub fn settled(self, ty: &Type) -> Self {
        match self {
            Self::Literal { single, .. } if ty.as_scalar() == Some(Scalar::F32) => {
                Self::Float(f64::from(single))
            }
            Self::Literal { double, .. } => Self::Float(double),
            Self::Bool(_) | Self::Int(_) | Self::Float(_) => self,
        }
    }
}

/// A fact about the thread that asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Special {
    /// `%tid`.
    ThreadIdx(Axis),
    /// `%ctaid`.
    BlockIdx(Axis),
    /// `%nctaid`.
    GridDim(Axis),
    /// `%clusterid`: the cluster's place in the grid of clusters.
    ClusterIdx(Axis),
    /// `%cluster_ctaid`: the block's place in its cluster.
    BlockInCluster(Axis),
    /// `%cluster_nctaid`: blocks of a cluster.
    ClusterDim(Axis),
    /// `%cluster_ctarank`: the block's number in its cluster.
    ClusterRank,
    /// The thread's number in its warp.
    LaneIdx,
    /// The warp's number in its block: the linear thread index / 32.
    WarpIdx,
    /// The warpgroup's number in its block: the linear thread index / 128.
    WarpgroupIdx,
}

/// A dimension of the grid or the block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum Axis {
    X,
    Y,
    Z,
}

/// The blocks of a cluster that a sliced load is shared among.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ClusterAxis {
    /// Those that differ along one axis only.
    Along(Axis),
    /// All of the cluster, by rank.
    All,
}

impl ClusterAxis {
    /// How many they are in a cluster of these extents.
    pub fn blocks(self, [x, y, z]: [u32; 3]) -> u32 {
        match self {
            Self::Along(Axis::X) => x,
            Self::Along(Axis::Y) => y,
            Self::Along(Axis::Z) => z,
            Self::All => x.saturating_mul(y).saturating_mul(z),
        }
    }

    /// Its name in a kernel.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Along(Axis::X) => "X",
            Self::Along(Axis::Y) => "Y",
            Self::Along(Axis::Z) => "Z",
            Self::All => "All",
        }
    }
}

/// An enum of the language, of which a word takes a variant by its name: `ClusterAxis::X`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ChoiceType {
    /// The blocks that a sliced load is shared among.
    ClusterAxis,
    /// How an access orders others.
    Order,
    /// Between whom.
    Scope,
}

/// A variant of a [`ChoiceType`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum Choice {
    ClusterAxis(ClusterAxis),
    Order(Order),
    Scope(MemoryScope),
}

impl ChoiceType {
    /// Its name in a kernel.
    pub const fn name(self) -> &'static str {
        match self {
            Self::ClusterAxis => "ClusterAxis",
            Self::Order => "Order",
            Self::Scope => "Scope",
        }
    }

    /// Its variants, in order.
    pub fn all(self) -> Vec<Choice> {
        match self {
            Self::ClusterAxis => {
                let axes = [Axis::X, Axis::Y, Axis::Z].map(ClusterAxis::Along);
                axes.into_iter().chain([ClusterAxis::All]).map(Choice::ClusterAxis).collect()
            }
            Self::Order => ORDERS.into_iter().map(Choice::Order).collect(),
            Self::Scope => MemoryScope::ALL.into_iter().map(Choice::Scope).collect(),
        }
    }
}

/// The orders that a kernel names; all others have a word of their own.
const ORDERS: [Order; 4] = [Order::Relaxed, Order::Acquire, Order::Release, Order::AcqRel];

impl Choice {
    /// Its name in a kernel.
    pub const fn name(self) -> &'static str {
        match self {
            Self::ClusterAxis(axis) => axis.name(),
            Self::Order(order) => order_name(order),
            Self::Scope(scope) => scope_name(scope),
        }
    }
}

/// The name of an order in a kernel; a weak one has none there.
pub const fn order_name(order: Order) -> &'static str {
    match order {
        Order::Weak => "Weak",
        Order::Relaxed => "Relaxed",
        Order::Acquire => "Acquire",
        Order::Release => "Release",
        Order::AcqRel => "AcqRel",
    }
}

/// The name of a scope in a kernel.
pub const fn scope_name(scope: MemoryScope) -> &'static str {
    match scope {
        MemoryScope::Block => "Block",
        MemoryScope::Cluster => "Cluster",
        MemoryScope::Device => "Device",
        MemoryScope::System => "System",
    }
}

/// An operator with one operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum UnaryOp {
    /// `-`: numbers.
    Neg,
    /// `!`: integers and `bool`.
    Not,
}

/// An operator with two operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum BinaryOp {
    Add,
    Sub,
    Mul,
    Div,
    Rem,
    And,
    Or,
    Xor,
    Shl,
    Shr,
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
}

impl BinaryOp {
    /// Whether it answers a `bool`.
    pub const fn is_comparison(self) -> bool {
        match self {
            Self::Eq | Self::Ne | Self::Lt | Self::Le | Self::Gt | Self::Ge => true,
            Self::Add | Self::Sub | Self::Mul | Self::Div | Self::Rem => false,
            Self::And | Self::Or | Self::Xor | Self::Shl | Self::Shr => false,
        }
    }

    /// Whether it shifts: its right side is an amount, of any integer type.
    pub const fn is_shift(self) -> bool {
        match self {
            Self::Shl | Self::Shr => true,
            Self::Add | Self::Sub | Self::Mul | Self::Div | Self::Rem => false,
            Self::And | Self::Or | Self::Xor => false,
            Self::Eq | Self::Ne | Self::Lt | Self::Le | Self::Gt | Self::Ge => false,
        }
    }

    /// Whether its right side divides, and so must not be zero where it is an integer.
    pub const fn is_division(self) -> bool {
        match self {
            Self::Div | Self::Rem => true,
            Self::Add | Self::Sub | Self::Mul | Self::And | Self::Or | Self::Xor => false,
            Self::Shl | Self::Shr => false,
            Self::Eq | Self::Ne | Self::Lt | Self::Le | Self::Gt | Self::Ge => false,
        }
    }

    /// Its sign in Rust.
    pub const fn sign(self) -> &'static str {
        match self {
            Self::Add => "+",
            Self::Sub => "-",
            Self::Mul => "*",
            Self::Div => "/",
            Self::Rem => "%",
            Self::And => "&",
            Self::Or => "|",
            Self::Xor => "^",
            Self::Shl => "<<",
            Self::Shr => ">>",
            Self::Eq => "==",
            Self::Ne => "!=",
            Self::Lt => "<",
            Self::Le => "<=",
            Self::Gt => ">",
            Self::Ge => ">=",
        }
    }
}

/// Which lines of the L2 cache have to go first. Source: PTX ISA, "Cache Eviction Priority Hints".
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EvictionPriority {
    /// Before all others.
    First,
    /// After all others.
    Last,
    /// As without a hint.
    Normal,
    /// What they are stays as it is.
    Unchanged,
}

impl EvictionPriority {
    /// Its name in PTX; a kernel's function is `l2_` and this.
    pub const fn name(self) -> &'static str {
        match self {
            Self::First => "evict_first",
            Self::Last => "evict_last",
            Self::Normal => "evict_normal",
            Self::Unchanged => "evict_unchanged",
        }
    }
}

/// A function of scalars; all operands and the result have one type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MathOp {
    /// The lesser; for floats, the number where one side is NaN.
    Min,
    /// The greater; for floats, the number where one side is NaN.
    Max,
    /// The magnitude; wraps at the least integer.
    Abs,
    /// `a * b + c`, rounded once.
    Fma,
    /// The square root, correctly rounded.
    Sqrt,
    /// `rsqrt.approx`: f32.
    Rsqrt,
    /// `ex2.approx`: f32.
    Exp2,
    /// `ex2.approx`: f16 and bf16.
    Exp2Half,
    /// `ex2.approx.ftz`: f32.
    Exp2Ftz,
    /// `lg2.approx`: f32.
    Log2,
    /// `rcp.rn`: f32 and f64.
    Recip,
    /// `ex2.approx` of `x` times log2(e): f32.
    Exp,
    /// `lg2.approx` times ln(2): f32.
    Log,
    /// `sin.approx`: f32.
    Sin,
    /// `cos.approx`: f32.
    Cos,
    /// `tanh.approx`: f32.
    Tanh,
    /// `ex2.approx` of `y` times `lg2.approx` of `x`: f32.
    Pow,
    /// The number, or the bound that it is beyond; of a NaN a NaN.
    Clamp,
    /// The magnitude of the first with the sign of the second.
    CopySign,
}

impl MathOp {
    /// The function's name in a kernel.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Min => "min",
            Self::Max => "max",
            Self::Abs => "abs",
            Self::Fma => "fma",
            Self::Sqrt => "sqrt",
            Self::Rsqrt => "rsqrt",
            Self::Exp2 => "exp2",
            Self::Exp2Half => "exp2_half",
            Self::Exp2Ftz => "exp2_ftz",
            Self::Log2 => "log2",
            Self::Recip => "recip",
            Self::Exp => "exp",
            Self::Log => "log",
            Self::Sin => "sin",
            Self::Cos => "cos",
            Self::Tanh => "tanh",
            Self::Pow => "pow",
            Self::Clamp => "clamp",
            Self::CopySign => "copysign",
        }
    }
}

impl Expr {
    /// A known value.
    pub fn constant(value: Const, ty: impl Into<Type>, span: Span) -> Self {
        Self { kind: ExprKind::Const(value), ty: ty.into(), span }
    }

    /// A stand-in for what was already reported.
    pub fn error(span: Span) -> Self {
        Self { kind: ExprKind::Error, ty: Type::Error, span }
    }

    /// The integer, if it is a known one.
    pub fn as_int(&self) -> Option<i128> {
        if let ExprKind::Const(Const::Int(value)) = self.kind { Some(value) } else { None }
    }
}
