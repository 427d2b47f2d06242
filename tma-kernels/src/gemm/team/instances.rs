//! The kernels' instances, by elements, tile and layout.

use super::gather_kernel::gathered::gather_multiply;
use super::scatter_kernel::scattered::multiply_scatter;
use crate::gemm::{Product, Tile};
use tma_runtime::launch::KernelSpec;
use tma_runtime::prelude::*;

/// The element types of GEMMs on teams: `bf16` and `f16`.
#[diagnostic::on_unimplemented(
    message = "no team multiplies matrices of `{Self}`",
    label = "not `bf16` or `f16`"
)]
pub trait TeamElement: Product<Self> {
    /// Returns the kernel that gathers A, for a tile and a B of N × K if it is transposed.
    #[doc(hidden)]
    fn gather_kernel(tile: Tile, transpose_b: bool) -> Option<&'static KernelSpec>;

    /// Returns the kernel that scatters sums, for the same.
    #[doc(hidden)]
    fn scatter_kernel(tile: Tile, transpose_b: bool) -> Option<&'static KernelSpec>;
}

/// Implements the trait with the instances of both kernels that have these names.
macro_rules! elements {
    ($($element:ty: $($tile:ident = $nt:ident $nn:ident),+;)+) => { $(
        impl TeamElement for $element {
            fn gather_kernel(tile: Tile, transpose_b: bool) -> Option<&'static KernelSpec> {
                match (tile, transpose_b) {
                    $(
                        (Tile::$tile, true) => Some(&gather_multiply::$nt::SPEC),
                        (Tile::$tile, false) => Some(&gather_multiply::$nn::SPEC),
                    )+
                    _ => None,
                }
            }

            fn scatter_kernel(tile: Tile, transpose_b: bool) -> Option<&'static KernelSpec> {
                match (tile, transpose_b) {
                    $(
                        (Tile::$tile, true) => Some(&multiply_scatter::$nt::SPEC),
                        (Tile::$tile, false) => Some(&multiply_scatter::$nn::SPEC),
                    )+
                    _ => None,
                }
            }
        }
    )+ };
}

elements! {
    bf16:
        T128x256Cluster2x1 = bf16_t128x256_cluster2x1_nt bf16_t128x256_cluster2x1_nn,
        T128x128Cluster2x1 = bf16_t128x128_cluster2x1_nt bf16_t128x128_cluster2x1_nn,
        T64x128 = bf16_t64x128_nt bf16_t64x128_nn;
    f16:
        T128x256Cluster2x1 = f16_t128x256_cluster2x1_nt f16_t128x256_cluster2x1_nn,
        T128x128Cluster2x1 = f16_t128x128_cluster2x1_nt f16_t128x128_cluster2x1_nn,
        T64x128 = f16_t64x128_nt f16_t64x128_nn;
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the names of the instances that are found for an element type.
    fn names<T: TeamElement>() -> Vec<&'static str> {
        let of = |tile| {
            let [nt, nn] = [true, false].map(|of_b| [T::gather_kernel(tile, of_b), T::scatter_kernel(tile, of_b)]);
            [nt, nn].concat().into_iter().flatten().map(|spec| spec.name)
        };
        Tile::ALL.into_iter().flat_map(of).collect()
    }

    #[test]
    fn every_instance_is_found() {
        let mut found = [names::<bf16>(), names::<f16>()].concat();
        let all = gather_multiply::INSTANCES.iter().chain(&multiply_scatter::INSTANCES);
        let mut all: Vec<_> = all.map(|spec| spec.name).collect();
        found.sort_unstable();
        all.sort_unstable();
        assert_eq!(found, all);
    }
}
