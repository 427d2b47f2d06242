//! `#[trusted = "reason"]` on a statement: the protocol of barriers is not judged by what it does.
//!
//! rustc knows no such attribute: the macro takes it off the statements that rustc gets to see. One
//! that is elsewhere stays, for rustc to refuse.

use syn::visit_mut::{self, VisitMut};
use syn::{Attribute, Expr, ItemFn, Lit, Meta, Stmt};

use super::is_named;

const NAME: &str = "trusted";

/// The attribute of a statement, if it has it.
pub(in crate::parse) fn attribute(stmt: &Stmt) -> Option<&Attribute> {
    attributes(stmt)?.iter().find(|attr| is_named(attr, NAME))
}

/// The reason that an attribute gives; none if it gives none.
pub(in crate::parse) fn reason(attr: &Attribute) -> Option<String> {
    let Meta::NameValue(pair) = &attr.meta else { return None };
    let Expr::Lit(value) = &pair.value else { return None };
    let Lit::Str(text) = &value.lit else { return None };
    Some(text.value()).filter(|reason| !reason.trim().is_empty())
}

/// Takes the attributes off all statements of a function.
pub(crate) fn strip(function: &mut ItemFn) {
    struct Strip;
    impl VisitMut for Strip {
        fn visit_stmt_mut(&mut self, stmt: &mut Stmt) {
            if let Some(attributes) = attributes_mut(stmt) {
                attributes.retain(|attr| !is_named(attr, NAME));
            }
            visit_mut::visit_stmt_mut(self, stmt);
        }
    }
    Strip.visit_item_fn_mut(function);
}

macro_rules! of_statement {
    ($stmt:expr, $of_expr:ident, $($reference:tt)+) => {
        match $stmt {
            Stmt::Local(local) => Some($($reference)+ local.attrs),
            Stmt::Macro(mac) => Some($($reference)+ mac.attrs),
            Stmt::Expr(expr, _) => $of_expr(expr),
            Stmt::Item(_) => None,
        }
    };
}

/// What can be a statement, of which syn keeps the attributes: of an assignment at its left side.
macro_rules! of_expression {
    ($expr:expr, $of_expr:ident, $($reference:tt)+) => {
        match $expr {
            Expr::Assign(assign) => $of_expr($($reference)+ assign.left),
            Expr::Binary(binary) => $of_expr($($reference)+ binary.left),
            Expr::Block(block) => Some($($reference)+ block.attrs),
            Expr::Call(call) => Some($($reference)+ call.attrs),
            Expr::ForLoop(inner) => Some($($reference)+ inner.attrs),
            Expr::If(branch) => Some($($reference)+ branch.attrs),
            Expr::Index(index) => Some($($reference)+ index.attrs),
            Expr::Loop(inner) => Some($($reference)+ inner.attrs),
            Expr::Macro(mac) => Some($($reference)+ mac.attrs),
            Expr::Match(choice) => Some($($reference)+ choice.attrs),
            Expr::MethodCall(call) => Some($($reference)+ call.attrs),
            Expr::Path(path) => Some($($reference)+ path.attrs),
            Expr::While(inner) => Some($($reference)+ inner.attrs),
            _ => None,
        }
    };
}

fn attributes(stmt: &Stmt) -> Option<&Vec<Attribute>> {
    of_statement!(stmt, of_expr, &)
}

fn of_expr(expr: &Expr) -> Option<&Vec<Attribute>> {
    of_expression!(expr, of_expr, &)
}

fn attributes_mut(stmt: &mut Stmt) -> Option<&mut Vec<Attribute>> {
    of_statement!(stmt, of_expr_mut, &mut)
}

fn of_expr_mut(expr: &mut Expr) -> Option<&mut Vec<Attribute>> {
    of_expression!(expr, of_expr_mut, &mut)
}
