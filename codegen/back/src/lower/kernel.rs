//! The kernel's function: signature, attributes, parameters, and an alloca for every local.

use std::collections::{HashMap, HashSet};

use inkwell::attributes::{Attribute, AttributeLoc};
use inkwell::context::Context;
use inkwell::module::{Linkage, Module};
use inkwell::types::{BasicMetadataTypeEnum, StructType};
use inkwell::values::{BasicValueEnum, FunctionValue, IntValue, PointerValue};
use tma_front::abi::{self, AbiParam, SHARED_MEMORY};
use tma_front::check::{TargetKernel, layout, mma, registers};
use tma_front::ir::{self, Cluster, Kernel, ParamKind, Presence, Scalar, TeamNumber};
use tma_front::limits::{ARRAY_ALIGNMENT, cluster_blocks};

use super::ptxas::Workarounds;
use super::types::{GENERIC, GLOBAL, SHARED, int, pointer};
use super::{Cx, Lower, debug, locals, memory, narrow, peers, sync};
use crate::Checks;
use crate::backend::{BackendError, Source};

/// LLVM's id of the calling convention `ptx_kernel`. Source: LLVM, `llvm/IR/CallingConv.h`.
const PTX_KERNEL: u32 = 71;

/// The alignment of a tensor map. Source: CUDA driver API, `cuTensorMapEncodeTiled`, `tensorMap`.
const TENSOR_MAP_ALIGNMENT: u32 = 64;

/// The alignment of the addresses of a slice of each rank.
const ADDRESS_ALIGNMENT: u32 = 8;

/// A parameter, as used in the body.
#[derive(Clone, Copy)]
pub(super) enum Param<'c> {
    /// The generic address of a tensor map in parameter memory.
    TensorMap(PointerValue<'c>),
    /// A slice: address and number of elements.
    Global { address: PointerValue<'c>, len: IntValue<'c> },
    /// The generic address of the tensor maps of all ranks in parameter memory.
    PeerMaps(PointerValue<'c>),
    /// The slices of all ranks: the generic address of their addresses in parameter memory, and the
    /// number of elements of each.
    PeerGlobals { addresses: PointerValue<'c>, len: IntValue<'c> },
    /// A value.
    Scalar(BasicValueEnum<'c>),
}

/// Declares the kernel in `module`, with the insertion point at the beginning of its body.
pub(super) fn declare<'c, 'k>(
    context: &'c Context,
    module: &'k Module<'c>,
    target_kernel: &'k TargetKernel,
    source: &Source<'k>,
    checks: Checks,
) -> Lower<Cx<'c, 'k>> {
    let (checked, target) = (target_kernel.kernel(), target_kernel.target());
    let kernel = checked.kernel();
    let entry_name = abi::entry(kernel);
    let function = signature(context, module, kernel, &entry_name);
    let lines = debug::describe(module, kernel, &entry_name, source.path)?;
    function.set_subprogram(lines.function());
    launch_bounds(context, function, kernel);

    let entry = context.append_basic_block(function, "entry");
    let body = context.append_basic_block(function, "body");
    let (allocas, builder) = (context.create_builder(), context.create_builder());
    allocas.position_at_end(entry);
    builder.position_at_end(body);

    let mut cx = Cx {
        context,
        module,
        target,
        has_mma: mma::uses_mma(kernel),
        reaches_others: sync::reaches_others(kernel),
        splits_packed_f16: locals::accesses_packed_f16(kernel),
        workarounds: Workarounds::ALL,
        new_sums: HashSet::new(),
        checked: checks.apply_to(kernel),
        builder,
        allocas,
        kernel: checked,
        function,
        body,
        params: Vec::with_capacity(kernel.params.len()),
        locals: Vec::with_capacity(kernel.locals.len()),
        shared: shared_memory(context, module, kernel)?,
        exits: HashMap::new(),
        strings: HashMap::new(),
        is_in_flight: false,
        failures: HashMap::new(),
        lines,
        path: source.path,
        ptx_version: target.ptx_version(),
    };
    debug::at_stmt(&mut cx, kernel.span)?;
    cx.params = params(&cx)?;
    for local in &kernel.locals {
        let ty = cx.value_type(&local.ty)?;
        cx.locals.push(cx.allocas.build_alloca(ty, &local.name)?);
    }
    Ok(cx)
}

/// Ends the function, and connects the entry block to the body.
pub(super) fn finish(cx: &Cx<'_, '_>) -> Lower<()> {
    cx.builder.build_return(None)?;
    cx.allocas.build_unconditional_branch(cx.body)?;
    cx.lines.finish();
    Ok(())
}

fn signature<'c>(
    context: &'c Context,
    module: &Module<'c>,
    kernel: &Kernel,
    entry: &str,
) -> FunctionValue<'c> {
    let abi: Vec<_> = kernel
        .params
        .iter()
        .flat_map(|param| abi::abi_params(param).into_iter().map(move |abi| (param, abi)))
        .collect();
    let types: Vec<_> = abi.iter().map(|(param, abi)| param_type(context, param, *abi)).collect();
    let function =
        module.add_function(entry, context.void_type().fn_type(&types, false), Some(Linkage::External));
    function.set_call_conventions(PTX_KERNEL);
    for (index, (param, abi)) in (0..).zip(&abi) {
        let add = |attribute| function.add_attribute(AttributeLoc::Param(index), attribute);
        match abi {
            AbiParam::TensorMap | AbiParam::PeerMaps | AbiParam::PeerAddresses => {
                let byval = Attribute::get_named_enum_kind_id("byval");
                add(context.create_type_attribute(byval, words(context, abi.bytes() / 8).into()));
                let is_table = *abi == AbiParam::PeerAddresses;
                let alignment = if is_table { ADDRESS_ALIGNMENT } else { TENSOR_MAP_ALIGNMENT };
                add(enum_attribute(context, "align", u64::from(alignment)));
                // Passed without a local copy: the copy engine cannot read a tensor map in local
                // memory, and an index at run time would make a copy of the addresses.
                add(context.create_string_attribute("nvvm.grid_constant", ""));
            }
            AbiParam::GlobalAddress => {
                add(enum_attribute(context, "align", u64::from(abi::alignment(param))));
            }
            AbiParam::GlobalLen | AbiParam::Scalar(_) => {}
        }
    }
    function
}

fn param_type<'c>(context: &'c Context, param: &ir::Param, abi: AbiParam) -> BasicMetadataTypeEnum<'c> {
    match abi {
        AbiParam::TensorMap | AbiParam::PeerMaps | AbiParam::PeerAddresses => {
            context.ptr_type(GENERIC.into()).into()
        }
        AbiParam::GlobalAddress => context.ptr_type(GLOBAL.into()).into(),
        AbiParam::GlobalLen => context.i64_type().into(),
        AbiParam::Scalar(bytes) => match (param.ty.as_scalar(), bytes) {
            (Some(Scalar::F16), _) => context.f16_type().into(),
            (Some(Scalar::Bf16), _) => context.bf16_type().into(),
            (Some(Scalar::F32), _) => context.f32_type().into(),
            (Some(Scalar::F64), _) => context.f64_type().into(),
            (_, 1) => context.i8_type().into(),
            (_, 2) => context.i16_type().into(),
            (_, 4) => context.i32_type().into(),
            _ => context.i64_type().into(),
        },
    }
}

/// The type of a parameter of so many opaque words of 64 bits.
fn words(context: &Context, count: u64) -> StructType<'_> {
    let count = u32::try_from(count).unwrap_or(u32::MAX);
    context.struct_type(&[context.i64_type().array_type(count).into()], false)
}

fn enum_attribute(context: &Context, name: &str, value: u64) -> Attribute {
    context.create_enum_attribute(Attribute::get_named_enum_kind_id(name), value)
}

/// Sets the bounds of every launch. The thread count is exact, hence `.reqntid`, which ptxas
/// rejects in combination with `.maxntid`.
fn launch_bounds(context: &Context, function: FunctionValue<'_>, kernel: &Kernel) {
    let launch = &kernel.launch;
    let [x, y, z] = launch.threads;
    let mut bounds = vec![("nvvm.reqntid", format!("{x},{y},{z}"))];
    bounds.extend(launch.min_blocks.map(|blocks| ("nvvm.minctasm", blocks.to_string())));
    let registers = launch.max_registers.or_else(|| registers::at_entry(kernel));
    bounds.extend(registers.map(|registers| ("nvvm.maxnreg", registers.to_string())));
    match launch.cluster {
        Cluster::None => {}
        Cluster::Fixed([x, y, z]) => bounds.push(("nvvm.cluster_dim", format!("{x},{y},{z}"))),
        // `.explicitcluster` would be more precise, but LLVM 22 emits it for `cluster_dim = 0,0,0`
        // only, from which it then infers that a cluster has one block.
        Cluster::AtLaunch => {
            let most = cluster_blocks(launch.nonportable_cluster);
            bounds.push(("nvvm.maxclusterrank", most.to_string()));
        }
    }
    for (key, value) in bounds {
        function.add_attribute(AttributeLoc::Function, context.create_string_attribute(key, &value));
    }
    function.add_attribute(AttributeLoc::Function, enum_attribute(context, "nounwind", 0));
}

/// Declares the block's shared memory: one array without a length, which is set at launch.
fn shared_memory<'c>(context: &'c Context, module: &Module<'c>, kernel: &Kernel) -> Lower<PointerValue<'c>> {
    let alignment = kernel.shared.iter().map(|var| layout::alignment(&var.ty)).max().unwrap_or(1);
    let bytes = context.i8_type().array_type(0);
    let memory = module.add_global(bytes, Some(SHARED.into()), SHARED_MEMORY);
    memory.set_linkage(Linkage::External);
    memory.set_alignment(narrow(alignment.max(ARRAY_ALIGNMENT))?);
    Ok(memory.as_pointer_value())
}

/// Emits the values of the parameters that a launch passes. Those of each rank's own slices follow,
/// which are computed from them.
fn params<'c>(cx: &Cx<'c, '_>) -> Lower<Vec<Param<'c>>> {
    let mut values = cx.function.get_param_iter();
    let mut next = || {
        values.next().ok_or_else(|| BackendError::Unchecked("more parameters than `abi` counts".to_owned()))
    };
    let kernel = cx.kernel.kernel();
    let passed = kernel.params.iter().map(|param| {
        if let Presence::OwnOf(_) = param.presence {
            return Ok(None);
        }
        Ok(Some(match param.kind() {
            Some(ParamKind::Tiles(_) | ParamKind::Columns(..)) => Param::TensorMap(pointer(next()?)?),
            Some(ParamKind::Global(_) | ParamKind::Maps(_)) => {
                Param::Global { address: pointer(next()?)?, len: int(next()?)? }
            }
            Some(ParamKind::PeerMaps(_)) => Param::PeerMaps(pointer(next()?)?),
            Some(ParamKind::PeerGlobals(_)) => {
                Param::PeerGlobals { addresses: pointer(next()?)?, len: int(next()?)? }
            }
            Some(ParamKind::Scalar(scalar)) => Param::Scalar(memory::from_memory(cx, next()?, scalar)?),
            None => return Err(BackendError::Unchecked(format!("a parameter of type `{}`", param.ty))),
        }))
    });
    let passed = passed.collect::<Lower<Vec<Option<Param<'c>>>>>()?;
    let rank = kernel.params.iter().zip(&passed).find_map(|(param, value)| match (param.presence, value) {
        (Presence::Team(TeamNumber::Rank), Some(Param::Scalar(rank))) => Some(int(*rank)),
        _ => None,
    });
    let rank = rank.transpose()?;
    let of = |(param, value): (&ir::Param, &Option<Param<'c>>)| match (param.presence, *value, rank) {
        (_, Some(value), _) => Ok(value),
        (Presence::OwnOf(peers), None, Some(rank)) => match passed.get(peers.0 as usize) {
            Some(Some(Param::PeerGlobals { addresses, len })) => {
                Ok(Param::Global { address: peers::address(cx, *addresses, rank)?, len: *len })
            }
            _ => Err(BackendError::Unchecked(format!("the own slice `{}` of no peers", param.name))),
        },
        (_, None, _) => Err(BackendError::Unchecked(format!("`{}`, which no launch passes", param.name))),
    };
    kernel.params.iter().zip(&passed).map(of).collect()
}
