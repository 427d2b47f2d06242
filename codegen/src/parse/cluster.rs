//! Clusters: their extents, what other blocks share, and the blocks of a sliced load.

use super::cx::Cx;
use super::pipeline::{binary, number};
use super::signature::known_dim3;
use crate::diag::{Code, rules};
use crate::ir::{Axis, BinaryOp, Cluster, ClusterAxis, Expr, ExprKind, Scalar, Span, Special, Type};

impl Cx<'_> {
    /// Blocks a cluster as the answer of `cluster_dim()`: constants where the attribute says them.
    pub(super) fn cluster_dim(&self, span: Span) -> Expr {
        match self.cluster {
            Cluster::Fixed(extents) => known_dim3(extents, span),
            Cluster::None | Cluster::AtLaunch => {
                let kind = ExprKind::Special(Special::ClusterDim(Axis::X));
                Expr { kind, ty: Type::Dim3, span }
            }
        }
    }

    /// How many blocks a cluster has: a constant where the attribute says it.
    pub(super) fn cluster_blocks(&self, span: Span) -> Expr {
        match self.cluster {
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

    /// Whether the kernel has clusters; reports `word` if not.
    pub(super) fn in_a_cluster(&mut self, word: &str, span: Span) -> bool {
        let has_clusters = self.cluster != Cluster::None;
        if !has_clusters {
            self.sink.push(rules::no_cluster(word, span));
        }
        has_clusters
    }

    /// `remote(thing, rank)`.
    pub(super) fn remote(&mut self, thing: Expr, rank: Expr, span: Span) -> Option<Expr> {
        match self.resolve(&thing.ty) {
            ty if ty.is_shared_handle() => {
                let ty = Type::Remote(Box::new(ty));
                Some(Expr { kind: ExprKind::Remote(Box::new(thing), Box::new(rank)), ty, span })
            }
            Type::Error => None,
            other => {
                let message = format!("{} is nothing that another block shares", self.infer.name(&other));
                let help = match other {
                    Type::Remote(_) => "give `remote` the block's own tile, array or barrier",
                    _ => "`remote` takes a tile, a shared array, a barrier, or `Stages` of these",
                };
                self.error(Code::TypeMismatch, thing.span, message).help(help);
                None
            }
        }
    }

    /// `ClusterAxis::X` and the like.
    pub(super) fn cluster_axis(&mut self, name: &str, span: Span) -> Expr {
        let axes = [Axis::X, Axis::Y, Axis::Z].map(ClusterAxis::Along);
        let known = axes.into_iter().chain([ClusterAxis::All]).find(|axis| axis.name() == name);
        match known {
            Some(axis) => Expr { kind: ExprKind::ClusterAxis(axis), ty: Type::ClusterAxis, span },
            None => {
                self.error(Code::UnknownName, span, format!("there is no `ClusterAxis::{name}`"))
                    .help("there are `X`, `Y`, `Z` and `All`");
                Expr::error(span)
            }
        }
    }
}
