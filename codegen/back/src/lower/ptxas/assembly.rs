//! Inline assembly in an LLVM module: reads the instruction that a call stands for, and replaces
//! it. inkwell only creates it.

use std::ffi::c_char;
use std::slice;

use inkwell::context::Context;
use inkwell::llvm_sys::core::{
    LLVMGetInlineAsmAsmString, LLVMGetInlineAsmConstraintString, LLVMIsAInlineAsm,
};
use inkwell::values::{
    AsValueRef, BasicValueEnum, CallSiteValue, InstructionOpcode, InstructionValue, Operand,
};

use super::line::{Instruction, Line, elements};
use crate::backend::BackendError;
use crate::lower::Lower;

/// The inline assembly of a call.
#[derive(Clone, Copy, Debug)]
pub(super) struct Assembly<'c> {
    /// The template, in which `$n` is an operand: first the results, then the arguments.
    pub(super) text: &'c str,
    /// The constraints of the results, of the arguments, and what else is overwritten.
    pub(super) constraints: &'c str,
}

impl<'c> Assembly<'c> {
    /// Returns the assembly of an instruction, if it is a call of one.
    pub(super) fn of(call: InstructionValue<'c>) -> Option<Self> {
        if call.get_opcode() != InstructionOpcode::Call {
            return None;
        }
        // A call's last operand is what it calls.
        let callee = call.get_operand(call.get_num_operands().checked_sub(1)?)?;
        let Operand::Value(BasicValueEnum::PointerValue(callee)) = callee else { return None };
        let callee = callee.as_value_ref();
        let (mut text_len, mut constraints_len) = (0, 0);
        // SAFETY: the value exists, and is inline assembly where its strings are read. They belong
        // to the context: it keeps a constant until its own end.
        unsafe {
            if LLVMIsAInlineAsm(callee).is_null() {
                return None;
            }
            let text = LLVMGetInlineAsmAsmString(callee, &raw mut text_len);
            let constraints = LLVMGetInlineAsmConstraintString(callee, &raw mut constraints_len);
            Some(Self { text: string(text, text_len)?, constraints: string(constraints, constraints_len)? })
        }
    }

    /// Replaces the assembly of `call` by one with operands of the same types.
    pub(super) fn replace(
        context: &'c Context,
        call: InstructionValue<'c>,
        text: String,
        constraints: String,
    ) -> Lower<()> {
        let unchecked = || BackendError::Unchecked(format!("a call without inline assembly for `{text}`"));
        let site = CallSiteValue::try_from(call).map_err(|()| unchecked())?;
        let callee = call.get_num_operands().checked_sub(1).ok_or_else(unchecked)?;
        let ty = site.get_called_fn_type();
        let assembly = context.create_inline_asm(ty, text, constraints, true, false, None, false);
        call.set_operand(callee, assembly);
        Ok(())
    }

    /// Returns the instructions of the template.
    pub(super) fn instructions(self) -> impl Iterator<Item = Instruction<'c>> {
        self.text.lines().filter_map(|line| match Line::parse(line) {
            Line::Instruction(instruction) => Some(instruction),
            Line::Label(_) | Line::Other => None,
        })
    }

    /// Returns the number of results.
    pub(super) fn results(self) -> u32 {
        (0..).zip(self.constraints.split(',')).find(|(_, each)| !each.starts_with('=')).map_or(0, |(i, _)| i)
    }

    /// Returns the index of the argument that an operand of the template stands for.
    fn argument(self, operand: &str) -> Option<u32> {
        let number: u32 = operand.strip_prefix('$')?.parse().ok()?;
        number.checked_sub(self.results())
    }

    /// Whether it starts multiplications of a warpgroup.
    pub(super) fn multiplies(self) -> bool {
        self.text.contains("wgmma.mma_async.")
    }

    /// Whether it waits for multiplications, and returns the values of their sums.
    pub(super) fn waits(self) -> bool {
        self.text.starts_with("wgmma.wait_group.")
    }

    /// Whether it converts two elements to one register.
    pub(super) fn packs(self) -> bool {
        self.text.starts_with("cvt.") && self.instructions().any(|cvt| cvt.opcode.ends_with("x2.f32"))
    }

    /// Returns the indices of the arguments that it moves to other registers first.
    pub(super) fn moved(self) -> impl Iterator<Item = u32> {
        let moves = self.instructions().filter(|instruction| instruction.opcode == "mov.b32");
        moves.filter_map(move |instruction| self.argument(instruction.operands().nth(1)?))
    }

    /// Returns the indices of the arguments that are left operands in registers.
    pub(super) fn left(self) -> impl Iterator<Item = u32> {
        let multiplications = self.instructions().filter(Instruction::multiplies);
        let lists = multiplications.filter_map(|instruction| instruction.operands().nth(1));
        lists.flat_map(elements).filter_map(move |operand| self.argument(operand))
    }
}

/// Returns a string of LLVM.
///
/// # Safety
/// There are `len` bytes at `start`, which live as long as `'c`, or none if it is null.
unsafe fn string<'c>(start: *const c_char, len: usize) -> Option<&'c str> {
    if start.is_null() {
        return None;
    }
    // SAFETY: as the caller promises.
    let bytes = unsafe { slice::from_raw_parts(start.cast::<u8>(), len) };
    str::from_utf8(bytes).ok()
}
