//! Multiplications of tensor cores.

use tma_model::mma::{Form, Major};

use crate::isa::Reg;

/// `wgmma.mma_async`, as a warp issues it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Multiply<'m> {
    /// The position of the instruction in the program.
    pub(crate) pc: u32,
    pub(crate) form: Form,
    /// The registers of D.
    pub(crate) d: &'m [Reg],
    pub(crate) left: LeftOperand<'m>,
    /// The descriptor of B.
    pub(crate) right: u64,
    /// Whether the product is added to D.
    pub(crate) accumulates: bool,
    /// Whether A and B are negated.
    pub(crate) negates: [bool; 2],
    pub(crate) majors: [Major; 2],
    pub(crate) saturates: bool,
    pub(crate) metadata: Option<Metadata<'m>>,
}

/// The selection of the nonzero elements of a sparse A.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Metadata<'m> {
    /// The contents of the register in each lane.
    pub(crate) lanes: &'m [u32; 32],
    /// Selects the threads whose part is read.
    pub(crate) selector: u32,
}

/// The operand A.
#[derive(Clone, Copy, Debug)]
pub(crate) enum LeftOperand<'m> {
    /// In shared memory, as this descriptor says.
    Shared(u64),
    /// In the registers of the warp, with their contents in each lane.
    Registers(&'m [[u32; 32]; 4]),
}
