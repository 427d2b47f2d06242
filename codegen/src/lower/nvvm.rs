//! Every PTX instruction that LLVM IR has no operation for: the one place with assembly strings.
//!
//! An entry says what its operands are, what it means to the optimiser and which PTX version knows it; a kernel's
//! PTX version is the greatest of those it uses. All sources are chapters of the PTX ISA; "PTX" is the version in
//! the chapter's notes, as major × 10 + minor.

use inkwell::AddressSpace;
use inkwell::attributes::{Attribute, AttributeLoc};
use inkwell::types::{BasicMetadataTypeEnum, BasicType, BasicTypeEnum};
use inkwell::values::{BasicMetadataValueEnum, BasicValueEnum};

use super::types::{GENERIC, GLOBAL, SHARED};
use super::{Cx, Lower};
use crate::backend::BackendError;
use crate::ir::{AtomicOp, Scalar};

/// What an operand is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operand {
    /// A predicate.
    Pred,
    /// 16 bits.
    B16,
    /// 32 bits.
    B32,
    /// 64 bits.
    B64,
    /// An f32.
    F32,
    /// An f64.
    F64,
    /// A 32-bit number in the instruction itself.
    Immediate,
    /// An address in shared memory, in 32 bits.
    Shared,
    /// An address in global memory.
    Global,
    /// A generic address.
    Generic,
}

use Operand::{B16, B32, B64, F32, F64, Generic, Global, Immediate, Pred, Shared};

/// What the optimiser has to know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    /// Only the result: may be moved, merged and dropped.
    Pure,
    /// Reads or writes memory: stays where it is among other accesses.
    Memory,
    /// Memory, and threads meet: must not be made to depend on more or fewer conditions than it does, nor be
    /// duplicated.
    Convergent,
}

/// An instruction. `$n` in its text counts the result, if there is one, and then the operands.
#[derive(Debug)]
pub(super) struct Instruction {
    text: &'static str,
    result: Option<Operand>,
    operands: &'static [Operand],
    effect: Effect,
    ptx: u32,
}

const fn pure(text: &'static str, result: Operand, operands: &'static [Operand], ptx: u32) -> Instruction {
    Instruction { text, result: Some(result), operands, effect: Effect::Pure, ptx }
}

const fn memory(text: &'static str, operands: &'static [Operand], ptx: u32) -> Instruction {
    Instruction { text, result: None, operands, effect: Effect::Memory, ptx }
}

const fn convergent(text: &'static str, operands: &'static [Operand], ptx: u32) -> Instruction {
    Instruction { text, result: None, operands, effect: Effect::Convergent, ptx }
}

// "Floating Point Instructions", without `.ftz`: subnormal numbers are kept.

pub(super) const RSQRT: Instruction = pure("rsqrt.approx.f32 $0, $1;", F32, &[F32], 14);
pub(super) const EX2: Instruction = pure("ex2.approx.f32 $0, $1;", F32, &[F32], 14);
pub(super) const LG2: Instruction = pure("lg2.approx.f32 $0, $1;", F32, &[F32], 14);

// "cvt": two 8-bit floats at a time, the first operand in the upper half. Only the lower one is used; the upper
// one is a zero, which needs no register.

pub(super) const F32_TO_E4M3: Instruction =
    pure("cvt.rn.satfinite.e4m3x2.f32 $0, 0f00000000, $1;", B16, &[F32], 78);
pub(super) const F32_TO_E5M2: Instruction =
    pure("cvt.rn.satfinite.e5m2x2.f32 $0, 0f00000000, $1;", B16, &[F32], 78);
pub(super) const E4M3_TO_F16X2: Instruction = pure("cvt.rn.f16x2.e4m3x2 $0, $1;", B32, &[B16], 78);
pub(super) const E5M2_TO_F16X2: Instruction = pure("cvt.rn.f16x2.e5m2x2 $0, $1;", B32, &[B16], 78);

// "barrier", "bar.warp.sync", "elect.sync".

pub(super) const SYNC_THREADS: Instruction = convergent("barrier.sync.aligned 0;", &[], 60);
pub(super) const SYNC_WARP: Instruction = convergent("bar.warp.sync 0xffffffff;", &[], 60);
pub(super) const SYNC_NAMED: Instruction = convergent("barrier.sync $0, $1;", &[B32, B32], 60);
pub(super) const ELECT: Instruction = Instruction {
    text: "elect.sync _|$0, 0xffffffff;",
    result: Some(Pred),
    operands: &[],
    effect: Effect::Convergent,
    ptx: 80,
};

// "atom".

macro_rules! atomic {
    ($what:literal, $operand:ident) => {
        Some(Instruction {
            text: concat!("atom.relaxed.gpu.global.", $what, " $0, [$1], $2;"),
            result: Some($operand),
            operands: &[Global, $operand],
            effect: Effect::Memory,
            ptx: 60,
        })
    };
}

/// Operands: the address, the value. `None` where there is no such operation.
pub(super) fn atomic(op: AtomicOp, scalar: Scalar) -> Option<Instruction> {
    match (op, scalar) {
        (AtomicOp::Add, Scalar::F32) => atomic!("add.f32", F32),
        (AtomicOp::Add, Scalar::F64) => atomic!("add.f64", F64),
        (AtomicOp::Add, Scalar::I32 | Scalar::U32) => atomic!("add.u32", B32),
        (AtomicOp::Min, Scalar::I32) => atomic!("min.s32", B32),
        (AtomicOp::Min, Scalar::U32) => atomic!("min.u32", B32),
        (AtomicOp::Max, Scalar::I32) => atomic!("max.s32", B32),
        (AtomicOp::Max, Scalar::U32) => atomic!("max.u32", B32),
        (AtomicOp::And, Scalar::I32 | Scalar::U32) => atomic!("and.b32", B32),
        (AtomicOp::Or, Scalar::I32 | Scalar::U32) => atomic!("or.b32", B32),
        (AtomicOp::Xor, Scalar::I32 | Scalar::U32) => atomic!("xor.b32", B32),
        (AtomicOp::Exchange, Scalar::I32 | Scalar::U32) => atomic!("exch.b32", B32),
        (AtomicOp::Add, Scalar::I64 | Scalar::U64 | Scalar::Usize) => atomic!("add.u64", B64),
        (AtomicOp::Min, Scalar::I64) => atomic!("min.s64", B64),
        (AtomicOp::Min, Scalar::U64 | Scalar::Usize) => atomic!("min.u64", B64),
        (AtomicOp::Max, Scalar::I64) => atomic!("max.s64", B64),
        (AtomicOp::Max, Scalar::U64 | Scalar::Usize) => atomic!("max.u64", B64),
        (AtomicOp::And, Scalar::I64 | Scalar::U64 | Scalar::Usize) => atomic!("and.b64", B64),
        (AtomicOp::Or, Scalar::I64 | Scalar::U64 | Scalar::Usize) => atomic!("or.b64", B64),
        (AtomicOp::Xor, Scalar::I64 | Scalar::U64 | Scalar::Usize) => atomic!("xor.b64", B64),
        (AtomicOp::Exchange, Scalar::I64 | Scalar::U64 | Scalar::Usize) => atomic!("exch.b64", B64),
        _ => None,
    }
}

// "membar / fence".

pub(super) const FENCE_PROXY_ASYNC: Instruction = memory("fence.proxy.async.shared::cta;", &[], 80);
pub(super) const FENCE_MBARRIER_INIT: Instruction = memory("fence.mbarrier_init.release.cluster;", &[], 80);

// "mbarrier".

pub(super) const MBARRIER_INIT: Instruction =
    memory("mbarrier.init.shared::cta.b64 [$0], $1;", &[Shared, B32], 78);
pub(super) const MBARRIER_INVAL: Instruction = memory("mbarrier.inval.shared::cta.b64 [$0];", &[Shared], 78);
pub(super) const MBARRIER_ARRIVE: Instruction =
    memory("mbarrier.arrive.shared::cta.b64 _, [$0];", &[Shared], 78);
pub(super) const MBARRIER_ARRIVE_EXPECT_TX: Instruction =
    memory("mbarrier.arrive.expect_tx.shared::cta.b64 _, [$0], $1;", &[Shared, B32], 80);
pub(super) const MBARRIER_EXPECT_TX: Instruction =
    memory("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [$0], $1;", &[Shared, B32], 80);
pub(super) const MBARRIER_TRY_WAIT: Instruction = Instruction {
    text: "mbarrier.try_wait.parity.shared::cta.b64 $0, [$1], $2;",
    result: Some(Pred),
    operands: &[Shared, B32],
    effect: Effect::Convergent,
    ptx: 78,
};

/// Waits without end. The loop is part of the text, so that LLVM neither unrolls nor rotates it.
pub(super) const MBARRIER_WAIT: Instruction = convergent(
    "{\n\
     \t.reg .pred %done;\n\
     wait_${:uid}:\n\
     \tmbarrier.try_wait.parity.shared::cta.b64 %done, [$0], $1;\n\
     \t@!%done bra wait_${:uid};\n\
     \t}",
    &[Shared, B32],
    78,
);

// "cp.async.bulk.tensor", "prefetch", "cp.async.bulk.commit_group", "cp.async.bulk.wait_group". Coordinates are
// innermost first.

macro_rules! tile_load {
    ($rank:literal, $space:literal, $ptx:literal, $coordinates:literal, $barrier:literal, [$($coordinate:ident),+]) => {
        memory(
            concat!(
                "cp.async.bulk.tensor.", $rank, "d.", $space, ".global.tile.mbarrier::complete_tx::bytes ",
                "[$0], [$1, {", $coordinates, "}], [", $barrier, "];"
            ),
            &[Shared, Generic, $($coordinate,)+ Shared],
            $ptx,
        )
    };
}

macro_rules! tile_loads {
    ($space:literal, $ptx:literal) => {
        [
            tile_load!("1", $space, $ptx, "$2", "$3", [B32]),
            tile_load!("2", $space, $ptx, "$2, $3", "$4", [B32, B32]),
            tile_load!("3", $space, $ptx, "$2, $3, $4", "$5", [B32, B32, B32]),
            tile_load!("4", $space, $ptx, "$2, $3, $4, $5", "$6", [B32, B32, B32, B32]),
            tile_load!("5", $space, $ptx, "$2, $3, $4, $5, $6", "$7", [B32, B32, B32, B32, B32]),
        ]
    };
}

macro_rules! tile_store {
    ($rank:literal, $coordinates:literal, $tile:literal, [$($coordinate:ident),+]) => {
        memory(
            concat!(
                "cp.async.bulk.tensor.", $rank, "d.global.shared::cta.tile.bulk_group ",
                "[$0, {", $coordinates, "}], [", $tile, "];"
            ),
            &[Generic, $($coordinate,)+ Shared],
            80,
        )
    };
}

/// Operands: the tile, the map, the coordinates, the barrier. By rank, from 1.
pub(super) static TILE_LOAD: [Instruction; 5] = tile_loads!("shared::cta", 86);

/// [`TILE_LOAD`] before it could name the block's own memory: as a part of the cluster's.
pub(super) static TILE_LOAD_BEFORE_86: [Instruction; 5] = tile_loads!("shared::cluster", 80);

/// Operands: the map, the coordinates, the tile. By rank, from 1.
pub(super) static TILE_STORE: [Instruction; 5] = [
    tile_store!("1", "$1", "$2", [B32]),
    tile_store!("2", "$1, $2", "$3", [B32, B32]),
    tile_store!("3", "$1, $2, $3", "$4", [B32, B32, B32]),
    tile_store!("4", "$1, $2, $3, $4", "$5", [B32, B32, B32, B32]),
    tile_store!("5", "$1, $2, $3, $4, $5", "$6", [B32, B32, B32, B32, B32]),
];

pub(super) const PREFETCH_TENSOR_MAP: Instruction = memory("prefetch.tensormap [$0];", &[Generic], 80);
pub(super) const BULK_COMMIT_GROUP: Instruction = memory("cp.async.bulk.commit_group;", &[], 80);
pub(super) const BULK_WAIT_GROUP: Instruction = memory("cp.async.bulk.wait_group $0;", &[Immediate], 80);
pub(super) const BULK_WAIT_GROUP_READ: Instruction =
    memory("cp.async.bulk.wait_group.read $0;", &[Immediate], 80);

impl Operand {
    /// LLVM's letter for it. Source: LLVM, "LLVM Language Reference Manual", "Inline Assembler Expressions",
    /// "Supported Constraint Code List", NVPTX; `b` is in `NVPTXISelLowering.cpp`.
    const fn constraint(self) -> &'static str {
        match self {
            Pred => "b",
            B16 => "h",
            B32 | Shared => "r",
            F32 => "f",
            F64 => "d",
            Immediate => "n",
            B64 | Global | Generic => "l",
        }
    }

    fn ty<'c>(self, cx: &Cx<'c, '_>) -> BasicTypeEnum<'c> {
        let pointer = |space| cx.context.ptr_type(AddressSpace::from(space)).into();
        match self {
            Pred => cx.context.bool_type().into(),
            B16 => cx.context.i16_type().into(),
            B32 | Immediate => cx.context.i32_type().into(),
            B64 => cx.context.i64_type().into(),
            F32 => cx.context.f32_type().into(),
            F64 => cx.context.f64_type().into(),
            Global => pointer(GLOBAL),
            Shared => pointer(SHARED),
            Generic => pointer(GENERIC),
        }
    }
}

/// The constraints of `instruction`, as LLVM wants them.
fn constraints(instruction: &Instruction) -> String {
    let result = instruction.result.map(|operand| format!("={}", operand.constraint()));
    let operands = instruction.operands.iter().map(|operand| operand.constraint().to_owned());
    let clobber = (instruction.effect != Effect::Pure).then(|| "~{memory}".to_owned());
    result.into_iter().chain(operands).chain(clobber).collect::<Vec<_>>().join(",")
}

/// Emits `instruction`.
pub(super) fn emit<'c>(
    cx: &mut Cx<'c, '_>,
    instruction: &Instruction,
    args: &[BasicValueEnum<'c>],
) -> Lower<Option<BasicValueEnum<'c>>> {
    let types: Vec<_> = instruction.operands.iter().map(|operand| operand.ty(cx)).collect();
    if !types.iter().copied().eq(args.iter().map(BasicValueEnum::get_type)) {
        return Err(BackendError::Unchecked(format!("operands that `{}` does not take", instruction.text)));
    }
    cx.ptx_version = cx.ptx_version.max(instruction.ptx);

    let types: Vec<BasicMetadataTypeEnum<'c>> = types.into_iter().map(Into::into).collect();
    let ty = match instruction.result {
        Some(result) => result.ty(cx).fn_type(&types, false),
        None => cx.context.void_type().fn_type(&types, false),
    };
    let assembly = cx.context.create_inline_asm(
        ty,
        instruction.text.to_owned(),
        constraints(instruction),
        instruction.effect != Effect::Pure,
        false,
        None,
        false,
    );
    let args: Vec<BasicMetadataValueEnum<'c>> = args.iter().map(|&arg| arg.into()).collect();
    let call = cx.builder.build_indirect_call(ty, assembly, &args, "")?;
    // The value of `memory` is a set of accesses, of which 0 is none.
    let attributes: &[&str] = match instruction.effect {
        Effect::Pure => &["nounwind", "willreturn", "memory"],
        Effect::Memory => &["nounwind"],
        Effect::Convergent => &["nounwind", "convergent"],
    };
    for name in attributes {
        let attribute = cx.context.create_enum_attribute(Attribute::get_named_enum_kind_id(name), 0);
        call.add_attribute(AttributeLoc::Function, attribute);
    }
    Ok(call.try_as_basic_value().basic())
}

/// Emits an `instruction` that has a result.
pub(super) fn emit_value<'c>(
    cx: &mut Cx<'c, '_>,
    instruction: &Instruction,
    args: &[BasicValueEnum<'c>],
) -> Lower<BasicValueEnum<'c>> {
    emit(cx, instruction, args)?
        .ok_or_else(|| BackendError::Unchecked(format!("a result of `{}`, which has none", instruction.text)))
}
