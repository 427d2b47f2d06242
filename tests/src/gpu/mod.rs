//! The tests that need a GPU: the examples on matrices of all sizes, the errors of the driver,
//! faults, several GPUs, and times.

pub mod bench;
pub mod collectives;
pub mod deadlocks;
pub mod errors;
pub mod example_runs;
#[cfg(feature = "cust")]
pub mod exchange;
pub mod gradients;
pub mod model;
pub mod runner;
pub mod team_gemm;
pub mod teams;
pub mod training;
pub mod tuning;
