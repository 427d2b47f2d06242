//! Built-in functions on warps: shuffles, votes, matches and reductions.

use super::cx::{Builder, Cx};
use super::types::generic_arguments;
use crate::infer::rule::Rule;
use crate::ir::{Expr, MatchOp, Scalar, ShuffleOp, Span, StmtKind, VoteOp, WarpOp, WarpReduceOp};
use crate::words::{FunctionWord, Word};

impl Cx<'_> {
    /// Resolves `shuffle_xor(value, mask)` and the like.
    pub(super) fn shuffle(
        &mut self,
        op: ShuffleOp,
        value: Expr,
        by: Expr,
        path: &syn::PathSegment,
        span: Span,
    ) -> Option<Expr> {
        let word = match op {
            ShuffleOp::Xor => FunctionWord::ShuffleXor,
            ShuffleOp::Up => FunctionWord::ShuffleUp,
            ShuffleOp::Down => FunctionWord::ShuffleDown,
            ShuffleOp::Idx => FunctionWord::ShuffleIdx,
        };
        let value = self.of_lanes(value, Rule::OfLanes { word: word.name() }, path, span)?;
        let (dest, shuffled) = self.builder.temporary("shuffled", value.ty.clone(), span);
        self.builder.emit(StmtKind::Warp { dest, value, op: WarpOp::Shuffle { op, by } }, span);
        Some(shuffled)
    }

    /// Resolves `match_any(value)` and `match_all(value)`.
    pub(super) fn matching(
        &mut self,
        op: MatchOp,
        value: Expr,
        path: &syn::PathSegment,
        span: Span,
    ) -> Option<Expr> {
        let word = match op {
            MatchOp::Any => FunctionWord::MatchAny,
            MatchOp::All => FunctionWord::MatchAll,
        };
        let value = self.of_lanes(value, Rule::OfLanes { word: word.name() }, path, span)?;
        let (dest, lanes) = self.builder.temporary("lanes", Scalar::U32, span);
        self.builder.emit(StmtKind::Warp { dest, value, op: WarpOp::Match(op) }, span);
        Some(lanes)
    }

    /// Resolves `warp_reduce_add(value)` and the like.
    pub(super) fn warp_reduce(
        &mut self,
        op: WarpReduceOp,
        value: Expr,
        path: &syn::PathSegment,
        span: Span,
    ) -> Option<Expr> {
        let rule = Rule::WarpReduce { op, word: FunctionWord::WarpReduce(op).name() };
        let value = self.of_lanes(value, rule, path, span)?;
        let (dest, reduced) = self.builder.temporary("reduced", value.ty.clone(), span);
        self.builder.emit(StmtKind::Warp { dest, value, op: WarpOp::Reduce(op) }, span);
        Some(reduced)
    }

    /// Checks a value of each lane, which has the type in angle brackets if there is one.
    fn of_lanes(&mut self, value: Expr, rule: Rule, path: &syn::PathSegment, span: Span) -> Option<Expr> {
        if let [syn::GenericArgument::Type(ty)] = generic_arguments(path)[..] {
            let ty = self.ty(ty);
            if !self.expect(&value, &ty) {
                return None;
            }
        }
        self.require(&value.ty, rule, span).then_some(value)
    }
}

/// Resolves `vote_all(condition)` and the like.
pub(super) fn vote(builder: &mut Builder, op: VoteOp, condition: Expr, span: Span) -> Expr {
    let (dest, vote) = builder.temporary("vote", op.result(), span);
    builder.emit(StmtKind::Warp { dest, value: condition, op: WarpOp::Vote(op) }, span);
    vote
}
