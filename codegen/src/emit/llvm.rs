//! What LLVM does with a kernel: its passes and its back end.

use std::fmt;
use std::sync::Once;

use inkwell::OptimizationLevel;
use inkwell::context::Context;
use inkwell::llvm_sys::support::LLVMParseCommandLineOptions;
use inkwell::memory_buffer::MemoryBuffer;
use inkwell::passes::PassBuilderOptions;
use inkwell::support::LLVMString;
use inkwell::targets::{
    CodeModel, FileType, InitializationConfig, RelocMode, Target as LlvmTarget, TargetMachine, TargetTriple,
};

use super::locations::{with_marks, with_true_lines};
use crate::backend::BackendError;
use crate::dump;
use crate::limits::{OPTIMISED_BYTES, OPTIMISED_MMA_BYTES};
use crate::lower::keep_apart;
use crate::target::Target;

/// A lowered kernel as text, which any thread may go on with.
pub(super) struct Module {
    /// The kernel's name.
    pub(super) kernel: String,
    /// LLVM's IR.
    pub(super) text: String,
    pub(super) target: Target,
    /// The PTX version that its target and its instructions need, as major × 10 + minor.
    pub(super) ptx_version: u32,
}

/// What LLVM makes of a kernel.
pub(super) fn assembly(lowered: &Module) -> Result<String, BackendError> {
    let failed = |step| {
        move |message: LLVMString| BackendError::Llvm {
            kernel: lowered.kernel.clone(),
            step,
            message: message.to_string(),
        }
    };

    let context = Context::create();
    let text = with_marks(&with_directives_only(&lowered.text));
    let text = MemoryBuffer::create_from_memory_range_copy(text.as_bytes(), "kernel");
    let module = context.create_module_from_ir(text).map_err(failed("read back"))?;
    dump::stage("llvm", Text(&module));
    module.verify().map_err(failed("verify"))?;

    let effort = Effort::on(&lowered.text);
    let machine = machine(lowered.target, lowered.ptx_version, effort)?;
    module.set_triple(&machine.get_triple());
    module.set_data_layout(&machine.get_target_data().get_data_layout());
    module.run_passes(effort.passes(), &machine, PassBuilderOptions::create()).map_err(failed("optimise"))?;
    keep_apart(&context, &module)?;
    dump::stage("llvm", Text(&module));

    let buffer = machine.write_to_memory_buffer(&module, FileType::Assembly).map_err(failed("emit"))?;
    Ok(with_true_lines(&String::from_utf8_lossy(buffer.as_slice())))
}

/// How much LLVM tries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Effort {
    /// All that makes kernels fast.
    Full,
    /// What takes time in proportion to the size of a kernel.
    Linear,
}

impl Effort {
    /// On a module of this text. The time of several passes grows with the square of a kernel's
    /// size: of straight-line strength reduction, which compares each address with all before it,
    /// and of those that ask of each value what the conditions before it say, as those of checks
    /// do.
    fn on(text: &str) -> Self {
        let most = if text.contains("wgmma.") { OPTIMISED_MMA_BYTES } else { OPTIMISED_BYTES };
        if text.len() <= most { Self::Full } else { Self::Linear }
    }

    fn passes(self) -> &'static str {
        match self {
            Self::Full => "default<O3>",
            Self::Linear => "function(sroa,early-cse,sccp,simplifycfg,early-cse,adce)",
        }
    }

    fn level(self) -> OptimizationLevel {
        match self {
            Self::Full => OptimizationLevel::Aggressive,
            Self::Linear => OptimizationLevel::None,
        }
    }
}

/// A module's IR, printed only if it is wanted.
struct Text<'a, 'c>(&'a inkwell::module::Module<'c>);

impl fmt::Display for Text<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.print_to_string().to_string())
    }
}

/// Asks for bare `.file` and `.loc` directives: neither DWARF sections nor the `debug` flag of
/// `.target`, which ptxas takes as a wish for unoptimised code. LLVM's C interface has no name for
/// this kind of line information, its text has.
fn with_directives_only(text: &str) -> String {
    // The last one: metadata comes after the kernel's own strings.
    match text.rsplit_once("emissionKind: LineTablesOnly") {
        Some((before, after)) => [before, "emissionKind: DebugDirectivesOnly", after].concat(),
        None => text.to_owned(),
    }
}

/// LLVM's NVPTX back end for `target`, with the features of a PTX version.
fn machine(target: Target, version: u32, effort: Effort) -> Result<TargetMachine, BackendError> {
    static LLVM: Once = Once::new();
    LLVM.call_once(|| {
        LlvmTarget::initialize_nvptx(&InitializationConfig::default());
        // There is no other way to ask for these three. Addresses in shared memory have 32 bits and
        // need half the registers; and loop strength reduction, which is after x86's addressing
        // modes, stays away: it makes an induction variable of every address (58 registers became
        // 48 in a loop over a swizzled tile).
        // And `locations` has to see which instructions have no line.
        let arguments = [
            c"tma-codegen".as_ptr(),
            c"--nvptx-short-ptr".as_ptr(),
            c"--disable-lsr".as_ptr(),
            c"--use-unknown-locations=Enable".as_ptr(),
        ];
        // SAFETY: four arguments, which outlive the call; `Once` keeps other threads out.
        unsafe { LLVMParseCommandLineOptions(4, arguments.as_ptr(), c"".as_ptr()) };
    });
    let refused = |message: String| BackendError::Target { target, version, message };
    let triple = TargetTriple::create("nvptx64-nvidia-cuda");
    let llvm = LlvmTarget::from_triple(&triple).map_err(|message| refused(message.to_string()))?;
    let features = format!("+ptx{version}");
    let machine = llvm
        .create_target_machine(
            &triple,
            target.name(),
            &features,
            effort.level(),
            RelocMode::Default,
            CodeModel::Default,
        )
        .ok_or_else(|| refused("no target machine".to_owned()))?;
    machine.set_asm_verbosity(false);
    Ok(machine)
}
