//! The values of expressions, for the threads of a group.

use std::rc::Rc;

use tma_front::check::CheckedKernel;
use tma_front::check::layout;
use tma_front::ir::{Axis, BinaryOp, Expr, ExprKind, Presence, Scalar, Special, Type};
use tma_front::limits::{WARP_THREADS, WARPGROUP_THREADS};

use super::code::Steps;
use super::facts::Facts;
use super::lanes::Lanes;
use super::term::{Symbol, Term, Terms};
use super::to_u32;

/// The value of a variable or an expression.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value {
    /// An integer or a truth value.
    Number(Lanes<Term>),
    /// An address in shared memory.
    Address(SharedAddr),
    /// One of several objects in the shared memory of a block. All of them are within these bytes.
    OneOf { block: usize, start: u32, end: u32 },
    /// The state of an mbarrier's phase: the mbarrier, and the number of the phase.
    Token { block: usize, at: u32, phase: u32 },
    /// A register array.
    Array(Rc<[Value]>),
    /// A float, or another value of which nothing is known.
    Unknown,
}

/// Addresses in the shared memory of blocks of the cluster, in bytes.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct SharedAddr {
    pub(super) block: Lanes<usize>,
    pub(super) at: Lanes<u32>,
    /// Whether it comes from a remote handle.
    pub(super) remote: bool,
}

/// The context of an evaluation: the threads that evaluate, and their variables.
pub(super) struct Scope<'a> {
    pub(super) kernel: &'a CheckedKernel,
    pub(super) code: &'a Steps<'a>,
    pub(super) terms: &'a mut Terms,
    pub(super) facts: &'a Facts,
    pub(super) threads: &'a [u32],
    /// The values of [`Steps::variables`].
    pub(super) locals: &'a [Value],
    /// The rank of the block in its cluster.
    pub(super) block: usize,
    /// The extents of the cluster, in blocks.
    pub(super) cluster: [u32; 3],
}

impl Scope<'_> {
    /// Returns the value of an expression.
    pub(super) fn value(&mut self, expr: &Expr) -> Value {
        self.compute(expr).unwrap_or(Value::Unknown)
    }

    /// Returns the value of an expression if it is a number.
    pub(super) fn number(&mut self, expr: &Expr) -> Option<Lanes<Term>> {
        match self.compute(expr)? {
            Value::Number(lanes) => Some(lanes),
            Value::Address(_)
            | Value::OneOf { .. }
            | Value::Token { .. }
            | Value::Array(_)
            | Value::Unknown => None,
        }
    }

    fn compute(&mut self, expr: &Expr) -> Option<Value> {
        Some(match &expr.kind {
            ExprKind::Const(known) => {
                let scalar = expr.ty.as_scalar()?;
                Value::Number(Lanes::Same(self.terms.constant(*known, scalar)?))
            }
            ExprKind::Local(local) => self.locals.get(self.code.variable_index(*local)?)?.clone(),
            ExprKind::Shared(id) => Value::Address(SharedAddr {
                block: Lanes::Same(self.block),
                at: Lanes::Same(self.kernel.layout().offset(*id)),
                remote: false,
            }),
            ExprKind::Param(id) => {
                let scalar = expr
                    .ty
                    .as_scalar()
                    .filter(|scalar| scalar.integer_range().is_some() || *scalar == Scalar::Bool)?;
                let symbol = match self.kernel.kernel().param(*id).presence {
                    Presence::Team(number) => Symbol::Team(number),
                    Presence::Required | Presence::Optional(_) | Presence::FlagOf(_) | Presence::OwnOf(_) => {
                        Symbol::Param(id.0)
                    }
                };
                Value::Number(Lanes::Same(self.terms.symbol(symbol, scalar)))
            }
            ExprKind::GlobalLen(id) => {
                let slice = self.kernel.kernel().holder_of(*id);
                Value::Number(Lanes::Same(self.terms.symbol(Symbol::Len(slice.0), expr.ty.as_scalar()?)))
            }
            ExprKind::Special(special) => Value::Number(self.special(*special)?),
            ExprKind::Unary(op, a) => {
                let a = self.number(a)?;
                Value::Number(a.map(|a| self.terms.unary(*op, a).if_followable(self.terms))?)
            }
            ExprKind::Binary(op, a, b, _) => {
                let (a, b) = (self.number(a)?, self.number(b)?);
                Value::Number(a.zip(&b, |a, b| self.terms.binary(*op, a, b).if_followable(self.terms))?)
            }
            ExprKind::Cast(a) => {
                let (a, to) = (self.number(a)?, expr.ty.as_scalar()?);
                Value::Number(a.map(|a| self.terms.cast(a, to)?.if_followable(self.terms))?)
            }
            ExprKind::Math(op, operands) => self.per_lane(operands, |terms, all| terms.math(*op, all))?,
            ExprKind::Integer(op, operands) => {
                self.per_lane(operands, |terms, all| terms.integer(*op, all))?
            }
            ExprKind::Array(all) => Value::Array(all.iter().map(|part| self.value(part)).collect()),
            ExprKind::Repeat(one) => {
                let (one, len) = (self.value(one), expr.ty.elements()?.1);
                Value::Array(std::iter::repeat_n(one, len as usize).collect())
            }
            ExprKind::Index(array, index) => {
                let index = self.number(index)?.uniform()?;
                let index = usize::try_from(self.terms.int(index)?).ok()?;
                if let ExprKind::Array(all) = &array.kind {
                    return self.compute(all.get(index)?);
                }
                let Value::Array(all) = self.compute(array)? else { return None };
                all.get(index)?.clone()
            }
            ExprKind::Stage(stages, index) => self.stage(stages, index)?,
            ExprKind::Remote(object, rank) => {
                let Value::Address(addr) = self.compute(object)? else { return None };
                let block = self.number(rank)?.map(|rank| usize::try_from(self.terms.int(rank)?).ok())?;
                Value::Address(SharedAddr { block, remote: true, ..addr })
            }
            ExprKind::Bits(_)
            | ExprKind::ZeroAccumulator
            | ExprKind::CachePolicy(..)
            | ExprKind::Hinted(..)
            | ExprKind::Choice(_)
            | ExprKind::Compound(_)
            | ExprKind::Member(..)
            | ExprKind::Unit
            | ExprKind::Error => return None,
        })
    }

    /// Applies a function to several numbers, lane by lane.
    fn per_lane(
        &mut self,
        operands: &[Expr],
        mut f: impl FnMut(&mut Terms, Vec<Term>) -> Option<Term>,
    ) -> Option<Value> {
        let all: Vec<_> = operands.iter().map(|operand| self.number(operand)).collect::<Option<_>>()?;
        let count = if all.iter().all(|lanes| lanes.uniform().is_some()) { 1 } else { self.threads.len() };
        let each = (0..count).map(|lane| {
            let terms = all.iter().map(|lanes| lanes.get(lane)).collect::<Option<_>>()?;
            f(self.terms, terms)?.if_followable(self.terms)
        });
        Some(Value::Number(Lanes::of(each.collect::<Option<_>>()?)?))
    }

    /// Evaluates an index into a [`Type::Stages`].
    fn stage(&mut self, stages: &Expr, index: &Expr) -> Option<Value> {
        let Type::Stages(object, len) = stages.ty.local() else { return None };
        let Value::Address(addr) = self.compute(stages)? else { return None };
        let stride = u32::try_from(layout::stride(object)).ok()?;
        let indices = self.number(index)?;
        let index = indices.map(|index| {
            let index = u32::try_from(self.facts.number(self.terms, index)?).ok()?;
            (index < *len).then_some(index)
        });
        let Some(index) = index else { return self.one_of(&addr, &indices, stride, *len) };
        let at = addr.at.zip(&index, |at, index| Some(at + index * stride))?;
        Some(Value::Address(SharedAddr { at, ..addr }))
    }

    /// Returns the bytes within which the element at an unknown index lies. There are `len`
    /// elements, `stride` bytes apart.
    fn one_of(&mut self, addr: &SharedAddr, index: &Lanes<Term>, stride: u32, len: u32) -> Option<Value> {
        let (block, base) = (addr.block.uniform().filter(|_| !addr.remote)?, addr.at.uniform()?);
        let ranges = (0..self.threads.len())
            .filter_map(|lane| index.get(lane))
            .map(|index| self.facts.range(self.terms, index));
        let (least, most) = ranges.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)))?;
        // Builds with checks test that the index is in bounds.
        let (least, most) = (least.max(0), most.min(i128::from(len) - 1));
        let (least, most) = (u32::try_from(least).ok()?, u32::try_from(most).ok()?);
        if least > most {
            return None;
        }
        Some(Value::OneOf { block, start: base + least * stride, end: base + (most + 1) * stride })
    }

    fn special(&mut self, special: Special) -> Option<Lanes<Term>> {
        let [threads_x, threads_y, _] = self.kernel.kernel().launch.threads;
        let same = match special {
            Special::ThreadIdx(Axis::X) => return self.of_thread(|thread| thread % threads_x),
            Special::ThreadIdx(Axis::Y) => return self.of_thread(|thread| thread / threads_x % threads_y),
            Special::ThreadIdx(Axis::Z) => return self.of_thread(|thread| thread / (threads_x * threads_y)),
            Special::LaneIdx => return self.of_thread(|thread| thread % WARP_THREADS),
            Special::WarpIdx => return self.of_thread(|thread| thread / WARP_THREADS),
            Special::WarpgroupIdx => return self.of_thread(|thread| thread / WARPGROUP_THREADS),
            Special::BlockIdx(axis) => return self.block_idx(axis),
            Special::ClusterRank => u32::try_from(self.block).ok()?,
            Special::BlockInCluster(axis) => self.block_in_cluster(axis),
            Special::ClusterDim(axis) => along(self.cluster, axis),
            Special::GridDim(_) | Special::ClusterIdx(_) => {
                return Some(Lanes::Same(self.terms.symbol(Symbol::GridIndex(special), Scalar::U32)));
            }
        };
        Some(Lanes::Same(self.terms.number(same, Scalar::U32)))
    }

    /// Returns a number for each thread, computed by `f` from the thread index.
    fn of_thread(&mut self, f: impl Fn(u32) -> u32) -> Option<Lanes<Term>> {
        let mut all = Vec::with_capacity(self.threads.len());
        for &thread in self.threads {
            all.push(self.terms.number(f(thread), Scalar::U32));
        }
        Lanes::of(all)
    }

    /// Returns the coordinate of the block in its cluster. Ranks count along x, then y, then z.
    fn block_in_cluster(&self, axis: Axis) -> u32 {
        let rank = to_u32(self.block);
        let [x, y, _] = self.cluster;
        match axis {
            Axis::X => rank % x,
            Axis::Y => rank / x % y,
            Axis::Z => rank / (x * y),
        }
    }

    fn block_idx(&mut self, axis: Axis) -> Option<Lanes<Term>> {
        let extent = along(self.cluster, axis);
        let cluster = self.terms.symbol(Symbol::GridIndex(Special::ClusterIdx(axis)), Scalar::U32);
        let addr = self.block_in_cluster(axis);
        let (extent, addr) = (self.terms.number(extent, Scalar::U32), self.terms.number(addr, Scalar::U32));
        let first = self.terms.binary(BinaryOp::Mul, cluster, extent);
        Some(Lanes::Same(self.terms.binary(BinaryOp::Add, first, addr)))
    }
}

/// Returns the extent along an axis.
pub(super) fn along(extents: [u32; 3], axis: Axis) -> u32 {
    let [x, y, z] = extents;
    match axis {
        Axis::X => x,
        Axis::Y => y,
        Axis::Z => z,
    }
}
