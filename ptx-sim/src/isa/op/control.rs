//! Operations that decide where a lane continues.

use tma_model::span::SpanEdge;

use crate::isa::{Pc, Reg};

/// An assertion that a compiler's comment describes.
#[derive(Clone, Debug)]
pub(crate) struct Assertion {
    /// File, line and column.
    pub(crate) location: String,
    pub(crate) message: String,
}

/// A mark at an end of a span.
#[derive(Clone, Debug)]
pub(crate) struct SpanCode {
    pub(crate) edge: SpanEdge,
    pub(crate) name: Box<str>,
}

/// Branches, calls and exits, and the functions of CUDA's device runtime.
#[derive(Clone, Debug)]
pub(crate) enum ControlOp {
    Branch(Pc),
    /// `brx.idx`.
    BranchIndexed {
        index: Reg,
        targets: Vec<Pc>,
    },
    /// A jump to the start of a function. The register `link` receives the return address.
    Call {
        start: Pc,
        link: Reg,
    },
    /// A jump back to the address in this register.
    Return(Reg),
    Exit,
    /// `trap`, with the assertion that has failed if it belongs to one.
    Trap(Option<Box<Assertion>>),
    /// An instruction that the simulator does not have, with its name and what is missing.
    Unsupported(Box<str>),
    /// An instruction without an effect in the simulator.
    Nothing,
    /// A mark at an end of a span, which is no instruction.
    Mark(Box<SpanCode>),
    /// `nanosleep`: lets the scheduler pick another warp.
    Yield,
    /// `vprintf`: the offsets in local memory of its arguments, and of its result.
    Printf {
        format: u32,
        args: u32,
        result: Option<u32>,
    },
    /// `__assertfail`: the offsets in local memory of its arguments.
    AssertFail {
        message: u32,
        file: u32,
        line: u32,
        function: u32,
    },
}

impl ControlOp {
    pub(super) fn targets(&self) -> &[Pc] {
        match self {
            Self::Branch(target) | Self::Call { start: target, .. } => std::slice::from_ref(target),
            Self::BranchIndexed { targets, .. } => targets,
            Self::Return(_)
            | Self::Exit
            | Self::Trap(_)
            | Self::Unsupported(_)
            | Self::Nothing
            | Self::Mark(_)
            | Self::Yield
            | Self::Printf { .. }
            | Self::AssertFail { .. } => &[],
        }
    }

    /// Returns the branch targets, which are labels until linking resolves them.
    pub(crate) fn targets_mut(&mut self) -> &mut [Pc] {
        match self {
            Self::Branch(target) => std::slice::from_mut(target),
            Self::BranchIndexed { targets, .. } => targets,
            Self::Call { .. }
            | Self::Return(_)
            | Self::Exit
            | Self::Trap(_)
            | Self::Unsupported(_)
            | Self::Nothing
            | Self::Mark(_)
            | Self::Yield
            | Self::Printf { .. }
            | Self::AssertFail { .. } => &mut [],
        }
    }
}
