//! The order of evaluation.
//!
//! Effects become statements at once, but values remain expression trees that are read where they
//! are used. If a later operand changes variables of an earlier one, the earlier operand must
//! therefore be read before: `x + { x = 2; 3 }`.

use super::cx::{Builder, Cx};
use super::method::tile_at::known;
use crate::ir::{Block, Expr, ExprKind, LocalId, StmtKind, visit};
use crate::quick::QuickSet;

impl Cx<'_> {
    /// Evaluates expressions one after another and returns their values.
    pub(super) fn in_order<'s>(&mut self, exprs: impl IntoIterator<Item = &'s syn::Expr>) -> Vec<Expr> {
        let mut values = vec![];
        for expr in exprs {
            let (effects, value) = self.block(|cx| cx.expr(expr));
            spill_if_changed(&mut self.builder, &mut values, &effects);
            self.builder.append(effects);
            values.push(value);
        }
        values
    }

    /// Like [`Cx::in_order`], for two expressions.
    pub(super) fn pair(&mut self, first: &syn::Expr, second: &syn::Expr) -> (Expr, Expr) {
        let mut first = self.expr(first);
        let (effects, second) = self.block(|cx| cx.expr(second));
        spill_if_changed(&mut self.builder, std::slice::from_mut(&mut first), &effects);
        self.builder.append(effects);
        (first, second)
    }
}

/// Returns `value` if evaluating it repeatedly costs nothing and nothing changes it, or else a
/// local that holds it. Of a value with parts, this applies to each.
pub(super) fn held(cx: &mut Cx<'_>, value: Expr) -> Expr {
    if let ExprKind::Compound(parts) = value.kind {
        let parts = parts.into_iter().map(|part| held(cx, part)).collect();
        return Expr { kind: ExprKind::Compound(parts), ..value };
    }
    let ty = cx.infer.resolve(&value.ty);
    if ty.as_scalar().is_some() {
        let folded = known(&cx.infer, &value);
        if let ExprKind::Const(_) = folded.kind {
            return folded;
        }
    }
    let is_fixed = matches!(
        value.kind,
        ExprKind::Const(_) | ExprKind::Param(_) | ExprKind::Special(_) | ExprKind::Shared(_)
    );
    if is_fixed || value.is_error() || !ty.is_storable() {
        return value;
    }
    let (id, held) = cx.builder.temporary("held", value.ty.clone(), value.span);
    cx.builder.assign(id, value);
    held
}

/// Copies to locals those of `values` that `effects`, which run next, would change.
pub(super) fn spill_if_changed(builder: &mut Builder, values: &mut [Expr], effects: &Block) {
    if effects.stmts.is_empty() {
        return;
    }
    spill_written(builder, values, &written(effects));
}

/// Copies to locals those of `values` that read one of the locals `written`.
pub(super) fn spill_written(builder: &mut Builder, values: &mut [Expr], written: &QuickSet<LocalId>) {
    for value in values.iter_mut().filter(|value| reads(value, written)) {
        if let ExprKind::Compound(parts) = &mut value.kind {
            spill_written(builder, parts, written);
            continue;
        }
        let span = value.span;
        let (id, held) = builder.temporary("held", value.ty.clone(), span);
        builder.assign(id, std::mem::replace(value, held));
    }
}

/// Like [`Cx::spill_if_changed`], for a place expression: its indices are read now, its
/// variable later.
pub(super) fn spill_operands_of(builder: &mut Builder, place: &mut Expr, effects: &Block) {
    match &mut place.kind {
        ExprKind::Index(base, index) => {
            spill_operands_of(builder, base, effects);
            spill_if_changed(builder, std::slice::from_mut(index), effects);
        }
        ExprKind::Local(_) => {}
        _ => spill_if_changed(builder, std::slice::from_mut(place), effects),
    }
}

fn reads(value: &Expr, written: &QuickSet<LocalId>) -> bool {
    let mut found = false;
    visit::within(value, &mut |node| {
        found |= matches!(node.kind, ExprKind::Local(id) if written.contains(&id));
    });
    found
}

/// Returns the variables that a block changes. Its other statements write only to new temporaries,
/// which nothing before them reads.
fn written(block: &Block) -> QuickSet<LocalId> {
    let mut written = QuickSet::default();
    visit::for_each_stmt(block, &mut |stmt| {
        if let StmtKind::Assign { local, .. } = stmt.kind {
            written.insert(local);
        }
    });
    written
}
