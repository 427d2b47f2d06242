//! Lowers a [`TargetKernel`] to LLVM: one module with one `ptx_kernel` function.
//!
//! * [`kernel`]: the function's signature, attributes and prologue.
//! * [`stmt`] and [`control`]: statements without and with control flow.
//! * [`expr`], [`arith`] and [`cast`]: values.
//! * [`locals`]: locals and register arrays; [`tile`] and [`memory`]: shared and global memory;
//!   [`bounds`]: checks of indices and divisors.
//! * [`peers`]: memory of the ranks of a team.
//! * [`cluster`]: shared memory of other blocks, and slices of a load.
//! * [`barrier`], [`tma`] and [`sync`]: asynchronous operations. Their instructions come from
//!   [`nvvm`], the one table of instructions that LLVM IR cannot express.
//! * [`mma`]: tensor core multiplications, and operations on accumulators.
//! * [`print`]: `printf!`, `print_tile`, `assert!` and `trap`. [`debug`]: line information.
//! * [`ptxas`]: workarounds for ptxas, NVIDIA's assembler.
//!
//! A local is an `alloca`, and reading it a `load`; LLVM's O3 promotes them to registers. A handle
//! (tile, barrier, array, stages) is a `ptr addrspace(3)`, and one of another block a
//! `ptr addrspace(7)`. A `bool` is `i1` in registers and `i8` in memory and parameters; an 8-bit
//! float is `i8`. Integer operations wrap, unless a check precedes them, and have neither `nsw` nor
//! `nuw`. Float operations have no fast-math flags, which prevents contraction and reassociation.
//!
//! Lowering never fails because of a mistake of the user. A construct that `check` should have
//! rejected, and that cannot be lowered, results in [`BackendError::Unchecked`].

#![warn(clippy::wildcard_enum_match_arm)]

mod arith;
mod barrier;
mod bounds;
mod bulk;
mod cluster;
mod control;
mod debug;
mod descriptor;
mod expr;
mod kernel;
mod locals;
mod memory;
mod mma;
mod nvvm;
mod peers;
mod print;
mod ptx;
pub(crate) mod ptxas;
mod stmt;
mod sync;
#[cfg(test)]
mod tests;
mod tile;
mod tma;
mod types;
mod warp;

use std::collections::{HashMap, HashSet};

use inkwell::basic_block::BasicBlock;
use inkwell::builder::Builder;
use inkwell::context::Context;
use inkwell::intrinsics::Intrinsic;
use inkwell::module::Module;
use inkwell::types::BasicTypeEnum;
use inkwell::values::{
    BasicMetadataValueEnum, BasicValueEnum, FunctionValue, InstructionValue, PointerValue,
};
use tma_front::check::{CheckedKernel, TargetKernel};
use tma_front::ir::{Cluster, Label};
use tma_front::target::Target;

use crate::Checks;
use crate::backend::{BackendError, Source};
use arith::{cast, integer};
use memory::vector;
use ptxas::Workarounds;
use ptxas::new_sums::NewSums;

/// The result of lowering.
type Lower<T> = Result<T, BackendError>;

/// A lowered kernel.
pub(crate) struct Lowered<'c> {
    /// The module of the kernel, not yet verified.
    pub(crate) module: Module<'c>,
    /// The minimum PTX version for the target and the instructions, as major × 10 + minor.
    pub(crate) ptx_version: u32,
    /// The waits that leave new sums in their registers.
    pub(crate) new_sums: NewSums,
}

/// Lowers a kernel to an LLVM module for the target that it was checked for. `source` names the
/// file for line information.
///
/// # Errors
/// LLVM rejected an instruction, or the kernel was not settled. Both are bugs of this crate.
pub(crate) fn lower<'c>(
    context: &'c Context,
    kernel: &TargetKernel,
    source: &Source<'_>,
    checks: Checks,
    workarounds: Workarounds,
) -> Result<Lowered<'c>, BackendError> {
    let checked = kernel.kernel().kernel();
    let module = context.create_module(&checked.path());
    let mut cx = kernel::declare(context, &module, kernel, source, checks)?;
    cx.workarounds = workarounds;
    stmt::block(&mut cx, &checked.body)?;
    kernel::finish(&cx)?;
    let ptx_version = cx.ptx_version;
    let new_sums = NewSums::in_module(&module, &cx.new_sums);
    drop(cx);
    Ok(Lowered { module, ptx_version, new_sums })
}

/// Returns a number of 64 bits that is known to fit 32.
fn narrow(number: u64) -> Lower<u32> {
    u32::try_from(number)
        .map_err(|_| BackendError::Unchecked(format!("{number}, which needs more than 32 bits")))
}

/// The state of lowering one kernel.
struct Cx<'c, 'k> {
    context: &'c Context,
    module: &'k Module<'c>,
    target: Target,
    /// Whether it multiplies on the tensor cores, and must therefore contain no calls.
    has_mma: bool,
    /// Whether its threads access tiles or arrays of other blocks.
    reaches_others: bool,
    /// Whether single elements of f16 accumulators are accessed, of which a register holds two.
    splits_packed_f16: bool,
    /// The workarounds for ptxas to apply.
    workarounds: Workarounds,
    /// The waits that leave new sums in their registers.
    new_sums: HashSet<InstructionValue<'c>>,
    /// Whether the kernel checks what Rust's debug builds check.
    checked: bool,
    /// The insertion point.
    builder: Builder<'c>,
    /// The end of the entry block, which holds every `alloca` and nothing else.
    allocas: Builder<'c>,
    kernel: &'k CheckedKernel,
    function: FunctionValue<'c>,
    /// The first block of the body.
    body: BasicBlock<'c>,
    params: Vec<kernel::Param<'c>>,
    /// The alloca of each local, by id.
    locals: Vec<PointerValue<'c>>,
    /// The beginning of the block's shared memory.
    shared: PointerValue<'c>,
    /// The targets of the labels around the current statement.
    exits: HashMap<Label, Exits<'c>>,
    /// The constant strings created so far.
    strings: HashMap<String, PointerValue<'c>>,
    /// Whether the current statement is in a loop, and multiplications are in flight there, or at
    /// the entry or exit of the loop.
    is_in_flight: bool,
    /// The blocks that report failed assertions in a kernel with multiplications, by line, column,
    /// message and `is_in_flight`.
    failures: HashMap<(u32, u32, String, bool), BasicBlock<'c>>,
    lines: debug::Lines<'c>,
    /// The source file, as messages show it.
    path: &'k str,
    /// The greatest PTX version required so far.
    ptx_version: u32,
}

/// The targets of a label's `break` (or `leave`) and `continue`. A labelled block has no
/// `continue`.
#[derive(Clone, Copy)]
struct Exits<'c> {
    leave: BasicBlock<'c>,
    next: BasicBlock<'c>,
}

impl<'c> Cx<'c, '_> {
    /// Whether blocks form clusters and may access each other's shared memory.
    fn has_clusters(&self) -> bool {
        self.kernel.kernel().launch.cluster != Cluster::None
    }

    /// Appends a new block to the function.
    fn new_block(&self, name: &str) -> BasicBlock<'c> {
        self.context.append_basic_block(self.function, name)
    }

    /// Ends the current block with a branch to `block`.
    fn branch_to(&self, block: BasicBlock<'c>) -> Lower<()> {
        self.builder.build_unconditional_branch(block)?;
        Ok(())
    }

    /// Continues in an unreachable block, after a `break` or a `return`.
    fn unreachable_from_here(&self) {
        self.builder.position_at_end(self.new_block("dead"));
    }

    /// Calls an LLVM intrinsic. `overload` holds the types it is overloaded on.
    fn intrinsic(
        &self,
        name: &str,
        overload: &[BasicTypeEnum<'c>],
        args: &[BasicMetadataValueEnum<'c>],
    ) -> Lower<Option<BasicValueEnum<'c>>> {
        let function = Intrinsic::find(name)
            .and_then(|intrinsic| intrinsic.get_declaration(self.module, overload))
            .ok_or_else(|| BackendError::Unchecked(format!("the intrinsic `{name}`, which LLVM lacks")))?;
        Ok(self.builder.build_call(function, args, "")?.try_as_basic_value().basic())
    }

    /// Calls an LLVM intrinsic that returns a value.
    fn intrinsic_value(
        &self,
        name: &str,
        overload: &[BasicTypeEnum<'c>],
        args: &[BasicMetadataValueEnum<'c>],
    ) -> Lower<BasicValueEnum<'c>> {
        self.intrinsic(name, overload, args)?
            .ok_or_else(|| BackendError::Unchecked(format!("a value of `{name}`, which has none")))
    }
}
