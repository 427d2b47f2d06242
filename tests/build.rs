//! Compiles the kernels of this package and those of the examples, which are modules of it.

fn main() {
    tma_codegen::Build::new().source("../examples/src/bin").run_or_exit();
}
