//! Methods of shared arrays.

use crate::ir::{Expr, RemoteCopy, Scalar, StmtKind};
use crate::parse::cx::Cx;
use crate::parse::span;
use crate::parse::words::ArrayCall;

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
        Some(match call {
            ArrayCall::Len => self.known_u32(u64::from(len), span),
            ArrayCall::Get { i: index } => {
                let (dest, value) = self.temporary("element", element, span);
                self.emit(StmtKind::SharedGet { dest, array, index }, span);
                value
            }
            ArrayCall::Set { i: index, value } => {
                self.effect(StmtKind::SharedSet { array, index, value }, span)
            }
            ArrayCall::GetVec { i: index } => {
                let vector = self.read_vector(syntax, element)?;
                let (dest, value) = self.temporary("elements", vector, span);
                self.emit(StmtKind::SharedGet { dest, array, index }, span);
                value
            }
            ArrayCall::SetVec { i: index, value } => {
                let value = self.written_vector(value, element)?;
                self.effect(StmtKind::SharedSet { array, index, value }, span)
            }
            ArrayCall::CopyTo { to, at, count, barrier } => {
                let copy = RemoteCopy { op: None, from: array, to, at, count, barrier };
                return self.remote_copy(copy, element, span);
            }
            ArrayCall::ReduceTo { op, to, at, count, barrier } => {
                let copy = RemoteCopy { op: Some(op), from: array, to, at, count, barrier };
                return self.remote_copy(copy, element, span);
            }
        })
    }
}
