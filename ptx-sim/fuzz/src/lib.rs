//! Fuzz targets: how they build a case from an input, and run it. Nothing may panic, hang, overflow
//! the stack or exhaust memory; a fault of the input has to come back as an error or a finding.
//!
//! It is compiled twice. As the library of this package it serves the targets in `fuzz_targets`,
//! which libFuzzer feeds. As the test `fuzz` of `ptx-sim` it needs neither libFuzzer nor
//! cargo-fuzz, and gets some hundred inputs in each run.

pub mod command;
mod copies;
mod corpus;
mod draw;
mod engines;
pub mod launch;
mod maps;
pub mod ptx;
#[cfg(test)]
mod tests;
pub mod text;

// The command's own files: without the feature `cli` the library lacks them.
#[path = "../../src/cli/arguments.rs"]
mod arguments;
#[path = "../../src/cli/buffers.rs"]
mod buffers;
#[path = "../../src/cli/npy.rs"]
mod npy;
#[path = "../../src/cli/numbers.rs"]
#[expect(dead_code, reason = "the command shows numbers, too")]
mod numbers;
