//! Compiles the kernels of the examples to PTX.

fn main() {
    tma_codegen::build();
}
