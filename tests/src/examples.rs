//! The example programs, as modules: their kernels and `launch` functions are tested and measured as they stand.

#![allow(dead_code, reason = "a program's `main` is not used here")]
#![allow(clippy::module_inception, reason = "an example has the name of its kernel")]

#[path = "../../examples/src/bin/tma_copy.rs"]
pub mod tma_copy;
#[path = "../../examples/src/bin/tma_copy_pipelined.rs"]
pub mod tma_copy_pipelined;
#[path = "../../examples/src/bin/tma_scale.rs"]
pub mod tma_scale;
#[path = "../../examples/src/bin/transpose.rs"]
pub mod transpose;
