//! The target `ptx`: a text is parsed and loaded, and run for a while if that goes well.

use arbitrary::{Result, Unstructured};
use ptx_sim::{Kernel, Module};

use crate::{draw, launch};

/// How many of a module's kernels are launched.
const KERNELS: usize = 2;

/// Parses and loads; false if that was refused.
pub fn run(text: &[u8]) -> bool {
    let text = String::from_utf8_lossy(text);
    match Module::load(&text) {
        Ok(module) => {
            // The arguments come from the text, so that it repeats what it has shown.
            let seed = text.bytes().fold(0, |sum: u64, byte| sum.wrapping_mul(31).wrapping_add(byte.into()));
            for kernel in module.kernels().take(KERNELS) {
                // Without enough numbers for its arguments a kernel is not launched.
                _ = start(&module, &kernel, &mut Unstructured::new(&draw::noise(seed, 512)));
            }
            true
        }
        Err(error) => {
            error.to_string();
            false
        }
    }
}

fn start(module: &Module, kernel: &Kernel<'_>, u: &mut Unstructured<'_>) -> Result<()> {
    let (config, mut memory, args) = launch::usual(kernel, u)?;
    if let Ok(report) = ptx_sim::launch(module, &mut memory, kernel.name(), &config, &args) {
        launch::judge(module, &report);
    }
    Ok(())
}
