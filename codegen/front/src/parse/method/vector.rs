//! Vectors: consecutive elements of a tile or a slice that are read or written with one
//! instruction.

use crate::diag::Sink;
use crate::diag::mistake::{Argument, Mismatch, Tile};
use crate::infer::Typing;
use crate::ir::{Expr, Scalar, Span, Type};
use crate::limits::VECTOR_BYTES;
use crate::parse::cx::Cx;
use crate::parse::types::turbofish_arguments;

impl Cx<'_> {
    /// Returns the result type of `get_vec::<N>(..)`.
    pub(super) fn read_vector(&mut self, call: &syn::ExprMethodCall, element: Scalar) -> Option<Type> {
        let [argument] = turbofish_arguments(call)[..] else {
            let most = lengths(element).last().copied().unwrap_or(2);
            self.error(Argument::NoLanes { word: call.method.to_string().into(), most }, Span::of(call));
            return None;
        };
        let len = self.constant_argument(argument, &Scalar::Usize.into())?;
        let found = u32::try_from(len.as_int()?).unwrap_or(u32::MAX);
        is_vector(self.sink, element, found, len.span).then(|| Type::Array(Box::new(element.into()), found))
    }
}

/// Returns `value` if it is an array that can be written with one instruction.
pub(super) fn written_vector(typing: &mut Typing<'_>, value: Expr, element: Scalar) -> Option<Expr> {
    let ty = typing.infer.resolve(&value.ty);
    if let Type::Array(_, len) = ty {
        let fits = typing.expect(&value, &Type::Array(Box::new(element.into()), len));
        return (fits && is_vector(typing.sink, element, len, value.span)).then_some(value);
    }
    if ty != Type::Error {
        typing.error(Mismatch::NoVector { found: typing.infer.partial(&ty), element }, value.span);
    }
    None
}

/// Reports a vector that no instruction accesses at once. Source: PTX ISA, "Vectors" and "ld".
fn is_vector(sink: &mut Sink, element: Scalar, len: u32, span: Span) -> bool {
    let lengths = lengths(element);
    if lengths.contains(&len) {
        return true;
    }
    sink.error(Tile::VectorLength { element, len, lengths }, span);
    false
}

/// Returns the supported numbers of elements.
fn lengths(element: Scalar) -> Vec<u32> {
    let most = VECTOR_BYTES / element.bytes();
    (1..=most.ilog2()).map(|power| 1 << power).collect()
}
