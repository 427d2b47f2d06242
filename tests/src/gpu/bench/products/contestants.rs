//! The kernels that multiply, as data: what each instance needs to be launched.
//!
//! All take the same parameters: the maps of A, B and C, the tiles of C along M and N, and the
//! steps along K. The rest is read from the kernel's specification.

use std::sync::LazyLock;

use tma_runtime::launch::{KernelSpec, ParamKind, resident_blocks};
use tma_runtime::prelude::*;

use super::super::kernels::products::{
    dense::products as dense, paired::products as paired, persistent::products::persistent,
};
use crate::examples::dense_gemm::gemm::dense_gemm;

/// How many blocks a kernel is launched with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blocks {
    /// A block a tile. No warps of it are specialised.
    PerTile,
    /// As many as run at the same time, at most one a tile.
    Persistent,
}

/// A kernel, and how it divides C.
#[derive(Clone, Copy, Debug)]
pub struct Contestant {
    /// The kernel.
    pub kernel: KernelSpec,
    /// Rows and columns of a block's tile of C.
    pub tile: [usize; 2],
    /// How many blocks.
    pub blocks: Blocks,
}

impl Contestant {
    /// Whether its maps have batches as their first dimension.
    pub fn has_batches(&self) -> bool {
        self.box_of_a().len() == 3
    }

    /// Elements along K of a step.
    pub fn step(&self) -> usize {
        self.box_of_a().last().map_or(1, |&extent| extent as usize)
    }

    /// The extents of what a step loads of A.
    fn box_of_a(&self) -> &'static [u32] {
        match self.kernel.params.first().map(|param| param.kind) {
            Some(ParamKind::Map(map)) => map.box_extents,
            Some(ParamKind::Global { .. } | ParamKind::Scalar { .. }) | None => &[],
        }
    }

    /// Tiles along M, counted in clusters of blocks one below the other, and along N.
    pub fn tiles(&self, [m, n]: [usize; 2]) -> [u32; 2] {
        let rows = self.tile[0] * self.kernel.cluster.most_blocks() as usize;
        [m.div_ceil(rows) as u32, n.div_ceil(self.tile[1]) as u32]
    }

    /// The blocks to launch for so many tiles.
    ///
    /// # Errors
    ///
    /// Those of loading the kernel.
    pub fn grid(&'static self, stream: &Stream, [down, across]: [u32; 2]) -> Result<Grid, Error> {
        let blocks = down * across * self.kernel.cluster.most_blocks();
        Ok(Grid::x(match self.blocks {
            Blocks::PerTile => blocks,
            Blocks::Persistent => resident_blocks(stream, &self.kernel)?.min(blocks),
        }))
    }
}

/// All that multiply `f16`.
pub static OF_F16: LazyLock<Vec<Contestant>> = LazyLock::new(|| {
    [
        family(&[dense_gemm::f16_f16_f32_k_k::SPEC], [128, 128], Blocks::PerTile),
        family(&dense::narrow::INSTANCES, [128, 128], Blocks::PerTile),
        family(&paired::narrow_paired::INSTANCES, [128, 128], Blocks::PerTile),
        family(&dense::wide::INSTANCES, [128, 256], Blocks::PerTile),
        family(&paired::wide_paired::INSTANCES, [128, 256], Blocks::PerTile),
        family(&dense::tall::INSTANCES, [256, 128], Blocks::PerTile),
        family(&paired::tall_paired::INSTANCES, [256, 128], Blocks::PerTile),
        family(&[persistent::f16_8::SPEC, persistent::f16_16::SPEC], [128, 256], Blocks::Persistent),
    ]
    .concat()
});

/// All that multiply `bf16`.
pub static OF_BF16: LazyLock<Vec<Contestant>> = LazyLock::new(|| {
    [
        family(&[dense_gemm::bf16_bf16_f32_k_k::SPEC], [128, 128], Blocks::PerTile),
        family(&[persistent::bf16_8::SPEC, persistent::bf16_16::SPEC], [128, 256], Blocks::Persistent),
    ]
    .concat()
});

fn family(kernels: &[KernelSpec], tile: [usize; 2], blocks: Blocks) -> Vec<Contestant> {
    kernels.iter().map(|&kernel| Contestant { kernel, tile, blocks }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_step_and_the_rank_are_those_of_the_kernels_maps() {
        let of = |name: &str| OF_F16.iter().find(|contestant| contestant.kernel.name == name).copied();
        let example = of("dense_gemm::f16_f16_f32_k_k").unwrap();
        assert!(example.has_batches() && example.step() == 64);
        assert!(OF_F16.iter().all(|contestant| contestant.step() == 64));
        assert_eq!(OF_F16.iter().filter(|contestant| contestant.has_batches()).count(), 1);
    }
}
