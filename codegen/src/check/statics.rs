//! Which values are known once loops are unrolled and functions inlined.

use std::collections::{HashMap, HashSet};

use crate::ir::{Block, Expr, ExprKind, LocalId, StmtKind, visit};

/// The locals whose values are known when the kernel is compiled.
pub(super) struct Statics {
    known: HashSet<LocalId>,
}

impl Statics {
    /// Finds them: variables of unrolled loops, and what is computed of these and of constants.
    pub(super) fn new(body: &Block) -> Self {
        let mut assigned: HashMap<LocalId, Vec<&Expr>> = HashMap::new();
        let mut known = HashSet::new();
        visit::for_each_stmt(body, &mut |stmt| match &stmt.kind {
            StmtKind::Assign { local, index: _, value } => assigned.entry(*local).or_default().push(value),
            StmtKind::For(inner) if inner.unroll => {
                known.insert(inner.variable);
            }
            _ => {}
        });
        let mut statics = Self { known };
        // Each turn finds what depends on what the last one found.
        loop {
            let before = statics.known.len();
            for (local, values) in &assigned {
                if values.iter().all(|value| statics.knows(value)) {
                    statics.known.insert(*local);
                }
            }
            if statics.known.len() == before {
                return statics;
            }
        }
    }

    /// Whether the value of `expr` is known when the kernel is compiled.
    pub(super) fn knows(&self, expr: &Expr) -> bool {
        let mut is_known = true;
        visit::within(expr, &mut |node| {
            is_known &= match &node.kind {
                ExprKind::Local(local) => self.known.contains(local),
                ExprKind::Const(_)
                | ExprKind::Unary(..)
                | ExprKind::Binary(..)
                | ExprKind::Cast(_)
                | ExprKind::Bits(_)
                | ExprKind::Math(..)
                | ExprKind::Integer(..)
                | ExprKind::Array(_)
                | ExprKind::Repeat(_)
                | ExprKind::Index(..) => true,
                ExprKind::Shared(_)
                | ExprKind::Param(_)
                | ExprKind::GlobalLen(_)
                | ExprKind::Special(_)
                | ExprKind::ZeroAccumulator
                | ExprKind::Stage(..)
                | ExprKind::CachePolicy(..)
                | ExprKind::Hinted(..)
                | ExprKind::Remote(..)
                | ExprKind::ClusterAxis(_)
                | ExprKind::Compound(_)
                | ExprKind::MapAt(..)
                | ExprKind::Unit
                | ExprKind::Error => false,
            };
        });
        is_known
    }
}
