//! Takes the PTX of the kernels from `tma-ptx`, or compiles them with the feature `llvm`.

fn main() {
    // As they are released, in every build: tests of all profiles run what users run.
    tma_codegen::Build::new().checks(tma_codegen::Checks::Off).run_or_exit();
}
