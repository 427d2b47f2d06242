//! Expressions: pure values.

use super::{IntegerOp, LocalId, MemoryScope, Order, ParamId, Scalar, SharedId, Span, Type};

/// A value with its type and span.
#[derive(Clone, Debug)]
pub struct Expr {
    /// The computation.
    pub kind: ExprKind,
    /// The type.
    pub ty: Type,
    /// The span.
    pub span: Span,
}

/// The computation of a value.
#[derive(Clone, Debug)]
pub enum ExprKind {
    /// A constant of the expression's scalar type.
    Const(Const),
    /// The current value of a local.
    Local(LocalId),
    /// The tile, barrier, array or stages of a `shared()`.
    Shared(SharedId),
    /// A parameter: a scalar's value, or the map or slice itself.
    Param(ParamId),
    /// The number of elements behind a `Global` parameter (`u64`).
    GlobalLen(ParamId),
    /// An index or extent of this thread, its block or its cluster.
    Special(Special),
    /// `-a` or `!a`. An integer without opposite stops a checked kernel.
    Unary(UnaryOp, Box<Expr>),
    /// `a + b` and the other binary operators. Integers wrap, as in a release build of Rust. Shift
    /// amounts are taken modulo the width. The result of an integer division by zero is
    /// unspecified. Both operands are always evaluated. The [`Strictness`] is for checked kernels.
    Binary(BinaryOp, Box<Expr>, Box<Expr>, Strictness),
    /// A conversion between scalars by value. As with Rust's `as`, float to integer saturates and
    /// takes NaN to 0.
    Cast(Box<Expr>),
    /// The same bits, reinterpreted as another scalar of the same size.
    Bits(Box<Expr>),
    /// A math function with a hardware instruction.
    Math(MathOp, Vec<Expr>),
    /// A function on the bits of an integer.
    Integer(IntegerOp, Vec<Expr>),
    /// A register array of these elements.
    Array(Vec<Expr>),
    /// A register array of one repeated value.
    Repeat(Box<Expr>),
    /// An accumulator of zeros.
    ZeroAccumulator,
    /// An element of a register array, of an accumulator or of its rows, by a `usize` index.
    Index(Box<Expr>, Box<Expr>),
    /// One of `Stages`, by a `u32` index.
    Stage(Box<Expr>, Box<Expr>),
    /// A cache policy that applies the priority to a fraction (f32) of the accesses.
    CachePolicy(EvictionPriority, Box<Expr>),
    /// A map or a slice whose copies carry a cache policy. Exists only while parsing: copy
    /// statements hold the two in separate fields.
    Hinted(Box<Expr>, Box<Expr>),
    /// A shared object in the block of this rank (a `u32`) of the cluster (`mapa`).
    Remote(Box<Expr>, Box<Expr>),
    /// A variant of an enum of the language.
    Choice(Choice),
    /// The parts of a [`Compound`](super::Compound). Never an operand in a checked kernel.
    Compound(Vec<Expr>),
    /// One of `Maps`, or the map or slice of a rank of `Peers`, by a `u32` index. Exists only while
    /// parsing: statements hold the two in separate fields.
    Member(ParamId, Box<Expr>),
    /// The unit value, such as that of a block without a tail expression. Never an operand in a
    /// checked kernel.
    Unit,
    /// An expression whose error was already reported. Absent from checked kernels.
    Error,
}

/// A value known at compile time.
#[derive(Clone, Copy, Debug, PartialEq)]
#[allow(missing_docs)]
pub enum Const {
    Bool(bool),
    Int(i128),
    Float(f64),
    /// A float literal, rounded from its digits once for each type that it may turn out to have.
    /// Exists only while parsing: once its type is known, it becomes a [`Const::Float`].
    Literal {
        single: f32,
        double: f64,
    },
}

impl Const {
    /// Returns the value that a literal has as `ty`. An `f32` must not be rounded from the `f64`:
    /// where that `f64` is a tie between two `f32` but the digits are not, the second rounding may
    /// go the wrong way.
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

/// A special value of the executing thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Special {
    /// `%tid`.
    ThreadIdx(Axis),
    /// `%ctaid`.
    BlockIdx(Axis),
    /// `%nctaid`.
    GridDim(Axis),
    /// `%clusterid`: the cluster's index in the grid of clusters.
    ClusterIdx(Axis),
    /// `%cluster_ctaid`: the block's index in its cluster.
    BlockInCluster(Axis),
    /// `%cluster_nctaid`: blocks per cluster.
    ClusterDim(Axis),
    /// `%cluster_ctarank`: the block's rank in its cluster.
    ClusterRank,
    /// The thread's index in its warp.
    LaneIdx,
    /// The warp's index in its block: the linear thread index / 32.
    WarpIdx,
    /// The warpgroup's index in its block: the linear thread index / 128.
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

/// The blocks of a cluster that share a sliced load.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ClusterAxis {
    /// The blocks that differ along this axis only.
    Along(Axis),
    /// All blocks of the cluster, by rank.
    All,
}

impl ClusterAxis {
    /// Returns the number of blocks that share the load, in a cluster of these extents.
    pub fn blocks(self, cluster: [u32; 3]) -> u32 {
        let [x, y, z] = cluster;
        match self {
            Self::Along(Axis::X) => x,
            Self::Along(Axis::Y) => y,
            Self::Along(Axis::Z) => z,
            Self::All => x.saturating_mul(y).saturating_mul(z),
        }
    }

    /// Returns the name in a kernel.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Along(Axis::X) => "X",
            Self::Along(Axis::Y) => "Y",
            Self::Along(Axis::Z) => "Z",
            Self::All => "All",
        }
    }
}

/// An enum of the language, whose variants are written by name as arguments: `ClusterAxis::X`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ChoiceType {
    /// The blocks that share a sliced load.
    ClusterAxis,
    /// The memory order of an access.
    Order,
    /// The scope of an access.
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
    /// Returns the name in a kernel.
    pub const fn name(self) -> &'static str {
        match self {
            Self::ClusterAxis => "ClusterAxis",
            Self::Order => "Order",
            Self::Scope => "Scope",
        }
    }

    /// Returns the variants, in order.
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

/// The orders that a kernel can name. The weak order has no name: plain accesses have it.
const ORDERS: [Order; 4] = [Order::Relaxed, Order::Acquire, Order::Release, Order::AcqRel];

impl Choice {
    /// Returns the name in a kernel.
    pub const fn name(self) -> &'static str {
        match self {
            Self::ClusterAxis(axis) => axis.name(),
            Self::Order(order) => order_name(order),
            Self::Scope(scope) => scope_name(scope),
        }
    }
}

/// Returns the name of an order in a kernel. A kernel cannot write that of the weak order.
pub const fn order_name(order: Order) -> &'static str {
    match order {
        Order::Weak => "Weak",
        Order::Relaxed => "Relaxed",
        Order::Acquire => "Acquire",
        Order::Release => "Release",
        Order::AcqRel => "AcqRel",
    }
}

/// Returns the name of a scope in a kernel.
pub const fn scope_name(scope: MemoryScope) -> &'static str {
    match scope {
        MemoryScope::Block => "Block",
        MemoryScope::Cluster => "Cluster",
        MemoryScope::Device => "Device",
        MemoryScope::System => "System",
    }
}

/// A unary operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum UnaryOp {
    /// `-`, on numbers.
    Neg,
    /// `!`, on integers and `bool`.
    Not,
}

/// The behaviour of a binary operator in a checked kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Strictness {
    /// The operator never stops, except for a division. This is arithmetic of the compiler, or of a
    /// method such as `wrapping_add`.
    Wrapping,
    /// The operator is one of the source. It stops where Rust's debug builds panic.
    Strict,
    /// The operator is `&` or `|`, and stands for `&&` or `||`. The right operand stops only if the
    /// left one does not decide the result.
    Lazy,
}

/// A binary operator.
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
    /// Whether the result is a `bool`.
    pub const fn is_comparison(self) -> bool {
        match self {
            Self::Eq | Self::Ne | Self::Lt | Self::Le | Self::Gt | Self::Ge => true,
            Self::Add | Self::Sub | Self::Mul | Self::Div | Self::Rem => false,
            Self::And | Self::Or | Self::Xor | Self::Shl | Self::Shr => false,
        }
    }

    /// Whether it is a shift, whose right operand is an amount of any integer type.
    pub const fn is_shift(self) -> bool {
        match self {
            Self::Shl | Self::Shr => true,
            Self::Add | Self::Sub | Self::Mul | Self::Div | Self::Rem => false,
            Self::And | Self::Or | Self::Xor => false,
            Self::Eq | Self::Ne | Self::Lt | Self::Le | Self::Gt | Self::Ge => false,
        }
    }

    /// Whether the right operand is a divisor, which must not be zero for integers.
    pub const fn is_division(self) -> bool {
        match self {
            Self::Div | Self::Rem => true,
            Self::Add | Self::Sub | Self::Mul | Self::And | Self::Or | Self::Xor => false,
            Self::Shl | Self::Shr => false,
            Self::Eq | Self::Ne | Self::Lt | Self::Le | Self::Gt | Self::Ge => false,
        }
    }

    /// Returns Rust's words for a result that the type does not have, or for a shift by its width
    /// or more; `None` for operators without such results.
    pub const fn overflow(self) -> Option<&'static str> {
        match self {
            Self::Add => Some("attempt to add with overflow"),
            Self::Sub => Some("attempt to subtract with overflow"),
            Self::Mul => Some("attempt to multiply with overflow"),
            Self::Div => Some("attempt to divide with overflow"),
            Self::Rem => Some("attempt to calculate the remainder with overflow"),
            Self::Shl => Some("attempt to shift left with overflow"),
            Self::Shr => Some("attempt to shift right with overflow"),
            Self::And | Self::Or | Self::Xor => None,
            Self::Eq | Self::Ne | Self::Lt | Self::Le | Self::Gt | Self::Ge => None,
        }
    }

    /// Returns the operator in Rust.
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

/// The priority with which lines are evicted from the L2 cache. Source: PTX ISA, "Cache Eviction
/// Priority Hints".
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EvictionPriority {
    /// Evicted before all other lines.
    First,
    /// Evicted after all other lines.
    Last,
    /// The default, as without a hint.
    Normal,
    /// Leaves the line's priority as it is.
    Unchanged,
}

impl EvictionPriority {
    /// Returns the name in PTX. The kernel's function is `l2_` followed by this name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::First => "evict_first",
            Self::Last => "evict_last",
            Self::Normal => "evict_normal",
            Self::Unchanged => "evict_unchanged",
        }
    }
}

/// Rust's words for the negation of the least integer.
pub const NEGATION_OVERFLOW: &str = "attempt to negate with overflow";

/// A function of scalars. All operands and the result have the same type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MathOp {
    /// The minimum; for floats, the number if one operand is NaN.
    Min,
    /// The maximum; for floats, the number if one operand is NaN.
    Max,
    /// The absolute value. The least integer wraps, or stops a checked kernel.
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
    /// `ex2.approx` of `x * log2(e)`: f32.
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
    /// The value limited to a range; NaN for NaN.
    Clamp,
    /// The magnitude of the first operand with the sign of the second.
    CopySign,
}

impl MathOp {
    /// Returns the function's name in a kernel.
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
    /// Creates a constant.
    pub fn constant(value: Const, ty: impl Into<Type>, span: Span) -> Self {
        Self { kind: ExprKind::Const(value), ty: ty.into(), span }
    }

    /// Creates the placeholder for an expression whose error was already reported.
    pub fn error(span: Span) -> Self {
        Self { kind: ExprKind::Error, ty: Type::Error, span }
    }

    /// Whether it is such a placeholder.
    pub fn is_error(&self) -> bool {
        matches!(self.kind, ExprKind::Error)
    }

    /// Returns the integer, if it is a constant one.
    pub fn as_int(&self) -> Option<i128> {
        if let ExprKind::Const(Const::Int(value)) = self.kind { Some(value) } else { None }
    }
}
