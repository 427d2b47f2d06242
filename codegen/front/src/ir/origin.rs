//! Sources of statements: the line, and the inlined calls around it.

use super::{Kernel, SharedId, Span};

/// The source of a statement.
#[derive(Clone, Copy, Debug)]
pub struct Origin {
    /// The span. A statement of an inlined function has its span in that function.
    pub span: Span,
    /// The innermost expanded call that contains it; `None` for a statement of the kernel's own
    /// body.
    pub call: Option<CallId>,
}

/// A call that was replaced by the callee's statements.
#[derive(Clone, Debug)]
pub struct Call {
    /// The callee.
    pub callee: Callee,
    /// The span of the call.
    pub span: Span,
    /// The call that contains this one.
    pub caller: Option<CallId>,
}

/// The callee of a [`Call`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Callee {
    /// The `#[tma_device]` function of this name.
    Device(String),
    /// A method of a pipeline, or of one of its states or slots.
    Pipeline {
        /// The pipeline that the method operates on.
        pipeline: PipelineId,
        /// The method's name in the source, such as `release`.
        method: String,
    },
    /// No function: a statement that, with everything inside it, is exempt from the protocol check.
    Trusted {
        /// The justification in the source.
        reason: String,
    },
}

/// A pipeline in shared memory. Its tiles and barriers are separate shared variables.
#[derive(Clone, Debug)]
pub struct Pipeline {
    /// The name in the source.
    pub name: String,
    /// One `Stages` of tiles for each tile of a stage.
    pub tiles: Vec<SharedId>,
    /// The barriers that complete when a stage has been filled.
    pub full: SharedId,
    /// The barriers that complete when a stage has been released.
    pub empty: SharedId,
    /// The number of stages.
    pub stages: u32,
    /// The `shared()` that creates it.
    pub span: Span,
}

impl Pipeline {
    /// Returns its shared variables.
    pub fn parts(&self) -> impl Iterator<Item = SharedId> {
        self.tiles.iter().copied().chain([self.full, self.empty])
    }
}

/// Index into [`Kernel::calls`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CallId(pub u32);

/// Index into [`Kernel::pipelines`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PipelineId(pub u32);

impl Kernel {
    /// Returns the call `id`.
    pub fn call(&self, id: CallId) -> &Call {
        &self.calls[id.0 as usize]
    }

    /// Returns the pipeline `id`.
    pub fn pipeline(&self, id: PipelineId) -> &Pipeline {
        &self.pipelines[id.0 as usize]
    }

    /// Returns the calls that contain a statement, innermost first.
    pub fn calls_around(&self, origin: Origin) -> impl Iterator<Item = &Call> {
        std::iter::successors(origin.call, |&id| self.call(id).caller).map(|id| self.call(id))
    }

    /// Returns the pipeline and the name of the method that a statement was expanded from, if any.
    pub fn pipeline_call(&self, origin: Origin) -> Option<(&Pipeline, &str)> {
        self.calls_around(origin).find_map(|call| match &call.callee {
            Callee::Pipeline { pipeline, method } => Some((self.pipeline(*pipeline), &**method)),
            Callee::Device(_) | Callee::Trusted { .. } => None,
        })
    }

    /// Whether a statement is exempt from the protocol check, by itself or by one around it.
    pub fn is_trusted(&self, origin: Origin) -> bool {
        self.calls_around(origin).any(|call| matches!(call.callee, Callee::Trusted { .. }))
    }

    /// Returns the spans and justifications of the statements that are exempt from the protocol
    /// check.
    pub fn trusted_statements(&self) -> impl Iterator<Item = (Span, &str)> {
        self.calls.iter().filter_map(|call| match &call.callee {
            Callee::Trusted { reason } => Some((call.span, &**reason)),
            Callee::Device(_) | Callee::Pipeline { .. } => None,
        })
    }
}
