//! The LLVM passes and back end.

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
use tma_front::limits::{OPTIMISED_BYTES, OPTIMISED_MMA_BYTES};
use tma_front::target::Target;

use super::locations::{with_marks, with_true_lines};
use crate::backend::BackendError;
use crate::dump;
use crate::lower::ptxas::new_sums::{NewSums, share_in_part};
use crate::lower::ptxas::{Workaround, Workarounds, adapt_module};

/// A lowered kernel as text, which any thread can process further.
pub(super) struct Module {
    /// The kernel's name.
    pub(super) kernel: String,
    /// The LLVM IR.
    pub(super) text: String,
    pub(super) target: Target,
    /// The minimum PTX version for the target and the instructions, as major × 10 + minor.
    pub(super) ptx_version: u32,
    /// The waits that leave new sums in their registers.
    pub(super) new_sums: NewSums,
    pub(super) workarounds: Workarounds,
}

/// Compiles a kernel to assembly.
///
/// Only the registers that LLVM has assigned show whether multiplications share them in part. If
/// they do, code is generated from the same module again, with
/// [new sums in other registers](crate::lower::ptxas::new_sums).
pub(super) fn assembly(lowered: &Module) -> Result<String, BackendError> {
    let in_place = generate(lowered, &NewSums::default())?;
    match lowered.workarounds.has(Workaround::NewSums) && share_in_part(&in_place) {
        true => generate(lowered, &lowered.new_sums),
        false => Ok(in_place),
    }
}

/// Optimises a kernel and generates its code. `moved` are the waits after which sums are moved to
/// other registers.
fn generate(lowered: &Module, moved: &NewSums) -> Result<String, BackendError> {
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
    moved.move_in(&context, &module)?;
    dump::stage("llvm", Text(&module));
    module.verify().map_err(failed("verify"))?;

    let effort = Effort::on(&lowered.text);
    let machine = machine(lowered.target, lowered.ptx_version, effort)?;
    module.set_triple(&machine.get_triple());
    module.set_data_layout(&machine.get_target_data().get_data_layout());
    module.run_passes(effort.passes(), &machine, PassBuilderOptions::create()).map_err(failed("optimise"))?;
    adapt_module(&context, &module, lowered.workarounds)?;
    dump::stage("llvm", Text(&module));

    let buffer = machine.write_to_memory_buffer(&module, FileType::Assembly).map_err(failed("emit"))?;
    Ok(with_true_lines(&String::from_utf8_lossy(buffer.as_slice())))
}

/// The optimisation effort.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Effort {
    /// All optimisations.
    Full,
    /// Passes with running time linear in the size of a kernel.
    Linear,
}

impl Effort {
    /// Selects the effort for a module of this text. Several passes take time quadratic in a
    /// kernel's size: straight-line strength reduction, which compares each address with all
    /// earlier ones, and passes that evaluate each value under the conditions before it, such as
    /// those of checks.
    fn on(text: &str) -> Self {
        let multiplies = ["wgmma.", "mma.sync."].iter().any(|instruction| text.contains(instruction));
        let most = if multiplies { OPTIMISED_MMA_BYTES } else { OPTIMISED_BYTES };
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

/// A module's IR, printed only on demand.
struct Text<'a, 'c>(&'a inkwell::module::Module<'c>);

impl fmt::Display for Text<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.print_to_string().to_string())
    }
}

/// Requests bare `.file` and `.loc` directives, without DWARF sections, and without the `debug`
/// flag of `.target`, which makes ptxas generate unoptimised code. LLVM's C interface cannot
/// express this kind of line information, but the textual IR can.
fn with_directives_only(text: &str) -> String {
    // The last occurrence: metadata follows the kernel's own strings.
    match text.rsplit_once("emissionKind: LineTablesOnly") {
        Some((before, after)) => [before, "emissionKind: DebugDirectivesOnly", after].concat(),
        None => text.to_owned(),
    }
}

/// Creates LLVM's NVPTX target machine for `target`, with the features of a PTX version.
fn machine(target: Target, version: u32, effort: Effort) -> Result<TargetMachine, BackendError> {
    static LLVM: Once = Once::new();
    LLVM.call_once(|| {
        LlvmTarget::initialize_nvptx(&InitializationConfig::default());
        // There is no other way to set these three options. 32-bit addresses in shared memory take
        // half the registers. Loop strength reduction is modelled on x86's addressing modes, and
        // makes an induction variable of every address: without it, a loop over a swizzled tile
        // took 48 registers instead of 58. `locations` must be able to see which instructions have
        // no line.
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
