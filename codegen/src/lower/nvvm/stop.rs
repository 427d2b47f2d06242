//! Early termination of kernels with multiplications. Sources: "trap", "wgmma.wait_group", "Memory
//! Consistency Model", "Causality order".
//!
//! ptxas waits for all multiplications before a kernel ends, with a warning if the kernel has not
//! done so itself (its C7517), even if none is in flight on the path that stops. A wait must be
//! executed by all threads of a warp, but only some may stop. The wait is therefore placed after
//! the trap, where ptxas sees it but no thread reaches it. An H200 hangs on a wait before the trap.
//!
//! ptxas 13.0 takes a trap for the end of the path. It still inserts a wait before the trap if
//! multiplications are in flight in the loop around it, or at the entry or exit of the loop. There,
//! the trap has a condition that always holds, which ptxas does not know: that `%lanemask_eq` is
//! not 0. Elsewhere the trap is unconditional, as one more path costs registers.

use std::borrow::Cow;
use std::collections::HashSet;

use tma_model::assertion::{BLOCK_SHIFT, Remark, THREAD_SHIFTS};

use super::Operand::Global;
use super::{Effect, Instruction};

/// Returns the computation of a stop's condition, and the trap.
fn trap(in_flight: bool) -> (&'static str, &'static str) {
    if !in_flight {
        return ("", "trap;");
    }
    let condition = "\t.reg .pred %stops;\n\
                     \t.reg .b32 %place;\n\
                     \tmov.u32 %place, %lanemask_eq;\n\
                     \tsetp.ne.b32 %stops, %place, 0;\n";
    (condition, "@%stops trap;")
}

/// Stops. `in_flight` says whether this is in a loop with multiplications in flight, inside or at
/// its entry or exit.
pub(in crate::lower) fn stop(in_flight: bool) -> Instruction {
    let (condition, trap) = trap(in_flight);
    Instruction {
        text: Cow::Owned(format!("{{\n{condition}\t{trap}\n\twgmma.wait_group.sync.aligned 0;\n\t}}")),
        result: None,
        operands: Cow::Borrowed(&[]),
        effect: Effect::Convergent,
        ptx: 80,
    }
}

/// Stops, after reporting the failed assertion and its thread to the host, if it listens. The
/// operand is the location of the host's address. The host reads the report once the kernel has
/// ended: the fence keeps the trap after the write.
pub(in crate::lower) fn fail(remark: &Remark<'_>, in_flight: bool) -> Instruction {
    let [thread_y, thread_z] = THREAD_SHIFTS;
    let number = remark.number;
    // LLVM parses a dollar sign as the start of an operand.
    let remark = remark.to_string().replace('$', "$$");
    let (condition, trap) = trap(in_flight);
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
         \twgmma.wait_group.sync.aligned 0;\n\
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

/// The text in the line of a stop.
const STOP: &str = "trap;";

/// Rewrites branches to blocks that stop, in a kernel with multiplications.
///
/// If a conditional branch leads to a `trap`, ptxas 13.0 waits there for the multiplications in
/// flight, with a warning (its C7517). If the branch skips an unconditional one instead, it does
/// not.
pub(crate) fn around_stops(text: &str) -> String {
    if !text.contains("wgmma.") {
        return text.to_owned();
    }
    let mut stops = HashSet::new();
    let mut block = "";
    for line in text.lines() {
        if let Some(label) = line.strip_suffix(':') {
            block = label;
        } else if line.contains(STOP) {
            stops.insert(block);
        }
    }
    let mut numbers = 0_u32..;
    let mut detour = |line: &str| {
        let (condition, label) = line.strip_prefix("\t@")?.strip_suffix(';')?.split_once(" bra \t")?;
        let number = stops.contains(label).then(|| numbers.next()).flatten()?;
        let negated = match condition.strip_prefix('!') {
            Some(predicate) => predicate.to_owned(),
            None => format!("!{condition}"),
        };
        Some(format!("\t@{negated} bra \t$L__on_{number};\n\tbra.uni \t{label};\n$L__on_{number}:"))
    };
    text.lines().map(|line| detour(line).unwrap_or_else(|| line.to_owned()) + "\n").collect()
}
