//! Early termination of kernels with multiplications. Sources: "trap", "Memory Consistency Model",
//! "Causality order".

use std::borrow::Cow;

use tma_model::assertion::{BLOCK_SHIFT, Remark, THREAD_SHIFTS};

use super::Operand::Global;
use super::{Effect, Instruction};
use crate::lower::ptxas::Stop;

/// Stops.
pub(in crate::lower) fn stop(stop: Stop) -> Instruction {
    let Stop { condition, trap, wait } = stop;
    Instruction {
        text: Cow::Owned(format!("{{\n{condition}\t{trap}\n{wait}\t}}")),
        result: None,
        operands: Cow::Borrowed(&[]),
        effect: Effect::Convergent,
        ptx: 80,
    }
}

/// Stops, after reporting the failed assertion and its thread to the host, if it listens. The
/// operand is the location of the host's address. The host reads the report once the kernel has
/// ended: the fence keeps the trap after the write.
pub(in crate::lower) fn fail(remark: &Remark<'_>, stop: Stop) -> Instruction {
    let Stop { condition, trap, wait } = stop;
    let [thread_y, thread_z] = THREAD_SHIFTS;
    let number = remark.number;
    // LLVM parses a dollar sign as the start of an operand.
    let remark = remark.to_string().replace('$', "$$");
    let text = format!(
        "{{\n\
         {condition}\
         \t.reg .pred %heard;\n\
         \t.reg .b64 %host;\n\
         \t.reg .b32 %number, %thread, %block, %y, %z;\n\
         \tld.global.b64 %host, [$0];\n\
         \tsetp.ne.b64 %heard, %host, 0;\n\
         \tmov.u32 %thread, %tid.x;\n\
         \tmov.u32 %y, %tid.y;\n\
         \tmov.u32 %z, %tid.z;\n\
         \tshl.b32 %y, %y, {thread_y};\n\
         \tshl.b32 %z, %z, {thread_z};\n\
         \tor.b32 %thread, %thread, %y;\n\
         \tor.b32 %thread, %thread, %z;\n\
         \tmov.u32 %block, %ctaid.x;\n\
         \tmov.u32 %y, %ctaid.y;\n\
         \tmov.u32 %z, %ctaid.z;\n\
         \tshl.b32 %z, %z, {BLOCK_SHIFT};\n\
         \tor.b32 %y, %y, %z;\n\
         \tmov.u32 %number, {number};\n\
         \t@%heard st.global.v4.b32 [%host], {{%number, %thread, %block, %y}};\n\
         \tfence.acq_rel.sys;\n\
         \t{trap} {remark}\n\
         {wait}\
         \t}}"
    );
    Instruction {
        text: Cow::Owned(text),
        result: None,
        operands: Cow::Borrowed(&[Global]),
        effect: Effect::Convergent,
        ptx: 80,
    }
}
