//! Structs and tuples, and arrays of these. Such a value is a tree of parts, whose leaves are
//! values of other types; a variable is a tree of locals.

mod construct;
mod equality;
mod methods;
mod pattern;
pub(super) mod place;
pub(super) mod result;
mod types;

use crate::ir::{Compound, Expr, ExprKind, Type};

/// Whether it is the type of a struct or a tuple, or of an array of these.
pub(super) fn is_aggregate(ty: &Type) -> bool {
    matches!(ty, Type::Compound(Compound::Struct(_) | Compound::Tuple(_) | Compound::Array(..)))
}

/// Returns the values in a tree of parts that have no parts themselves, in order.
pub(super) fn leaves(value: &Expr) -> Vec<&Expr> {
    match &value.kind {
        ExprKind::Compound(parts) => parts.iter().flat_map(leaves).collect(),
        _ => vec![value],
    }
}

/// Replaces the leaves of `tree`, in order.
pub(super) fn with_leaves(tree: &Expr, leaves: &mut impl Iterator<Item = Expr>) -> Expr {
    match &tree.kind {
        ExprKind::Compound(parts) => {
            let parts = parts.iter().map(|part| with_leaves(part, leaves)).collect();
            Expr { kind: ExprKind::Compound(parts), ty: tree.ty.clone(), span: tree.span }
        }
        _ => leaves.next().unwrap_or(tree.clone()),
    }
}

/// A leaf of a tree of parts.
struct Leaf<'e> {
    value: &'e Expr,
    /// The value with parts that the leaf belongs to, unless that is a struct or a tuple.
    of: Option<&'e Expr>,
}

impl Leaf<'_> {
    /// Whether a copy of the leaf in another local serves the same purpose.
    fn is_copied(&self) -> bool {
        let is_object = matches!(self.value.kind, ExprKind::Shared(_) | ExprKind::Param(_));
        match self.of.map(|of| &of.ty) {
            None => true,
            Some(Type::Compound(of)) => match of {
                Compound::Phase
                | Compound::Pipeline(_)
                | Compound::Producer(_)
                | Compound::Consumer(_)
                | Compound::EmptySlot(_)
                | Compound::LoadingSlot(_)
                | Compound::FullSlot(_)
                | Compound::Matrix(_)
                | Compound::Option(_) => !is_object,
                // These refer to the registers of an accumulator or an operand.
                Compound::Operand(_)
                | Compound::SparseFragment(_)
                | Compound::Columns(_)
                | Compound::Flight(..) => false,
                Compound::Struct(_) | Compound::Tuple(_) | Compound::Array(..) => true,
            },
            Some(_) => false,
        }
    }

    /// Returns the type that messages name.
    fn ty(&self) -> &Type {
        self.of.map_or(&self.value.ty, |of| &of.ty)
    }
}

/// Returns the leaves of a tree of parts, with the values that they belong to.
fn leaves_with_holders(value: &Expr) -> Vec<Leaf<'_>> {
    fn collect<'e>(value: &'e Expr, of: Option<&'e Expr>, found: &mut Vec<Leaf<'e>>) {
        let ExprKind::Compound(parts) = &value.kind else {
            found.push(Leaf { value, of });
            return;
        };
        let of = of.or((!is_aggregate(&value.ty)).then_some(value));
        parts.iter().for_each(|part| collect(part, of, found));
    }
    let mut found = vec![];
    collect(value, None, &mut found);
    found
}
