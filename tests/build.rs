//! Compiles the kernels of this package and those of the examples, which are modules of it. They
//! are always compiled as in a release build, so that tests, measurements and kept PTX are those of
//! the shipped code. `tests/checks.rs` has kernels of both kinds. Warnings are off: some kernels
//! declare objects that they only name.

use tma_codegen::{Build, Checks};

fn main() {
    Build::new().source("../examples/src/bin").checks(Checks::Off).warnings(false).run_or_exit();
}
