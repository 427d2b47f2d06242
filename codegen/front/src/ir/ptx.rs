//! Instructions that a kernel writes itself.

use super::{Expr, ExprKind, LocalId, ParamId, Type};

/// The instructions of a `ptx!`.
#[derive(Clone, Debug)]
pub struct Ptx {
    /// The template.
    pub pieces: Vec<PtxPiece>,
    /// The operands that it writes.
    pub outputs: Vec<PtxOutput>,
    /// The operands that it reads: scalars, slices of global memory and shared objects. The latter
    /// two are addresses.
    pub inputs: Vec<Expr>,
    /// The memory that it accesses through addresses.
    pub accesses: Vec<PtxAccess>,
    /// Whether it has effects beyond its outputs and the memory that it names.
    pub volatile: bool,
}

/// A piece of a template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PtxPiece {
    /// PTX.
    Text(String),
    /// The operand that is written, by position.
    Output(usize),
    /// The operand that is read, by position.
    Input(usize),
}

/// An operand that instructions write.
#[derive(Clone, Copy, Debug)]
pub struct PtxOutput {
    /// The variable that receives the value.
    pub dest: LocalId,
    /// The input, by position, that the same register holds before.
    pub initial: Option<usize>,
}

/// An access to all or a part of an object.
#[derive(Clone, Debug)]
pub struct PtxAccess {
    /// A slice of global memory, or a shared object.
    pub object: Expr,
    /// Whether it changes memory.
    pub writes: bool,
}

impl Ptx {
    /// Whether anything but the outputs depends on it, or the outputs on anything but the inputs.
    pub fn has_effects(&self) -> bool {
        self.volatile || !self.accesses.is_empty()
    }
}

impl PtxAccess {
    /// Returns the parameter, if the object is in global memory.
    pub fn global(&self) -> Option<ParamId> {
        match (&self.object.kind, &self.object.ty) {
            (ExprKind::Param(param), Type::Global(_)) => Some(*param),
            _ => None,
        }
    }
}
