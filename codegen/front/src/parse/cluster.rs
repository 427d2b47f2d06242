//! Clusters: their extents, and shared objects of other blocks.

use super::cx::{Cx, Instance};
use super::shared::pipeline::{binary, number};
use super::signature::known_dim3;
use crate::diag::mistake::{self, Mismatch, Word};
use crate::infer::Typing;
use crate::ir::{Axis, BinaryOp, Cluster, Expr, ExprKind, Scalar, Span, Special, Type};

impl Cx<'_> {
    /// Returns whether the kernel has clusters. Reports `word` if it has none, except where a
    /// constant condition removes the word.
    pub(super) fn in_a_cluster(&mut self, word: Word, span: Span) -> bool {
        let has_clusters = self.instance.cluster != Cluster::None;
        if !has_clusters && !self.nesting.is_left_out() {
            self.error(mistake::Cluster::None { word }, span);
        }
        has_clusters
    }
}

/// Returns the blocks per cluster, as the result of `cluster_dim()`: constants if the attribute
/// has them.
pub(super) fn cluster_dim(instance: &Instance, span: Span) -> Expr {
    match instance.cluster {
        Cluster::Fixed(extents) => known_dim3(extents, span),
        Cluster::None | Cluster::AtLaunch => {
            let kind = ExprKind::Special(Special::ClusterDim(Axis::X));
            Expr { kind, ty: Type::Dim3, span }
        }
    }
}

/// Returns the number of blocks in a cluster, a constant if the attribute has it.
pub(super) fn cluster_blocks(instance: &Instance, span: Span) -> Expr {
    match instance.cluster {
        Cluster::None => number(1, span),
        Cluster::Fixed(extents) => number(extents.into_iter().fold(1, u32::saturating_mul), span),
        Cluster::AtLaunch => {
            let extent = |axis| Expr {
                kind: ExprKind::Special(Special::ClusterDim(axis)),
                ty: Scalar::U32.into(),
                span,
            };
            let across = binary(BinaryOp::Mul, extent(Axis::X), extent(Axis::Y));
            binary(BinaryOp::Mul, across, extent(Axis::Z))
        }
    }
}

/// Resolves `remote(thing, rank)`.
pub(super) fn remote(typing: &mut Typing<'_>, thing: Expr, rank: Expr, span: Span) -> Option<Expr> {
    match typing.infer.resolve(&thing.ty) {
        ty if ty.is_shared_handle() => {
            let ty = Type::Remote(Box::new(ty));
            Some(Expr { kind: ExprKind::Remote(Box::new(thing), Box::new(rank)), ty, span })
        }
        Type::Error => None,
        other => {
            typing.error(Mismatch::NotShared(typing.infer.partial(&other)), thing.span);
            None
        }
    }
}
