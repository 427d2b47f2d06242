//! The example programs as modules: their kernels and `launch` functions are tested and measured
//! unchanged.

#![allow(dead_code, reason = "a program's `main` is not used here")]
#![allow(clippy::module_inception, reason = "an example has the name of its kernel")]

#[path = "../../examples/src/bin/attention.rs"]
pub mod attention;
#[path = "../../examples/src/bin/cluster_reduce.rs"]
pub mod cluster_reduce;
#[path = "../../examples/src/bin/dense_gemm.rs"]
pub mod dense_gemm;
#[path = "../../examples/src/bin/gemm_steps.rs"]
pub mod gemm_steps;
#[path = "../../examples/src/bin/row_sums.rs"]
pub mod row_sums;
#[path = "../../examples/src/bin/tma_coordinates.rs"]
pub mod tma_coordinates;
#[path = "../../examples/src/bin/tma_copy.rs"]
pub mod tma_copy;
#[path = "../../examples/src/bin/tma_copy_pipelined.rs"]
pub mod tma_copy_pipelined;
#[path = "../../examples/src/bin/tma_fp8.rs"]
pub mod tma_fp8;
#[path = "../../examples/src/bin/tma_grouped_copy.rs"]
pub mod tma_grouped_copy;
#[path = "../../examples/src/bin/tma_im2col.rs"]
pub mod tma_im2col;
#[path = "../../examples/src/bin/tma_multicast.rs"]
pub mod tma_multicast;
#[path = "../../examples/src/bin/tma_prefetch.rs"]
pub mod tma_prefetch;
#[path = "../../examples/src/bin/tma_reduce.rs"]
pub mod tma_reduce;
#[path = "../../examples/src/bin/tma_row_fill.rs"]
pub mod tma_row_fill;
#[path = "../../examples/src/bin/tma_scale.rs"]
pub mod tma_scale;
#[path = "../../examples/src/bin/transpose.rs"]
pub mod transpose;
#[path = "../../examples/src/bin/wgmma_atom.rs"]
pub mod wgmma_atom;
