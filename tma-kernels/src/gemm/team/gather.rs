//! GEMMs whose A is gathered from all ranks.

use super::gather_kernel::gathered::gather_multiply;
use super::instances::gather_kernel;
use super::matrices::{Matrices, promoted};
use super::plan::{Plan, TeamExtents};
use super::{TeamElement, TeamGemmOptions};
use crate::gemm::GemmError;
use tma_runtime::launch::{PeerMapArg, PeerMapArgMut, WithTeam};
use tma_runtime::prelude::*;
use tma_runtime::{Error, Scalar};

/// The rows that the kernel counts together.
const CHUNK_ROWS: usize = 128;
/// The flags of ranks: two for each that a team may have.
const RANK_FLAGS: usize = 16;
/// The multiple of elements at which rows of the gathered A begin: 16 bytes.
const ROW_ALIGNMENT: usize = 8;

/// The gathered A of each rank, and the flags by which ranks wait for each other. One call uses it at
/// a time: calls on one team follow each other.
#[derive(Debug)]
pub struct GatherWorkspace<T: Scalar> {
    gathered: SymmetricTensor<T, 1>,
    flags: SymmetricTensor<u32, 1>,
    /// The number of launches.
    launches: u32,
    /// The extents of the last one.
    shape: [usize; 2],
}

impl<T: TeamElement> GatherWorkspace<T> {
    /// Allocates the memory for an A with parts of up to `rows` rows on each rank, with as many
    /// elements as parts of `rows` × `columns` have, and waits for the team.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfMemory`], [`Error::KernelFault`] and [`Error::Driver`].
    pub fn new(team: &Team, rows: usize, columns: usize) -> Result<Self, Error> {
        let ranks = team.ranks();
        let gathered = team.zeros([gathered_elements(ranks, rows, columns)])?;
        let flags = team.zeros([2 * flags_of(ranks, rows)])?;
        // No rank sets a flag of a peer before that has its zeros.
        team.synchronize()?;
        Ok(Self { gathered, flags, launches: 0, shape: [0; 2] })
    }

    /// Returns the bytes on each rank that [`new`](Self::new) allocates.
    pub fn bytes(team: &Team, rows: usize, columns: usize) -> usize {
        let ranks = team.ranks();
        bytes_of::<T>(gathered_elements(ranks, rows, columns), 2 * flags_of(ranks, rows))
    }

    /// Returns all rows of A on a rank, as the last call has gathered them: M × K elements. No other
    /// call may use the workspace in the meantime.
    ///
    /// # Errors
    ///
    /// [`TeamError::NoRank`](tma_runtime::TeamError::NoRank).
    pub fn gathered(&self, rank: usize) -> Result<TensorView<'_, T, 2>, Error> {
        let row = self.shape[1].next_multiple_of(ROW_ALIGNMENT);
        self.gathered.rank(rank)?.view().with_strides(self.shape, [row, 1])
    }

    /// Checks that the memory suffices for a call.
    fn check(&self, extents: TeamExtents) -> Result<(), GemmError> {
        let TeamExtents { ranks, m, k, .. } = extents;
        let [elements, flags] = [gathered_elements(ranks, m, k), 2 * flags_of(ranks, m)];
        let [[held], [held_flags]] = [self.gathered.shape(), self.flags.shape()];
        match elements <= held && flags <= held_flags {
            true => Ok(()),
            false => Err(GemmError::TeamWorkspace {
                found: bytes_of::<T>(held, held_flags),
                wanted: bytes_of::<T>(elements, flags),
            }),
        }
    }
}

/// Returns the elements of a gathered A.
fn gathered_elements(ranks: usize, rows: usize, columns: usize) -> usize {
    ranks.saturating_mul(rows).saturating_mul(columns.next_multiple_of(ROW_ALIGNMENT))
}

/// Returns the number of flags for parts of as many rows, which is also that of counters.
fn flags_of(ranks: usize, rows: usize) -> usize {
    RANK_FLAGS + ranks * (rows.div_ceil(CHUNK_ROWS) + 1)
}

fn bytes_of<T>(elements: usize, flags: usize) -> usize {
    elements.saturating_mul(size_of::<T>()).saturating_add(flags * size_of::<u32>())
}

/// Queues `C = A · B` on each rank of a team, for an A whose rows are divided among the ranks.
///
/// Each rank has its part of A, of the same number of rows on all of them, and its own B: for a layer
/// whose columns are divided among the ranks. It gets all rows of its C. A is M / ranks × K, B is K × N
/// and C is M × N, of `bf16` or `f16`; with [`transpose_b`](TeamGemmOptions::transpose_b), B is stored
/// N × K. N is a multiple of 8, and rows of all matrices begin at multiples of 16 bytes. All rows of A
/// are in the [workspace](GatherWorkspace::gathered) afterwards, unless C has no elements or K is 0.
///
/// A single kernel copies the peers' rows and multiplies. It begins with the rank's own rows, and each
/// row is copied once. A rank's launches after this one may overwrite its A, as its kernel ends when
/// all ranks have read it.
///
/// Nothing is allocated, and the call does not wait, except for a K of 0. All ranks run the kernel at
/// the same time: while it runs, launches on other streams of their GPUs that take multiprocessors
/// away must end by themselves.
///
/// ```
/// use tma_kernels::gemm::team::{GatherWorkspace, TeamGemmOptions, all_gather_gemm};
/// use tma_runtime::prelude::*;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let team = Team::simulator(2)?;
/// let a = team.tensors(&[vec![bf16::from_f32(0.5); 16 * 32], vec![bf16::from_f32(1.0); 16 * 32]], [16, 32])?;
/// let b = team.tensors(&[vec![bf16::from_f32(1.0); 32 * 8], vec![bf16::from_f32(2.0); 32 * 8]], [32, 8])?;
/// let mut c = team.zeros::<bf16, 2>([2 * 16, 8])?;
/// let mut workspace = GatherWorkspace::new(&team, 16, 32)?;
/// all_gather_gemm(&team, &a, &b, &mut c, &mut workspace, TeamGemmOptions::default())?;
/// let [first, second] = [16.0, 32.0].map(|x| vec![bf16::from_f32(x); 16 * 8]);
/// assert_eq!(c.rank(0)?.to_vec()?, [first, second.clone()].concat());
/// assert_eq!(c.rank(1)?.to_vec()?, [second, vec![bf16::from_f32(64.0); 16 * 8]].concat());
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// `TMA0546` if the matrices do not match or are too large, `TMA0547` if no kernel supports the GEMM,
/// `TMA0570` if the workspace is too small, `TMA0636` if there is not one matrix for each rank, and the
/// errors of [`launch_team`](tma_runtime::launch::launch_team).
pub fn all_gather_gemm<'t, T: TeamElement>(
    on: impl Into<WithTeam<'t>>,
    a: impl PeerMapArg<T, 2>,
    b: impl PeerMapArg<T, 2>,
    mut c: impl PeerMapArgMut<T, 2>,
    workspace: &mut GatherWorkspace<T>,
    options: TeamGemmOptions,
) -> Result<(), GemmError> {
    let on = on.into().resident();
    let team = on.team();
    let matrices = Matrices::of(team, a.views(), b.views(), c.views_mut())?;
    let ranks = team.ranks();
    let first = matrices.a.first().map(TensorView::shape).zip(matrices.b.first().map(TensorView::shape));
    let Some(([m, k], of_b)) = first else {
        return Ok(()); // a team has a rank
    };
    let n = of_b[if options.transpose_b { 0 } else { 1 }];
    matrices.have_shapes([m, k], [ranks * m, n], options.transpose_b)?;
    if m == 0 || n == 0 {
        return Ok(());
    }
    let extents = TeamExtents { ranks, m, n, k };
    extents.check::<T>()?;
    workspace.check(extents)?;
    if k == 0 {
        return matrices.multiply_nothing(team, options.transpose_b);
    }
    let plan = Plan::of::<T>(team, extents, &options, gather_kernel::<T>)?;
    queue(on, matrices.in_parts(1, ranks)?, workspace, extents, plan)
}

fn queue<T: TeamElement>(
    on: WithTeam<'_>,
    matrices: Matrices<'_, T, 3>,
    workspace: &mut GatherWorkspace<T>,
    extents: TeamExtents,
    plan: Plan<gather_multiply::Launcher<'_, T>>,
) -> Result<(), GemmError> {
    let Matrices { a: parts, b, mut c } = matrices;
    let TeamExtents { ranks, m, n, k } = extents;
    let row = k.next_multiple_of(ROW_ALIGNMENT);
    let [mut copies, mut gathered] = [Vec::new(), Vec::new()];
    for view in workspace.gathered.views_mut() {
        let view = view.with_strides([ranks, m, k], [m * row, row, 1])?;
        // SAFETY: the kernel stores through one of the views. It loads through the other, and
        // waits for the stores of these elements before.
        let [stored, loaded] = unsafe { view.alias() };
        copies.push(stored);
        gathered.push(loaded);
    }
    let gathered = gathered.iter().map(|view| view.as_view()).collect();
    let [own, gathered, b] = [parts.clone(), gathered, b].map(promoted);
    let launch = workspace.launches.wrapping_add(1);
    plan.kernel.launch(
        on,
        plan.grid,
        &own[..],
        &gathered[..],
        &b[..],
        &mut c[..],
        &parts[..],
        &mut copies[..],
        &mut workspace.flags,
        m as u32,
        n as u32,
        k as u32,
        plan.band,
        plan.tiles,
        launch,
    )?;
    workspace.launches = launch;
    workspace.shape = [ranks * m, k];
    Ok(())
}
