//! Kernels that only the benchmarks use.

pub mod additions;
pub mod scales;
pub mod streams;
