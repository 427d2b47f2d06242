//! Calls: the vocabulary's functions, and conversions such as `f16::from_f32`.

use syn::Expr as Syntax;

use super::callee::{Callee, conversion_from};
use super::cx::Cx;
use super::infer::Kind;
use super::rule::Rule;
use super::stmt::unit;
use super::types::generic_arguments;
use super::wording::{arguments, given};
use crate::diag::Code;
use crate::ir::{
    Axis, EvictionPriority, Expr, ExprKind, Fence, GridDependency, MathOp, Scalar, Span, Special, StmtKind,
    Sync, Type,
};

/// A function of the vocabulary.
#[derive(Clone, Copy, Debug)]
pub(super) enum Function {
    Place(Special),
    Index(Special),
    BlockDim,
    ElectOne,
    Math(MathOp),
    Cast,
    Shared,
    ClusterDim,
    Remote,
    Sync(Sync),
    NamedBarrierSync,
    SyncGrid,
    GridDependency(GridDependency),
    Fence(Fence),
    CachePolicy(EvictionPriority),
    BulkCommitGroup,
    BulkWaitGroup { read_only: bool },
    Trap,
    Unroll,
}

/// Every function's name.
const FUNCTIONS: &[(&str, Function)] = &[
    ("thread_idx", Function::Place(Special::ThreadIdx(Axis::X))),
    ("block_idx", Function::Place(Special::BlockIdx(Axis::X))),
    ("grid_dim", Function::Place(Special::GridDim(Axis::X))),
    ("block_dim", Function::BlockDim),
    ("cluster_idx", Function::Place(Special::ClusterIdx(Axis::X))),
    ("block_in_cluster", Function::Place(Special::BlockInCluster(Axis::X))),
    ("cluster_dim", Function::ClusterDim),
    ("cluster_rank", Function::Index(Special::ClusterRank)),
    ("lane_idx", Function::Index(Special::LaneIdx)),
    ("warp_idx", Function::Index(Special::WarpIdx)),
    ("warpgroup_idx", Function::Index(Special::WarpgroupIdx)),
    ("elect_one", Function::ElectOne),
    ("min", Function::Math(MathOp::Min)),
    ("max", Function::Math(MathOp::Max)),
    ("abs", Function::Math(MathOp::Abs)),
    ("fma", Function::Math(MathOp::Fma)),
    ("sqrt", Function::Math(MathOp::Sqrt)),
    ("rsqrt", Function::Math(MathOp::Rsqrt)),
    ("exp2", Function::Math(MathOp::Exp2)),
    ("log2", Function::Math(MathOp::Log2)),
    ("recip", Function::Math(MathOp::Recip)),
    ("cast", Function::Cast),
    ("shared", Function::Shared),
    ("remote", Function::Remote),
    ("sync_threads", Function::Sync(Sync::Threads)),
    ("sync_warp", Function::Sync(Sync::Warp)),
    ("sync_cluster", Function::Sync(Sync::Cluster)),
    ("cluster_arrive", Function::Sync(Sync::ClusterArrive)),
    ("cluster_wait", Function::Sync(Sync::ClusterWait)),
    ("named_barrier_sync", Function::NamedBarrierSync),
    ("sync_grid", Function::SyncGrid),
    ("grid_dependency_wait", Function::GridDependency(GridDependency::Wait)),
    ("grid_dependency_launch", Function::GridDependency(GridDependency::Launch)),
    ("fence_proxy_async", Function::Fence(Fence::ProxyAsync)),
    ("fence_proxy_async_global", Function::Fence(Fence::ProxyAsyncGlobal)),
    ("fence", Function::Fence(Fence::Device)),
    ("fence_barrier_init", Function::Fence(Fence::BarrierInit)),
    ("l2_evict_first", Function::CachePolicy(EvictionPriority::First)),
    ("l2_evict_last", Function::CachePolicy(EvictionPriority::Last)),
    ("l2_evict_normal", Function::CachePolicy(EvictionPriority::Normal)),
    ("l2_evict_unchanged", Function::CachePolicy(EvictionPriority::Unchanged)),
    ("bulk_commit_group", Function::BulkCommitGroup),
    ("bulk_wait_group", Function::BulkWaitGroup { read_only: false }),
    ("bulk_wait_group_read", Function::BulkWaitGroup { read_only: true }),
    ("trap", Function::Trap),
    ("unroll", Function::Unroll),
];

/// The vocabulary's function of this name.
pub(super) fn function_named(name: &str) -> Option<Function> {
    FUNCTIONS.iter().find(|(known, _)| *known == name).map(|(_, function)| *function)
}

/// The names of the vocabulary's functions.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    FUNCTIONS.iter().map(|(name, _)| *name)
}

impl Cx<'_> {
    pub(super) fn call(&mut self, call: &syn::ExprCall, span: Span) -> Expr {
        let Syntax::Path(path) = &*call.func else {
            self.error(
                Code::UnsupportedExpression,
                Span::of(&call.func),
                "only functions are called, by name",
            );
            return Expr::error(span);
        };
        let Some(last) = path.path.segments.last() else { return Expr::error(span) };
        let args: Vec<_> = call.args.iter().collect();
        match self.callee(path) {
            Callee::Device(device) => self.device_call(device, last, &args, span),
            Callee::Word(function) => self.function(function, last, &args, span),
            Callee::Conversion(scalar, name) => self.conversion(scalar, &name, &args, span),
            Callee::Phase(name) => self.new_phase(&name, &args, span),
            Callee::Refused => {
                for arg in args {
                    self.expr(arg);
                }
                Expr::error(span)
            }
        }
    }

    fn function(
        &mut self,
        function: Function,
        path: &syn::PathSegment,
        args: &[&Syntax],
        span: Span,
    ) -> Expr {
        let name = path.ident.to_string();
        let u32_ty = Type::from(Scalar::U32);
        match function {
            Function::Math(op) => {
                let value = self.math(op, args, &name, span);
                if let [syn::GenericArgument::Type(ty)] = generic_arguments(path)[..] {
                    let ty = self.ty(ty);
                    self.expect(&value, &ty);
                }
                return value;
            }
            Function::NamedBarrierSync => {
                let Some([id, threads]) = self.values(&name, args, span) else { return Expr::error(span) };
                if self.expect(&id, &u32_ty) && self.expect(&threads, &u32_ty) {
                    self.emit(StmtKind::NamedBarrierSync { id, threads }, span);
                }
                return unit(span);
            }
            Function::SyncGrid => return self.sync_grid(args, span),
            Function::CachePolicy(priority) => {
                let Some([fraction]) = self.values(&name, args, span) else { return Expr::error(span) };
                if !self.expect(&fraction, &Scalar::F32.into()) {
                    return Expr::error(span);
                }
                let kind = ExprKind::CachePolicy(priority, Box::new(fraction));
                return Expr { kind, ty: Type::CachePolicy, span };
            }
            Function::Cast => return self.cast_call(path, args, span),
            Function::Remote => return self.remote(args, span),
            Function::BulkWaitGroup { read_only } => {
                return self.bulk_wait_group(path, read_only, args, span);
            }
            _ => {}
        }
        if self.values::<0>(&name, args, span).is_none() {
            return Expr::error(span);
        }
        match function {
            Function::Place(place) => Expr { kind: ExprKind::Special(place), ty: Type::Dim3, span },
            Function::Index(place) => Expr { kind: ExprKind::Special(place), ty: u32_ty, span },
            Function::BlockDim => self.block_dim(span),
            Function::ClusterDim => self.cluster_dim(span),
            Function::ElectOne => {
                let (dest, value) = self.temporary("elected", Scalar::Bool, span);
                self.emit(StmtKind::ElectOne { dest }, span);
                value
            }
            Function::Shared => self.shared_by_turbofish(path, span),
            Function::Sync(sync) => self.effect(StmtKind::Sync(sync), span),
            Function::GridDependency(dependency) => self.effect(StmtKind::GridDependency(dependency), span),
            Function::Fence(fence) => self.effect(StmtKind::Fence(fence), span),
            Function::BulkCommitGroup => self.effect(StmtKind::BulkCommitGroup, span),
            Function::Trap => {
                self.emit(StmtKind::Trap, span);
                Expr { ty: Type::Never, ..unit(span) }
            }
            Function::Unroll => {
                self.error(Code::UnsupportedExpression, span, "`unroll` stands in a `for` only")
                    .help("write `for i in unroll(0..4)`");
                Expr::error(span)
            }
            Function::Math(_)
            | Function::NamedBarrierSync
            | Function::SyncGrid
            | Function::CachePolicy(_)
            | Function::BulkWaitGroup { .. }
            | Function::Cast
            | Function::Remote => Expr::error(span),
        }
    }

    /// `sync_grid(counter)`.
    fn sync_grid(&mut self, args: &[&Syntax], span: Span) -> Expr {
        let Some([counter]) = self.values("sync_grid", args, span) else { return Expr::error(span) };
        if self.expect(&counter, &Type::Global(Scalar::U32))
            && let ExprKind::Param(counter) = counter.kind
        {
            self.params[counter.0 as usize].written = true;
            self.emit(StmtKind::SyncGrid { counter }, span);
        }
        unit(span)
    }

    /// `bulk_wait_group::<0>()` and `bulk_wait_group_read::<0>()`.
    fn bulk_wait_group(
        &mut self,
        path: &syn::PathSegment,
        read_only: bool,
        args: &[&Syntax],
        span: Span,
    ) -> Expr {
        match (&generic_arguments(path)[..], args) {
            ([pending], []) => match self.u32_argument(pending) {
                Some(pending) => self.effect(StmtKind::BulkWaitGroup { pending, read_only }, span),
                None => Expr::error(span),
            },
            (_, args) => {
                let (name, found) = (&path.ident, given(args.len()));
                let message = match args {
                    [] => format!("`{name}` takes how many groups may be pending, in angle brackets"),
                    _ => format!(
                        "`{name}` takes no arguments, but {found}: the groups that may be pending are generic"
                    ),
                };
                self.error(Code::ArgumentCount, span, message)
                    .help(format!("write `{name}::<0>()` to wait for all"));
                Expr::error(span)
            }
        }
    }

    fn effect(&mut self, kind: StmtKind, span: Span) -> Expr {
        self.emit(kind, span);
        unit(span)
    }

    /// The arguments' values, if there are `N`.
    pub(super) fn values<const N: usize>(
        &mut self,
        name: &str,
        args: &[&Syntax],
        span: Span,
    ) -> Option<[Expr; N]> {
        let values = self.in_order(args.iter().copied());
        self.exactly(name, &values, span)
    }

    /// `values`, if there are `N`.
    pub(super) fn exactly<const N: usize>(
        &mut self,
        name: &str,
        values: &[Expr],
        span: Span,
    ) -> Option<[Expr; N]> {
        if values.iter().any(|value| matches!(value.kind, ExprKind::Error)) {
            return None;
        }
        let found = values.len();
        let exact = <[Expr; N]>::try_from(values.to_vec()).ok();
        if exact.is_none() {
            let message = format!("`{name}` takes {}, but {}", arguments(N), given(found));
            self.error(Code::ArgumentCount, span, message);
        }
        exact
    }

    /// A hardware function of scalars.
    pub(super) fn math(&mut self, op: MathOp, args: &[&Syntax], name: &str, span: Span) -> Expr {
        let operands = match op {
            MathOp::Min | MathOp::Max => self.values::<2>(name, args, span).map(Vec::from),
            MathOp::Fma => self.values::<3>(name, args, span).map(Vec::from),
            MathOp::Abs | MathOp::Sqrt | MathOp::Rsqrt | MathOp::Exp2 | MathOp::Log2 | MathOp::Recip => {
                self.values::<1>(name, args, span).map(Vec::from)
            }
        };
        match operands {
            Some(operands) => self.math_of(op, operands, span),
            None => Expr::error(span),
        }
    }

    /// As [`Cx::math`], for operands that are known already.
    pub(super) fn math_of(&mut self, op: MathOp, operands: Vec<Expr>, span: Span) -> Expr {
        let Some(ty) = operands.first().map(|first| first.ty.clone()) else { return Expr::error(span) };
        for operand in &operands {
            if !self.expect(operand, &ty) {
                return Expr::error(span);
            }
        }
        let only_f32 = matches!(op, MathOp::Rsqrt | MathOp::Exp2 | MathOp::Log2);
        if only_f32 && matches!(self.infer.kind(&ty), Some(Kind::Any | Kind::Float)) {
            self.infer.unify(&ty, &Scalar::F32.into(), span);
        }
        if !self.require(&ty, Rule::Math(op), span) {
            return Expr::error(span);
        }
        Expr { kind: ExprKind::Math(op, operands), ty, span }
    }

    /// `f16::from_f32(x)` and the like.
    fn conversion(&mut self, to: Scalar, name: &str, args: &[&Syntax], span: Span) -> Expr {
        let Some(from) = conversion_from(to, name) else {
            self.error(Code::UnknownName, span, format!("`{to}` has no function `{name}` in kernels"))
                .help("there are `from_f32`, `from_f64` and `from_bits`; `cast::<T>(x)` converts any scalar");
            return Expr::error(span);
        };
        let Some([value]) = self.values(name, args, span) else { return Expr::error(span) };
        if !self.expect(&value, &from.into()) {
            return Expr::error(span);
        }
        let value = Box::new(value);
        let kind = if name == "from_bits" { ExprKind::Bits(value) } else { ExprKind::Cast(value) };
        Expr { kind, ty: to.into(), span }
    }

    fn cast_call(&mut self, path: &syn::PathSegment, args: &[&Syntax], span: Span) -> Expr {
        let Some([value]) = self.values("cast", args, span) else { return Expr::error(span) };
        let to = match generic_arguments(path)[..] {
            [syn::GenericArgument::Type(ty), ..] => self.ty(ty),
            [] => self.infer.fresh(Kind::Any),
            _ => {
                self.error(Code::UnsupportedType, span, "`cast` converts to a type")
                    .help("write `cast::<f32>(x)`");
                return Expr::error(span);
            }
        };
        if !self.require(&value.ty, Rule::Cast(to.clone()), span) || to == Type::Error {
            return Expr::error(span);
        }
        Expr { kind: ExprKind::Cast(Box::new(value)), ty: to, span }
    }

    fn shared_by_turbofish(&mut self, path: &syn::PathSegment, span: Span) -> Expr {
        match generic_arguments(path)[..] {
            [syn::GenericArgument::Type(ty)] => {
                let ty = self.ty(ty);
                self.make_shared("shared", ty, span)
            }
            _ => {
                self.error(Code::SharedPlace, span, "`shared()` is not told what to hold")
                    .help("give the variable a type: `let full: Barrier = shared();`");
                Expr::error(span)
            }
        }
    }

    /// A parameter's name, whether it is `mut`, and its type.
    pub(super) fn parameter<'s>(
        &mut self,
        input: &'s syn::FnArg,
    ) -> Option<(syn::Ident, bool, &'s syn::Type)> {
        let syn::FnArg::Typed(typed) = input else {
            self.error(Code::Signature, Span::of(input), "kernels and device functions have no `self`")
                .help("write a free function");
            return None;
        };
        match &*typed.pat {
            syn::Pat::Ident(name) if name.subpat.is_none() && name.by_ref.is_none() => {
                Some((name.ident.clone(), name.mutability.is_some(), &typed.ty))
            }
            other => {
                self.error(Code::UnsupportedPattern, Span::of(other), "a parameter takes one name here");
                None
            }
        }
    }
}

/// Which scalars the hardware function is for.
pub(super) fn has_math(scalar: Scalar, op: MathOp) -> bool {
    match op {
        MathOp::Min | MathOp::Max | MathOp::Abs => {
            scalar.is_arithmetic() && (op != MathOp::Abs || scalar.is_float() || scalar.is_signed())
        }
        MathOp::Fma => matches!(scalar, Scalar::F16 | Scalar::Bf16 | Scalar::F32 | Scalar::F64),
        MathOp::Sqrt | MathOp::Recip => matches!(scalar, Scalar::F32 | Scalar::F64),
        MathOp::Rsqrt | MathOp::Exp2 | MathOp::Log2 => scalar == Scalar::F32,
    }
}

pub(super) fn math_types(op: MathOp) -> &'static str {
    match op {
        MathOp::Min | MathOp::Max => "integers, f16, bf16, f32 and f64",
        MathOp::Abs => "signed integers, f16, bf16, f32 and f64",
        MathOp::Fma => "f16, bf16, f32 and f64",
        MathOp::Sqrt | MathOp::Recip => "f32 and f64",
        MathOp::Rsqrt | MathOp::Exp2 | MathOp::Log2 => "f32",
    }
}
