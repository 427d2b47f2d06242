//! Errors in place of the expressions that they reject, in the code for rustc.
//!
//! To rustc, the expression `compile_error!` has a type that is compatible with every type. So it
//! reports neither the same mistake again, nor its consequences, and still checks the rest of the
//! body, which keeps its uses of names and imports. A macro in place of a type would be `()`, so an
//! expression or a `let` is replaced together with its types. Of signatures and type aliases, only
//! the constants in types are replaced.
//!
//! An editor gets the body as it is, because it completes names in expressions that are not valid
//! yet.

use proc_macro2::{Delimiter, Ident, LineColumn, TokenStream};
use quote::ToTokens;
use syn::visit_mut::{self, VisitMut};
use syn::{
    AngleBracketedGenericArguments, Attribute, BinOp, Block, Expr, ImplItem, Item, ItemFn, ItemImpl,
    ItemType, Local, LocalInit, Pat, Stmt, Type,
};
use tma_front::diag::Diagnostic;
use tma_front::ir::Span;

use super::compile_error_in;

/// Replaces expressions in the body of a function by the errors that reject them. Returns the other
/// errors.
pub(super) fn in_function(function: &mut ItemFn, errors: Vec<Diagnostic>) -> Vec<Diagnostic> {
    if !has_positions(&function.sig.ident, &function.block) {
        return errors;
    }
    let mut replacer = Replacer::of(&errors);
    replacer.visit_block_mut(&mut function.block);
    ConstantsOfTypes(&mut replacer).visit_signature_mut(&mut function.sig);
    let is_placed = replacer.placed();
    if is_placed.contains(&true) {
        // Names that only a replaced expression uses.
        function.attrs.push(syn::parse_quote!(#[allow(unused)]));
    }
    without(errors, &is_placed)
}

/// Like [`in_function`], for an item that may be a function or a constant.
pub(super) fn in_item(item: &mut Item, errors: Vec<Diagnostic>) -> Vec<Diagnostic> {
    if let Item::Fn(function) = item {
        return in_function(function, errors);
    }
    if let Item::Impl(block) = item {
        return in_impl(block, errors);
    }
    if let Item::Type(alias) = item {
        return in_alias(alias, errors);
    }
    let Item::Const(constant) = item else { return errors };
    if !has_positions(&constant.ident, &constant.expr) {
        return errors;
    }
    let mut replacer = Replacer::of(&errors);
    replacer.visit_expr_mut(&mut constant.expr);
    let is_placed = replacer.placed();
    without(errors, &is_placed)
}

/// Like [`in_function`], for a type alias.
fn in_alias(alias: &mut ItemType, errors: Vec<Diagnostic>) -> Vec<Diagnostic> {
    if !has_positions(&alias.ident, &alias.ty) {
        return errors;
    }
    let mut replacer = Replacer::of(&errors);
    ConstantsOfTypes(&mut replacer).visit_type_mut(&mut alias.ty);
    let is_placed = replacer.placed();
    without(errors, &is_placed)
}

/// Like [`in_function`], for the functions of an `impl` block.
fn in_impl(block: &mut ItemImpl, mut errors: Vec<Diagnostic>) -> Vec<Diagnostic> {
    for item in &mut block.items {
        let ImplItem::Fn(function) = item else { continue };
        if !has_positions(&function.sig.ident, &function.block) {
            continue;
        }
        let mut replacer = Replacer::of(&errors);
        replacer.visit_block_mut(&mut function.block);
        ConstantsOfTypes(&mut replacer).visit_signature_mut(&mut function.sig);
        let is_placed = replacer.placed();
        errors = without(errors, &is_placed);
    }
    errors
}

/// Whether tokens have positions of their own. In what a macro has made, and in a module made from
/// a template, all have the same.
fn has_positions(name: &Ident, rest: &impl ToTokens) -> bool {
    !Range::of(name).contains(Range::of(rest))
}

fn without(errors: Vec<Diagnostic>, is_placed: &[bool]) -> Vec<Diagnostic> {
    let all = errors.into_iter().zip(is_placed);
    all.filter(|(_, is_placed)| !**is_placed).map(|(error, _)| error).collect()
}

/// A range of the source.
#[derive(Clone, Copy)]
struct Range {
    start: LineColumn,
    end: LineColumn,
}

impl Range {
    fn of(node: &impl ToTokens) -> Self {
        Span::of(node).into()
    }

    fn contains(self, other: Self) -> bool {
        self.start <= other.start && other.end <= self.end
    }
}

impl From<Span> for Range {
    fn from(span: Span) -> Self {
        Self { start: span.start(), end: span.end() }
    }
}

/// An error that may be placed.
struct Candidate<'e> {
    error: &'e Diagnostic,
    range: Range,
    is_placed: bool,
    /// Whether rustc may report the same mistake, and the error has a position in the source.
    is_wanted: bool,
}

struct Replacer<'e> {
    candidates: Vec<Candidate<'e>>,
}

impl<'e> Replacer<'e> {
    fn of(errors: &'e [Diagnostic]) -> Self {
        let candidate = |error: &'e Diagnostic| {
            let range = Range::from(error.span);
            let is_wanted = error.mistake.is_known_to_rustc() && range.start < range.end;
            Candidate { error, range, is_placed: false, is_wanted }
        };
        Self { candidates: errors.iter().map(candidate).collect() }
    }

    /// Returns for each error whether it replaces something.
    fn placed(&self) -> Vec<bool> {
        self.candidates.iter().map(|candidate| candidate.is_placed).collect()
    }

    /// Returns whether an error that is not yet placed is in this range.
    fn wants(&self, range: Range) -> bool {
        let is_in = |candidate: &Candidate<'_>| {
            candidate.is_wanted && !candidate.is_placed && range.contains(candidate.range)
        };
        self.candidates.iter().any(is_in)
    }

    /// Returns an error to replace everything in this range, if one is not yet placed. Errors that
    /// were placed in it no longer are.
    fn take(&mut self, range: Range) -> Option<TokenStream> {
        if !self.wants(range) {
            return None;
        }
        let mut within = self
            .candidates
            .iter_mut()
            .filter(|candidate| candidate.is_wanted && range.contains(candidate.range));
        let first = within.next()?;
        within.for_each(|other| other.is_placed = false);
        first.is_placed = true;
        // As an expression or a statement.
        Some(compile_error_in(Delimiter::Parenthesis, first.error))
    }
}

impl VisitMut for Replacer<'_> {
    fn visit_expr_mut(&mut self, expr: &mut Expr) {
        let range = Range::of(expr);
        if !self.wants(range) {
            return;
        }
        // Only a place can be on the left side of an assignment.
        if let Expr::Assign(assign) = expr {
            self.visit_expr_mut(&mut assign.right);
        } else if let Expr::Binary(binary) = expr
            && is_assignment(&binary.op)
        {
            self.visit_expr_mut(&mut binary.right);
        } else {
            visit_mut::visit_expr_mut(self, expr);
        }
        if let Some(error) = self.take(range) {
            *expr = Expr::Verbatim(error);
        }
    }

    fn visit_block_mut(&mut self, block: &mut Block) {
        visit_mut::visit_block_mut(self, block);
        let last = block.stmts.len().saturating_sub(1);
        for stmt in &mut block.stmts[..last] {
            if let Stmt::Expr(Expr::Verbatim(_), semicolon @ None) = stmt {
                *semicolon = Some(syn::parse_quote!(;));
            }
        }
    }

    fn visit_stmt_mut(&mut self, stmt: &mut Stmt) {
        match stmt {
            Stmt::Local(local) => self.visit_local_mut(local),
            Stmt::Expr(expr, _) => self.visit_expr_mut(expr),
            Stmt::Macro(invocation) => {
                let semicolon = invocation.semi_token;
                if let Some(error) = self.take(Range::of(invocation)) {
                    *stmt = Stmt::Expr(Expr::Verbatim(error), semicolon);
                }
            }
            // rustc accepts items in bodies.
            Stmt::Item(_) => {}
        }
    }

    fn visit_local_mut(&mut self, local: &mut Local) {
        let range = Range::of(local);
        visit_mut::visit_local_mut(self, local);
        if let Some(error) = self.take(range) {
            if let Pat::Type(typed) = &local.pat {
                local.pat = (*typed.pat).clone();
            }
            let expr = Box::new(Expr::Verbatim(error));
            local.init = Some(LocalInit { eq_token: syn::parse_quote!(=), expr, diverge: None });
        }
    }

    // A path is replaced with its generic arguments, for which rustc accepts no macro.
    fn visit_angle_bracketed_generic_arguments_mut(&mut self, _: &mut AngleBracketedGenericArguments) {}

    fn visit_type_mut(&mut self, _: &mut Type) {}

    fn visit_attribute_mut(&mut self, _: &mut Attribute) {}
}

/// Replaces constants in types.
struct ConstantsOfTypes<'r, 'e>(&'r mut Replacer<'e>);

impl VisitMut for ConstantsOfTypes<'_, '_> {
    fn visit_expr_mut(&mut self, expr: &mut Expr) {
        if let Some(error) = self.0.take(Range::of(expr)) {
            // It is printed in braces.
            *expr = Expr::Verbatim(error);
        }
    }

    fn visit_attribute_mut(&mut self, _: &mut Attribute) {}
}

/// Whether an operator assigns to its left operand.
fn is_assignment(op: &BinOp) -> bool {
    matches!(
        op,
        BinOp::AddAssign(_)
            | BinOp::SubAssign(_)
            | BinOp::MulAssign(_)
            | BinOp::DivAssign(_)
            | BinOp::RemAssign(_)
            | BinOp::BitXorAssign(_)
            | BinOp::BitAndAssign(_)
            | BinOp::BitOrAssign(_)
            | BinOp::ShlAssign(_)
            | BinOp::ShrAssign(_)
    )
}
