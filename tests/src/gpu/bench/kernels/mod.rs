//! The kernels that only the benchmarks use.

pub mod additions;
pub mod products;
pub mod scales;
pub mod streams;
