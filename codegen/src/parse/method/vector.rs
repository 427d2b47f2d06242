//! Vectors: consecutive elements of a tile or a slice that are read or written at once.

use crate::diag::Code;
use crate::ir::{Expr, Scalar, Span, Type};
use crate::limits::VECTOR_BYTES;
use crate::parse::cx::Cx;
use crate::parse::types::turbofish_arguments;

impl Cx<'_> {
    /// The type of what `get_vec::<N>(..)` gives.
    pub(super) fn read_vector(&mut self, call: &syn::ExprMethodCall, element: Scalar) -> Option<Type> {
        let name = &call.method;
        let [argument] = turbofish_arguments(call)[..] else {
            let message = format!("`{name}` does not say how many elements to read");
            self.error(Code::ArgumentCount, Span::of(call), message)
                .help(format!("write `{name}::<{}>(..)`", lengths(element).last().unwrap_or(&2)));
            return None;
        };
        let len = self.constant_argument(argument, &Scalar::Usize.into())?;
        let found = u32::try_from(len.as_int()?).unwrap_or(u32::MAX);
        self.is_vector(element, found, len.span).then(|| Type::Array(Box::new(element.into()), found))
    }

    /// `value`, if it is an array that is written at once.
    pub(super) fn written_vector(&mut self, value: Expr, element: Scalar) -> Option<Expr> {
        let ty = self.resolve(&value.ty);
        if let Type::Array(_, len) = ty {
            let fits = self.expect(&value, &Type::Array(Box::new(element.into()), len));
            return (fits && self.is_vector(element, len, value.span)).then_some(value);
        }
        if ty != Type::Error {
            let message = format!("a vector is an array of `{element}`, not {}", self.infer.name(&ty));
            self.error(Code::TypeMismatch, value.span, message)
                .help("write `set_vec(i, [a, b])`, or `set(i, a)` for one element");
        }
        None
    }

    /// Reports what no instruction moves at once. Source: PTX ISA, "Vectors" and "ld".
    fn is_vector(&mut self, element: Scalar, len: u32, span: Span) -> bool {
        let lengths = lengths(element);
        if lengths.contains(&len) {
            return true;
        }
        let known: Vec<_> = lengths.iter().map(ToString::to_string).collect();
        let message = format!("there is no vector of {len} elements of `{element}`");
        self.error(Code::VectorAccess, span, message).help(format!(
            "a vector has at most {VECTOR_BYTES} bytes: {} elements of `{element}`",
            known.join(" or ")
        ));
        false
    }
}

/// How many elements a vector may have.
fn lengths(element: Scalar) -> Vec<u32> {
    let most = VECTOR_BYTES / element.bytes();
    (1..=most.ilog2()).map(|power| 1 << power).collect()
}
