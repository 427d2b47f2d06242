//! Operations of the warps of a warpgroup: matrix multiplications, and the release or request of
//! registers.

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
    /// `wgmma.wait_group`, with the number of groups that may be pending.
    Wait(u32),
    /// `setmaxnreg`: the number of registers of a thread from here on.
    Registers { count: u32, grows: bool },
}

/// A multiplication, with operands as registers.
#[derive(Clone, Debug)]
pub(crate) struct MultiplyCode {
    pub(crate) form: Form,
    pub(crate) d: Vec<Reg>,
    pub(crate) left: LeftCode,
    /// The descriptor of B.
    pub(crate) right: Reg,
    /// `scale-d`: whether the product is added to D.
    pub(crate) accumulates: Guard,
    /// Whether A and B are negated.
    pub(crate) negates: [bool; 2],
    /// The dimension along which A and B are contiguous.
    pub(crate) majors: [Major; 2],
    pub(crate) saturates: bool,
    /// The selection of the nonzero elements, if A is sparse.
    pub(crate) metadata: Option<MetadataCode>,
}

/// The metadata of a sparse A.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MetadataCode {
    pub(crate) register: Reg,
    /// Selects the threads that hold it.
    pub(crate) selector: u32,
}

/// The location of A.
#[derive(Clone, Copy, Debug)]
pub(crate) enum LeftCode {
    /// In shared memory, as this descriptor says.
    Shared(Reg),
    Registers([Reg; 4]),
}

impl WarpgroupOp {
    /// Returns the registers that the tensor core reads and writes asynchronously.
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
