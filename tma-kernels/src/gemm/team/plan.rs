//! The extents of a GEMM on a team, its checks, and the choice of kernel and grid.

use super::instances::Found;
use super::{TeamElement, TeamGemmOptions};
use crate::gemm::choose::{self, Choice, Problem};
use crate::gemm::{Division, GemmError, Tile};
use tma_runtime::launch::{Grid, MapOptions, WithOptions, resident_blocks};
use tma_runtime::prelude::*;
use tma_runtime::{Error, Scalar, TeamError};

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

/// The views of all ranks' matrices, without the options of their maps.
pub(super) fn views<V>(
    of_ranks: Vec<(V, MapOptions)>,
    what: &'static str,
    team: &Team,
) -> Result<Vec<V>, Error> {
    let (found, ranks) = (of_ranks.len(), team.ranks());
    match found == ranks {
        true => Ok(of_ranks.into_iter().map(|(view, _)| view).collect()),
        false => Err(TeamError::Count { what, found, ranks }.into()),
    }
}

/// Checks that the matrices of all ranks have this shape.
pub(super) fn have_shape(
    matrix: &'static str,
    shapes: impl IntoIterator<Item = [usize; 2]>,
    wanted: [usize; 2],
) -> Result<(), GemmError> {
    for (rank, found) in shapes.into_iter().enumerate() {
        if found != wanted {
            return Err(GemmError::Team { matrix, rank, found, wanted });
        }
    }
    Ok(())
}

/// Returns a matrix of all parts' rows as a batch with a matrix for each part.
pub(super) fn in_parts<T: Scalar>(
    view: TensorView<'_, T, 2>,
    parts: usize,
) -> Result<TensorView<'_, T, 3>, Error> {
    let (shape, strides) = layout(view.shape(), view.strides(), parts);
    view.with_strides(shape, strides)
}

/// Returns a mutable matrix of all parts' rows as a batch with a matrix for each part.
pub(super) fn in_parts_mut<T: Scalar>(
    view: TensorViewMut<'_, T, 2>,
    parts: usize,
) -> Result<TensorViewMut<'_, T, 3>, Error> {
    let (shape, strides) = layout(view.shape(), view.strides(), parts);
    view.with_strides(shape, strides)
}

/// Adds the option of operands' maps: the L2 cache reads 256 bytes at a time.
pub(super) fn promoted<T: Scalar>(
    views: Vec<TensorView<'_, T, 3>>,
) -> Vec<WithOptions<TensorView<'_, T, 3>>> {
    views.into_iter().map(|view| view.l2_promotion(L2Promotion::B256)).collect()
}

fn layout(shape: [usize; 2], strides: [usize; 2], parts: usize) -> ([usize; 3], [usize; 3]) {
    let ([rows, columns], [row, column]) = (shape, strides);
    let m = rows / parts;
    ([parts, m, columns], [m.saturating_mul(row), row, column])
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
