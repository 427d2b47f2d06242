//! Compiles the kernels of this package and those of the examples, which are modules of it. Always
//! as a release build does: what is tested, measured and kept is what ships. `tests/checks.rs` has
//! kernels of either kind. Nothing is warned of: some kernels declare what they only name.

use tma_codegen::{Build, Checks};

fn main() {
    Build::new().source("../examples/src/bin").checks(Checks::Off).warnings(false).run_or_exit();
}
