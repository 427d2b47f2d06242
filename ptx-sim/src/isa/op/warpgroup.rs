//! What the warps of a warpgroup do together: matrix multiplications, and registers that they give
//! back or ask for.

use tma_model::mma::{Form, Major};

use crate::isa::{Guard, Reg};

/// `wgmma`, and `setmaxnreg`.
#[derive(Clone, Debug)]
pub(crate) enum WarpgroupOp {
    /// `wgmma.fence`.
    Fence,
    /// `wgmma.mma_async`.
    Multiply(Box<MultiplyCode>),
    /// `wgmma.commit_group`.
    Commit,
    /// `wgmma.wait_group`, with how many groups may be left.
    Wait(u32),
    /// `setmaxnreg`: how many registers a thread has from now on.
    Registers { count: u32, grows: bool },
}

/// A multiplication, before its operands are read.
#[derive(Clone, Debug)]
pub(crate) struct MultiplyCode {
    pub(crate) form: Form,
    pub(crate) d: Vec<Reg>,
    pub(crate) left: LeftCode,
    /// B's descriptor.
    pub(crate) right: Reg,
    /// `scale-d`: whether D is added to.
    pub(crate) accumulates: Guard,
    /// Whether A, and B, are negated.
    pub(crate) negates: [bool; 2],
    /// Along which dimension A and B are contiguous.
    pub(crate) majors: [Major; 2],
    pub(crate) saturates: bool,
    /// Which elements of a sparse A are there.
    pub(crate) metadata: Option<MetadataCode>,
}

/// Metadata of a sparse A.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MetadataCode {
    pub(crate) register: Reg,
    /// Which threads hold it.
    pub(crate) selector: u32,
}

/// Where A is.
#[derive(Clone, Copy, Debug)]
pub(crate) enum LeftCode {
    /// In shared memory, named by a descriptor.
    Shared(Reg),
    Registers([Reg; 4]),
}

impl WarpgroupOp {
    /// The registers that the tensor core reads and writes on its own.
    pub(crate) fn tensor_registers(&self) -> impl Iterator<Item = Reg> {
        let (d, left) = match self {
            Self::Multiply(code) => (code.d.as_slice(), code.left.registers()),
            Self::Fence | Self::Commit | Self::Wait(_) | Self::Registers { .. } => ([].as_slice(), &[][..]),
        };
        d.iter().chain(left).copied().filter(|reg| reg.as_constant().is_none())
    }
}

impl LeftCode {
    pub(crate) fn registers(&self) -> &[Reg] {
        match self {
            Self::Shared(_) => &[],
            Self::Registers(registers) => registers,
        }
    }
}
