//! NVIDIA's own assembler on the PTX of every instance: no spills, no local memory, and no
//! multiplication that it makes wait for itself.
#![cfg(feature = "llvm")]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs, thread};

use tma_kernels::attention::kernel::forward;
use tma_kernels::conv::kernel::convolution;
use tma_kernels::gemm::folded::halves;
use tma_kernels::gemm::full::with_options;
use tma_kernels::gemm::grouped::kernel::grouped;
use tma_kernels::gemm::kernel::product;
use tma_kernels::gemm::picked::kernel as picked;
use tma_kernels::gemm::scaled::kernel::scaled;
use tma_runtime::launch::KernelSpec;

/// The assembler that `TMA_PTXAS` names, or the one that the set-up has unpacked.
fn ptxas() -> PathBuf {
    let unpacked = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/tools/ptxas");
    let path = env::var_os("TMA_PTXAS").map_or_else(unpacked, PathBuf::from);
    assert!(path.is_file(), "there is no ptxas at {}: run `cargo xtask setup`", path.display());
    path
}

/// What the assembler has against one of these kernels.
fn complaints(ptxas: &Path, kernels: &[&KernelSpec], file: &Path) -> Vec<String> {
    let mut complaints = vec![];
    for kernel in kernels {
        fs::write(file, kernel.ptx).expect("the folder for temporary files can be written to");
        let mut command = Command::new(ptxas);
        command.args(["-arch", "sm_90a", "-v", "-o", "/dev/null"]).arg(file);
        let output = command.output().expect("ptxas can be started");
        let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        let clean = "0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads";
        if !output.status.success()
            || !said.contains(clean)
            || said.contains("(C7")
            || said.contains("warning")
        {
            complaints.push(format!("{}:\n{said}", kernel.name));
        }
    }
    complaints
}

#[test]
fn every_instance_is_assembled_without_spills() {
    let ptxas = ptxas();
    let products = product::plain::INSTANCES.iter().chain(&halves::folded::INSTANCES);
    let products = products.chain(&with_options::full::INSTANCES).chain(&picked::full::INSTANCES);
    let products = products.chain(&scaled::promoted::INSTANCES).chain(&grouped::rows::INSTANCES);
    let others = convolution::forward::INSTANCES.iter().chain(&forward::attention::INSTANCES);
    let kernels: Vec<_> = products.chain(others).collect();
    let parts = thread::available_parallelism().map_or(1, usize::from);
    let complaints: Vec<_> = thread::scope(|scope| {
        // Each takes some of each kernel's instances, since these differ in what they take.
        let part = |first| kernels.iter().skip(first).step_by(parts).copied().collect::<Vec<_>>();
        let judge = |first| {
            let (ptxas, kernels) = (&ptxas, part(first));
            let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("instance-{first}.ptx"));
            scope.spawn(move || complaints(ptxas, &kernels, &file))
        };
        let judges: Vec<_> = (0..parts).map(judge).collect();
        judges.into_iter().flat_map(|judge| judge.join().expect("nobody panics")).collect()
    });
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}
