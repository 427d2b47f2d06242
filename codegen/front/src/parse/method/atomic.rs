//! Strong accesses: methods of slices and shared arrays that take an order and a scope.

use std::borrow::Cow;

use crate::diag::mistake;
use crate::ir::{
    Atomic, AtomicAccess, AtomicMemory, AtomicOp, Expr, MemoryScope, Order, Scalar, Span, StmtKind,
};
use crate::parse::call::effect;
use crate::parse::cx::Cx;
use crate::words::shape::Chosen;

/// A call of a strong access.
pub(super) struct Access {
    pub(super) word: Cow<'static, str>,
    pub(super) index: Expr,
    pub(super) request: Request,
    pub(super) order: Chosen<Order>,
    pub(super) scope: Chosen<MemoryScope>,
}

/// The requested operation.
pub(super) enum Request {
    Load,
    Store(Expr),
    Update(AtomicOp, Expr),
    CompareExchange {
        current: Expr,
        new: Expr,
    },
    /// An element-wise addition of an array, without a result.
    AddVector(Expr),
}

impl Request {
    /// Whether elements of this type are supported. Loads and stores support every type.
    fn takes(&self, element: Scalar) -> bool {
        match self {
            Self::Load | Self::Store(_) => true,
            Self::Update(op, _) => op.takes(element),
            Self::CompareExchange { .. } => AtomicOp::Exchange.takes(element),
            Self::AddVector(_) => AtomicOp::adds_vectors(element),
        }
    }

    /// Returns the supported orders. Source: PTX ISA, "ld", "st", "atom" and "red".
    fn orders(&self) -> &'static [Order] {
        match self {
            Self::Load => &[Order::Relaxed, Order::Acquire],
            Self::Store(_) | Self::AddVector(_) => &[Order::Relaxed, Order::Release],
            Self::Update(..) | Self::CompareExchange { .. } => {
                &[Order::Relaxed, Order::Acquire, Order::Release, Order::AcqRel]
            }
        }
    }
}

impl Cx<'_> {
    /// Emits a strong access to an element of this memory and returns its result. Reports an access
    /// that the hardware does not have.
    pub(super) fn strong_access(
        &mut self,
        memory: AtomicMemory,
        element: Scalar,
        call: Access,
        span: Span,
    ) -> Option<Expr> {
        let Access { word, index, request, order, scope } = call;
        if !request.takes(element) {
            let takes = Scalar::ALL.into_iter().filter(|&scalar| request.takes(scalar)).collect();
            self.error(mistake::Atomic::Element { word, element, takes }, span);
            return None;
        }
        if !request.orders().contains(&order.value) {
            let takes = request.orders();
            self.error(mistake::Atomic::Order { word, found: order.value, takes }, order.span);
            return None;
        }
        if let (AtomicMemory::Shared(_), MemoryScope::Device | MemoryScope::System) = (&memory, scope.value) {
            self.error(mistake::Atomic::SharedScope { word, found: scope.value }, scope.span);
            return None;
        }
        let mut result = None;
        let mut dest = |cx: &mut Self, name| {
            let (dest, value) = cx.builder.temporary(name, element, span);
            result = Some(value);
            dest
        };
        let access = match request {
            Request::Load => AtomicAccess::Load { dest: dest(self, "element") },
            Request::Store(value) => AtomicAccess::Store { value },
            Request::Update(op, value) => AtomicAccess::Update { dest: dest(self, "old"), op, value },
            Request::CompareExchange { current, new } => {
                AtomicAccess::CompareExchange { dest: dest(self, "old"), current, new }
            }
            Request::AddVector(value) => AtomicAccess::AddVector { value },
        };
        let atomic = Atomic { memory, index, access, order: order.value, scope: scope.value };
        if let (AtomicMemory::Global(global), true) = (&atomic.memory, atomic.writes()) {
            self.declared.param_mut(global.param).written = true;
        }
        let stmt = StmtKind::Atomic(Box::new(atomic));
        if let Some(value) = result {
            self.builder.emit(stmt, span);
            return Some(value);
        }
        Some(effect(&mut self.builder, stmt, span))
    }
}
