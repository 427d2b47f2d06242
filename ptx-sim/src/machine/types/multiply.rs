//! Multiplications of tensor cores.

use tma_model::mma::{Form, Major};

use crate::isa::Reg;

/// `wgmma.mma_async`, as a warp issues it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Multiply<'m> {
    /// Where it is in the program.
    pub(crate) pc: u32,
    pub(crate) form: Form,
    /// The registers of D.
    pub(crate) d: &'m [Reg],
    pub(crate) left: LeftOperand<'m>,
    /// B's descriptor.
    pub(crate) right: u64,
    /// Whether D is added to.
    pub(crate) accumulates: bool,
    /// Whether A, and B, are negated.
    pub(crate) negates: [bool; 2],
    pub(crate) majors: [Major; 2],
    pub(crate) saturates: bool,
    pub(crate) metadata: Option<Metadata<'m>>,
}

/// Which elements of a sparse A are there.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Metadata<'m> {
    /// What the warp's register holds.
    pub(crate) lanes: &'m [u32; 32],
    /// Which threads' part is read.
    pub(crate) selector: u32,
}

/// A.
#[derive(Clone, Copy, Debug)]
pub(crate) enum LeftOperand<'m> {
    /// A descriptor.
    Shared(u64),
    /// What the warp's registers hold.
    Registers(&'m [[u32; 32]; 4]),
}
