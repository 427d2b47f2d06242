//! How kernels that multiply stop. Sources: "trap", "wgmma.wait_group", "Memory Consistency Model",
//! "Causality order".
//!
//! ptxas waits for all multiplications before a kernel ends, and says so if the kernel has not done
//! it itself (its C7517), also where none is under way on the path that stops. Only some threads of
//! a warp may stop, and a wait is for all of them: so it stands behind the trap, where ptxas finds
//! it and no thread comes. Before the trap, an H200 waits for ever.
//!
//! In a loop where multiplications are under way, or that is entered or left so, ptxas 13.0 waits
//! before a trap all the same, as it takes that for the end of the path. There the trap has a
//! condition, which always holds and of which ptxas does not know that: that a lane has a place in
//! its warp. Elsewhere it has none: one more path costs registers.

use std::borrow::Cow;
use std::collections::HashSet;

use tma_model::assertion::{BLOCK_SHIFT, Remark, THREAD_SHIFTS};

use super::Operand::Global;
use super::{Effect, Instruction};

/// What a stop's condition is computed by, and the trap.
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

/// Stops; whether in a loop, with multiplications under way there or where it is entered or left.
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

/// Tells the host which assertion failed, and in which thread, if it listens, and stops. The
/// operand is the place of the address where it listens. The host reads it when the kernel is gone:
/// the fence keeps the trap behind the write.
pub(in crate::lower) fn fail(remark: &Remark<'_>, in_flight: bool) -> Instruction {
    let [thread_y, thread_z] = THREAD_SHIFTS;
    let number = remark.number;
    // LLVM takes a dollar sign for the beginning of an operand.
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

/// What the line of a stop has.
const STOP: &str = "trap;";

/// Lets a kernel that multiplies go around its branches to blocks that stop.
///
/// ptxas 13.0 waits for the multiplications under way where a conditional branch leads to a `trap`,
/// and says so (its C7517). If that branch goes around one without a condition, it does not.
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
