//! Calls of functions: built-in ones, associated functions of types, and those of the module.

#![warn(clippy::wildcard_enum_match_arm)]

use super::cluster::{cluster_dim, remote};
use super::cx::{Builder, Cx};
use super::method::accumulator::{rows_of, zero_of};
use super::method::mma_sync::{OperandSource, load_operand};
use super::method::phase::new_phase;
use super::names::callee::Callee;
use super::number::{conversion, math};
use super::signature::known_dim3;
use super::stmt::unit;
use super::types::generic_arguments;
use super::warp::vote;
use crate::diag::mistake::{Argument, Syntax, Types};
use crate::infer::Kind;
use crate::infer::rule::{Integers, Rule};
use crate::ir::{
    ASSUMPTION_FAILED, Axis, Const, EvictionPriority, Expr, ExprKind, Fence, FencedMemory, GridDependency,
    IntegerOp, MatchOp, MathOp, Scalar, Scope, ShuffleOp, Span, Special, StmtKind, Sync, TeamNumber, Type,
    VoteOp,
};
use crate::words::{
    AccumulatorFunctionCall, Callable, Entry, FragmentFunctionCall, FunctionCall, FunctionWord,
    RowsFunctionCall, WarpAccumulatorFunctionCall, WarpLeftFunctionCall, WarpRightFunctionCall,
    WarpRowsFunctionCall, Word,
};

impl Cx<'_> {
    pub(super) fn call(&mut self, call: &syn::ExprCall, span: Span) -> Expr {
        let syn::Expr::Path(path) = &*call.func else {
            self.error(Syntax::Callee, Span::of(&call.func));
            return Expr::error(span);
        };
        let Some(last) = path.path.segments.last() else { return Expr::error(span) };
        let value = match self.callee(path) {
            Callee::Device(device) => {
                let args: Vec<_> = call.args.iter().collect();
                return self.device_call(device, last, &args, span);
            }
            Callee::Method(function, of) => {
                let args: Vec<_> = call.args.iter().collect();
                return self.struct_function(function, of, last, &args, span);
            }
            Callee::Constructor(of) => return self.tuple_struct(of, call, span),
            Callee::Word(FunctionWord::Unroll) => {
                self.error(Syntax::Unroll, span);
                None
            }
            Callee::Word(word) => {
                self.call_of(word, &(), call, span).and_then(|call| self.function(call, last, span))
            }
            Callee::Conversion(scalar, word) => {
                self.call_of(word, &scalar, call, span).map(|call| conversion(scalar, call, span))
            }
            Callee::Accumulator(word, owner) => {
                let call = self.call_of(word, &(), call, span);
                call.map(|AccumulatorFunctionCall::Zero| zero_of(&owner, span))
            }
            Callee::Rows(word, rows) => {
                let call = self.call_of(word, &rows.element, call, span);
                call.map(|RowsFunctionCall::Filled { value }| rows_of(rows, value, span))
            }
            Callee::WarpAccumulator(word, owner) => {
                let call = self.call_of(word, &(), call, span);
                call.map(|WarpAccumulatorFunctionCall::Zero| zero_of(&owner, span))
            }
            Callee::WarpRows(word, rows) => {
                let call = self.call_of(word, &rows.element, call, span);
                call.map(|WarpRowsFunctionCall::Filled { value }| rows_of(rows, value, span))
            }
            Callee::Fragment(word, operand) => {
                let (call, operand) = (self.call_of(word, &(), call, span), Type::Fragment(operand));
                call.map(|call| {
                    let (widens, tile, at) = match call {
                        FragmentFunctionCall::Load { tile, at } => (false, tile, at),
                        FragmentFunctionCall::Widen { tile, at } => (true, tile, at),
                    };
                    load_operand(&mut self.builder, operand, OperandSource { tile, at, widens }, span)
                })
            }
            Callee::WarpLeft(word, operand) => {
                let (call, operand) = (self.call_of(word, &(), call, span), Type::WarpFragment(operand));
                call.map(|call| {
                    let (widens, tile, at) = match call {
                        WarpLeftFunctionCall::Load { tile, at } => (false, tile, at),
                        WarpLeftFunctionCall::Widen { tile, at } => (true, tile, at),
                    };
                    load_operand(&mut self.builder, operand, OperandSource { tile, at, widens }, span)
                })
            }
            Callee::WarpRight(word, operand) => {
                let (call, operand) = (self.call_of(word, &(), call, span), Type::WarpFragment(operand));
                call.map(|call| {
                    let (widens, tile, at) = match call {
                        WarpRightFunctionCall::Load { tile, at } => (false, tile, at),
                        WarpRightFunctionCall::Widen { tile, at } => (true, tile, at),
                    };
                    load_operand(&mut self.builder, operand, OperandSource { tile, at, widens }, span)
                })
            }
            Callee::Phase(word) => self.call_of(word, &(), call, span).map(|call| new_phase(call, span)),
            Callee::Refused => {
                for arg in &call.args {
                    self.expr(arg);
                }
                None
            }
        };
        value.unwrap_or(Expr::error(span))
    }

    /// Reads the arguments of a call of a built-in, or returns `None` if they do not fit.
    fn call_of<W: Callable>(
        &mut self,
        word: W,
        on: &W::On,
        call: &syn::ExprCall,
        span: Span,
    ) -> Option<W::Call> {
        let values = self.argument_values(Some(&Entry::of(word)), &call.args);
        word.read(&mut self.typing(), on, values, span)
    }

    fn function(&mut self, call: FunctionCall, path: &syn::PathSegment, span: Span) -> Option<Expr> {
        let special = |register, ty| Expr { kind: ExprKind::Special(register), ty, span };
        let axes = |register: fn(Axis) -> Special| special(register(Axis::X), Type::Dim3);
        let index = |register| special(register, Scalar::U32.into());
        Some(match call {
            FunctionCall::ThreadIdx => axes(Special::ThreadIdx),
            FunctionCall::BlockIdx => axes(Special::BlockIdx),
            FunctionCall::GridDim => axes(Special::GridDim),
            FunctionCall::BlockDim => known_dim3(self.instance.threads, span),
            FunctionCall::LaneIdx => index(Special::LaneIdx),
            FunctionCall::WarpIdx => index(Special::WarpIdx),
            FunctionCall::WarpgroupIdx => index(Special::WarpgroupIdx),
            FunctionCall::ElectOne => {
                let (dest, value) = self.builder.temporary("elected", Scalar::Bool, span);
                self.builder.emit(StmtKind::ElectOne { dest }, span);
                value
            }

            FunctionCall::Rank => self.team_number(TeamNumber::Rank, span),
            FunctionCall::Ranks => self.team_number(TeamNumber::Ranks, span),

            FunctionCall::ClusterRank => index(Special::ClusterRank),
            FunctionCall::ClusterIdx => axes(Special::ClusterIdx),
            FunctionCall::BlockInCluster => axes(Special::BlockInCluster),
            FunctionCall::ClusterDim => cluster_dim(&self.instance, span),
            FunctionCall::Remote { thing, rank } => return remote(&mut self.typing(), thing, rank, span),

            FunctionCall::MulHi { a, b } => return self.mul_hi(a, b, path, span),
            FunctionCall::Min { a, b } => return self.math_as(MathOp::Min, vec![a, b], path, span),
            FunctionCall::Max { a, b } => return self.math_as(MathOp::Max, vec![a, b], path, span),
            FunctionCall::Abs { x } => return self.math_as(MathOp::Abs, vec![x], path, span),
            FunctionCall::Fma { a, b, c } => return self.math_as(MathOp::Fma, vec![a, b, c], path, span),
            FunctionCall::Sqrt { x } => return self.math_as(MathOp::Sqrt, vec![x], path, span),
            FunctionCall::Recip { x } => return self.math_as(MathOp::Recip, vec![x], path, span),
            FunctionCall::Rsqrt { x } => return self.math_as(MathOp::Rsqrt, vec![x], path, span),
            FunctionCall::Exp2 { x } => return self.math_as(MathOp::Exp2, vec![x], path, span),
            FunctionCall::Exp2Half { x } => return self.math_as(MathOp::Exp2Half, vec![x], path, span),
            FunctionCall::Exp2Ftz { x } => return self.math_as(MathOp::Exp2Ftz, vec![x], path, span),
            FunctionCall::Log2 { x } => return self.math_as(MathOp::Log2, vec![x], path, span),
            FunctionCall::Exp { x } => return self.math_as(MathOp::Exp, vec![x], path, span),
            FunctionCall::Log { x } => return self.math_as(MathOp::Log, vec![x], path, span),
            FunctionCall::Sin { x } => return self.math_as(MathOp::Sin, vec![x], path, span),
            FunctionCall::Cos { x } => return self.math_as(MathOp::Cos, vec![x], path, span),
            FunctionCall::Tanh { x } => return self.math_as(MathOp::Tanh, vec![x], path, span),
            FunctionCall::Pow { x, y } => return self.math_as(MathOp::Pow, vec![x, y], path, span),
            FunctionCall::Clamp { x, low, high } => {
                return self.math_as(MathOp::Clamp, vec![x, low, high], path, span);
            }
            FunctionCall::CopySign { x, sign } => {
                return self.math_as(MathOp::CopySign, vec![x, sign], path, span);
            }
            FunctionCall::SizeOf => return self.size_of(path, span),
            FunctionCall::Cast { value } => return self.cast_call(value, path, span),

            FunctionCall::SyncThreads => effect(&mut self.builder, StmtKind::Sync(Sync::Threads), span),
            FunctionCall::SyncWarp => effect(&mut self.builder, StmtKind::Sync(Sync::Warp), span),
            FunctionCall::SyncCluster => effect(&mut self.builder, StmtKind::Sync(Sync::Cluster), span),
            FunctionCall::ClusterArrive => {
                effect(&mut self.builder, StmtKind::Sync(Sync::ClusterArrive), span)
            }
            FunctionCall::ClusterWait => effect(&mut self.builder, StmtKind::Sync(Sync::ClusterWait), span),
            FunctionCall::SyncWarpgroup => effect(&mut self.builder, StmtKind::Sync(Sync::Warpgroup), span),
            FunctionCall::NamedBarrierArrive { id, threads } => {
                effect(&mut self.builder, StmtKind::NamedBarrierArrive { id, threads }, span)
            }
            FunctionCall::SetmaxnregInc => return self.set_max_registers(path, true, span),
            FunctionCall::SetmaxnregDec => return self.set_max_registers(path, false, span),
            FunctionCall::NamedBarrierSync { id, threads } => {
                effect(&mut self.builder, StmtKind::NamedBarrierSync { id, threads }, span)
            }
            FunctionCall::SyncGrid { counter } => {
                let ExprKind::Param(counter) = counter.kind else { return None };
                self.declared.param_mut(counter).written = true;
                effect(&mut self.builder, StmtKind::SyncGrid { counter }, span)
            }
            FunctionCall::GridDependencyWait => {
                effect(&mut self.builder, StmtKind::GridDependency(GridDependency::Wait), span)
            }
            FunctionCall::GridDependencyLaunch => {
                effect(&mut self.builder, StmtKind::GridDependency(GridDependency::Launch), span)
            }
            FunctionCall::FenceProxyAsync => {
                let memory = FencedMemory::Shared(Scope::Cluster);
                effect(&mut self.builder, StmtKind::Fence(Fence::ProxyAsync(memory)), span)
            }
            FunctionCall::FenceProxyAsyncGlobal => {
                effect(&mut self.builder, StmtKind::Fence(Fence::ProxyAsync(FencedMemory::Global)), span)
            }
            FunctionCall::Fence => effect(&mut self.builder, StmtKind::Fence(Fence::Memory), span),
            FunctionCall::FenceBarrierInit => {
                effect(&mut self.builder, StmtKind::Fence(Fence::MbarrierInit), span)
            }

            FunctionCall::ShuffleXor { value, mask } => {
                return self.shuffle(ShuffleOp::Xor, value, mask, path, span);
            }
            FunctionCall::ShuffleUp { value, distance } => {
                return self.shuffle(ShuffleOp::Up, value, distance, path, span);
            }
            FunctionCall::ShuffleDown { value, distance } => {
                return self.shuffle(ShuffleOp::Down, value, distance, path, span);
            }
            FunctionCall::ShuffleIdx { value, lane } => {
                return self.shuffle(ShuffleOp::Idx, value, lane, path, span);
            }
            FunctionCall::VoteAll { condition } => vote(&mut self.builder, VoteOp::All, condition, span),
            FunctionCall::VoteAny { condition } => vote(&mut self.builder, VoteOp::Any, condition, span),
            FunctionCall::Ballot { condition } => vote(&mut self.builder, VoteOp::Ballot, condition, span),
            FunctionCall::MatchAny { value } => return self.matching(MatchOp::Any, value, path, span),
            FunctionCall::MatchAll { value } => return self.matching(MatchOp::All, value, path, span),
            FunctionCall::WarpReduce { op, value } => return self.warp_reduce(op, value, path, span),

            FunctionCall::L2EvictFirst { fraction } => policy(EvictionPriority::First, fraction, span),
            FunctionCall::L2EvictLast { fraction } => policy(EvictionPriority::Last, fraction, span),
            FunctionCall::L2EvictNormal { fraction } => policy(EvictionPriority::Normal, fraction, span),
            FunctionCall::L2EvictUnchanged { fraction } => {
                policy(EvictionPriority::Unchanged, fraction, span)
            }
            FunctionCall::BulkCommitGroup => effect(&mut self.builder, StmtKind::BulkCommitGroup, span),
            FunctionCall::BulkWaitGroup => return self.bulk_wait_group(path, false, span),
            FunctionCall::BulkWaitGroupRead => return self.bulk_wait_group(path, true, span),

            FunctionCall::Shared => return self.shared_by_turbofish(path, span),
            FunctionCall::Reuse { object } => return self.reuse_by_turbofish(object, path, span),
            FunctionCall::Trap => Expr { ty: Type::Never, ..effect(&mut self.builder, StmtKind::Trap, span) },
            FunctionCall::Assume { condition } => {
                let message = ASSUMPTION_FAILED.to_owned();
                effect(&mut self.builder, StmtKind::Assert { condition, message, assumed: true }, span)
            }
            FunctionCall::PrintTile { tile } => effect(&mut self.builder, StmtKind::PrintTile { tile }, span),
            // Not reached: `call` rejects it, and a `for` parses its own.
            FunctionCall::Unroll { range: _ } => return None,
        })
    }

    /// Builds a function of scalars, with the type in angle brackets if there is one.
    fn math_as(
        &mut self,
        op: MathOp,
        operands: Vec<Expr>,
        path: &syn::PathSegment,
        span: Span,
    ) -> Option<Expr> {
        let value = math(&mut self.typing(), op, operands, span);
        if let [syn::GenericArgument::Type(ty)] = generic_arguments(path)[..] {
            let ty = self.ty(ty);
            self.expect(value.as_ref()?, &ty);
        }
        value
    }

    /// Builds `mul_hi(a, b)`, with the type in angle brackets if there is one.
    fn mul_hi(&mut self, a: Expr, b: Expr, path: &syn::PathSegment, span: Span) -> Option<Expr> {
        if !self.expect(&b, &a.ty) {
            return None;
        }
        let word = FunctionWord::MulHi.name();
        let fits = self.require(&a.ty, Rule::Integer { word, of: Integers::Words }, span);
        if let [syn::GenericArgument::Type(ty)] = generic_arguments(path)[..] {
            let ty = self.ty(ty);
            self.expect(&a, &ty);
        }
        let ty = a.ty.clone();
        fits.then(|| Expr { kind: ExprKind::Integer(IntegerOp::MulHi, vec![a, b]), ty, span })
    }

    /// Resolves `bulk_wait_group::<0>()` and `bulk_wait_group_read::<0>()`.
    fn bulk_wait_group(&mut self, path: &syn::PathSegment, read_only: bool, span: Span) -> Option<Expr> {
        let [pending] = generic_arguments(path)[..] else {
            self.error(Argument::NoGroups { word: path.ident.to_string().into() }, span);
            return None;
        };
        let pending = self.u32_argument(pending)?;
        Some(effect(&mut self.builder, StmtKind::BulkWaitGroup { pending, read_only }, span))
    }

    /// Resolves `setmaxnreg_inc::<232>()` and `setmaxnreg_dec::<40>()`.
    fn set_max_registers(&mut self, path: &syn::PathSegment, increase: bool, span: Span) -> Option<Expr> {
        let [registers] = generic_arguments(path)[..] else {
            self.error(Argument::NoRegisters { word: path.ident.to_string().into() }, span);
            return None;
        };
        let registers = self.u32_argument(registers)?;
        Some(effect(&mut self.builder, StmtKind::SetMaxRegisters { increase, registers }, span))
    }

    /// Resolves `size_of::<T>()`.
    fn size_of(&mut self, path: &syn::PathSegment, span: Span) -> Option<Expr> {
        let [syn::GenericArgument::Type(ty)] = generic_arguments(path)[..] else {
            self.error(Types::SizeOf(None), span);
            return None;
        };
        let found = self.ty(ty);
        let Some(scalar) = found.as_scalar() else {
            if found != Type::Error {
                self.error(Types::SizeOf(Some(self.infer.partial(&found))), Span::of(ty));
            }
            return None;
        };
        Some(Expr::constant(Const::Int(i128::from(scalar.bytes())), Scalar::Usize, span))
    }

    fn cast_call(&mut self, value: Expr, path: &syn::PathSegment, span: Span) -> Option<Expr> {
        let to = match generic_arguments(path)[..] {
            [syn::GenericArgument::Type(ty), ..] => self.ty(ty),
            [] => self.infer.fresh(Kind::Any),
            _ => {
                self.error(Types::Cast, span);
                return None;
            }
        };
        let fits = self.require(&value.ty, Rule::Cast(to.clone()), span) && to != Type::Error;
        fits.then(|| Expr { kind: ExprKind::Cast(Box::new(value)), ty: to, span })
    }
}

/// Emits a statement without a result.
pub(super) fn effect(builder: &mut Builder, kind: StmtKind, span: Span) -> Expr {
    builder.emit(kind, span);
    unit(span)
}

/// Builds a cache policy that applies the priority to a fraction of the accesses.
fn policy(priority: EvictionPriority, fraction: Expr, span: Span) -> Expr {
    Expr { kind: ExprKind::CachePolicy(priority, Box::new(fraction)), ty: Type::CachePolicy, span }
}
