//! Instructions of the tensor cores. Sources: "Asynchronous Warpgroup Level Matrix Instructions",
//! "stmatrix", "setmaxnreg".

use std::borrow::Cow;

use inkwell::attributes::{Attribute, AttributeLoc};
use inkwell::types::{BasicMetadataTypeEnum, BasicType as _, BasicTypeEnum};
use inkwell::values::{BasicMetadataValueEnum, BasicValueEnum, StructValue};
use tma_model::mma::{Form, Major, Operand as Element};

use super::Operand::{self, B16, B32, B64, F32, Shared};
use super::apart::BETWEEN;
use super::{Cx, Effect, Instruction, Lower, Marked, Operands, mark, memory};
use crate::backend::BackendError;
use crate::check::mma::sparse::metadata_of_band;
use crate::ir::MmaOp;

/// Registers that instructions write, and read before if they are tied.
pub(in crate::lower) struct InPlace {
    pub(super) text: String,
    pub(super) register: Operand,
    pub(super) count: usize,
    pub(super) before: Before,
    pub(super) role: Role,
    pub(super) operands: Vec<Operand>,
    /// Whether it does nothing but write those registers.
    pub(super) is_pure: bool,
    pub(super) ptx: u32,
}

/// What instructions in place do, as far as registers are [kept apart](super::keep_apart) for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::lower) enum Role {
    /// They start to multiply a left operand of so many registers.
    Multiply { left: usize },
    /// They wait for that.
    Wait,
    /// Something else.
    Other,
}

/// What is done with the values that are in the registers before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::lower) enum Before {
    /// They are not read. No operand shares a register with them: they are written while operands
    /// are still read.
    Ignored,
    /// They are added to where they are.
    Kept,
    /// They are moved to registers of their own first.
    ///
    /// ptxas 13.0 takes all multiplications that name a register to work on the same registers in
    /// the same order. If only some elements of an accumulator were written since the last one,
    /// LLVM gives those other registers and keeps the rest, and ptxas gives up (its C7511). Moves
    /// of all of them cost nothing: ptxas makes them the same register where it can.
    Moved,
}

/// The operands of a multiplication, and how it reads them.
pub(in crate::lower) struct Multiplication {
    /// The instruction.
    pub(in crate::lower) form: Form,
    /// What it adds, and how.
    pub(in crate::lower) op: MmaOp,
    /// How many registers of an accumulator one instruction has.
    pub(in crate::lower) registers: usize,
    /// What `D` is in a register.
    pub(in crate::lower) register: Operand,
    /// What the first instruction of each band adds to.
    pub(in crate::lower) before: Before,
    /// For each step along K, and in it each band of 64 rows.
    pub(in crate::lower) steps: Vec<Vec<Step>>,
    pub(in crate::lower) left: Side,
    pub(in crate::lower) right: Side,
}

/// How one operand is read.
#[derive(Clone, Copy)]
pub(in crate::lower) struct Side {
    pub(in crate::lower) negated: bool,
    /// Of an operand in shared memory whose type can be transposed.
    pub(in crate::lower) major: Option<Major>,
}

/// Where one instruction finds its operands.
pub(in crate::lower) struct Step {
    pub(in crate::lower) left: LeftPlace,
    /// What is added to the right operand's descriptor.
    pub(in crate::lower) right: u32,
    /// Of a sparse left operand.
    pub(in crate::lower) metadata: Option<Metadata>,
}

/// Where one instruction finds the metadata of its left operand.
pub(in crate::lower) struct Metadata {
    /// The register among those of all instructions.
    register: usize,
    /// Which of each four threads hold it.
    selector: u32,
}

impl Metadata {
    /// For a step, of so many, of a band of 64 rows.
    pub(in crate::lower) fn of(element: Element, [steps, step]: [u32; 2], band: u32) -> Self {
        let (each, per_band) = (element.selectors(), metadata_of_band(element, steps));
        Self { register: (band * per_band + step / each) as usize, selector: step % each }
    }
}

/// Where one instruction finds its left operand.
pub(in crate::lower) enum LeftPlace {
    /// What is added to its descriptor.
    Shared(u32),
    /// The first of its registers.
    Registers(usize),
}

/// All of a multiplication: the fence before it, its instructions, and the end of its group.
///
/// The operands are the left one, a descriptor or registers, the right one's descriptor, and the
/// registers of metadata. As one
/// text, so that nothing comes in between: ptxas serialises a multiplication whose accumulator is
/// touched on the way.
pub(in crate::lower) fn multiply(
    multiplication: &Multiplication,
    left_registers: usize,
    metadata_registers: usize,
) -> InPlace {
    let Multiplication { form, op, registers, register, before, steps, .. } = multiplication;
    let bands = steps.first().map_or(0, Vec::len);
    let count = registers * bands;
    let begins = *before == Before::Ignored;
    let first_operand = if begins { count } else { 2 * count };
    let left_operands = left_registers.max(1);
    let right = format!("${}", first_operand + left_operands);
    let first_metadata = first_operand + left_operands + 1;
    let sparse = if form.sparse { ".sp" } else { "" };
    let mut lines = vec!["{".to_owned(), ".reg .b64 %left, %right;".to_owned()];
    if *before == Before::Moved {
        lines.extend((0..count).map(|i| format!("mov.b32 ${i}, ${};", count + i)));
    }
    lines.push("wgmma.fence.sync.aligned;".to_owned());
    for (number, step) in steps.iter().enumerate() {
        for (band, Step { left, right: right_offset, metadata }) in step.iter().enumerate() {
            if number + band > 0 && left_registers > 0 {
                lines.push(BETWEEN.to_owned());
            }
            let left = match left {
                LeftPlace::Shared(offset) => {
                    moved(&mut lines, "%left", &format!("${first_operand}"), *offset)
                }
                LeftPlace::Registers(first) => list(first_operand + first, Form::LEFT_REGISTERS as usize),
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
        role: Role::Multiply { left: left_registers },
        operands: left.into_iter().chain([B64]).chain(vec![B32; metadata_registers]).collect(),
        is_pure: false,
        ptx: major * 10 + minor,
    }
}

/// A descriptor moved on by `offset`: as it is, or in the register `name`.
fn moved(lines: &mut Vec<String>, name: &str, descriptor: &str, offset: u32) -> String {
    if offset == 0 {
        return descriptor.to_owned();
    }
    lines.push(format!("add.s64 {name}, {descriptor}, {offset};"));
    name.to_owned()
}

/// So many operands in braces.
pub(super) fn list(first: usize, count: usize) -> String {
    let all: Vec<_> = (first..first + count).map(|operand| format!("${operand}")).collect();
    format!("{{{}}}", all.join(", "))
}

/// What follows the types in the instruction's name.
const fn suffix(op: MmaOp) -> &'static str {
    match op {
        MmaOp::Add => "",
        MmaOp::Saturating => ".satfinite",
        MmaOp::AndPopc => ".and.popc",
    }
}

/// `imm-scale-a`, `imm-scale-b`, `imm-trans-a`, `imm-trans-b`, as far as the form has them.
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
    /// What the accumulator is in a register.
    pub(in crate::lower) register: Operand,
    /// How many registers it has.
    pub(in crate::lower) registers: usize,
    /// How many registers the multiplications read until then.
    pub(in crate::lower) operands: usize,
    /// How many groups may be under way afterwards.
    pub(in crate::lower) pending: u32,
    /// Whether its values are moved out of the registers that the multiplications had. Nothing is
    /// under way in the accumulator afterwards.
    pub(in crate::lower) is_moved: bool,
    /// Whether elements of an accumulator are halves of its registers, and used one by one.
    pub(in crate::lower) halves_apart: bool,
}

/// Waits until at most so many groups are under way, and may move the accumulator's values out of
/// the registers that the multiplications had, as they are [moved](Before::Moved) in.
///
/// ptxas 13.0 makes one operation of those on the two halves of registers, and puts what takes the
/// halves apart before the wait: it then waits there again, and says so (its C7517). The wait names
/// no registers, but the accumulators do not exist before a permutation of their bytes, which
/// changes nothing; a move is not enough.
pub(in crate::lower) fn wgmma_wait(wait: &Wait) -> InPlace {
    let mut lines = vec![format!("wgmma.wait_group.sync.aligned {};", wait.pending)];
    let pairs = (0..wait.registers).map(|i| (i, wait.registers + i)).filter(|_| wait.is_moved);
    lines.extend(pairs.map(|(to, from)| match wait.halves_apart {
        true => format!("prmt.b32 ${to}, ${from}, ${from}, 0x3210;"),
        false => format!("mov.b32 ${to}, ${from};"),
    }));
    InPlace {
        text: lines.join("\n\t"),
        register: wait.register,
        count: wait.registers,
        before: if wait.is_moved { Before::Moved } else { Before::Kept },
        role: Role::Wait,
        operands: vec![B32; wait.operands],
        is_pure: false,
        ptx: 80,
    }
}

/// Emits instructions that work on registers in place: what is in them afterwards.
pub(in crate::lower) fn emit_in_place<'c>(
    cx: &mut Cx<'c, '_>,
    instruction: &InPlace,
    registers: &[BasicValueEnum<'c>],
    args: &[BasicValueEnum<'c>],
) -> Lower<Vec<BasicValueEnum<'c>>> {
    let InPlace { text, register, count, before, role, operands, is_pure, ptx } = instruction;
    cx.ptx_version = cx.ptx_version.max(*ptx);
    let letter = register.constraint();
    let (output, read) = match before {
        Before::Ignored => (format!("=&{letter}"), vec![]),
        Before::Kept => (format!("={letter}"), (0..*count).map(|i| i.to_string()).collect()),
        Before::Moved => (format!("=&{letter}"), vec![letter.to_owned(); *count]),
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
    // The value of `memory` is a set of accesses, of which 0 is none.
    let of_registers: &[&str] = if *is_pure { &["willreturn", "memory"] } else { &[] };
    for name in ["nounwind", "convergent"].iter().chain(of_registers) {
        let attribute = cx.context.create_enum_attribute(Attribute::get_named_enum_kind_id(name), 0);
        call.add_attribute(AttributeLoc::Function, attribute);
    }
    match *role {
        Role::Multiply { left } => {
            let number = |count| u32::try_from(count).unwrap_or(u32::MAX);
            let sums = if *before == Before::Moved { number(tied) } else { 0 };
            let operands = Operands { sums, first_left: number(tied), left: number(left) };
            mark(cx.context, call, Marked::Multiplication(operands));
        }
        Role::Wait => mark(cx.context, call, Marked::Wait),
        Role::Other => {}
    }
    match call.try_as_basic_value().basic() {
        Some(BasicValueEnum::StructValue(results)) => parts(cx, results, *count),
        Some(result) => Ok(vec![result]),
        None => Err(BackendError::Unchecked(format!("the results of `{text}`"))),
    }
}

fn parts<'c>(cx: &Cx<'c, '_>, all: StructValue<'c>, count: usize) -> Lower<Vec<BasicValueEnum<'c>>> {
    let part = |i| Ok(cx.builder.build_extract_value(all, i, "")?);
    (0..u32::try_from(count).unwrap_or(u32::MAX)).map(part).collect()
}

/// Stores matrices of 8 × 8 elements of 16 bits, one a register.
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

/// Two f32, converted to two elements in one register, the second in the high half.
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
    let which = if increase { "inc" } else { "dec" };
    Instruction {
        text: Cow::Owned(format!("setmaxnreg.{which}.sync.aligned.u32 {registers};")),
        result: None,
        operands: Cow::Borrowed(&[]),
        effect: Effect::Convergent,
        ptx: 80,
    }
}

pub(in crate::lower) const ARRIVE_NAMED: Instruction = memory("barrier.arrive $0, $1;", &[B32, B32], 60);
