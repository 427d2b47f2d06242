//! NVIDIA's own assembler on the PTX of every instance: no spills, no local memory, and no
//! multiplication that it makes wait for itself.
#![cfg(feature = "llvm")]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use tma_kernels::attention::kernel::forward;
use tma_kernels::conv::kernel::convolution;
use tma_kernels::gemm::folded::halves;
use tma_kernels::gemm::full::with_options;
use tma_kernels::gemm::grouped::kernel::grouped;
use tma_kernels::gemm::kernel::product;
use tma_kernels::gemm::picked::kernel as picked;
use tma_kernels::gemm::scaled::kernel::scaled;

/// The assembler that `TMA_PTXAS` names, or the one that the set-up has unpacked.
fn ptxas() -> PathBuf {
    let unpacked = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/tools/ptxas");
    let path = env::var_os("TMA_PTXAS").map_or_else(unpacked, PathBuf::from);
    assert!(path.is_file(), "there is no ptxas at {}: run `cargo xtask setup`", path.display());
    path
}

#[test]
fn every_instance_is_assembled_without_spills() {
    let ptxas = ptxas();
    let file = env::temp_dir().join(format!("tma-kernels-{}.ptx", std::process::id()));
    let mut complaints = vec![];
    let products = product::plain::INSTANCES.iter().chain(&halves::folded::INSTANCES);
    let products = products.chain(&with_options::full::INSTANCES).chain(&picked::full::INSTANCES);
    let products = products.chain(&scaled::promoted::INSTANCES).chain(&grouped::rows::INSTANCES);
    let others = convolution::forward::INSTANCES.iter().chain(&forward::attention::INSTANCES);
    for kernel in products.chain(others) {
        fs::write(&file, kernel.ptx).expect("the folder for temporary files can be written to");
        let mut command = Command::new(&ptxas);
        command.args(["-arch", "sm_90a", "-v", "-o", "/dev/null"]).arg(&file);
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
    // What is left behind if this fails is a file among temporary ones.
    let _ = fs::remove_file(&file);
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}
