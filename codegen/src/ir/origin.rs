//! Where statements come from: the line, and the calls that were taken apart into them.

use super::{Kernel, SharedId, Span};

/// Where a statement comes from.
#[derive(Clone, Copy, Debug)]
pub struct Origin {
    /// Where it is written. For a statement of an inlined function this is in that function.
    pub span: Span,
    /// The innermost call that it is a part of; none for what the kernel's own body says directly.
    pub call: Option<CallId>,
}

/// A call that no longer exists as such: the callee's statements stand in its place.
#[derive(Clone, Debug)]
pub struct Call {
    /// What was called.
    pub callee: Callee,
    /// The call in the source.
    pub span: Span,
    /// The call that this one is a part of.
    pub caller: Option<CallId>,
}

/// What a [`Call`] calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Callee {
    /// A `#[tma_device]` function of this name.
    Device(String),
    /// A method of a pipeline, or of one of its states or slots.
    Pipeline {
        /// Whose stages it is about.
        pipeline: PipelineId,
        /// Its name in the source, such as `release`.
        method: String,
    },
    /// Nothing: a statement by which the protocol of barriers is not judged, with all inside.
    Trusted {
        /// Why it is right, as the source says.
        reason: String,
    },
}

/// A pipeline in shared memory. Its tiles and barriers are shared variables of their own.
#[derive(Clone, Debug)]
pub struct Pipeline {
    /// Its name in the source.
    pub name: String,
    /// The `Stages` of each tile.
    pub tiles: Vec<SharedId>,
    /// The barriers that complete when a stage is filled.
    pub full: SharedId,
    /// The barriers that complete when a stage is released.
    pub empty: SharedId,
    /// How many stages there are.
    pub stages: u32,
    /// The `shared()` that makes it.
    pub span: Span,
}

impl Pipeline {
    /// Its shared variables.
    pub fn parts(&self) -> impl Iterator<Item = SharedId> {
        self.tiles.iter().copied().chain([self.full, self.empty])
    }
}

/// Counts [`Kernel::calls`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CallId(pub u32);

/// Counts [`Kernel::pipelines`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PipelineId(pub u32);

impl Kernel {
    /// The call `id`.
    pub fn call(&self, id: CallId) -> &Call {
        &self.calls[id.0 as usize]
    }

    /// The pipeline `id`.
    pub fn pipeline(&self, id: PipelineId) -> &Pipeline {
        &self.pipelines[id.0 as usize]
    }

    /// The calls that a statement is a part of, innermost first.
    pub fn calls_around(&self, origin: Origin) -> impl Iterator<Item = &Call> {
        std::iter::successors(origin.call, |&id| self.call(id).caller).map(|id| self.call(id))
    }

    /// The pipeline and the name of the method that a statement is a part of.
    pub fn pipeline_call(&self, origin: Origin) -> Option<(&Pipeline, &str)> {
        self.calls_around(origin).find_map(|call| match &call.callee {
            Callee::Pipeline { pipeline, method } => Some((self.pipeline(*pipeline), &**method)),
            Callee::Device(_) | Callee::Trusted { .. } => None,
        })
    }

    /// Whether a statement is one by which the protocol is not judged, or inside one.
    pub fn is_trusted(&self, origin: Origin) -> bool {
        self.calls_around(origin).any(|call| matches!(call.callee, Callee::Trusted { .. }))
    }

    /// The statements by which the protocol is not judged: where they say so, and why.
    pub fn trusted_statements(&self) -> impl Iterator<Item = (Span, &str)> {
        self.calls.iter().filter_map(|call| match &call.callee {
            Callee::Trusted { reason } => Some((call.span, &**reason)),
            Callee::Device(_) | Callee::Pipeline { .. } => None,
        })
    }
}
