//! What decides where a lane goes on.

use crate::isa::{Pc, Reg};

/// An assertion of which a comment tells.
#[derive(Clone, Debug)]
pub(crate) struct Assertion {
    /// File, line and column.
    pub(crate) place: String,
    pub(crate) message: String,
}

/// Branches, calls and ends, and the functions of CUDA's device runtime.
#[derive(Clone, Debug)]
pub(crate) enum ControlOp {
    Branch(Pc),
    /// `brx.idx`.
    BranchIndexed {
        index: Reg,
        targets: Vec<Pc>,
    },
    /// To the function's start, with the register that takes the return address.
    Call {
        start: Pc,
        link: Reg,
    },
    /// Back to the address in this register.
    Return(Reg),
    Exit,
    /// With the assertion that has failed, if it is of one.
    Trap(Option<Box<Assertion>>),
    /// What has no effect here.
    Nothing,
    /// `nanosleep`: the warp's turn ends.
    Yield,
    /// `vprintf`: where in local memory its arguments lie, and where its result goes.
    Printf {
        format: u32,
        args: u32,
        result: Option<u32>,
    },
    /// `__assertfail`: where in local memory its arguments lie.
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
            | Self::Nothing
            | Self::Yield
            | Self::Printf { .. }
            | Self::AssertFail { .. } => &[],
        }
    }

    /// The targets of a branch, which are labels until linking knows where those are.
    pub(crate) fn targets_mut(&mut self) -> &mut [Pc] {
        match self {
            Self::Branch(target) => std::slice::from_mut(target),
            Self::BranchIndexed { targets, .. } => targets,
            Self::Call { .. }
            | Self::Return(_)
            | Self::Exit
            | Self::Trap(_)
            | Self::Nothing
            | Self::Yield
            | Self::Printf { .. }
            | Self::AssertFail { .. } => &mut [],
        }
    }
}
