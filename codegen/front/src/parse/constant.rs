//! Constants: those of the module, and constant expressions in types, attributes and generics.

use proc_macro2::{TokenStream, TokenTree};
use quote::ToTokens;
use syn::{Block, GenericParam, Stmt};

use super::cx::{Cx, Evaluation};
use super::item::condition;
use super::names;
use crate::diag::mistake::{GenericOwner, Types, Value};
use crate::infer::run::{Failure, run};
use crate::ir::{Expr, Span, Type};

impl Cx<'_> {
    /// Evaluates a constant expression of type `want`, which may call the module's `const fn`.
    /// Reports an expression that is not constant or has no value.
    pub(super) fn constant(&mut self, expr: &syn::Expr, want: &Type) -> Option<Expr> {
        let checkpoint = self.checkpoint();
        let (effects, value) = self.in_constant(|cx| cx.block(|cx| cx.expr(expr)));
        let fits = !value.is_error() && self.expect(&value, want);
        let value = fits.then(|| run(&self.infer, &effects, &value));
        // A constant leaves nothing but its value.
        self.restore(checkpoint);
        match value? {
            Ok(value) => Some(value),
            Err(Failure { why, span }) => {
                if let Some(why) = why {
                    self.error(*why, span);
                }
                None
            }
        }
    }

    /// Like [`Cx::constant`], for a constant in a type, a length or a generic argument. Rust has
    /// generics there only as they are, and computes nothing from them.
    pub(super) fn constant_in_type(&mut self, expr: &syn::Expr, want: &Type) -> Option<Expr> {
        let Some(generic) = self.generic_in(expr) else { return self.constant(expr, want) };
        let owner = if self.frames.in_kernel() {
            GenericOwner::Kernel
        } else {
            GenericOwner::Other(self.frames.name().to_owned())
        };
        let mistake =
            Types::ComputedFromGeneric { expr: written(expr), generic, ty: want.to_string(), owner };
        self.error(mistake, Span::of(expr));
        None
    }

    /// Returns the generic of the function or alias from which an expression is computed.
    fn generic_in(&self, expr: &syn::Expr) -> Option<String> {
        if is_lone_path(expr) {
            return None;
        }
        let params = self.frames.generics().params.iter().filter_map(|param| match param {
            GenericParam::Const(param) => Some(names::text(&param.ident)),
            GenericParam::Type(param) => Some(names::text(&param.ident)),
            GenericParam::Lifetime(_) => None,
        });
        let params: Vec<_> = params.collect();
        if params.is_empty() {
            return None;
        }
        named_in(expr.to_token_stream(), &params)
    }

    /// Returns the value of the module's constant `name`, if there is one.
    pub(super) fn module_constant(&mut self, name: &str, span: Span) -> Option<Expr> {
        let constant = self.module.constant(name)?;
        match self.module.evaluation(constant) {
            Some(Evaluation::Finished(value)) => return Some(Expr { span, ..value.clone() }),
            Some(Evaluation::Begun) => {
                self.error(Value::Circular(name.to_owned()), span);
                return Some(Expr::error(span));
            }
            None => {}
        }
        if !self.may_enter(span) {
            return Some(Expr::error(span));
        }
        self.module.set_evaluation(constant, Evaluation::Begun);
        let item = constant.item;
        condition::refuse_on_constant(item, self.sink);
        let value = self.at_module_level(constant.scope, name, |cx| {
            let ty = cx.ty(&item.ty);
            cx.constant(&item.expr, &ty)
        });
        let value = value.unwrap_or(Expr::error(span));
        self.module.set_evaluation(constant, Evaluation::Finished(value.clone()));
        Some(Expr { span, ..value })
    }
}

/// Whether an expression is a path, perhaps in braces.
fn is_lone_path(expr: &syn::Expr) -> bool {
    match expr {
        syn::Expr::Path(_) => true,
        syn::Expr::Group(group) => is_lone_path(&group.expr),
        syn::Expr::Block(block) => inner(&block.block).is_some_and(is_lone_path),
        _ => false,
    }
}

/// Returns the expression that is all of a block.
fn inner(block: &Block) -> Option<&syn::Expr> {
    if let [Stmt::Expr(expr, None)] = &block.stmts[..] { Some(expr) } else { None }
}

/// Returns the first of these names that is in the tokens, except in a path of several names and
/// as a field or method.
fn named_in(tokens: TokenStream, wanted: &[String]) -> Option<String> {
    let mut follows_punctuation = false;
    for token in tokens {
        let found = match &token {
            TokenTree::Group(group) => named_in(group.stream(), wanted),
            TokenTree::Ident(name) if !follows_punctuation => {
                Some(names::text(name)).filter(|name| wanted.contains(name))
            }
            TokenTree::Ident(_) | TokenTree::Punct(_) | TokenTree::Literal(_) => None,
        };
        if found.is_some() {
            return found;
        }
        follows_punctuation =
            matches!(&token, TokenTree::Punct(punct) if matches!(punct.as_char(), '.' | ':'));
    }
    None
}

/// Formats an expression, without the braces around it, as the source has it.
fn written(expr: &syn::Expr) -> String {
    let within = if let syn::Expr::Block(block) = expr { inner(&block.block) } else { None };
    let text = within.unwrap_or(expr).to_token_stream().to_string();
    let spaces = [(" :: < ", "::<"), (" > (", ">("), (" :: ", "::"), (" ()", "()"), (" (", "("), (" .", ".")];
    spaces.iter().fold(text, |text, (spaced, plain)| text.replace(spaced, plain))
}
