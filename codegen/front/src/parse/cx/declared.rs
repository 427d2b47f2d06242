//! The parameters and shared objects of a kernel.

use crate::ir::{
    Expr, ExprKind, Param, ParamId, Pipeline, PipelineId, Presence, Scalar, SharedId, SharedVar, Span,
    TeamNumber, Type,
};
use crate::limits::count;

/// The parameters, shared objects and pipelines that a kernel declares, by id.
#[derive(Default)]
pub(in crate::parse) struct Declared {
    pub(super) params: Vec<Param>,
    pub(super) shared: Vec<SharedVar>,
    pub(super) pipelines: Vec<Pipeline>,
}

impl Declared {
    /// Declares a parameter of the kernel.
    pub(in crate::parse) fn param(&mut self, param: Param) -> ParamId {
        self.params.push(param);
        ParamId(count(self.params.len() - 1))
    }

    /// Returns the parameter.
    pub(in crate::parse) fn param_of(&self, id: ParamId) -> &Param {
        &self.params[id.0 as usize]
    }

    pub(in crate::parse) fn param_mut(&mut self, id: ParamId) -> &mut Param {
        &mut self.params[id.0 as usize]
    }

    /// Returns this rank's slice of the peers', which is declared with them.
    pub(in crate::parse) fn own_of(&self, peers: ParamId) -> Option<ParamId> {
        let is_own = |param: &Param| param.presence == Presence::OwnOf(peers);
        self.params.iter().position(is_own).map(|index| ParamId(count(index)))
    }

    /// Returns the parameter with a number of the team. The first call declares all of them, so they
    /// are behind the parameters that the signature declares.
    pub(in crate::parse) fn team_number(&mut self, number: TeamNumber, span: Span) -> ParamId {
        let of = |params: &[Param]| params.iter().position(|param| param.presence == Presence::Team(number));
        if of(&self.params).is_none() {
            for number in [TeamNumber::Rank, TeamNumber::Ranks] {
                self.hidden(number.word().to_owned(), Scalar::U32.into(), Presence::Team(number), span);
            }
        }
        ParamId(count(of(&self.params).unwrap_or(self.params.len())))
    }

    /// Declares a parameter that the signature does not have.
    pub(in crate::parse) fn hidden(
        &mut self,
        name: String,
        ty: Type,
        presence: Presence,
        span: Span,
    ) -> ParamId {
        self.param(Param { name, ty, written: false, unit: 1, presence, span, ty_span: span })
    }

    /// Gives each rank's own slice and the slices of all ranks, which are the same argument, the
    /// same properties.
    pub(in crate::parse) fn join_own(&mut self) {
        for index in 0..self.params.len() {
            let Presence::OwnOf(peers) = self.params[index].presence else { continue };
            let (own, peers_of) = (ParamId(count(index)), self.param_of(peers));
            let written = self.param_of(own).written || peers_of.written;
            let unit = self.param_of(own).unit.max(peers_of.unit);
            for id in [own, peers] {
                let param = self.param_mut(id);
                (param.written, param.unit) = (written, unit);
            }
        }
    }

    /// Declares a shared object with memory of its own.
    pub(in crate::parse) fn shared_var(&mut self, name: String, ty: Type, span: Span) -> Expr {
        self.reusing_var(name, ty, vec![], span)
    }

    /// Declares a shared object in the memory of `reused`.
    pub(in crate::parse) fn reusing_var(
        &mut self,
        name: String,
        ty: Type,
        reused: Vec<SharedId>,
        span: Span,
    ) -> Expr {
        let id = self.next_shared();
        self.shared.push(SharedVar { name, ty: ty.clone(), reuses: reused, span });
        Expr { kind: ExprKind::Shared(id), ty, span }
    }

    /// Returns the variables with memory of their own that hold the bytes of `id`.
    pub(in crate::parse) fn memory_of(&self, id: SharedId) -> Vec<SharedId> {
        let reuses = &self.shared[id.0 as usize].reuses;
        if reuses.is_empty() { vec![id] } else { reuses.clone() }
    }

    /// Returns the id of the shared object that is declared next.
    pub(in crate::parse) fn next_shared(&self) -> SharedId {
        SharedId(count(self.shared.len()))
    }

    /// Declares a pipeline, whose tiles and barriers are shared objects.
    pub(in crate::parse) fn pipeline(&mut self, pipeline: Pipeline) {
        self.pipelines.push(pipeline);
    }

    /// Returns the pipeline that `parts` belong to, if they belong to one.
    pub(in crate::parse) fn pipeline_of(&self, parts: &[Expr]) -> Option<PipelineId> {
        let is_part = |pipeline: &Pipeline| {
            parts.iter().any(|part| matches!(part.kind, ExprKind::Shared(id) if id == pipeline.empty))
        };
        self.pipelines.iter().position(is_part).map(|index| PipelineId(count(index)))
    }
}
