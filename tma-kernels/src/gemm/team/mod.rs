//! GEMMs of the ranks of a team, which move matrices between the ranks while they multiply:
//! `docs/team-gemm.md`.

pub mod device;
mod gather;
pub mod gather_kernel;
mod instances;
mod matrices;
mod plan;
mod scatter;
pub mod scatter_kernel;

pub use gather::{GatherWorkspace, all_gather_gemm};
pub use instances::TeamElement;
pub use scatter::{ScatterWorkspace, gemm_reduce_scatter};

use super::Tile;

/// The layout of B, and the kernel of a GEMM on a team.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TeamGemmOptions {
    /// Whether B is stored N × K, not K × N.
    pub transpose_b: bool,
    /// The kernel's tile: `T128x256Cluster2x1`, `T128x128Cluster2x1` or `T64x128`. By default it is the
    /// fastest of these for the rank's GEMM alone.
    pub tile: Option<Tile>,
    /// The blocks of each rank at most, but at least a cluster. The default is as many as run at the
    /// same time, divided among the ranks that share a GPU. More than run at the same time would wait
    /// for each other for ever.
    pub blocks: Option<u32>,
}
