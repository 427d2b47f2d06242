//! What only a GPU can show: the examples on matrices of every size, the errors of the driver,
//! faults, times.

pub mod bench;
pub mod errors;
pub mod example_runs;
pub mod runner;
pub mod tuning;
