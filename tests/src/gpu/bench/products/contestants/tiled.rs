//! The kernels of the GEMM benchmarks as data: everything that a launch of an instance needs.
//!
//! All take the same parameters: the maps of A, B and C, the number of tiles of C along M and along
//! N, and the number of steps along K. The rest is read from the kernel's specification.

use tma_runtime::launch::{Arg, KernelSpec, ParamKind, launch, resident_blocks};
use tma_runtime::prelude::*;

use crate::examples::dense_gemm::gemm::dense_gemm;
use crate::examples::gemm_steps::steps;
use crate::gpu::bench::kernels::products::{
    dense::products as dense, paired::products as paired, persistent::products::persistent,
};
use crate::gpu::bench::products::precision::Precision;
use crate::gpu::bench::products::problem::Matrices;

/// The number of blocks of a launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blocks {
    /// One block per tile, without specialised warps.
    PerTile,
    /// The number of blocks that run at the same time, but at most one per tile.
    Persistent,
}

/// A kernel with its tile.
#[derive(Clone, Copy, Debug)]
pub struct Tiled {
    /// The kernel.
    pub kernel: &'static KernelSpec,
    /// The number of rows and columns of a block's tile of C.
    pub tile: [usize; 2],
    /// The number of blocks.
    pub blocks: Blocks,
}

impl Tiled {
    /// Returns whether the first dimension of its maps is the batch.
    pub fn has_batches(&self) -> bool {
        self.box_of_a().len() == 3
    }

    /// Returns the number of elements along K of a step.
    pub fn step(&self) -> usize {
        self.box_of_a().last().map_or(1, |&extent| extent as usize)
    }

    /// Returns the extents of a step's load of A.
    fn box_of_a(&self) -> &'static [u32] {
        match self.kernel.params.first().map(|param| param.kind) {
            Some(ParamKind::Map(map)) => map.box_extents,
            Some(
                ParamKind::Global { .. }
                | ParamKind::PeerMaps(_)
                | ParamKind::PeerGlobals { .. }
                | ParamKind::Scalar { .. },
            )
            | None => &[],
        }
    }

    /// Returns the number of tiles along M, counted in clusters of stacked blocks, and along N.
    pub fn tiles(&self, [m, n]: [usize; 2]) -> [u32; 2] {
        let rows = self.tile[0] * self.kernel.cluster.most_blocks() as usize;
        [m.div_ceil(rows) as u32, n.div_ceil(self.tile[1]) as u32]
    }

    /// Queues the GEMM.
    ///
    /// # Errors
    ///
    /// Errors of the launch.
    pub fn multiply<P: Precision>(&self, stream: &Stream, matrices: &mut Matrices<P>) -> Result<(), Error> {
        let [m, n, k] = matrices.shape();
        let [down, across] = self.tiles([m, n]);
        let (a, b, c) = (matrices.a.view(), matrices.b.view(), matrices.c.view_mut());
        let [a, b, c] = if self.has_batches() {
            [
                Arg::map(a.with_strides([1, m, k], [m * k, k, 1])?),
                Arg::map(b.with_strides([1, n, k], [n * k, k, 1])?),
                Arg::map_mut(c.with_strides([1, m, n], [m * n, n, 1])?),
            ]
        } else {
            [Arg::map(a), Arg::map(b), Arg::map_mut(c)]
        };
        let steps = k.div_ceil(self.step()) as u32;
        let args = [a, b, c, Arg::scalar(down), Arg::scalar(across), Arg::scalar(steps)];
        launch(stream, self.kernel, self.grid(stream, down * across)?, &args)
    }

    /// Returns the grid for this number of tiles.
    fn grid(&self, stream: &Stream, tiles: u32) -> Result<Grid, Error> {
        let blocks = tiles * self.kernel.cluster.most_blocks();
        Ok(Grid::x(match self.blocks {
            Blocks::PerTile => blocks,
            Blocks::Persistent => resident_blocks(stream, self.kernel)?.min(blocks),
        }))
    }
}

/// Returns all kernels for `f16`.
pub fn of_f16() -> Vec<Tiled> {
    [
        family([&dense_gemm::f16_f16_f32_k_k::SPEC], [128, 128], Blocks::PerTile),
        family(&dense::narrow::INSTANCES, [128, 128], Blocks::PerTile),
        family(&paired::narrow_paired::INSTANCES, [128, 128], Blocks::PerTile),
        family(&dense::wide::INSTANCES, [128, 256], Blocks::PerTile),
        family(&paired::wide_paired::INSTANCES, [128, 256], Blocks::PerTile),
        family(&dense::tall::INSTANCES, [256, 128], Blocks::PerTile),
        family(&paired::tall_paired::INSTANCES, [256, 128], Blocks::PerTile),
        family([&persistent::f16_8::SPEC, &persistent::f16_16::SPEC], [128, 256], Blocks::Persistent),
    ]
    .concat()
}

/// Returns all kernels for `bf16`.
pub fn of_bf16() -> Vec<Tiled> {
    [
        family([&dense_gemm::bf16_bf16_f32_k_k::SPEC], [128, 128], Blocks::PerTile),
        family([&steps::tensor_cores::SPEC, &steps::pipelined::SPEC], [128, 128], Blocks::PerTile),
        family([&steps::specialised::SPEC], [128, 256], Blocks::PerTile),
        family([&steps::persistent::SPEC, &steps::clustered::SPEC], [128, 256], Blocks::Persistent),
        family([&persistent::bf16_8::SPEC, &persistent::bf16_16::SPEC], [128, 256], Blocks::Persistent),
    ]
    .concat()
}

/// Returns all kernels for `tf32`.
pub fn of_tf32() -> Vec<Tiled> {
    family([&dense_gemm::tf32_f32_f32_k_k::SPEC], [128, 128], Blocks::PerTile)
}

/// Returns all kernels for `e4m3`.
pub fn of_e4m3() -> Vec<Tiled> {
    family([&dense_gemm::e4m3_bf16_f32_k_k::SPEC], [128, 128], Blocks::PerTile)
}

/// Returns all kernels for `i8`.
pub fn of_s8() -> Vec<Tiled> {
    family([&dense_gemm::i8_i32_i32_k_k::SPEC], [128, 128], Blocks::PerTile)
}

fn family(
    kernels: impl IntoIterator<Item = &'static KernelSpec>,
    tile: [usize; 2],
    blocks: Blocks,
) -> Vec<Tiled> {
    kernels.into_iter().map(|kernel| Tiled { kernel, tile, blocks }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_step_and_the_rank_are_those_of_the_kernels_maps() {
        let steps = |kernels: Vec<Tiled>| kernels.iter().map(Tiled::step).collect::<Vec<_>>();
        assert!(steps(of_f16()).iter().all(|&step| step == 64));
        assert_eq!([of_tf32(), of_e4m3(), of_s8()].map(steps), [[32], [128], [128]]);
        let examples = of_f16().into_iter().filter(Tiled::has_batches).map(|kernel| kernel.kernel.name);
        assert_eq!(examples.collect::<Vec<_>>(), ["dense_gemm::f16_f16_f32_k_k"]);
    }
}
