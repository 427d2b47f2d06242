//! Instructions of the tensor cores. Sources: "Asynchronous Warpgroup Level Matrix Instructions",
//! "stmatrix", "setmaxnreg".

use std::borrow::Cow;

use inkwell::attributes::{Attribute, AttributeLoc};
use inkwell::types::{BasicMetadataTypeEnum, BasicType as _, BasicTypeEnum};
use inkwell::values::{BasicMetadataValueEnum, BasicValue as _, BasicValueEnum};
use tma_front::check::mma::sparse::metadata_of_band;
use tma_front::ir::MmaOp;
use tma_model::mma::{Form, Major, Operand as Element};

use super::Operand::{self, B16, B32, B64, F32, Shared};
use super::{Cx, Effect, Instruction, Lower, memory};
use crate::backend::BackendError;

/// Instructions that write registers in place, and read them before if the registers are tied.
pub(in crate::lower) struct InPlace {
    pub(super) text: String,
    pub(super) register: Operand,
    pub(super) count: usize,
    pub(super) before: PreviousValue,
    pub(super) operands: Vec<Operand>,
    /// Whether writing those registers is the only effect.
    pub(super) is_pure: bool,
    /// Whether several threads execute it together.
    pub(super) is_convergent: bool,
    pub(super) ptx: u32,
}

/// The treatment of the previous values in the registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::lower) enum PreviousValue {
    /// The previous values are not read. No operand shares a register with the results, which are
    /// written while operands are still read.
    Discarded,
    /// The previous values are operands in the same registers.
    Tied,
    /// The previous values are moved to fresh registers first.
    Copied,
}

/// The operands of a multiplication, and how it reads them.
pub(in crate::lower) struct Multiplication {
    /// The form of the instruction.
    pub(in crate::lower) form: Form,
    /// The operation.
    pub(in crate::lower) op: MmaOp,
    /// The number of accumulator registers per instruction.
    pub(in crate::lower) registers: usize,
    /// The register type of `D`.
    pub(in crate::lower) register: Operand,
    /// The treatment of the accumulator's previous value by the first instruction of each band.
    pub(in crate::lower) before: PreviousValue,
    /// The steps along K, and within each the bands of 64 rows.
    pub(in crate::lower) steps: Vec<Vec<Step>>,
    pub(in crate::lower) left: Side,
    pub(in crate::lower) right: Side,
}

/// The modifiers of one operand.
#[derive(Clone, Copy)]
pub(in crate::lower) struct Side {
    pub(in crate::lower) negated: bool,
    /// The major dimension, for an operand in shared memory whose element type can be transposed.
    pub(in crate::lower) major: Option<Major>,
}

/// The operands of one instruction.
pub(in crate::lower) struct Step {
    pub(in crate::lower) left: LeftOperandSource,
    /// The offset to add to the right operand's descriptor.
    pub(in crate::lower) right: u32,
    /// The metadata of a sparse left operand.
    pub(in crate::lower) metadata: Option<Metadata>,
}

/// The metadata of one instruction's left operand.
pub(in crate::lower) struct Metadata {
    /// The index among the metadata registers of all instructions.
    register: usize,
    /// The selector of the threads, out of each four, that hold it.
    selector: u32,
}

impl Metadata {
    /// Returns the metadata for step `step` of `steps` and a band of 64 rows.
    pub(in crate::lower) fn of(element: Element, steps: u32, step: u32, band: u32) -> Self {
        let (each, per_band) = (element.selectors(), metadata_of_band(element, steps));
        Self { register: (band * per_band + step / each) as usize, selector: step % each }
    }
}

/// The left operand of one instruction.
pub(in crate::lower) enum LeftOperandSource {
    /// The offset to add to its descriptor.
    Shared(u32),
    /// The first of its registers.
    Registers(usize),
}

/// Returns a whole multiplication: the fence before it, its instructions, and the commit of its
/// group.
///
/// The operands are the left one (a descriptor or registers), the right one's descriptor, and the
/// registers of metadata. The multiplication is a single text, so nothing can be scheduled in
/// between: ptxas serialises a multiplication whose accumulator is accessed before it ends.
pub(in crate::lower) fn multiply(
    multiplication: &Multiplication,
    left_registers: usize,
    metadata_registers: usize,
) -> InPlace {
    let Multiplication { form, op, registers, register, before, steps, .. } = multiplication;
    let bands = steps.first().map_or(0, Vec::len);
    let count = registers * bands;
    let begins = *before == PreviousValue::Discarded;
    let first_operand = if begins { count } else { 2 * count };
    let left_operands = left_registers.max(1);
    let right = format!("${}", first_operand + left_operands);
    let first_metadata = first_operand + left_operands + 1;
    let sparse = if form.sparse { ".sp" } else { "" };
    let mut lines = vec!["{".to_owned(), ".reg .b64 %left, %right;".to_owned()];
    if *before == PreviousValue::Copied {
        lines.extend((0..count).map(|i| format!("mov.b32 ${i}, ${};", count + i)));
    }
    lines.push("wgmma.fence.sync.aligned;".to_owned());
    for (number, step) in steps.iter().enumerate() {
        for (band, Step { left, right: right_offset, metadata }) in step.iter().enumerate() {
            let left = match left {
                LeftOperandSource::Shared(offset) => {
                    moved(&mut lines, "%left", &format!("${first_operand}"), *offset)
                }
                LeftOperandSource::Registers(first) => {
                    list(first_operand + first, Form::LEFT_REGISTERS as usize)
                }
            };
            let right = moved(&mut lines, "%right", &right, *right_offset);
            let d = list(band * registers, *registers);
            let metadata = metadata.as_ref().map_or(String::new(), |Metadata { register, selector }| {
                format!(", ${}, {selector}", first_metadata + register)
            });
            let adds = u32::from(!begins || number > 0);
            lines.push(format!(
                "wgmma.mma_async{sparse}.sync.aligned.{form}{} {d}, {left}, {right}{metadata}, {adds}{};",
                suffix(*op),
                immediates(multiplication)
            ));
        }
    }
    lines.extend(["wgmma.commit_group.sync.aligned;".to_owned(), "}".to_owned()]);
    let (major, minor) = form.ptx_version();
    let left = if left_registers > 0 { vec![B32; left_registers] } else { vec![B64] };
    InPlace {
        text: lines.join("\n\t"),
        register: *register,
        count,
        before: *before,
        operands: left.into_iter().chain([B64]).chain(vec![B32; metadata_registers]).collect(),
        is_pure: false,
        is_convergent: true,
        ptx: major * 10 + minor,
    }
}

/// Returns a descriptor advanced by `offset`: the descriptor itself, or the register `name`.
fn moved(lines: &mut Vec<String>, name: &str, descriptor: &str, offset: u32) -> String {
    if offset == 0 {
        return descriptor.to_owned();
    }
    lines.push(format!("add.s64 {name}, {descriptor}, {offset};"));
    name.to_owned()
}

/// Returns this number of operands in braces.
pub(super) fn list(first: usize, count: usize) -> String {
    let all: Vec<_> = (first..first + count).map(|operand| format!("${operand}")).collect();
    format!("{{{}}}", all.join(", "))
}

/// Returns the suffix after the types in the instruction's name.
const fn suffix(op: MmaOp) -> &'static str {
    match op {
        MmaOp::Add => "",
        MmaOp::Saturating => ".satfinite",
        MmaOp::AndPopc => ".and.popc",
    }
}

/// Returns `imm-scale-a`, `imm-scale-b`, `imm-trans-a` and `imm-trans-b`, if the form has them.
fn immediates(multiplication: &Multiplication) -> String {
    let Multiplication { form, left, right, .. } = multiplication;
    let mut all = vec![];
    if form.a.is_negatable() {
        all.extend([left, right].map(|side| if side.negated { -1 } else { 1 }));
    }
    let majors = [left.major, right.major].into_iter().flatten();
    all.extend(majors.map(|major| i32::from(major == Major::Mn)));
    all.iter().map(|value| format!(", {value}")).collect()
}

/// A wait for multiplications of an accumulator.
pub(in crate::lower) struct Wait {
    /// The register type of the accumulator.
    pub(in crate::lower) register: Operand,
    /// The number of the accumulator's registers.
    pub(in crate::lower) registers: usize,
    /// The number of registers that the multiplications read until then.
    pub(in crate::lower) operands: usize,
    /// The number of groups that may be in flight afterwards.
    pub(in crate::lower) pending: u32,
    /// The treatment of the sums.
    pub(in crate::lower) sums: AwaitedSums,
}

/// The treatment of the sums by a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::lower) enum AwaitedSums {
    /// They stay in the registers of the multiplications, which may go on.
    InPlace,
    /// They stay in the registers of the multiplication that began them, and are complete. They are
    /// moved if it turns out that they [have to be](crate::lower::ptxas::new_sums).
    New,
    /// They are complete, and are moved to other registers.
    Moved,
    /// Like `Moved`, by a byte permutation that changes nothing.
    Permuted,
}

/// Returns a wait until at most `pending` groups are in flight.
fn wgmma_wait(wait: &Wait) -> InPlace {
    let mut lines = vec![format!("wgmma.wait_group.sync.aligned {};", wait.pending)];
    let pairs = (0..wait.registers).map(|i| (i, wait.registers + i));
    let before = match wait.sums {
        AwaitedSums::InPlace | AwaitedSums::New => PreviousValue::Tied,
        AwaitedSums::Moved => {
            lines.extend(pairs.map(|(to, from)| format!("mov.b32 ${to}, ${from};")));
            PreviousValue::Copied
        }
        AwaitedSums::Permuted => {
            lines.extend(pairs.map(|(to, from)| format!("prmt.b32 ${to}, ${from}, ${from}, 0x3210;")));
            PreviousValue::Copied
        }
    };
    InPlace {
        text: lines.join("\n\t"),
        register: wait.register,
        count: wait.registers,
        before,
        operands: vec![B32; wait.operands],
        is_pure: false,
        is_convergent: true,
        ptx: 80,
    }
}

/// Emits in-place instructions, and returns the values of the registers afterwards.
pub(in crate::lower) fn emit_in_place<'c>(
    cx: &mut Cx<'c, '_>,
    instruction: &InPlace,
    registers: &[BasicValueEnum<'c>],
    args: &[BasicValueEnum<'c>],
) -> Lower<Vec<BasicValueEnum<'c>>> {
    let results = call_in_place(cx, instruction, registers, args)?;
    parts(cx, results)
}

/// Emits a wait, and returns the values of the registers afterwards.
pub(in crate::lower) fn emit_wait<'c>(
    cx: &mut Cx<'c, '_>,
    wait: &Wait,
    registers: &[BasicValueEnum<'c>],
    operands: &[BasicValueEnum<'c>],
) -> Lower<Vec<BasicValueEnum<'c>>> {
    let results = call_in_place(cx, &wgmma_wait(wait), registers, operands)?;
    if wait.sums == AwaitedSums::New {
        cx.new_sums.extend(results.as_instruction_value());
    }
    parts(cx, results)
}

/// Emits in-place instructions, and returns the result of the call: a structure, unless there is
/// only one register.
fn call_in_place<'c>(
    cx: &mut Cx<'c, '_>,
    instruction: &InPlace,
    registers: &[BasicValueEnum<'c>],
    args: &[BasicValueEnum<'c>],
) -> Lower<BasicValueEnum<'c>> {
    let InPlace { text, register, count, before, operands, is_pure, is_convergent, ptx } = instruction;
    cx.ptx_version = cx.ptx_version.max(*ptx);
    let letter = register.constraint();
    let (output, read) = match before {
        PreviousValue::Discarded => (format!("=&{letter}"), vec![]),
        PreviousValue::Tied => (format!("={letter}"), (0..*count).map(|i| i.to_string()).collect()),
        PreviousValue::Copied => (format!("=&{letter}"), vec![letter.to_owned(); *count]),
    };
    let tied = read.len();
    let constraints: Vec<_> = std::iter::repeat_n(output, *count)
        .chain(read)
        .chain(operands.iter().map(|operand| operand.constraint().to_owned()))
        .chain((!is_pure).then(|| "~{memory}".to_owned()))
        .collect();
    let inputs: Vec<_> = registers.iter().take(tied).chain(args).copied().collect();
    let types: Vec<BasicTypeEnum<'c>> = inputs.iter().map(BasicValueEnum::get_type).collect();
    let wanted = std::iter::repeat_n(register, tied).chain(operands).map(|operand| operand.ty(cx));
    if !wanted.eq(types.iter().copied()) {
        return Err(BackendError::Unchecked(format!("operands that `{text}` does not take")));
    }
    let types: Vec<BasicMetadataTypeEnum<'c>> = types.into_iter().map(Into::into).collect();
    // LLVM has no structure of one result.
    let ty = match *count {
        1 => register.ty(cx).fn_type(&types, false),
        _ => cx.context.struct_type(&vec![register.ty(cx); *count], false).fn_type(&types, false),
    };
    let assembly =
        cx.context.create_inline_asm(ty, text.clone(), constraints.join(","), !is_pure, false, None, false);
    let inputs: Vec<BasicMetadataValueEnum<'c>> = inputs.into_iter().map(Into::into).collect();
    let call = cx.builder.build_indirect_call(ty, assembly, &inputs, "")?;
    // The value of the `memory` attribute is a set of accesses, and 0 is the empty set.
    let of_registers: &[&str] = if *is_pure { &["willreturn", "memory"] } else { &[] };
    let of_threads: &[&str] = if *is_convergent { &["convergent"] } else { &[] };
    for name in ["nounwind"].iter().chain(of_threads).chain(of_registers) {
        let attribute = cx.context.create_enum_attribute(Attribute::get_named_enum_kind_id(name), 0);
        call.add_attribute(AttributeLoc::Function, attribute);
    }
    let results = call.try_as_basic_value().basic();
    results.ok_or_else(|| BackendError::Unchecked(format!("the results of `{text}`")))
}

/// Emits the parts of a structure, or returns the only result.
fn parts<'c>(cx: &Cx<'c, '_>, results: BasicValueEnum<'c>) -> Lower<Vec<BasicValueEnum<'c>>> {
    let Some(all) = results.is_struct_value().then(|| results.into_struct_value()) else {
        return Ok(vec![results]);
    };
    let part = |i| Ok(cx.builder.build_extract_value(all, i, "")?);
    (0..all.get_type().count_fields()).map(part).collect()
}

/// Stores 8 × 8 matrices of 16-bit elements, one per register.
pub(in crate::lower) fn stmatrix(registers: usize) -> Instruction {
    let all: Vec<_> = (1..=registers).map(|i| format!("${i}")).collect();
    Instruction {
        text: Cow::Owned(format!(
            "stmatrix.sync.aligned.m8n8.x{registers}.shared.b16 [$0], {{{}}};",
            all.join(", ")
        )),
        result: None,
        operands: Cow::Owned([Shared].into_iter().chain(std::iter::repeat_n(B32, registers)).collect()),
        effect: Effect::Convergent,
        ptx: 78,
    }
}

/// Converts two f32 to two elements in one register, the second in the high half.
pub(in crate::lower) fn packed(element: &str, saturates: bool) -> Instruction {
    let saturation = if saturates { ".satfinite" } else { "" };
    Instruction {
        text: Cow::Owned(format!("cvt.rn{saturation}.{element}x2.f32 $0, $2, $1;")),
        result: Some(if saturates { B16 } else { B32 }),
        operands: Cow::Borrowed(&[F32, F32]),
        effect: Effect::Pure,
        ptx: if saturates { 78 } else { 70 },
    }
}

pub(in crate::lower) fn set_max_registers(increase: bool, registers: u32) -> Instruction {
    let variant = if increase { "inc" } else { "dec" };
    Instruction {
        text: Cow::Owned(format!("setmaxnreg.{variant}.sync.aligned.u32 {registers};")),
        result: None,
        operands: Cow::Borrowed(&[]),
        effect: Effect::Convergent,
        ptx: 80,
    }
}

pub(in crate::lower) const ARRIVE_NAMED: Instruction = memory("barrier.arrive $0, $1;", &[B32, B32], 60);
