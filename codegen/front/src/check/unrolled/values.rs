//! The values of variables, as far as they are known at compile time.

use crate::ir::{
    Axis, BinaryOp, Block, Const, Expr, ExprKind, LaunchBounds, LocalId, Scalar, Special, eval, visit,
};
use crate::limits::{REGISTER_ARRAY_ELEMENTS, WARP_THREADS, WARPGROUP_THREADS};
use crate::quick::QuickMap;

/// A value, as far as it is known.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::check) enum Value {
    Unknown,
    Scalar(Const),
    /// The elements of a register array.
    Elements(Vec<Value>),
}

impl Value {
    pub(in crate::check) fn int(value: i128) -> Self {
        Self::Scalar(Const::Int(value))
    }

    fn known(value: Option<Const>) -> Self {
        value.map_or(Self::Unknown, Self::Scalar)
    }

    fn scalar(&self) -> Option<Const> {
        if let Self::Scalar(value) = self { Some(*value) } else { None }
    }

    pub(in crate::check) fn as_int(&self) -> Option<i128> {
        if let Self::Scalar(Const::Int(value)) = self { Some(*value) } else { None }
    }

    pub(in crate::check) fn as_bool(&self) -> Option<bool> {
        if let Self::Scalar(Const::Bool(value)) = self { Some(*value) } else { None }
    }

    /// Returns the value that both have in common, element by element for arrays.
    fn join(self, other: Self) -> Self {
        match (self, other) {
            (Self::Elements(one), Self::Elements(other)) if one.len() == other.len() => {
                Self::Elements(one.into_iter().zip(other).map(|(one, other)| one.join(other)).collect())
            }
            (one, other) if one == other => one,
            _ => Self::Unknown,
        }
    }

    /// Returns an element of an array, by indices from the outermost array on.
    fn element_mut(&mut self, indices: &[Option<usize>]) -> Option<&mut Self> {
        let [index, rest @ ..] = indices else { return Some(self) };
        let Self::Elements(elements) = self else { return None };
        elements.get_mut((*index)?)?.element_mut(rest)
    }
}

/// The values of variables at a point of the kernel. A variable without a value yet has no entry.
#[derive(Clone, Debug, Default)]
pub(in crate::check) struct State {
    values: QuickMap<LocalId, Value>,
    /// The thread that is followed, if it is a single one.
    thread: Option<Thread>,
}

/// A thread of a block.
#[derive(Clone, Copy, Debug)]
struct Thread {
    /// Its linear index.
    index: u64,
    /// The threads of the block along x, y and z.
    extents: [u32; 3],
}

impl Thread {
    /// Returns the value of a special register, if the thread's index decides it.
    fn special(self, special: Special) -> Option<u64> {
        let [x, y, _] = self.extents.map(|extent| u64::from(extent.max(1)));
        match special {
            Special::ThreadIdx(Axis::X) => Some(self.index % x),
            Special::ThreadIdx(Axis::Y) => Some(self.index / x % y),
            Special::ThreadIdx(Axis::Z) => Some(self.index / x / y),
            Special::LaneIdx => Some(self.index % u64::from(WARP_THREADS)),
            Special::WarpIdx => Some(self.index / u64::from(WARP_THREADS)),
            Special::WarpgroupIdx => Some(self.index / u64::from(WARPGROUP_THREADS)),
            Special::BlockIdx(_)
            | Special::GridDim(_)
            | Special::ClusterIdx(_)
            | Special::ClusterDim(_)
            | Special::BlockInCluster(_)
            | Special::ClusterRank => None,
        }
    }
}

impl State {
    /// Creates the state at the beginning of the kernel, for the first thread of this warpgroup. It
    /// stands for the others wherever all threads of a warpgroup must take the same path.
    pub(in crate::check) fn of_warpgroup(number: u64, launch: &LaunchBounds) -> Self {
        let index = number.saturating_mul(WARPGROUP_THREADS.into());
        Self { thread: Some(Thread { index, extents: launch.threads }), ..Self::default() }
    }

    pub(in crate::check) fn set(&mut self, local: LocalId, value: Value) {
        self.values.insert(local, value);
    }

    /// Executes `local[indices]… = value`.
    pub(in crate::check) fn assign(&mut self, local: LocalId, indices: &[Expr], value: &Expr) {
        let value = self.of(value);
        let position = |index| self.of(index).as_int().and_then(|index| usize::try_from(index).ok());
        let indices: Vec<_> = indices.iter().map(position).collect();
        let whole = self.values.entry(local).or_insert(Value::Unknown);
        match whole.element_mut(&indices) {
            Some(element_mut) => *element_mut = value,
            // Some element has changed, and it is not known which.
            None => *whole = Value::Unknown,
        }
    }

    /// Forgets the variables that `block` assigns.
    pub(in crate::check) fn forget(&mut self, block: &Block) {
        visit::for_each_stmt(block, &mut |stmt| {
            for defined in stmt.facts().defines {
                self.set(defined.local, Value::Unknown);
            }
        });
    }

    /// Joins the states of two paths.
    pub(in crate::check) fn join(mut self, other: Self) -> Self {
        for (local, value) in other.values {
            // A variable that only one path assigns is not read after the paths have joined.
            let joined = self.values.remove(&local).map_or(value.clone(), |mine| mine.join(value));
            self.values.insert(local, joined);
        }
        self
    }

    /// Returns an element of `array`, if the elements are known individually.
    fn element(&self, array: &Expr, index: usize) -> Option<Value> {
        let whole;
        let array = if let ExprKind::Local(local) = array.kind {
            self.values.get(&local)?
        } else {
            whole = self.of(array);
            &whole
        };
        let Value::Elements(elements) = array else { return None };
        elements.get(index).cloned()
    }

    /// Returns the value of `expr`, as far as it is known.
    pub(in crate::check) fn of(&self, expr: &Expr) -> Value {
        let scalar = |expr: &Expr| expr.ty.as_scalar().unwrap_or(Scalar::I32);
        let all = |operands: &[Expr]| -> Option<Vec<Const>> {
            operands.iter().map(|operand| self.of(operand).scalar()).collect()
        };
        match &expr.kind {
            ExprKind::Const(value) => Value::Scalar(*value),
            ExprKind::Local(local) => self.values.get(local).cloned().unwrap_or(Value::Unknown),
            ExprKind::Special(special) => {
                let number = self.thread.and_then(|thread| thread.special(*special));
                number.map_or(Value::Unknown, |number| Value::int(number.into()))
            }
            ExprKind::Unary(op, a) => {
                Value::known(self.of(a).scalar().and_then(|a| eval::unary(*op, a, scalar(expr))))
            }
            ExprKind::Binary(op, a, b, _) => {
                let (left, right) = (self.of(a).scalar(), self.of(b).scalar());
                // One operand may decide `&&` or `||`.
                let decided = match op {
                    BinaryOp::And => Some(Const::Bool(false)),
                    BinaryOp::Or => Some(Const::Bool(true)),
                    BinaryOp::Add
                    | BinaryOp::Sub
                    | BinaryOp::Mul
                    | BinaryOp::Div
                    | BinaryOp::Rem
                    | BinaryOp::Xor
                    | BinaryOp::Shl
                    | BinaryOp::Shr
                    | BinaryOp::Eq
                    | BinaryOp::Ne
                    | BinaryOp::Lt
                    | BinaryOp::Le
                    | BinaryOp::Gt
                    | BinaryOp::Ge => None,
                };
                let decided = decided.filter(|_| left == decided || right == decided);
                let both = left.zip(right);
                Value::known(
                    decided
                        .or_else(|| both.and_then(|(left, right)| eval::binary(*op, left, right, scalar(a)))),
                )
            }
            ExprKind::Cast(a) => Value::known(self.of(a).scalar().and_then(|a| eval::cast(a, scalar(expr)))),
            ExprKind::Math(op, operands) => {
                Value::known(all(operands).and_then(|known| eval::math(*op, &known)))
            }
            ExprKind::Integer(op, operands) => {
                let of = operands.first().map_or(Scalar::I32, scalar);
                Value::known(all(operands).and_then(|known| eval::integer(*op, &known, of)))
            }
            ExprKind::Array(elements) => Value::Elements(elements.iter().map(|e| self.of(e)).collect()),
            ExprKind::Repeat(element) => {
                // An array that is too long is rejected elsewhere.
                let is_small = expr.ty.scalars() <= REGISTER_ARRAY_ELEMENTS;
                let len = expr.ty.elements().filter(|_| is_small).map(|(_, len)| len as usize);
                len.map_or(Value::Unknown, |len| Value::Elements(vec![self.of(element); len]))
            }
            ExprKind::Index(array, index) => {
                let index = self.of(index).as_int().and_then(|index| usize::try_from(index).ok());
                index.and_then(|index| self.element(array, index)).unwrap_or(Value::Unknown)
            }
            // The bits of a float are left to LLVM.
            ExprKind::Bits(_)
            | ExprKind::Shared(_)
            | ExprKind::Param(_)
            | ExprKind::GlobalLen(_)
            | ExprKind::ZeroAccumulator
            | ExprKind::Stage(..)
            | ExprKind::CachePolicy(..)
            | ExprKind::Hinted(..)
            | ExprKind::Remote(..)
            | ExprKind::Choice(_)
            | ExprKind::Compound(_)
            | ExprKind::Member(..)
            | ExprKind::Unit
            | ExprKind::Error => Value::Unknown,
        }
    }
}
