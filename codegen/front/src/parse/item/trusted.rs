//! `#[trusted = "reason"]` on a statement: exempts it from the protocol check.
//!
//! rustc does not know this attribute. The macro removes it from the statements that it emits. One
//! at any other position is left for rustc to reject.

use syn::visit_mut::{self, VisitMut};
use syn::{Attribute, Block, Expr, ItemFn, Lit, Meta, Stmt};

use super::is_named;

const NAME: &str = "trusted";

/// Returns the attribute of a statement, if it has one.
pub(in crate::parse) fn attribute(stmt: &Stmt) -> Option<&Attribute> {
    attributes(stmt)?.iter().find(|attr| is_named(attr, NAME))
}

/// Returns the reason in an attribute, unless it is missing or empty.
pub(in crate::parse) fn reason(attr: &Attribute) -> Option<String> {
    let Meta::NameValue(pair) = &attr.meta else { return None };
    let Expr::Lit(value) = &pair.value else { return None };
    let Lit::Str(text) = &value.lit else { return None };
    Some(text.value()).filter(|reason| !reason.trim().is_empty())
}

/// Removes the attributes from all statements of a function.
pub fn strip(function: &mut ItemFn) {
    strip_block(&mut function.block);
}

/// Removes the attributes from all statements of a block.
pub fn strip_block(block: &mut Block) {
    struct Strip;
    impl VisitMut for Strip {
        fn visit_stmt_mut(&mut self, stmt: &mut Stmt) {
            if let Some(attributes) = attributes_mut(stmt) {
                attributes.retain(|attr| !is_named(attr, NAME));
            }
            visit_mut::visit_stmt_mut(self, stmt);
        }
    }
    Strip.visit_block_mut(block);
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

/// Expressions that can be statements, with the field in which syn keeps the attributes. Those of
/// an assignment are on its left side.
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
