//! The kernels' instances, by the GEMM that they compute.

use std::any::TypeId;

use super::Epilogue;
use super::dense::kernels::plain;
use super::full::with_options::full;
use super::ping_pong::kernels::ping_pong;
use super::split_k::kernels::split_k;
use super::tile::{Facts, Tile, TileKernel};
use tma_runtime::Scalar;
use tma_runtime::launch::KernelSpec;
use tma_runtime::prelude::*;

/// The layouts of A and B.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Layout {
    /// Whether A is stored K × M, not M × K.
    pub(super) transpose_a: bool,
    /// Whether B is stored N × K, not K × N.
    pub(super) transpose_b: bool,
}

/// An instance of one of the kernels, for matrices of `AB` and of `C`, with sums in `SUM`.
pub(super) enum Instance<'a, AB, SUM, C> {
    Plain(plain::Launcher<'static, AB, SUM, C>),
    PingPong(ping_pong::Launcher<'static, AB, C, Swizzle128>),
    PingPongNoSwizzle(ping_pong::Launcher<'static, AB, C, NoSwizzle>),
    SplitK(split_k::Launcher<'static, AB, C>),
    Full(full::Launcher<'a, AB, C>),
}

impl<AB: Scalar, SUM: Scalar, C: Scalar> Instance<'_, AB, SUM, C> {
    /// Returns the instance's specification.
    pub(super) fn spec(&self) -> &'static KernelSpec {
        match self {
            Self::Plain(kernel) => kernel.spec(),
            Self::PingPong(kernel) => kernel.spec(),
            Self::PingPongNoSwizzle(kernel) => kernel.spec(),
            Self::SplitK(kernel) => kernel.spec(),
            Self::Full(kernel) => kernel.spec(),
        }
    }
}

/// Returns the instance of a kernel without options, if there is one.
pub(super) fn find_plain<AB: Scalar, SUM: Scalar, C: Scalar>(
    tile: Tile,
    layout: Layout,
) -> Option<Instance<'static, AB, SUM, C>> {
    let Facts { cluster: [cluster_n, cluster_m], warpgroups, columns: bn, .. } = tile.facts();
    let (mn_a, mn_b) = (layout.transpose_a, !layout.transpose_b);
    // Only `plain` has a choice of sums, and an A stored K × M.
    let sums_f32 = TypeId::of::<SUM>() == TypeId::of::<f32>();
    match tile.kernel() {
        TileKernel::Plain => {
            let key = plain::Key { cluster_m, cluster_n, warpgroups, bn, mn_a, mn_b };
            plain::find(key).map(Instance::Plain)
        }
        TileKernel::PingPong if sums_f32 && !mn_a && !mn_b => {
            let key = ping_pong::Key { bn };
            let swizzled = ping_pong::find(key).map(Instance::PingPong);
            swizzled.or_else(|| ping_pong::find(key).map(Instance::PingPongNoSwizzle))
        }
        TileKernel::SplitK if sums_f32 && !mn_a => {
            split_k::find(split_k::Key { warpgroups, mn_b }).map(Instance::SplitK)
        }
        TileKernel::PingPong | TileKernel::SplitK => None,
    }
}

/// The kernels with operations between the sums and C.
#[derive(Debug)]
pub(super) enum FullKernels<'a> {
    /// The library's own.
    Own(Epilogue<'a>),
    /// Those of the caller's package.
    Epilogue(Epilogue<'a>),
    /// The library's own that pick matrices by indices.
    Picked(Epilogue<'a>),
}

impl<'a> FullKernels<'a> {
    /// Returns the table of the instances.
    fn table(&self) -> &Epilogue<'a> {
        match self {
            Self::Own(table) | Self::Epilogue(table) | Self::Picked(table) => table,
        }
    }

    /// Returns whether there are instances for these element types.
    pub(super) fn has_types<AB: Scalar, C: Scalar>(&self) -> bool {
        self.table().keys::<full::Launcher<'_, AB, C>>().next().is_some()
    }

    /// Returns the instance for a tile and layouts, if there is one.
    pub(super) fn find<AB: Scalar, C: Scalar>(
        &self,
        tile: Tile,
        layout: Layout,
    ) -> Option<full::Launcher<'_, AB, C>> {
        if tile.kernel() != TileKernel::Plain {
            return None; // `full` has only tiles of this kind
        }
        let Facts { cluster: [cluster_n, cluster_m], warpgroups, columns: bn, .. } = tile.facts();
        let (mn_a, mn_b) = (layout.transpose_a, !layout.transpose_b);
        let key = full::Key { cluster_m, cluster_n, warpgroups, bn, mn_a, mn_b };
        self.table().find(key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LAYOUTS: [Layout; 4] = [
        Layout { transpose_a: false, transpose_b: false },
        Layout { transpose_a: false, transpose_b: true },
        Layout { transpose_a: true, transpose_b: false },
        Layout { transpose_a: true, transpose_b: true },
    ];

    /// Returns the names of the instances that are found for some element types.
    fn names<AB: Scalar, SUM: Scalar, C: Scalar>() -> Vec<&'static str> {
        let own = FullKernels::Own(full::table_of::<AB, C>());
        let of = |tile, layout| {
            let plain = find_plain::<AB, SUM, C>(tile, layout).map(|kernel| kernel.spec().name);
            let is_f32 = TypeId::of::<SUM>() == TypeId::of::<f32>();
            let full = own.find::<AB, C>(tile, layout).filter(|_| is_f32).map(|kernel| kernel.spec().name);
            plain.into_iter().chain(full)
        };
        Tile::ALL
            .into_iter()
            .flat_map(|tile| LAYOUTS.into_iter().flat_map(move |layout| of(tile, layout)))
            .collect()
    }

    #[test]
    fn every_instance_is_found() {
        let mut found = [
            names::<bf16, f32, bf16>(),
            names::<bf16, f32, f32>(),
            names::<f16, f32, f16>(),
            names::<f16, f32, f32>(),
            names::<f16, f16, f16>(),
            names::<e4m3, f32, bf16>(),
            names::<e4m3, f32, f32>(),
            names::<e5m2, f32, bf16>(),
            names::<e5m2, f32, f32>(),
            names::<tf32, f32, f32>(),
            names::<i8, i32, i32>(),
        ]
        .concat();
        let tables =
            [plain::INSTANCES.as_slice(), &split_k::INSTANCES, &ping_pong::INSTANCES, &full::INSTANCES];
        let mut all: Vec<_> = tables.concat().iter().map(|kernel| kernel.name).collect();
        found.sort_unstable();
        all.sort_unstable();
        assert_eq!(found, all);
    }

    #[test]
    fn an_instance_has_the_tile_of_its_name() {
        let layout = Layout { transpose_a: false, transpose_b: true };
        let name = |tile| find_plain::<bf16, f32, bf16>(tile, layout).map(|kernel| kernel.spec().name);
        assert_eq!(name(Tile::T128x128Cluster2x1), Some("plain::bf16_t128x128_cluster2x1_nt"));
        assert_eq!(name(Tile::PingPong128x128), Some("ping_pong::bf16_ping_pong128x128_nt"));
        assert_eq!(name(Tile::PingPong128x176), Some("ping_pong::bf16_ping_pong128x176_nt"));
        assert_eq!(name(Tile::SplitK64x128), Some("split_k::bf16_split_k64x128_nt"));
        assert_eq!(name(Tile::T128x128Cluster1x2), None);
    }
}
