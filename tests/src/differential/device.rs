//! Kernels that read and write words, run on the simulator without the runtime.

use ptx_sim::{Arg, GlobalMemory, LaunchConfig, Module, launch};
use tma_codegen::Ptx;

/// The byte that fills words that a kernel does not write.
const UNTOUCHED: u8 = 0xab;

/// Shared memory per block: more than any of these kernels uses.
const SHARED_BYTES: u32 = 16 << 10;

/// Launches one block of `threads` threads of a kernel with the parameters `words: Global<u64>` and
/// `out: Global<u64>`, and returns the resulting `len` words of `out`.
///
/// # Errors
///
/// The error of the simulator on loading, or its findings, as text.
pub fn run(ptx: &Ptx, threads: u32, words: &[u64], len: usize) -> Result<Vec<u64>, String> {
    let module = Module::load(&ptx.text).map_err(|error| error.to_string())?;
    let mut memory = GlobalMemory::default();
    let words_at = memory.allocate(8 * words.len() as u64, true).ok_or("no room for the words")?;
    let out_at = memory.allocate(8 * len as u64, true).ok_or("no room for the results")?;
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    let mut out = vec![UNTOUCHED; 8 * len];
    let lost = |_| "memory that was allocated is not there".to_owned();
    memory.write(words_at, &bytes).map_err(lost)?;
    memory.write(out_at, &out).map_err(lost)?;

    let slice = |address, len: usize| [Arg::Address(address), Arg::Bytes((len as u64).to_le_bytes().into())];
    let args: Vec<_> = slice(words_at, words.len()).into_iter().chain(slice(out_at, len)).collect();
    let config = LaunchConfig {
        block: [threads, 1, 1],
        dynamic_shared_bytes: SHARED_BYTES,
        host_threads: 1,
        ..LaunchConfig::default()
    };
    let report =
        launch(&module, &mut memory, &ptx.entry, &config, &args).map_err(|error| error.to_string())?;
    if !report.findings.is_empty() {
        return Err(report.findings.render(&module.sources(|_| None)));
    }
    memory.read(out_at, &mut out).map_err(lost)?;
    Ok(out.chunks_exact(8).map(|word| word.try_into().map_or(0, u64::from_le_bytes)).collect())
}
