//! Compiles the kernels of `tests/ui`. Nothing is warned of: some of them declare what they only
//! name.

use tma_codegen::{Build, Checks};

fn main() {
    Build::new().checks(Checks::Off).warnings(false).run_or_exit();
}
