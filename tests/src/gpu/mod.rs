//! What only a GPU can show: the examples on matrices of every size, the errors of the driver,
//! faults, times.

pub mod bench;
pub mod errors;
pub mod example_runs;
#[cfg(feature = "cust")]
pub mod exchange;
pub mod runner;
pub mod tuning;
