//! Methods of slices of global memory, and of the slices and maps of all ranks of a team.

use super::atomic::{Access, Request};
use super::bulk::SliceRange;
use super::hint::Target;
use super::matrix::{Rows, matrix_of};
use super::vector::written_vector;
use crate::diag::{Sink, mistake};
use crate::ir::{
    AtomicMemory, AtomicOp, CopyKind, Expr, ExprKind, GlobalRef, LoadPath, MemoryScope, Multicast, Order,
    ParamId, PeerMemory, Scalar, SharedRange, Span, StmtKind, TeamNumber, Type,
};
use crate::parse::call::effect;
use crate::parse::cx::Cx;
use crate::parse::span;
use crate::words::shape::Chosen;
use crate::words::{GlobalCall, GlobalWord, PeersCall, Word};

/// A slice as the receiver of a method.
pub(super) struct Slice {
    pub(super) global: GlobalRef,
    /// The cache policy of its plain accesses and copies.
    pub(super) hint: Option<Expr>,
    pub(super) element: Scalar,
}

impl Cx<'_> {
    pub(super) fn global_method(
        &mut self,
        receiver: Expr,
        slice: Slice,
        call: GlobalCall,
        syntax: &syn::ExprMethodCall,
    ) -> Option<Expr> {
        let span = span::of_method_call(syntax);
        let (global, element) = (slice.global.param, slice.element);
        let (index, count, kind) = match call {
            GlobalCall::Len => {
                return Some(Expr { kind: ExprKind::GlobalLen(global), ty: Scalar::U64.into(), span });
            }
            GlobalCall::Get { i: index } => {
                return Some(self.plain_load(slice, element.into(), index, LoadPath::Coherent, span));
            }
            GlobalCall::GetNc { i: index } => {
                return Some(self.plain_load(slice, element.into(), index, LoadPath::NonCoherent, span));
            }
            GlobalCall::Set { i: index, value } => return Some(self.plain_store(slice, index, value, span)),
            GlobalCall::GetVec { i: index } => {
                let vector = self.read_vector(syntax, element)?;
                return Some(self.plain_load(slice, vector, index, LoadPath::Coherent, span));
            }
            GlobalCall::GetVecNc { i: index } => {
                let vector = self.read_vector(syntax, element)?;
                return Some(self.plain_load(slice, vector, index, LoadPath::NonCoherent, span));
            }
            GlobalCall::SetVec { i: index, value } => {
                let value = written_vector(&mut self.typing(), value, element)?;
                return Some(self.plain_store(slice, index, value, span));
            }
            GlobalCall::Matrix { first, extents, stride } => {
                let rows = Rows { first, extents, stride };
                return Some(matrix_of(&mut self.builder, receiver, global, element, rows, span));
            }
            GlobalCall::Atomic { op, i: index, value } => {
                let (request, word) = (Request::Update(op, value), GlobalWord::Atomic(op).name());
                let order = Chosen { value: Order::Relaxed, span };
                let scope = Chosen { value: MemoryScope::Device, span };
                return self.strong(&slice, Access { word, index, request, order, scope }, span);
            }
            GlobalCall::Load { i: index, order, scope } => {
                let (request, word) = (Request::Load, GlobalWord::Load.name());
                return self.strong(&slice, Access { word, index, request, order, scope }, span);
            }
            GlobalCall::Store { i: index, value, order, scope } => {
                let (request, word) = (Request::Store(value), GlobalWord::Store.name());
                return self.strong(&slice, Access { word, index, request, order, scope }, span);
            }
            GlobalCall::Fetch { op, i: index, value, order, scope } => {
                let (request, word) = (Request::Update(op.into(), value), GlobalWord::Fetch(op).name());
                return self.strong(&slice, Access { word, index, request, order, scope }, span);
            }
            GlobalCall::Swap { i: index, value, order, scope } => {
                let (request, word) = (Request::Update(AtomicOp::Exchange, value), GlobalWord::Swap.name());
                return self.strong(&slice, Access { word, index, request, order, scope }, span);
            }
            GlobalCall::CompareExchange { i: index, current, new, order, scope } => {
                let request = Request::CompareExchange { current, new };
                let word = GlobalWord::CompareExchange.name();
                return self.strong(&slice, Access { word, index, request, order, scope }, span);
            }
            GlobalCall::AddVec { i: index, value, order, scope } => {
                let value = written_vector(&mut self.typing(), value, element)?;
                self.moves_vector(global, &value.ty.clone());
                let (request, word) = (Request::AddVector(value), GlobalWord::AddVec.name());
                return self.strong(&slice, Access { word, index, request, order, scope }, span);
            }
            GlobalCall::Hint { policy } => return self.hinted(receiver, slice.hint.is_some(), policy, span),
            GlobalCall::BulkLoad { array, at, count, i, barrier } => {
                let to = SharedRange { array, at };
                (i, count, CopyKind::Load { to, barrier, multicast: None })
            }
            GlobalCall::BulkLoadMulticast { array, at, count, i, barrier, mask } => {
                let to = SharedRange { array, at };
                (i, count, CopyKind::Load { to, barrier, multicast: Some(Multicast::Mask(Box::new(mask))) })
            }
            GlobalCall::BulkStore { i, array, at, count } => {
                (i, count, CopyKind::Store { from: SharedRange { array, at } })
            }
            GlobalCall::BulkReduce { op, i, array, at, count } => {
                (i, count, CopyKind::Reduce { op, from: SharedRange { array, at } })
            }
            GlobalCall::BulkPrefetch { i, count } => (i, count, CopyKind::Prefetch),
        };
        self.bulk_copy(slice, SliceRange { index, count }, kind, span)
    }

    /// Emits a load of an element or a vector, of type `loaded`.
    fn plain_load(&mut self, slice: Slice, loaded: Type, index: Expr, path: LoadPath, span: Span) -> Expr {
        let Slice { global, hint, element: _ } = slice;
        self.moves_vector(global.param, &loaded);
        let name = if loaded.elements().is_some() { "elements" } else { "element" };
        let (dest, value) = self.builder.temporary(name, loaded, span);
        let hint = hint.map(Box::new);
        self.builder.emit(StmtKind::GlobalGet { dest, global, index, path, hint }, span);
        value
    }

    /// Emits a store of an element or a vector.
    fn plain_store(&mut self, slice: Slice, index: Expr, value: Expr, span: Span) -> Expr {
        let Slice { global, hint, element: _ } = slice;
        self.moves_vector(global.param, &value.ty.clone());
        self.declared.param_mut(global.param).written = true;
        let hint = hint.map(Box::new);
        effect(&mut self.builder, StmtKind::GlobalSet { global, index, value, hint }, span)
    }

    /// Requires that the launcher passes an address aligned for vectors of this type.
    fn moves_vector(&mut self, global: ParamId, vector: &Type) {
        if let (Type::Array(_, len), Type::Global(element) | Type::Peers(PeerMemory::Global(element))) =
            (self.infer.resolve(vector), &self.declared.param_of(global).ty)
        {
            let bytes = len * element.bytes();
            let param = self.declared.param_mut(global);
            param.unit = param.unit.max(bytes);
        }
    }

    /// Resolves the slice or the map of a rank.
    pub(super) fn peers_method(
        &mut self,
        receiver: &Expr,
        memory: &PeerMemory,
        call: PeersCall,
        span: Span,
    ) -> Option<Expr> {
        let ExprKind::Param(peers) = receiver.kind else { return None };
        let (of, rank) = match (call, memory) {
            (PeersCall::Own, PeerMemory::Global(element)) => {
                let own = self.declared.own_of(peers)?;
                return Some(Expr { kind: ExprKind::Param(own), ty: Type::Global(*element), span });
            }
            (PeersCall::Own, PeerMemory::TensorMap(tile)) => {
                (Type::TensorMap(tile.clone()), self.team_number(TeamNumber::Rank, span))
            }
            (PeersCall::Of { rank }, PeerMemory::TensorMap(tile)) => {
                (Type::TensorMap(tile.clone()), self.held_rank(rank, span))
            }
            (PeersCall::Of { rank }, PeerMemory::Global(element)) => {
                (Type::Peer(*element), self.held_rank(rank, span))
            }
        };
        Some(Expr { kind: ExprKind::Member(peers, Box::new(rank)), ty: of, span })
    }

    /// Returns the value of `rank()` or `ranks()`.
    pub(in crate::parse) fn team_number(&mut self, number: TeamNumber, span: Span) -> Expr {
        let id = self.declared.team_number(number, span);
        Expr { kind: ExprKind::Param(id), ty: Scalar::U32.into(), span }
    }

    /// Evaluates a rank here, since its variable may change before the access.
    fn held_rank(&mut self, rank: Expr, span: Span) -> Expr {
        let (held, rank_now) = self.builder.temporary("rank", Scalar::U32, span);
        self.builder.assign(held, rank);
        rank_now
    }

    fn strong(&mut self, slice: &Slice, access: Access, span: Span) -> Option<Expr> {
        if slice.global.rank.is_some() && access.scope.value != MemoryScope::System {
            let Access { word, scope, .. } = access;
            self.error(mistake::Atomic::PeerScope { word, found: scope.value }, scope.span);
            return None;
        }
        self.strong_access(AtomicMemory::Global(slice.global.clone()), slice.element, access, span)
    }
}

/// Returns the slice that `receiver` refers to, for this method. Reports a hint that the method
/// does not support.
pub(super) fn slice(
    sink: &mut Sink,
    receiver: &Expr,
    element: Scalar,
    word: GlobalWord,
    span: Span,
) -> Option<Slice> {
    let Target { map, hint } = Target::of(receiver)?;
    let takes_hint = match word {
        GlobalWord::Len
        | GlobalWord::Matrix
        | GlobalWord::Atomic(_)
        | GlobalWord::Load
        | GlobalWord::Store
        | GlobalWord::Fetch(_)
        | GlobalWord::Swap
        | GlobalWord::CompareExchange
        | GlobalWord::AddVec => false,
        GlobalWord::Get
        | GlobalWord::Set
        | GlobalWord::GetVec
        | GlobalWord::SetVec
        | GlobalWord::GetNc
        | GlobalWord::GetVecNc
        | GlobalWord::BulkLoad
        | GlobalWord::BulkLoadMulticast
        | GlobalWord::BulkStore
        | GlobalWord::BulkReduce(_)
        | GlobalWord::BulkPrefetch
        | GlobalWord::Hint => true,
    };
    if hint.is_some() && !takes_hint {
        sink.error(mistake::Copy::Hint { word: word.name() }, span);
        return None;
    }
    let global = GlobalRef { param: map.param, rank: map.index.map(Box::new) };
    Some(Slice { global, hint, element })
}
