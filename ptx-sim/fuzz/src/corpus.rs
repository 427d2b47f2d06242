//! PTX that nvcc and Triton wrote: the corpus of the simulator's tests.

macro_rules! corpus {
    ($($name:literal)+) => { &[$(include_str!(concat!("../../tests/corpus/", $name, ".ptx"))),+] };
}

/// Modules with variables of their own, which keep values from launch to launch.
pub(crate) const WITH_VARIABLES: &[&str] = corpus! {
    "cuda/cub" "cuda/fourier" "cuda/functions" "cuda/reduce" "cuda/stencil" "cuda/warp" "triton/layer_norm"
};

/// The others.
pub(crate) const WITHOUT_VARIABLES: &[&str] = corpus! {
    "cuda/atomics" "cuda/bulk" "cuda/cluster" "cuda/elementwise" "cuda/halves" "cuda/integers" "cuda/matrix" "cuda/norms"
    "cuda/pipeline" "cuda/rounding" "cuda/scan" "cuda/sort" "cuda/tensor" "cuda/transpose" "triton/add"
    "triton/floats8" "triton/histogram" "triton/reduce" "triton/scan" "triton/softmax" "triton/sort" "triton/stages"
    "triton/transpose"
};

/// All of them.
pub(crate) fn all() -> impl Iterator<Item = &'static str> {
    WITH_VARIABLES.iter().chain(WITHOUT_VARIABLES).copied()
}
