//! The kernel that runs cases, one per block.
//!
//! A block reads its record, fills shared memory, and loads C into registers. It executes one of
//! the kernel's instructions in each step of its case, and then stores D. All data consists of
//! 32-bit words:
//!
//! | record of a block | |
//! | --- | --- |
//! | 0, 1 | image of shared memory: position in `data`, in units of 16 bytes; size in bytes |
//! | 2 | index of the instruction in the kernel |
//! | 3, 4 | number of steps; position of the first in `data`, in units of 16 bytes |
//! | 5 | position of C in `data`, in units of 16 bytes |
//!
//! | step | |
//! | --- | --- |
//! | 0–3 | descriptors of A and B |
//! | 4 | `scale-d` |
//! | 8–519 | registers of A, each for all threads |
//! | 520–647 | metadata |

use std::fmt::Write;

use tma_model::mma::Form;

use crate::instruction::{Instruction, Source};
use crate::operand::THREADS;

/// Words in a block's record.
pub const RECORD: usize = 8;

/// Words in a step before the registers of A.
pub const STEP_HEAD: usize = 8;
/// Words in a whole step.
pub const STEP: usize = STEP_HEAD + 5 * THREADS as usize;

/// Name of the kernel's entry point.
pub const ENTRY: &str = "products";

/// Bytes from one register's words to the next register's.
const ROW: u32 = 4 * THREADS;

/// Formats registers in braces: `{%c0, %c1}`.
pub(crate) fn braces(prefix: &str, count: u32) -> String {
    let names: Vec<_> = (0..count).map(|i| format!("{prefix}{i}")).collect();
    format!("{{{}}}", names.join(", "))
}

/// Formats a line for each of the registers, with its offset.
pub(crate) fn for_each(count: u32, line: impl Fn(u32, u32) -> String) -> String {
    (0..count).fold(String::new(), |mut text, i| {
        // Writing to a string does not fail.
        let _ = writeln!(text, "{}", line(i, i * ROW));
        text
    })
}

/// Returns the PTX of a kernel with these instructions, all of one family.
pub fn text(form: Form, instructions: &[Instruction]) -> String {
    let registers = form.accumulator_registers();
    let version = instructions.iter().map(|one| one.form.ptx_version()).max().unwrap_or((8, 0));
    let load = for_each(registers, |i, at| format!("ld.global.u32 %c{i}, [%q8+{at}];"));
    let store = for_each(registers, |i, at| format!("st.global.u32 [%q8+{at}], %c{i};"));
    let head = 4 * STEP_HEAD as u32;
    let left = for_each(4, |i, at| format!("ld.global.u32 %a{i}, [%q10+{}];", at + head));
    let (metadata, step) = (head + 4 * ROW, 4 * STEP);
    let branches: String =
        (0..instructions.len()).map(|i| format!("setp.eq.u32 %p, %r4, {i};\n@%p bra ARM{i};\n")).collect();
    let d = braces("%c", registers);
    let arms: String = (0..)
        .zip(instructions)
        .map(|(i, instruction): (usize, _)| {
            let a = match instruction.source {
                Source::Shared => "%da".to_owned(),
                Source::Registers => braces("%a", Form::LEFT_REGISTERS),
            };
            format!("ARM{i}:\n{}bra NEXT;\n", stage(&instruction.text([&d, &a, "%db", "%m", "%adds"])))
        })
        .collect();
    format!(
        ".version {}.{}
.target sm_90a
.address_size 64
.extern .shared .align 1024 .b8 dyn[];
.visible .entry {ENTRY}(
.param .u64 records, .param .u64 record_words,
.param .u64 data, .param .u64 data_words,
.param .u64 out, .param .u64 out_words)
.maxntid {THREADS}, 1, 1
{{
.reg .b32 %r<16>; .reg .b32 %c<128>; .reg .b32 %a<4>; .reg .b32 %m;
.reg .b64 %q<12>; .reg .b64 %da; .reg .b64 %db; .reg .pred %p; .reg .pred %adds;
ld.param.u64 %q0, [records];
ld.param.u64 %q1, [data];
ld.param.u64 %q2, [out];
mov.u32 %r0, %tid.x;
mov.u32 %r1, %ctaid.x;
mul.wide.u32 %q3, %r1, {};
add.u64 %q0, %q0, %q3;
ld.global.v4.u32 {{%r2, %r3, %r4, %r5}}, [%q0];
ld.global.v2.u32 {{%r6, %r7}}, [%q0+16];
mov.u32 %r8, dyn;
shl.b32 %r9, %r0, 4;
add.u32 %r10, %r8, %r9;
cvt.u64.u32 %q5, %r9;
mul.wide.u32 %q4, %r2, 16;
add.u64 %q4, %q4, %q5;
add.u64 %q4, %q4, %q1;
FILL:
setp.ge.u32 %p, %r9, %r3;
@%p bra FILLED;
ld.global.v4.u32 {{%r11, %r12, %r13, %r14}}, [%q4];
st.shared.v4.u32 [%r10], {{%r11, %r12, %r13, %r14}};
add.u32 %r9, %r9, {chunk};
add.u32 %r10, %r10, {chunk};
add.u64 %q4, %q4, {chunk};
bra FILL;
FILLED:
fence.proxy.async.shared::cta;
bar.sync 0;
mul.wide.u32 %q7, %r0, 4;
mul.wide.u32 %q8, %r7, 16;
shr.u32 %r8, %r8, 4;
cvt.u64.u32 %q11, %r8;
add.u64 %q8, %q8, %q7;
add.u64 %q8, %q8, %q1;
{load}mul.wide.u32 %q9, %r6, 16;
add.u64 %q9, %q9, %q1;
STEP:
add.u64 %q10, %q9, %q7;
ld.global.v2.u64 {{%da, %db}}, [%q9];
add.u64 %da, %da, %q11;
add.u64 %db, %db, %q11;
ld.global.u32 %r15, [%q9+16];
setp.ne.u32 %adds, %r15, 0;
{left}ld.global.u32 %m, [%q10+{metadata}];
{branches}trap;
{arms}NEXT:
add.u64 %q9, %q9, {step};
sub.u32 %r5, %r5, 1;
setp.ne.u32 %p, %r5, 0;
@%p bra STEP;
mul.wide.u32 %q8, %r1, {out};
add.u64 %q8, %q8, %q7;
add.u64 %q8, %q8, %q2;
{store}ret;
}}
",
        version.0,
        version.1,
        4 * RECORD,
        chunk = 16 * THREADS,
        out = registers * ROW,
    )
}

/// Returns an instruction with the synchronisation that it needs.
pub fn stage(instruction: &str) -> String {
    format!(
        "wgmma.fence.sync.aligned;\n{instruction}\nwgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;\n"
    )
}
