//! The kernels' instances, by elements, tile and layout.

use super::gather_kernel::gathered::gather_multiply;
use super::scatter_kernel::scattered::multiply_scatter;
use crate::gemm::tile::Facts;
use crate::gemm::{Product, Tile};
use tma_runtime::Scalar;
use tma_runtime::launch::KernelSpec;
use tma_runtime::prelude::*;

/// The element types of GEMMs on teams: `bf16` and `f16`.
#[diagnostic::on_unimplemented(
    message = "no team multiplies matrices of `{Self}`",
    label = "not `bf16` or `f16`"
)]
pub trait TeamElement: Product<Self> {}

impl TeamElement for bf16 {}
impl TeamElement for f16 {}

/// The tiles of the kernels.
pub(super) const TILES: [Tile; 3] = [Tile::T128x256Cluster2x1, Tile::T128x128Cluster2x1, Tile::T64x128];

/// An instance of a kernel, and its specification.
pub(super) type Found<L> = (L, &'static KernelSpec);

/// Returns the kernel that gathers A, for a tile and a B of N × K if it is transposed.
pub(super) fn gather_kernel<T: Scalar>(
    tile: Tile,
    transpose_b: bool,
) -> Option<Found<gather_multiply::Launcher<'static, T>>> {
    let Facts { cluster: [cluster_n, cluster_m], warpgroups, columns: bn, .. } = tile.facts();
    let key = gather_multiply::Key { cluster_m, cluster_n, warpgroups, bn, mn_b: !transpose_b };
    let kernel = if TILES.contains(&tile) { gather_multiply::find::<T>(key) } else { None };
    kernel.map(|kernel| (kernel, kernel.spec()))
}

/// Returns the kernel that scatters sums, for the same.
pub(super) fn scatter_kernel<T: Scalar>(
    tile: Tile,
    transpose_b: bool,
) -> Option<Found<multiply_scatter::Launcher<'static, T>>> {
    let Facts { cluster: [cluster_n, cluster_m], warpgroups, columns: bn, .. } = tile.facts();
    let key = multiply_scatter::Key { cluster_m, cluster_n, warpgroups, bn, mn_b: !transpose_b };
    let kernel = if TILES.contains(&tile) { multiply_scatter::find::<T>(key) } else { None };
    kernel.map(|kernel| (kernel, kernel.spec()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the names of the instances that are found for an element type.
    fn names<T: TeamElement>() -> Vec<&'static str> {
        let of = |(tile, transpose_b)| {
            let gather = gather_kernel::<T>(tile, transpose_b).map(|(_, spec)| spec.name);
            let scatter = scatter_kernel::<T>(tile, transpose_b).map(|(_, spec)| spec.name);
            gather.into_iter().chain(scatter)
        };
        Tile::ALL.into_iter().flat_map(|tile| [(tile, true), (tile, false)]).flat_map(of).collect()
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
