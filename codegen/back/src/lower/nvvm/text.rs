//! Instructions whose text depends on a rank or on qualifiers, assembled piece by piece.

use std::borrow::Cow;

use super::Operand::{self, B32, B64};
use super::{Effect, Instruction};

/// A partial instruction. Its operands are numbered in order.
pub(super) struct Text {
    text: String,
    operands: Vec<Operand>,
}

impl Text {
    /// Starts with the opcode and its qualifiers.
    pub(super) fn new(opcode: impl Into<String>) -> Self {
        Self { text: opcode.into(), operands: vec![] }
    }

    /// Appends `text`.
    pub(super) fn text(mut self, text: &str) -> Self {
        self.text.push_str(text);
        self
    }

    /// Appends an operand.
    pub(super) fn operand(mut self, operand: Operand) -> Self {
        self.text.push_str(&format!("${}", self.operands.len()));
        self.operands.push(operand);
        self
    }

    /// Appends `count` 32-bit operands in braces: coordinates.
    pub(super) fn vector(self, count: usize) -> Self {
        self.vector_of(B32, count)
    }

    /// Appends `count` operands in braces.
    pub(super) fn vector_of(mut self, operand: Operand, count: usize) -> Self {
        self = self.text("{");
        for i in 0..count {
            self = self.text(if i == 0 { "" } else { ", " }).operand(operand);
        }
        self.text("}")
    }

    /// Appends a cache policy as the last operand, as the qualifier `.L2::cache_hint` requires.
    pub(super) fn policy(self, hinted: bool) -> Self {
        if hinted { self.text(", ").operand(B64) } else { self }
    }

    /// Finishes an instruction without a result that accesses memory, of PTX version `ptx`.
    pub(super) fn memory(self, ptx: u32) -> Instruction {
        Instruction {
            text: Cow::Owned(self.text + ";"),
            result: None,
            operands: Cow::Owned(self.operands),
            effect: Effect::Memory,
            ptx,
        }
    }
}
