//! Kernels that only the benchmarks use.

pub mod additions;
pub mod streams;
