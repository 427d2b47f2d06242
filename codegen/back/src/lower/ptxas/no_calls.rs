//! Reports failed assertions without a call, in kernels that multiply.
//!
//! * Cures: C7510, "Potential Performance Loss: wgmma.mma_async instructions are serialized due to
//!   wgmma pipeline crossing function boundary at a function call".
//! * Seen with: ptxas 13.0.
//! * Test: `Workaround::NoCalls` in `codegen/back/tests/flights/workarounds.rs`.
//!
//! Any call makes ptxas serialise all multiplications of a kernel. `__assertfail` is a call, so a
//! failed assertion is written to host memory instead ([`tma_model::assertion`]). The calls of
//! `printf!` and `print_tile` are replaced when the kernel is loaded (`ptx_probe::print`), which
//! needs the format of each: so LLVM must not make one call of two.

use inkwell::attributes::{Attribute, AttributeLoc};
use inkwell::basic_block::BasicBlock;
use inkwell::values::{CallSiteValue, PointerValue};
use tma_front::escape;
use tma_front::ir::Span;
use tma_model::assertion::{Remark, VARIABLE};

use super::{Workaround, stop};
use crate::lower::types::GLOBAL;
use crate::lower::{Cx, Lower, debug, narrow, nvvm};

/// Whether failed assertions are reported without a call.
pub(in crate::lower) fn is_needed(cx: &Cx<'_, '_>) -> bool {
    cx.has_mma && cx.workarounds.has(Workaround::NoCalls)
}

/// Keeps LLVM from merging a call of `vprintf` with another, whose format may differ.
pub(in crate::lower) fn keep_apart(cx: &Cx<'_, '_>, call: CallSiteValue<'_>) {
    if cx.has_mma {
        let nomerge = Attribute::get_named_enum_kind_id("nomerge");
        call.add_attribute(AttributeLoc::Function, cx.context.create_enum_attribute(nomerge, 0));
    }
}

/// Returns a block that reports to the host that `message` does not hold at `span`, and stops.
/// Equal assertions share a block.
pub(in crate::lower) fn failure<'c>(cx: &mut Cx<'c, '_>, message: &str, span: Span) -> Lower<BasicBlock<'c>> {
    let (line, column) = debug::line_and_column(span)?;
    let key = (line, column, message.to_owned(), cx.is_in_flight);
    if let Some(&block) = cx.failures.get(&key) {
        return Ok(block);
    }
    let block = cx.new_block("failed");
    let before = cx.builder.get_insert_block();
    cx.builder.position_at_end(block);
    let number = narrow(cx.failures.len() as u64 + 1)?;
    let location = escape::ascii(&format!("{}:{line}:{column}", cx.path));
    let remark = Remark { number, location: &location, message: &escape::ascii(message) };
    let instruction = nvvm::fail(&remark, stop(cx));
    let host = failure_variable(cx);
    nvvm::emit(cx, &instruction, &[host.into()])?;
    cx.builder.build_unreachable()?;
    if let Some(before) = before {
        cx.builder.position_at_end(before);
    }
    cx.failures.insert(key, block);
    Ok(block)
}

/// Returns the variable with the host address for reports of failed assertions. The host sets it.
fn failure_variable<'c>(cx: &Cx<'c, '_>) -> PointerValue<'c> {
    let global = cx.module.get_global(VARIABLE).unwrap_or_else(|| {
        let address = cx.context.i64_type();
        let global = cx.module.add_global(address, Some(GLOBAL.into()), VARIABLE);
        global.set_initializer(&address.const_zero());
        global.set_externally_initialized(true);
        global
    });
    global.as_pointer_value()
}
