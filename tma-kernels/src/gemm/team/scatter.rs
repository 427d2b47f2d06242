//! GEMMs whose results are summed over all ranks, for the rank that keeps them.

use super::instances::{TILES, scatter_kernel};
use super::matrices::{Matrices, promoted};
use super::plan::{Plan, TeamExtents};
use super::scatter_kernel::scattered::multiply_scatter;
use super::{TeamElement, TeamGemmOptions};
use crate::gemm::{GemmError, Tile};
use tma_runtime::launch::{PeerMapArg, PeerMapArgMut, WithTeam};
use tma_runtime::prelude::*;
use tma_runtime::{Error, Scalar};

/// The elements that a warpgroup stores at a time.
const SUMS: usize = 64 * 64;

/// The inbox of each rank, with the sums of its peers, and the flags that say which have arrived. One
/// call uses it at a time: calls on one team follow each other.
///
/// Calls use the two halves in turn. When a rank begins a call, its previous one has ended, for which
/// it needed the sums of all peers from that call; they had then ended the call before, and read the
/// half that this one uses.
#[derive(Debug)]
pub struct ScatterWorkspace<T: Scalar> {
    inbox: SymmetricTensor<T, 1>,
    flags: SymmetricTensor<u32, 1>,
    /// The number of launches.
    launches: u32,
}

impl<T: TeamElement> ScatterWorkspace<T> {
    /// Allocates the memory for a C of which each rank keeps `rows` × `columns` elements, or fewer of
    /// both, and waits for the team.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfMemory`], [`Error::KernelFault`] and [`Error::Driver`].
    pub fn new(team: &Team, rows: usize, columns: usize) -> Result<Self, Error> {
        let Size { elements, flags } = Size::of(team.ranks(), rows, columns);
        let workspace = Self { inbox: team.zeros([elements])?, flags: team.zeros([flags])?, launches: 0 };
        // No rank sets a flag of a peer before that has its zeros.
        team.synchronize()?;
        Ok(workspace)
    }

    /// Returns the bytes on each rank that [`new`](Self::new) allocates.
    pub fn bytes(team: &Team, rows: usize, columns: usize) -> usize {
        Size::of(team.ranks(), rows, columns).bytes::<T>()
    }
}

/// The memory of both halves on a rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Size {
    elements: usize,
    flags: usize,
}

impl Size {
    /// Returns the size that suffices for a part of as many rows and columns with every tile.
    fn of(ranks: usize, rows: usize, columns: usize) -> Self {
        let of_tile = TILES.map(|tile| {
            let facts = tile.facts();
            let [height, width] = facts.extents();
            let warpgroups = (facts.blocks() * facts.warpgroups) as usize;
            let tiles = rows.div_ceil(height).saturating_mul(columns.div_ceil(width));
            Self::of_tiles(ranks, tiles.saturating_mul(warpgroups), tile)
        });
        // A tensor map has at least one element.
        of_tile.into_iter().fold(Self { elements: 2 * SUMS, flags: 2 }, |most, size| Self {
            elements: most.elements.max(size.elements),
            flags: most.flags.max(size.flags),
        })
    }

    /// Returns the size for as many parts of tiles from each peer, which are one warpgroup's.
    fn of_tiles(ranks: usize, parts: usize, tile: Tile) -> Self {
        let flags = parts.saturating_mul(2 * (ranks - 1));
        Self { elements: flags.saturating_mul(64 * tile.facts().columns as usize), flags }
    }

    fn bytes<T>(self) -> usize {
        self.elements
            .saturating_mul(size_of::<T>())
            .saturating_add(self.flags.saturating_mul(size_of::<u32>()))
    }
}

/// Queues `C = A · B`, summed over the ranks of a team, of which each rank keeps its part of the rows.
///
/// Each rank has an A with all rows, and a B, whose K are its part of a greater one: for a layer whose
/// rows are divided among the ranks. It gets those rows of C that are its part, as many as all others:
/// A is M × K, B is K × N and C is M / ranks × N, of `bf16` or `f16`; with
/// [`transpose_b`](TeamGemmOptions::transpose_b), B is stored N × K. N is a multiple of 8, and rows of
/// all matrices begin at multiples of 16 bytes.
///
/// A single kernel multiplies and stores what a peer keeps to that peer's inbox, rounded to the type of
/// C. It begins with the rows of the next rank. To its own sums, in `f32`, a rank adds those of its
/// peers in the order of ranks: the same matrices produce the same bits each time.
///
/// Nothing is allocated, and the call does not wait, except for a K of 0. All ranks run the kernel at
/// the same time: while it runs, launches on other streams of their GPUs that take multiprocessors
/// away must end by themselves.
///
/// ```
/// use tma_kernels::gemm::team::{ScatterWorkspace, TeamGemmOptions, gemm_reduce_scatter};
/// use tma_runtime::prelude::*;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let team = Team::simulator(2)?;
/// let a = team.tensors(&[vec![bf16::from_f32(0.5); 32 * 16], vec![bf16::from_f32(1.0); 32 * 16]], [32, 16])?;
/// let b = team.tensors(&[vec![bf16::from_f32(1.0); 16 * 8], vec![bf16::from_f32(2.0); 16 * 8]], [16, 8])?;
/// let mut c = team.zeros::<bf16, 2>([16, 8])?;
/// let mut workspace = ScatterWorkspace::new(&team, 16, 8)?;
/// gemm_reduce_scatter(&team, &a, &b, &mut c, &mut workspace, TeamGemmOptions::default())?;
/// assert_eq!(c.to_vecs()?, [[bf16::from_f32(8.0 + 32.0); 16 * 8]; 2]);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// `TMA0546` if the matrices do not match or are too large, `TMA0547` if no kernel supports the GEMM,
/// `TMA0570` if the workspace is too small, `TMA0636` if there is not one matrix for each rank, and the
/// errors of [`launch_team`](tma_runtime::launch::launch_team).
pub fn gemm_reduce_scatter<'t, T: TeamElement>(
    on: impl Into<WithTeam<'t>>,
    a: impl PeerMapArg<T, 2>,
    b: impl PeerMapArg<T, 2>,
    mut c: impl PeerMapArgMut<T, 2>,
    workspace: &mut ScatterWorkspace<T>,
    options: TeamGemmOptions,
) -> Result<(), GemmError> {
    let on = on.into().resident();
    let team = on.team();
    let matrices = Matrices::of(team, a.views(), b.views(), c.views_mut())?;
    let ranks = team.ranks();
    let first = matrices.a.first().map(TensorView::shape).zip(matrices.c.first().map(TensorViewMut::shape));
    let Some(([_, k], [m, n])) = first else {
        return Ok(()); // a team has a rank
    };
    matrices.have_shapes([ranks * m, k], [m, n], options.transpose_b)?;
    if m == 0 || n == 0 {
        return Ok(());
    }
    let extents = TeamExtents { ranks, m, n, k };
    extents.check::<T>()?;
    if k == 0 {
        return matrices.multiply_nothing(team, options.transpose_b);
    }
    let plan = Plan::of::<T>(team, extents, &options, scatter_kernel::<T>)?;
    let [[elements], [flags]] = [workspace.inbox.shape(), workspace.flags.shape()];
    let (held, wanted) = (Size { elements, flags }, Size::of_tiles(ranks, plan.warpgroup_tiles, plan.tile));
    if wanted.elements > held.elements || wanted.flags > held.flags {
        return Err(GemmError::TeamWorkspace { found: held.bytes::<T>(), wanted: wanted.bytes::<T>() });
    }
    queue(on, matrices.in_parts(ranks, 1)?, workspace, extents, plan)
}

/// Queues the launch. Only one that was queued counts: the next one uses the other half of the inbox.
fn queue<T: TeamElement>(
    on: WithTeam<'_>,
    matrices: Matrices<'_, T, 3>,
    workspace: &mut ScatterWorkspace<T>,
    extents: TeamExtents,
    plan: Plan<multiply_scatter::Launcher<'_, T>>,
) -> Result<(), GemmError> {
    let Matrices { a, b, mut c } = matrices;
    let TeamExtents { ranks: _, m, n, k } = extents;
    let [[elements], [flags_held]] = [workspace.inbox.shape(), workspace.flags.shape()];
    let launch = workspace.launches.wrapping_add(1);
    let half = launch as usize % 2;
    let first_flag = half * (flags_held / 2);
    let first_sums = half * (elements / 2 / SUMS);
    let (mut inboxes, mut sums) = (Vec::new(), Vec::new());
    for view in workspace.inbox.views_mut() {
        // SAFETY: the kernel stores through one of the views, to the memory of peers. It reads
        // this rank's through the other, and waits for the stores of these elements before.
        let [stored, read] = unsafe { view.alias() };
        inboxes.push(stored.with_strides([elements / SUMS, 64, 64], [SUMS, 64, 1])?);
        sums.push(read);
    }
    let [a, b] = [a, b].map(promoted);
    let sums: Vec<_> = sums.iter().map(|view| view.as_view()).collect();
    plan.kernel.launch(
        on,
        plan.grid,
        &a[..],
        &b[..],
        &mut c[..],
        &mut inboxes[..],
        &sums[..],
        &mut workspace.flags,
        m as u32,
        n as u32,
        k as u32,
        plan.band,
        plan.tiles,
        first_flag as u32,
        first_sums as u32,
        launch,
    )?;
    workspace.launches = launch;
    Ok(())
}
