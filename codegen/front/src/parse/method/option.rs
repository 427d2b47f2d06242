//! Optional parameters: `Option<Global<T>>`, its methods, and the patterns that take it apart.
//!
//! Its parts are the slice and a `bool`, which is a parameter of its own. So a condition on an
//! option is one on a `bool` parameter, which later stages know.

use syn::{Pat, PatTupleStruct};

use crate::diag::mistake::Syntax;
use crate::infer::Infer;
use crate::ir::{Block, Compound, Expr, ExprKind, Scalar, Span, StmtKind, Type, UnaryOp};
use crate::parse::cx::Cx;
use crate::parse::names;
use crate::parse::stmt::unit;

/// A pattern of an option.
pub(in crate::parse) enum OptionPattern<'p> {
    /// `Some(name)`, or `Some(_)`.
    Some(Option<&'p syn::Ident>),
    None,
    /// `_`.
    Any,
}

impl<'p> OptionPattern<'p> {
    /// Reads a pattern. Returns `None` if options have no such pattern.
    fn of(pat: &'p Pat) -> Option<Self> {
        if let Pat::Paren(paren) = pat {
            return Self::of(&paren.pat);
        }
        if let Pat::TupleStruct(some) = pat {
            return inner(some).map(Self::Some);
        }
        let is_none = matches!(pat, Pat::Ident(name) if name.ident == "None" && name.subpat.is_none())
            || matches!(pat, Pat::Path(path) if is_variant(&path.path, "None"));
        match is_none {
            true => Some(Self::None),
            false => matches!(pat, Pat::Wild(_)).then_some(Self::Any),
        }
    }
}

/// Returns the name in `Some(name)`, or `None` in `Some(_)`.
fn inner(some: &PatTupleStruct) -> Option<Option<&syn::Ident>> {
    let mut parts = some.elems.iter();
    let (Some(part), None, true) = (parts.next(), parts.next(), is_variant(&some.path, "Some")) else {
        return None;
    };
    if let Pat::Ident(name) = part {
        let is_plain = name.subpat.is_none() && name.by_ref.is_none() && name.mutability.is_none();
        return is_plain.then_some(Some(&name.ident));
    }
    matches!(part, Pat::Wild(_)).then_some(None)
}

fn is_variant(path: &syn::Path, name: &str) -> bool {
    names::lone_name(path).is_some_and(|found| found == name)
}

/// Returns the slice and the flag of an option.
fn parts_of(infer: &Infer, value: &Expr) -> Option<(Expr, Expr)> {
    match (&value.kind, infer.resolve(&value.ty)) {
        (ExprKind::Compound(parts), Type::Compound(Compound::Option(_))) => match &parts[..] {
            [slice, flag] => Some((slice.clone(), flag.clone())),
            _ => None,
        },
        _ => None,
    }
}

/// Returns the value of `option.is_some()` or `option.is_none()`.
pub(super) fn option_method(infer: &Infer, receiver: &Expr, name: &str, span: Span) -> Option<Expr> {
    let (_, flag) = parts_of(infer, receiver)?;
    match name {
        "is_some" => Some(Expr { span, ..flag }),
        "is_none" => Some(not(flag, span)),
        _ => None,
    }
}

fn not(flag: Expr, span: Span) -> Expr {
    Expr { ty: Scalar::Bool.into(), kind: ExprKind::Unary(UnaryOp::Not, Box::new(flag)), span }
}

impl Cx<'_> {
    /// Returns the parts of an option that a pattern is matched with. Reports any other value.
    fn option(&mut self, value: &Expr) -> Option<(Expr, Expr)> {
        let found = parts_of(&self.infer, value);
        if found.is_none() && !value.is_error() {
            let ty = self.infer.partial(&value.ty);
            self.error(Syntax::NoOption(ty), value.span);
        }
        found
    }

    /// Binds the name in `Some(name)` in the current scope.
    fn bind_some(&mut self, name: Option<&syn::Ident>, slice: Expr) {
        if let Some(name) = name {
            self.bind_value(name, false, slice, None);
        }
    }

    /// Parses `if let Some(name) = option { .. } else { .. }`.
    pub(in crate::parse) fn if_let(&mut self, let_: &syn::ExprLet, if_: &syn::ExprIf, span: Span) -> Expr {
        let Some(pattern) = OptionPattern::of(&let_.pat) else {
            self.error(Syntax::OptionPattern, Span::of(&let_.pat));
            return Expr::error(span);
        };
        let value = self.expr(&let_.expr);
        let Some((slice, flag)) = self.option(&value) else { return Expr::error(span) };
        let (name, condition) = match pattern {
            OptionPattern::Some(name) => (name, flag),
            OptionPattern::None => (None, not(flag, span)),
            OptionPattern::Any => {
                self.error(Syntax::OptionPattern, Span::of(&let_.pat));
                return Expr::error(span);
            }
        };
        let then = self.branch(|cx| {
            cx.scope(|cx| {
                cx.bind_some(name, slice);
                cx.block_value(&if_.then_branch)
            })
        });
        let otherwise = match &if_.else_branch {
            Some((_, otherwise)) => self.branch(|cx| cx.expr(otherwise)),
            None => (Block::default(), unit(span)),
        };
        self.either(condition, [then, otherwise], span)
    }

    /// Parses `match option { Some(name) => .., None => .. }`.
    pub(in crate::parse) fn match_option(&mut self, value: &Expr, arms: &[syn::Arm], span: Span) -> Expr {
        let Some((slice, flag)) = self.option(value) else { return Expr::error(span) };
        let (mut some, mut none) = (None, None);
        for arm in arms {
            let Some(pattern) = OptionPattern::of(&arm.pat) else {
                self.error(Syntax::OptionPattern, Span::of(&arm.pat));
                return Expr::error(span);
            };
            let name = if let OptionPattern::Some(name) = pattern { name } else { None };
            let parsed = self.branch(|cx| {
                cx.scope(|cx| {
                    cx.bind_some(name, slice.clone());
                    cx.expr(&arm.body)
                })
            });
            // Arms after one that takes the same values are unreachable. rustc reports that.
            match pattern {
                OptionPattern::Some(_) => _ = some.get_or_insert(parsed),
                OptionPattern::None => _ = none.get_or_insert(parsed),
                OptionPattern::Any => {
                    some.get_or_insert_with(|| parsed.clone());
                    none.get_or_insert(parsed);
                }
            }
        }
        // rustc reports a variant without an arm.
        let (Some(some), Some(none)) = (some, none) else {
            self.error(Syntax::OptionPattern, span);
            return Expr::error(span);
        };
        self.either(flag, [some, none], span)
    }

    /// Parses `let Some(name) = option else { .. };`, and binds the name in the current scope.
    pub(in crate::parse) fn let_else(
        &mut self,
        local: &syn::Local,
        init: &syn::LocalInit,
        diverge: &syn::Expr,
    ) {
        let span = Span::of(&local.pat);
        let Some(OptionPattern::Some(name)) = OptionPattern::of(&local.pat) else {
            self.error(Syntax::LetElse, span);
            return;
        };
        let value = self.expr(&init.expr);
        let Some((slice, flag)) = self.option(&value) else {
            self.bind_some(name, Expr::error(span));
            return;
        };
        let (otherwise, _) = self.branch(|cx| cx.expr(diverge));
        self.builder.emit(StmtKind::If { condition: flag, then: Block::default(), otherwise }, span);
        self.bind_some(name, slice);
    }
}
