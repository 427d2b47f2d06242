//! [`TargetKernel`] to LLVM: one module with one `ptx_kernel` function.
//!
//! * [`kernel`]: the function's signature, attributes and prologue.
//! * [`stmt`] and [`control`]: statements, the straight ones and those that branch.
//! * [`expr`], [`arith`] and [`cast`]: values.
//! * [`place`]: locals and register arrays; [`tile`] and [`memory`]: shared and global memory;
//!   [`bounds`]: tests of indices and divisors; [`exact`]: whether an index has wrapped.
//! * [`cluster`]: other blocks of the cluster, and slices of a load.
//! * [`barrier`], [`tma`] and [`sync`]: the asynchronous machine, each instruction by its name in
//!   [`nvvm`], the one table of what LLVM IR has no operation for.
//! * [`mma`]: multiplications by the tensor cores, and what becomes of accumulators.
//! * [`print`]: `printf!`, `print_tile`, `assert!` and `trap`. [`debug`]: lines of the source.
//!
//! A local is an `alloca`, a read of it a `load`; LLVM's O3 makes registers of them. A handle
//! (tile, barrier, array, stages) is a `ptr addrspace(3)`, that of another block a `ptr
//! addrspace(7)`. A `bool` is `i1` in registers and `i8` in memory and parameters, an 8-bit float
//! is `i8`. Integer operations wrap and have no `nsw` or `nuw`; float operations have no fast-math
//! flags, so that nothing is contracted or reassociated.
//!
//! Nothing here can fail for a user's mistake. What `check` refuses, and would have no lowering, is
//! answered with [`BackendError::Unchecked`].

#![warn(clippy::wildcard_enum_match_arm)]

mod arith;
mod barrier;
mod bounds;
mod bulk;
mod cluster;
mod control;
mod debug;
mod descriptor;
mod exact;
mod expr;
mod kernel;
mod memory;
mod mma;
mod nvvm;
mod place;
mod print;
mod stmt;
mod sync;
#[cfg(test)]
mod tests;
mod tile;
mod tma;
mod types;
mod warp;

use std::collections::HashMap;

use inkwell::basic_block::BasicBlock;
use inkwell::builder::Builder;
use inkwell::context::Context;
use inkwell::intrinsics::Intrinsic;
use inkwell::module::Module;
use inkwell::types::BasicTypeEnum;
use inkwell::values::{BasicMetadataValueEnum, BasicValueEnum, FunctionValue, PointerValue};

use arith::{cast, integer};
use memory::vector;
pub(crate) use nvvm::{around_stops, keep_apart, share_in_part, with_fences};

use crate::Checks;
use crate::backend::{BackendError, Source};
use crate::check::{CheckedKernel, TargetKernel};
use crate::ir::{Cluster, Label};
use crate::target::Target;

/// What lowering answers.
type Lower<T> = Result<T, BackendError>;

/// A lowered kernel.
pub(crate) struct Lowered<'c> {
    /// The module that holds it, not yet verified.
    pub(crate) module: Module<'c>,
    /// The PTX version that its target and its instructions need, as major × 10 + minor.
    pub(crate) ptx_version: u32,
}

/// Where the elements of a sum are after the wait for the multiplications that began it.
///
/// Moves away from there may be real ones: where several places begin the same accumulator, ptxas
/// 13.0 does not always find registers that suit all of them. But if the elements stay, LLVM may let
/// two multiplications [share registers in part](share_in_part).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NewSums {
    /// In the registers that the multiplications wrote.
    Stay,
    /// In others.
    Move,
}

/// Lowers a kernel to an LLVM module for the target that it was checked for; `source` names the
/// file for line information.
///
/// # Errors
/// LLVM refuses an instruction, or the kernel was not settled: both are mistakes of this crate.
pub(crate) fn lower<'c>(
    context: &'c Context,
    kernel: &TargetKernel,
    source: &Source<'_>,
    checks: Checks,
    new_sums: NewSums,
) -> Result<Lowered<'c>, BackendError> {
    let checked = kernel.kernel().kernel();
    let module = context.create_module(&checked.path());
    let mut cx = kernel::declare(context, &module, kernel, source, checks)?;
    cx.new_sums = new_sums;
    stmt::block(&mut cx, &checked.body)?;
    kernel::finish(&cx)?;
    let ptx_version = cx.ptx_version;
    drop(cx);
    Ok(Lowered { module, ptx_version })
}

/// A kernel in the middle of being lowered.
struct Cx<'c, 'k> {
    context: &'c Context,
    module: &'k Module<'c>,
    target: Target,
    /// Whether it multiplies with the tensor cores, and so must call nothing.
    has_mma: bool,
    /// Whether its threads access tiles or arrays of other blocks.
    reaches_others: bool,
    /// Whether elements of accumulators of f16 are used one by one, of which two are in a register.
    halves_apart: bool,
    /// Where elements of accumulators are after the first wait.
    new_sums: NewSums,
    /// Whether the kernel tests what Rust's debug builds test.
    checked: bool,
    /// What is known of variables, if it does.
    variables: exact::Variables<'c>,
    /// Stands where the next instruction goes.
    builder: Builder<'c>,
    /// Stands at the end of the entry block, which holds every `alloca` and nothing else.
    allocas: Builder<'c>,
    kernel: &'k CheckedKernel,
    function: FunctionValue<'c>,
    /// The first block of the body.
    body: BasicBlock<'c>,
    params: Vec<kernel::Param<'c>>,
    /// Where each local lives, by its number.
    locals: Vec<PointerValue<'c>>,
    /// The beginning of the block's shared memory.
    shared: PointerValue<'c>,
    /// Where the loops and blocks around the current statement are left to.
    exits: HashMap<Label, Exits<'c>>,
    /// The constant strings so far.
    strings: HashMap<String, PointerValue<'c>>,
    /// Whether the current statement is in a loop, and multiplications are under way there or where
    /// the loop is entered or left.
    is_in_flight: bool,
    /// Where a kernel that multiplies goes when an assertion fails, by place, message and the above.
    failures: HashMap<(u32, u32, String, bool), BasicBlock<'c>>,
    lines: debug::Lines<'c>,
    /// The source file, as the user is told.
    path: &'k str,
    /// The greatest PTX version asked for so far.
    ptx_version: u32,
}

/// Where a label's `break` (or `leave`) and `continue` go; a labelled block's `continue` is never
/// asked for.
#[derive(Clone, Copy)]
struct Exits<'c> {
    leave: BasicBlock<'c>,
    next: BasicBlock<'c>,
}

impl<'c> Cx<'c, '_> {
    /// Whether blocks come in clusters, and so may share what they have.
    fn has_clusters(&self) -> bool {
        self.kernel.kernel().launch.cluster != Cluster::None
    }

    /// A new block at the end of the function.
    fn new_block(&self, name: &str) -> BasicBlock<'c> {
        self.context.append_basic_block(self.function, name)
    }

    /// Ends the current block by going to `block`.
    fn branch_to(&self, block: BasicBlock<'c>) -> Lower<()> {
        self.builder.build_unconditional_branch(block)?;
        Ok(())
    }

    /// Goes on in a block that nothing leads to: what follows a `break` or a `return`.
    fn unreachable_from_here(&self) {
        self.builder.position_at_end(self.new_block("dead"));
    }

    /// Calls an LLVM intrinsic; `overload` are the types it is overloaded on.
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

    /// Calls an LLVM intrinsic that answers a value.
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
