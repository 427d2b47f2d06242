//! Spans of syntax nodes, computed from the syntax tree.
//!
//! [`Span::of`] accepts any node, but converts it to tokens first. In a macro that is slow: an
//! expression nested in ten others would be converted ten times. Attributes are not part of these
//! spans.

use syn::ext::IdentExt;
use syn::spanned::Spanned;
use syn::{Block, Expr, ExprMethodCall, ExprPath, Local, Member, Path, PathArguments};

use crate::ir::Span;

pub(super) fn of_expr(expr: &Expr) -> Span {
    match expr {
        Expr::Lit(lit) => lit.lit.span().into(),
        Expr::Path(path) => of_expr_path(path),
        Expr::Paren(paren) => paren.paren_token.span.join().into(),
        Expr::Array(array) => array.bracket_token.span.join().into(),
        Expr::Repeat(repeat) => repeat.bracket_token.span.join().into(),
        Expr::Block(block) if block.label.is_none() => of_block(&block.block),
        Expr::Unary(unary) => Span::between(unary.op.span().into(), of_expr(&unary.expr)),
        Expr::Binary(binary) => Span::between(of_expr(&binary.left), of_expr(&binary.right)),
        Expr::Assign(assign) => Span::between(of_expr(&assign.left), of_expr(&assign.right)),
        Expr::Call(call) => Span::between(of_expr(&call.func), call.paren_token.span.join().into()),
        Expr::MethodCall(call) => of_method_call(call),
        Expr::Index(index) => Span::between(of_expr(&index.expr), index.bracket_token.span.join().into()),
        Expr::Field(field) => Span::between(of_expr(&field.base), of_member(&field.member)),
        Expr::If(if_) => {
            let last = match &if_.else_branch {
                Some((_, otherwise)) => of_expr(otherwise),
                None => of_block(&if_.then_branch),
            };
            Span::between(if_.if_token.span.into(), last)
        }
        Expr::ForLoop(for_) if for_.label.is_none() => {
            Span::between(for_.for_token.span.into(), of_block(&for_.body))
        }
        Expr::While(while_) if while_.label.is_none() => {
            Span::between(while_.while_token.span.into(), of_block(&while_.body))
        }
        Expr::Loop(loop_) if loop_.label.is_none() => {
            Span::between(loop_.loop_token.span.into(), of_block(&loop_.body))
        }
        // Rare, or not allowed in kernels.
        other => Span::of(other),
    }
}

pub(super) fn of_method_call(call: &ExprMethodCall) -> Span {
    Span::between(of_expr(&call.receiver), call.paren_token.span.join().into())
}

pub(super) fn of_expr_path(path: &ExprPath) -> Span {
    match path.qself {
        None => of_path(&path.path),
        Some(_) => Span::of(path),
    }
}

pub(super) fn of_block(block: &Block) -> Span {
    block.brace_token.span.join().into()
}

pub(super) fn of_local(local: &Local) -> Span {
    Span::between(local.let_token.span.into(), local.semi_token.span.into())
}

pub(super) fn of_path(path: &Path) -> Span {
    let (Some(first), Some(last)) = (path.segments.first(), path.segments.last()) else {
        return Span::of(path);
    };
    let first = path.leading_colon.map_or(first.ident.span(), |colon| colon.spans[0]);
    let last = match &last.arguments {
        PathArguments::None => last.ident.span().into(),
        PathArguments::AngleBracketed(arguments) => arguments.gt_token.span.into(),
        PathArguments::Parenthesized(arguments) => Span::of(arguments),
    };
    Span::between(first.into(), last)
}

/// Returns the name of a field, or its position.
pub(super) fn member_text(member: &Member) -> String {
    match member {
        Member::Named(name) => name.unraw().to_string(),
        Member::Unnamed(index) => index.index.to_string(),
    }
}

fn of_member(member: &Member) -> Span {
    match member {
        Member::Named(name) => name.span().into(),
        Member::Unnamed(index) => index.span.into(),
    }
}

#[cfg(test)]
mod tests {
    use quote::ToTokens;

    use super::*;

    /// Compares both ends with those that [`Span::of`] finds.
    #[track_caller]
    fn same(found: Span, node: &impl ToTokens) {
        let (wanted, shown) = (Span::of(node), node.to_token_stream());
        assert_eq!((found.start(), found.end()), (wanted.start(), wanted.end()), "{shown}");
    }

    #[test]
    fn spans_are_those_of_the_first_and_last_token() {
        let expressions = [
            "1.0_f32",
            "true",
            "-x",
            "!x",
            "a",
            "::a::b::<3>",
            "self::a",
            "<u32>::MAX",
            "(a)",
            "a + b * c",
            "a = b[1]",
            "f(x, y)",
            "a::f::<2>()",
            "a.f().g(x)",
            "a[i][j]",
            "a.x",
            "a.0.1",
            "a as u32",
            "[1, 2]",
            "[0; 4]",
            "{ a }",
            "if a { b } else if c { d } else { e }",
            "if a { b }",
            "for i in 0..4 { f(i); }",
            "'a: for i in 0..4 { f(i); }",
            "while a { b(); }",
            "loop { break; }",
            "'a: loop { break 'a; }",
            "match a { _ => b }",
            "return",
            "a += 1",
            "assert!(a)",
            "&mut a",
            "a..b",
        ];
        for text in expressions {
            let expr: Expr = syn::parse_str(text).unwrap();
            same(of_expr(&expr), &expr);
        }
        for text in ["Tile<f32, Shape2<8, 8>>", "a::B"] {
            let ty: syn::TypePath = syn::parse_str(text).unwrap();
            same(of_path(&ty.path), &ty.path);
        }
        let block: Block = syn::parse_str("{ let x: u32 = 1; let _ = { x }; }").unwrap();
        same(of_block(&block), &block);
        for statement in &block.stmts {
            let syn::Stmt::Local(local) = statement else { panic!("not a `let`") };
            same(of_local(local), local);
        }
    }
}
