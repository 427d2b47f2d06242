//! Compiles the kernels to PTX.

fn main() {
    tma_codegen::build();
}
