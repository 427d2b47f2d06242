//! Methods of the memory of all ranks of a team.

use crate::ir::{Expr, ExprKind, PeerMemory, Scalar, Span, TeamNumber, Type};
use crate::parse::cx::Cx;
use crate::words::PeersCall;

impl Cx<'_> {
    pub(super) fn peers_method(
        &mut self,
        receiver: &Expr,
        memory: &PeerMemory,
        call: PeersCall,
        span: Span,
    ) -> Option<Expr> {
        let ExprKind::Param(peers) = receiver.kind else { return None };
        let (of, rank) = match (call, memory) {
            (PeersCall::Own, PeerMemory::Global(element)) => {
                let own = self.declared.own_of(peers)?;
                return Some(Expr { kind: ExprKind::Param(own), ty: Type::Global(*element), span });
            }
            (PeersCall::Own, PeerMemory::TensorMap(tile)) => {
                (Type::TensorMap(tile.clone()), self.team_number(TeamNumber::Rank, span))
            }
            (PeersCall::Of { rank }, PeerMemory::TensorMap(tile)) => {
                (Type::TensorMap(tile.clone()), self.held_rank(rank, span))
            }
            (PeersCall::Of { rank }, PeerMemory::Global(element)) => {
                (Type::Peer(*element), self.held_rank(rank, span))
            }
        };
        Some(Expr { kind: ExprKind::Member(peers, Box::new(rank)), ty: of, span })
    }

    /// Returns the value of `rank()` or `ranks()`.
    pub(in crate::parse) fn team_number(&mut self, number: TeamNumber, span: Span) -> Expr {
        let id = self.declared.team_number(number, span);
        Expr { kind: ExprKind::Param(id), ty: Scalar::U32.into(), span }
    }

    /// Evaluates a rank here, since its variable may change before the access.
    fn held_rank(&mut self, rank: Expr, span: Span) -> Expr {
        let (held, rank_now) = self.builder.temporary("rank", Scalar::U32, span);
        self.builder.assign(held, rank);
        rank_now
    }
}
