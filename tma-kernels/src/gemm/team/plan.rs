//! The extents of a GEMM on a team, its checks, and the choice of kernel and grid.

use super::instances::Found;
use super::{TeamElement, TeamGemmOptions};
use crate::gemm::choose::{self, Choice, Problem};
use crate::gemm::{Division, GemmError, Tile};
use tma_runtime::Error;
use tma_runtime::launch::{Grid, resident_blocks};
use tma_runtime::prelude::*;

/// The elements in 16 bytes, which is what the copy engine stores at a time (`docs/errors/TMA0518.md`).
const UNIT: usize = 8;

/// The extents of the GEMM of each rank: its matrices have `ranks` parts of `m` rows each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TeamExtents {
    pub(super) ranks: usize,
    pub(super) m: usize,
    pub(super) n: usize,
    pub(super) k: usize,
}

impl TeamExtents {
    /// Checks that copies can address the matrices, and that they store whole rows of C.
    pub(super) fn check<T: TeamElement>(self) -> Result<(), GemmError> {
        let Self { ranks, m, n, k } = self;
        let tiles = m.div_ceil(64).saturating_mul(n.div_ceil(64)).saturating_mul(ranks);
        if [m.saturating_mul(ranks), n, k].iter().any(|&extent| extent >= 1 << 31) || tiles >= 1 << 24 {
            return Err(GemmError::TooLarge { extents: [m, n, k, ranks] });
        }
        if !n.is_multiple_of(UNIT) {
            let what = "rows of C that are not multiples of 16 bytes on a team";
            let instead = "pad the columns of the layer to a multiple of 8";
            return Err(GemmError::Instance { types: T::NAME, what, instead });
        }
        Ok(())
    }
}

/// A kernel's launcher, and what follows from its tile.
pub(super) struct Plan<L> {
    pub(super) kernel: L,
    pub(super) tile: Tile,
    pub(super) grid: Grid,
    /// Rows of clusters' tiles in a band.
    pub(super) band: u32,
    /// The tiles of all parts.
    pub(super) tiles: u32,
    /// The parts of each part's tiles that are one warpgroup's.
    pub(super) warpgroup_tiles: usize,
}

impl<L> Plan<L> {
    /// Returns the fastest kernel that `find` returns for a tile, or that of the options' tile, with
    /// as many blocks as run at the same time on every rank.
    pub(super) fn of<T: TeamElement>(
        team: &Team,
        extents: TeamExtents,
        options: &TeamGemmOptions,
        find: fn(Tile, bool) -> Option<Found<L>>,
    ) -> Result<Self, GemmError> {
        let TeamExtents { ranks, m, n, k } = extents;
        let element = size_of::<T>();
        let problem = Problem { extents: [m, n, k], batches: ranks, bytes: [element; 2] };
        let has = |choice: Choice| {
            choice.division == Division::Whole && find(choice.tile, options.transpose_b).is_some()
        };
        let limit = options.blocks.unwrap_or(u32::MAX);
        let multiprocessors = least(team, |device| Ok(device.multiprocessors()))?.min(limit);
        let chosen = || choose::choose(&problem, multiprocessors, has).map(|choice| choice.tile);
        let tile = options.tile.or_else(chosen);
        let found = tile.and_then(|tile| Some((tile, find(tile, options.transpose_b)?)));
        let (tile, (kernel, spec)) = found.ok_or(GemmError::Instance {
            types: T::NAME,
            what: "this `tile` on a team",
            instead: "remove `tile`, or use `T128x256Cluster2x1`, `T128x128Cluster2x1` or `T64x128`",
        })?;
        let facts = tile.facts();
        let resident = least(team, |device| resident_blocks(device, spec))?.min(limit);
        let most = (resident / facts.blocks()).max(1) as usize;
        let tiles = problem.tiles(&facts);
        // As few as possible without more rounds, as for a GEMM of one GPU.
        let clusters = tiles.div_ceil(tiles.div_ceil(most)) as u32;
        let choice = Choice { tile, division: Division::Whole };
        Ok(Self {
            kernel,
            tile,
            grid: Grid::new(clusters * facts.cluster[0], facts.cluster[1], 1),
            band: choose::band(&problem, choice) as u32,
            tiles: tiles as u32,
            warpgroup_tiles: tiles / ranks * (facts.blocks() * facts.warpgroups) as usize,
        })
    }
}

/// Returns the least number of all ranks' devices, divided among the ranks that share a device.
fn least(team: &Team, of: impl Fn(&Device) -> Result<u32, Error>) -> Result<u32, Error> {
    let share = |device: &Device| {
        let ranks = team.devices().filter(|other| other.id() == device.id()).count();
        Ok(of(device)? / ranks as u32)
    };
    let shares = team.devices().map(share).collect::<Result<Vec<_>, Error>>()?;
    Ok(shares.into_iter().min().unwrap_or(0).max(1))
}
