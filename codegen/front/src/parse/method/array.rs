//! Methods of shared arrays.

use super::atomic::{Access, Request};
use super::known_u32;
use super::vector::written_vector;
use crate::ir::{AtomicMemory, AtomicOp, Expr, RemoteCopy, Scalar, StmtKind};
use crate::parse::call::effect;
use crate::parse::cx::Cx;
use crate::parse::span;
use crate::words::{ArrayCall, ArrayWord, Word as _};

impl Cx<'_> {
    pub(super) fn array_method(
        &mut self,
        array: Expr,
        element: Scalar,
        len: u32,
        call: ArrayCall,
        syntax: &syn::ExprMethodCall,
    ) -> Option<Expr> {
        let span = span::of_method_call(syntax);
        let access = match call {
            ArrayCall::Len => return Some(known_u32(&mut self.infer, u64::from(len), span)),
            ArrayCall::Get { i: index } => {
                let (dest, value) = self.builder.temporary("element", element, span);
                self.builder.emit(StmtKind::SharedGet { dest, array, index }, span);
                return Some(value);
            }
            ArrayCall::Set { i: index, value } => {
                return Some(effect(&mut self.builder, StmtKind::SharedSet { array, index, value }, span));
            }
            ArrayCall::GetVec { i: index } => {
                let vector = self.read_vector(syntax, element)?;
                let (dest, value) = self.builder.temporary("elements", vector, span);
                self.builder.emit(StmtKind::SharedGet { dest, array, index }, span);
                return Some(value);
            }
            ArrayCall::SetVec { i: index, value } => {
                let value = written_vector(&mut self.typing(), value, element)?;
                return Some(effect(&mut self.builder, StmtKind::SharedSet { array, index, value }, span));
            }
            ArrayCall::CopyTo { to, at, count, barrier } => {
                let copy = RemoteCopy { op: None, from: array, to, at, count, barrier };
                return self.remote_copy(copy, element, span);
            }
            ArrayCall::ReduceTo { op, to, at, count, barrier } => {
                let copy = RemoteCopy { op: Some(op), from: array, to, at, count, barrier };
                return self.remote_copy(copy, element, span);
            }
            ArrayCall::Load { i: index, order, scope } => {
                Access { word: ArrayWord::Load.name(), index, request: Request::Load, order, scope }
            }
            ArrayCall::Store { i: index, value, order, scope } => {
                Access { word: ArrayWord::Store.name(), index, request: Request::Store(value), order, scope }
            }
            ArrayCall::Fetch { op, i: index, value, order, scope } => {
                let request = Request::Update(op.into(), value);
                Access { word: ArrayWord::Fetch(op).name(), index, request, order, scope }
            }
            ArrayCall::Swap { i: index, value, order, scope } => {
                let request = Request::Update(AtomicOp::Exchange, value);
                Access { word: ArrayWord::Swap.name(), index, request, order, scope }
            }
            ArrayCall::CompareExchange { i: index, current, new, order, scope } => {
                let request = Request::CompareExchange { current, new };
                Access { word: ArrayWord::CompareExchange.name(), index, request, order, scope }
            }
        };
        self.strong_access(AtomicMemory::Shared(array), element, access, span)
    }
}
