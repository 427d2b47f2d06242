//! Generated kernels on the simulator, compared bit for bit with the same text as plain Rust.
//!
//! `generate` writes kernels: expressions of every scalar, register arrays, control flow, device
//! functions. The compiler translates each to PTX, which the simulator runs ([`device`]). rustc
//! compiles a program from the same text, in which the words of the language are functions of
//! `words.rs` and `memory.rs` (`host`). Both get the same inputs, and the outputs of the kernels
//! must be equal.
//!
//! All types are written out, since this does not test inference. Behaviour that the language
//! leaves open does not occur, nor does overflow, which stops some kernels: divisors are never 0 or
//! -1, operands are small, indices are within their arrays, and the bits of a NaN are one pattern
//! before anything reads them. The approximate functions are omitted.

pub mod device;
mod generate;
mod host;
#[cfg(test)]
#[allow(dead_code, unreachable_pub, reason = "a module of another program, of which this one has the text")]
mod memory;
#[cfg(test)]
#[allow(
    dead_code,
    unreachable_pub,
    unused_imports,
    reason = "a module of another program, of which this one has the text"
)]
mod words;

use std::path::Path;
use std::{fmt, thread};

use tma_codegen::{Checks, Ptx, Target, compile_with};

use crate::parallel::on_all_cores;
use crate::random::{Sample as _, hash};
use crate::rng::Rng;
use crate::rounding::Format;

pub use generate::{Kernel, kernel};

/// Threads per block. Each has its own inputs.
pub const THREADS: u32 = 32;
/// Input words per thread.
const INPUTS: usize = 6;
/// Output words per thread.
const OUTPUTS: usize = 8;

/// A kernel whose two results differ.
#[derive(Clone, Debug)]
pub struct Failure {
    /// The kernel's name.
    pub kernel: String,
    /// A description of the difference.
    pub what: String,
    /// The kernel and the functions that it calls.
    pub text: String,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}\n{}", self.kernel, self.what, self.text)
    }
}

/// Generated kernels, with the results of plain Rust.
#[derive(Debug)]
pub struct Batch {
    kernels: Vec<Kernel>,
    words: Vec<u64>,
    wanted: Vec<Vec<u64>>,
    compiled: Vec<Result<Ptx, String>>,
}

impl Batch {
    /// Generates `kernels` kernels, which depend only on `seed`; `folder` is for files.
    ///
    /// # Errors
    ///
    /// If rustc rejects the generated Rust, or if files cannot be written or programs started.
    pub fn new(seed: u64, kernels: usize, folder: &Path) -> anyhow::Result<Self> {
        let of = |index| kernel(&Rng::new(hash(seed, index)), index);
        let kernels: Vec<_> = (0..kernels as u64).map(of).collect();
        let words = inputs(seed);
        // rustc uses mostly one core, while the others compile the kernels.
        let (wanted, compiled) = thread::scope(|scope| {
            let wanted = scope.spawn(|| host::run(&kernels, &words, folder));
            let compiled = on_all_cores(kernels.iter().collect(), compile_one);
            let panicked = |_| Err(anyhow::anyhow!("plain Rust's side panicked"));
            (wanted.join().unwrap_or_else(panicked), compiled)
        });
        Ok(Self { wanted: wanted?, kernels, words, compiled })
    }

    /// Runs every kernel, and returns those whose results differ from plain Rust.
    pub fn failures(&self) -> Vec<Failure> {
        let all = (0..self.kernels.len()).collect();
        on_all_cores(all, |index| self.run(index, str::to_owned)).into_iter().flatten().collect()
    }

    /// Returns the first failure among kernels whose PTX contains the text `from`, after replacing
    /// it by `to`. `None` means that no kernel would reveal a compiler that confuses the two.
    pub fn failure_with(&self, from: &str, to: &str) -> Option<Failure> {
        let has = |index: &usize| matches!(&self.compiled[*index], Ok(ptx) if ptx.text.contains(from));
        (0..self.kernels.len()).filter(has).find_map(|index| self.run(index, |ptx| ptx.replace(from, to)))
    }

    /// Runs a kernel with its PTX changed.
    fn run(&self, index: usize, change: impl Fn(&str) -> String) -> Option<Failure> {
        let found = self.compiled[index].clone().and_then(|ptx| {
            let ptx = Ptx { text: change(&ptx.text), ..ptx };
            device::run(&ptx, THREADS, &self.words, THREADS as usize * OUTPUTS)
        });
        let what = found.and_then(|found| compare(&found, &self.wanted[index])).err()?;
        let Kernel { name, text } = self.kernels[index].clone();
        Some(Failure { kernel: name, what, text })
    }
}

fn compile_one(kernel: &Kernel) -> Result<Ptx, String> {
    // Checked and unchecked kernels must produce the same results.
    let checks = if kernel.text.len().is_multiple_of(2) { Checks::On } else { Checks::Off };
    let compiled = compile_with("generated.rs", &kernel.text, Target::default(), checks);
    let mut compiled = compiled.map_err(|failure| failure.to_string())?;
    compiled.kernels.pop().ok_or_else(|| "no kernel is in the text".to_owned())
}

fn compare(found: &[u64], wanted: &[u64]) -> Result<(), String> {
    let Some(at) = found.iter().zip(wanted).position(|(found, wanted)| found != wanted) else {
        return Ok(());
    };
    let (thread, output) = (at / OUTPUTS, at % OUTPUTS);
    let (found, wanted) = (found[at], wanted[at]);
    Err(format!("thread {thread} gives {found:#x} as output {output}, plain Rust gives {wanted:#x}"))
}

/// Returns the inputs of all threads: edges of every type's bits, neighbours of ties of narrow
/// floats, and random ones.
fn inputs(seed: u64) -> Vec<u64> {
    let edges: Vec<u64> = (u64::edges().into_iter())
        .chain(f64::edges().into_iter().map(f64::to_bits))
        .chain(f32::edges().into_iter().map(|x| u64::from(x.to_bits())))
        .chain(u32::edges().into_iter().map(u64::from))
        .chain(u16::edges().into_iter().map(u64::from))
        .collect();
    let middles: Vec<f64> =
        [Format::F16, Format::BF16, Format::TF32].iter().flat_map(|format| format.midpoints(509)).collect();
    let word = |index: u64| {
        let bits = hash(seed, index);
        let middle = middles[(bits >> 8) as usize % middles.len()];
        match bits % 6 {
            0 | 1 => edges[(bits >> 8) as usize % edges.len()],
            2 => bits >> (bits >> 58),
            // An integer close to a tie of 11 bits, which an `f32` may round to the tie.
            3 => {
                let tie = (1 << 11 | bits >> 8 & 0x7ff | 1) << (bits >> 24 & 0x3f).min(51);
                tie.wrapping_add(bits >> 60 & 3).wrapping_sub(1)
            }
            4 => middle.to_bits().wrapping_add(bits >> 60 & 3).wrapping_sub(1),
            _ => hash(!seed, index),
        }
    };
    (0..u64::from(THREADS) * INPUTS as u64).map(word).collect()
}
