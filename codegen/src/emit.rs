//! LLVM to PTX text.

use std::fmt;
use std::sync::Once;

use inkwell::OptimizationLevel;
use inkwell::context::Context;
use inkwell::llvm_sys::support::LLVMParseCommandLineOptions;
use inkwell::memory_buffer::MemoryBuffer;
use inkwell::module::Module;
use inkwell::passes::PassBuilderOptions;
use inkwell::support::LLVMString;
use inkwell::targets::{
    CodeModel, FileType, InitializationConfig, RelocMode, Target as LlvmTarget, TargetMachine, TargetTriple,
};

use crate::backend::{BackendError, Source};
use crate::check::{CheckedKernel, TargetKernel, layout};
use crate::ir::{SharedId, SharedVar, Type};
use crate::lower::{Lowered, NewSums, around_stops, keep_apart, lower, share_in_part, with_fences};
use crate::target::Target;
use crate::{Checks, dump, escape};

/// Compiles a kernel to PTX. The same kernel gives the same text, byte for byte.
///
/// # Errors
/// See [`BackendError`].
pub(crate) fn ptx(
    kernel: &TargetKernel,
    source: &Source<'_>,
    checks: Checks,
) -> Result<String, BackendError> {
    let path = escape::source(source.path);
    let source = &Source { path: &path };
    let text = assembly(kernel, source, checks, NewSums::Stay)?;
    let text = match share_in_part(&text) {
        true => assembly(kernel, source, checks, NewSums::Move)?,
        false => text,
    };
    let ptx = header(kernel.kernel(), source) + &around_stops(&body(&with_fences(&text)));
    dump::stage("ptx", &ptx);
    Ok(ptx)
}

/// What LLVM makes of a kernel.
fn assembly(
    kernel: &TargetKernel,
    source: &Source<'_>,
    checks: Checks,
    new_sums: NewSums,
) -> Result<String, BackendError> {
    let name = kernel.kernel().kernel().path();
    let failed = |step| {
        let kernel = name.clone();
        move |message: LLVMString| BackendError::Llvm { kernel, step, message: message.to_string() }
    };

    let context = Context::create();
    let Lowered { module, ptx_version } = lower(&context, kernel, source, checks, new_sums)?;
    let module = with_directives_only(&context, module).map_err(failed("read back"))?;
    dump::stage("llvm", Text(&module));
    module.verify().map_err(failed("verify"))?;

    let machine = machine(kernel.target(), ptx_version)?;
    module.set_triple(&machine.get_triple());
    module.set_data_layout(&machine.get_target_data().get_data_layout());
    module.run_passes("default<O3>", &machine, PassBuilderOptions::create()).map_err(failed("optimise"))?;
    keep_apart(&context, &module)?;
    dump::stage("llvm", Text(&module));

    let buffer = machine.write_to_memory_buffer(&module, FileType::Assembly).map_err(failed("emit"))?;
    Ok(String::from_utf8_lossy(buffer.as_slice()).into_owned())
}

/// A module's IR, printed only if it is wanted.
struct Text<'a, 'c>(&'a Module<'c>);

impl fmt::Display for Text<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.print_to_string().to_string())
    }
}

/// Asks for bare `.file` and `.loc` directives: neither DWARF sections nor the `debug` flag of
/// `.target`, which ptxas takes as a wish for unoptimised code. LLVM's C interface has no name for
/// this kind of line information, its text has.
fn with_directives_only<'c>(context: &'c Context, module: Module<'c>) -> Result<Module<'c>, LLVMString> {
    let mut text = module.print_to_string().to_string();
    drop(module);
    // The last one: metadata comes after the kernel's own strings.
    let kind = "emissionKind: LineTablesOnly";
    if let Some(start) = text.rfind(kind) {
        text.replace_range(start..start + kind.len(), "emissionKind: DebugDirectivesOnly");
    }
    context.create_module_from_ir(MemoryBuffer::create_from_memory_range_copy(text.as_bytes(), "kernel"))
}

/// LLVM's NVPTX back end for `target`, with the features of a PTX version.
fn machine(target: Target, version: u32) -> Result<TargetMachine, BackendError> {
    static LLVM: Once = Once::new();
    LLVM.call_once(|| {
        LlvmTarget::initialize_nvptx(&InitializationConfig::default());
        // There is no other way to ask for these two. Addresses in shared memory have 32 bits and
        // need half the registers; and loop strength reduction, which is after x86's addressing
        // modes, stays away: it makes an induction variable of every address (58 registers became
        // 48 in a loop over a swizzled tile).
        let arguments = [c"tma-codegen".as_ptr(), c"--nvptx-short-ptr".as_ptr(), c"--disable-lsr".as_ptr()];
        // SAFETY: three arguments, which outlive the call; `Once` keeps other threads out.
        unsafe { LLVMParseCommandLineOptions(3, arguments.as_ptr(), c"".as_ptr()) };
    });
    let refused = |message: String| BackendError::Target { target, version, message };
    let triple = TargetTriple::create("nvptx64-nvidia-cuda");
    let llvm = LlvmTarget::from_triple(&triple).map_err(|message| refused(message.to_string()))?;
    let features = format!("+ptx{version}");
    let level = OptimizationLevel::Aggressive;
    let machine = llvm
        .create_target_machine(
            &triple,
            target.name(),
            &features,
            level,
            RelocMode::Default,
            CodeModel::Default,
        )
        .ok_or_else(|| refused("no target machine".to_owned()))?;
    machine.set_asm_verbosity(false);
    Ok(machine)
}

/// Names the kernel, the compiler, the source, and what lies where in shared memory: the
/// simulator's findings say it so.
fn header(checked: &CheckedKernel, source: &Source<'_>) -> String {
    let kernel = checked.kernel();
    let line = kernel.span.start().line;
    let mut header = format!(
        "// kernel: {}\n// generator: tma-codegen {}\n// source: {}:{line}\n",
        escape::ascii(&kernel.path()),
        env!("CARGO_PKG_VERSION"),
        escape::ascii(source.path),
    );
    let places = (0..).map(|id| checked.layout().offset(SharedId(id))).zip(&kernel.shared);
    let mut places: Vec<_> = places.collect();
    places.sort_by_key(|(from, _)| *from);
    for (from, SharedVar { name, ty, .. }) in places {
        let to = u64::from(from) + layout::size(ty);
        let by = match ty {
            Type::Stages(thing, _) => format!(" by {}", layout::stride(thing)),
            _ => String::new(),
        };
        header += &format!("// shared {from}..{to}{by} {}: {ty}\n", escape::ascii(name));
    }
    header + "\n"
}

/// What LLVM printed, without its comments and without what only DWARF sections would refer to.
fn body(text: &str) -> String {
    const NOISE: [&str; 5] = ["//", "$L__func_begin", "$L__func_end", "$L__tmp", ".section"];
    let kept = text.lines().filter(|line| !NOISE.iter().any(|noise| line.trim_start().starts_with(noise)));
    // The braces around a call are followed by a comment.
    let bare = kept.map(|line| match line.split_once(" //") {
        Some((brace @ ("\t{" | "\t}"), _)) => brace,
        _ => line,
    });
    bare.skip_while(|line| line.is_empty()).flat_map(|line| [line, "\n"]).collect()
}
