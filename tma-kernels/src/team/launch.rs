//! Collectives, and which of their kernels they queue.

use tma_runtime::launch::{Grid, PeerMapArg, PeerMapArgMut, WithTeam};
use tma_runtime::prelude::*;
use tma_runtime::{Error, TeamError};

use super::kernel::collectives::{self, THREADS};
use super::kernel::elements;
use super::{CollectiveError, TeamWorkspace};
use crate::model::ModelElement;

/// The bytes of a vector.
const VECTOR_BYTES: usize = 16;

/// The blocks of a rank that use up the bandwidth between GPUs. More would only take multiprocessors
/// away from what runs beside.
const BANDWIDTH_BLOCKS: usize = 64;

/// How an all-reduce exchanges elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AllReduceMethod {
    /// Each rank reads the elements of all others, and adds up all of them. It has the least latency.
    OneShot,
    /// Each rank adds up a part of the elements, and stores the sums to all others. It moves the
    /// fewest bytes.
    TwoShot,
}

/// Options of [`all_reduce`].
#[derive(Clone, Copy, Debug, Default)]
pub struct AllReduceOptions {
    /// The method. By default, tensors of at most [`one_shot_bytes`] are reduced in one shot.
    pub method: Option<AllReduceMethod>,
    /// The most blocks on each rank. Fewer of them leave multiprocessors to kernels that run at the
    /// same time. The results do not depend on it.
    pub blocks: Option<u32>,
}

/// Options of [`all_gather`] and [`reduce_scatter`].
#[derive(Clone, Copy, Debug, Default)]
pub struct CollectiveOptions {
    /// The most blocks on each rank.
    pub blocks: Option<u32>,
}

/// Returns the size up to which an all-reduce exchanges its elements in one shot by default, in bytes.
///
/// Two ranks read as many bytes in one shot as they read and write in two. With more ranks, one shot
/// reads more.
pub const fn one_shot_bytes(ranks: usize) -> usize {
    match ranks {
        0..=2 => 1 << 20,
        3..=4 => 1 << 19,
        _ => 1 << 18,
    }
}

/// Queues `x = x of rank 0 + x of rank 1 + ..` on every rank of a team.
///
/// `x` is a [`SymmetricTensor`], or a slice with a view of each rank, which are contiguous and have one
/// shape. The sums are computed in `f32`, in the order of ranks, and rounded once: they have the same
/// bits on every rank, with either method and any number of blocks. Elements that begin at multiples of
/// 16 bytes on every rank are faster.
///
/// A call allocates nothing and does not wait.
///
/// ```
/// use tma_kernels::team::{AllReduceOptions, TeamWorkspace, all_reduce};
/// use tma_runtime::prelude::*;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let team = Team::simulator(2)?;
/// let mut workspace = TeamWorkspace::new(&team)?;
/// let mut x = team.tensors(&[[1.0f32, 2.0, 3.0], [10.0, 20.0, 30.0]], [3])?;
/// all_reduce(&team, &mut x, &mut workspace, AllReduceOptions::default())?;
/// assert_eq!(x.to_vecs()?, [[11.0, 22.0, 33.0]; 2]);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// `TMA0579` for tensors that do not match, `TMA0570` if [`AllReduceMethod::OneShot`] is requested and
/// the workspace is too small for it, and the errors of a launch on a team, such as `TMA0514` for a
/// tensor or a workspace of another team.
pub fn all_reduce<'t, T: ModelElement, const N: usize>(
    on: impl Into<WithTeam<'t>>,
    mut x: impl PeerMapArgMut<T, N>,
    workspace: &mut TeamWorkspace,
    options: AllReduceOptions,
) -> Result<(), CollectiveError> {
    let on = on.into();
    let ranks = on.team().ranks();
    let mut x: Vec<_> = x.views_mut().into_iter().map(|(view, _)| view).collect();
    let len = same_len("x", ranks, x.iter().map(TensorViewMut::shape))?;
    if len == 0 || ranks == 1 {
        return Ok(());
    }
    let is_aligned = is_aligned(x.iter().map(TensorViewMut::as_ptr), 0);
    let g = group(ranks, is_aligned);
    let blocks = most_blocks(workspace, options.blocks);
    let vectors = len / vector_len::<T>();
    let of_one_shot = grid(vectors, blocks);
    // The elements after the last vector are in a slot with others.
    let slot_bytes = (vectors.div_ceil(of_one_shot) + 1) * VECTOR_BYTES;
    let fits = slot_bytes <= workspace.slot_bytes();
    let method = match options.method {
        Some(method) => method,
        None if fits && len * size_of::<T>() <= one_shot_bytes(ranks) => AllReduceMethod::OneShot,
        None => AllReduceMethod::TwoShot,
    };
    match method {
        AllReduceMethod::OneShot if !fits => return Err(workspace.too_small(slot_bytes)),
        AllReduceMethod::OneShot => {
            let slot_len = (workspace.slot_bytes() / size_of::<T>()) as u32;
            let (mut flags, mut slots) = workspace.flags_and_slots::<T>();
            let table = match is_aligned {
                true => collectives::one_shot::table_of::<T>(),
                false => elements::one_shot::table_of::<T>(),
            };
            let kernel: collectives::one_shot::Launcher<'_, T> =
                table.find(collectives::one_shot::Key { g }).ok_or_else(without_instance)?;
            let (x, slots, flags) = (&mut x[..], &mut slots[..], &mut flags[..]);
            kernel.launch(on, Grid::x(of_one_shot as u32), x, slots, flags, slot_len)?;
        }
        AllReduceMethod::TwoShot => {
            let blocks = grid(vectors.div_ceil(ranks), blocks.min(BANDWIDTH_BLOCKS));
            let table = match is_aligned {
                true => collectives::two_shot::table_of::<T>(),
                false => elements::two_shot::table_of::<T>(),
            };
            let kernel: collectives::two_shot::Launcher<'_, T> =
                table.find(collectives::two_shot::Key { g }).ok_or_else(without_instance)?;
            kernel.launch(on, Grid::x(blocks as u32), &mut x[..], &mut workspace.flags()[..])?;
        }
    }
    Ok(())
}

/// Queues the copies of each rank's `part` to its place in `all` of every rank: `all` has the parts of
/// all ranks, in their order.
///
/// Both are like `x` of [`all_reduce`]. Parts of a multiple of 16 bytes are faster. Of several
/// dimensions, the ranks' parts follow each other along the outermost one.
///
/// ```
/// use tma_kernels::team::{CollectiveOptions, TeamWorkspace, all_gather};
/// use tma_runtime::prelude::*;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let team = Team::simulator(2)?;
/// let mut workspace = TeamWorkspace::new(&team)?;
/// let part = team.tensors(&[[1.0f32, 2.0], [3.0, 4.0]], [1, 2])?;
/// let mut all = team.zeros::<f32, 2>([2, 2])?;
/// all_gather(&team, &part, &mut all, &mut workspace, CollectiveOptions::default())?;
/// assert_eq!(all.to_vecs()?, [[1.0, 2.0, 3.0, 4.0]; 2]);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// `TMA0579` for tensors that do not match, and the errors of a launch on a team.
pub fn all_gather<'t, T: ModelElement, const N: usize, const M: usize>(
    on: impl Into<WithTeam<'t>>,
    part: impl PeerMapArg<T, N>,
    mut all: impl PeerMapArgMut<T, M>,
    workspace: &mut TeamWorkspace,
    options: CollectiveOptions,
) -> Result<(), CollectiveError> {
    let on = on.into();
    let part: Vec<_> = part.views().into_iter().map(|(view, _)| view).collect();
    let mut all: Vec<_> = all.views_mut().into_iter().map(|(view, _)| view).collect();
    let ranks = on.team().ranks();
    let len = same_len("part", ranks, part.iter().map(TensorView::shape))?;
    let of_all = same_len("all", ranks, all.iter().map(TensorViewMut::shape))?;
    if of_all != ranks * len {
        return Err(other_len("all", all.first().map(TensorViewMut::shape), "part", [ranks, len]));
    }
    if len == 0 {
        return Ok(());
    }
    let addresses = part.iter().map(TensorView::as_ptr).chain(all.iter().map(TensorViewMut::as_ptr));
    let blocks = most_blocks(workspace, options.blocks).min(BANDWIDTH_BLOCKS);
    let blocks = grid(len / vector_len::<T>(), blocks);
    let table = match is_aligned(addresses, len * size_of::<T>()) {
        true => collectives::all_gather::table_of::<T>(),
        false => elements::all_gather::table_of::<T>(),
    };
    let kernel: collectives::all_gather::Launcher<'_, T> =
        table.find(collectives::all_gather::Key {}).ok_or_else(without_instance)?;
    kernel.launch(on, Grid::x(blocks as u32), &part[..], &mut all[..], &mut workspace.flags()[..])?;
    Ok(())
}

/// Queues the sums of pieces: `x` of each rank has a piece for every rank, in their order, and `out` of a
/// rank becomes the sum of its pieces of all ranks.
///
/// Both are like `x` of [`all_reduce`], and the sums have the same bits as there. Pieces of a multiple of
/// 16 bytes are faster.
///
/// ```
/// use tma_kernels::team::{CollectiveOptions, TeamWorkspace, reduce_scatter};
/// use tma_runtime::prelude::*;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let team = Team::simulator(2)?;
/// let mut workspace = TeamWorkspace::new(&team)?;
/// let x = team.tensors(&[[1.0f32, 2.0], [10.0, 20.0]], [2])?;
/// let mut out = team.zeros::<f32, 1>([1])?;
/// reduce_scatter(&team, &x, &mut out, &mut workspace, CollectiveOptions::default())?;
/// assert_eq!(out.to_vecs()?, [[11.0], [22.0]]);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// `TMA0579` for tensors that do not match, and the errors of a launch on a team.
pub fn reduce_scatter<'t, T: ModelElement, const N: usize, const M: usize>(
    on: impl Into<WithTeam<'t>>,
    x: impl PeerMapArg<T, N>,
    mut out: impl PeerMapArgMut<T, M>,
    workspace: &mut TeamWorkspace,
    options: CollectiveOptions,
) -> Result<(), CollectiveError> {
    let on = on.into();
    let x: Vec<_> = x.views().into_iter().map(|(view, _)| view).collect();
    let mut out: Vec<_> = out.views_mut().into_iter().map(|(view, _)| view).collect();
    let ranks = on.team().ranks();
    let len = same_len("out", ranks, out.iter().map(TensorViewMut::shape))?;
    let of_x = same_len("x", ranks, x.iter().map(TensorView::shape))?;
    if of_x != ranks * len {
        return Err(other_len("x", x.first().map(TensorView::shape), "out", [ranks, len]));
    }
    if len == 0 {
        return Ok(());
    }
    let addresses = x.iter().map(TensorView::as_ptr).chain(out.iter().map(TensorViewMut::as_ptr));
    let is_aligned = is_aligned(addresses, len * size_of::<T>());
    let blocks = most_blocks(workspace, options.blocks).min(BANDWIDTH_BLOCKS);
    let blocks = grid(len / vector_len::<T>(), blocks);
    let table = match is_aligned {
        true => collectives::reduce_scatter::table_of::<T>(),
        false => elements::reduce_scatter::table_of::<T>(),
    };
    let key = collectives::reduce_scatter::Key { g: group(ranks, is_aligned) };
    let kernel: collectives::reduce_scatter::Launcher<'_, T> =
        table.find(key).ok_or_else(without_instance)?;
    kernel.launch(on, Grid::x(blocks as u32), &x[..], &mut out[..], &mut workspace.flags()[..])?;
    Ok(())
}

/// Whether tensors at these addresses begin at multiples of a vector, and others `distance` bytes
/// after each of them.
fn is_aligned(mut addresses: impl Iterator<Item = u64>, distance: usize) -> bool {
    distance.is_multiple_of(VECTOR_BYTES)
        && addresses.all(|address| address.is_multiple_of(VECTOR_BYTES as u64))
}

/// Returns the number of ranks whose vectors a thread loads together. It divides the number of ranks.
/// More than four would take too many registers, and kernels by elements have instances for one.
fn group(ranks: usize, is_aligned: bool) -> usize {
    let most = if is_aligned { 4 } else { 1 };
    (1..=most).rev().find(|group| ranks.is_multiple_of(*group)).unwrap_or(1)
}

/// Returns the number of elements of a vector.
const fn vector_len<T>() -> usize {
    VECTOR_BYTES / size_of::<T>()
}

/// Returns the most blocks of a grid, at least 1.
fn most_blocks(workspace: &TeamWorkspace, wanted: Option<u32>) -> usize {
    wanted.map_or(workspace.blocks(), |wanted| workspace.blocks().min(wanted as usize)).max(1)
}

/// Returns the blocks that have a vector for each thread, or `most`.
fn grid(vectors: usize, most: usize) -> usize {
    vectors.div_ceil(THREADS as usize).clamp(1, most)
}

/// Returns the number of elements on each rank.
///
/// # Errors
///
/// [`TeamError::Count`] if there is not a tensor of each rank, and [`CollectiveError::Shape`] if the
/// ranks' tensors differ in shape.
fn same_len<const N: usize>(
    tensor: &'static str,
    ranks: usize,
    mut shapes: impl ExactSizeIterator<Item = [usize; N]>,
) -> Result<usize, CollectiveError> {
    if shapes.len() != ranks {
        return Err(Error::from(TeamError::Count { what: "tensors", found: shapes.len(), ranks }).into());
    }
    let first = shapes.next().unwrap_or([0; N]);
    match shapes.enumerate().find(|(_, shape)| *shape != first) {
        None => Ok(first.iter().product()),
        Some((before, found)) => {
            let wanted = format!("the shape {first:?} of rank 0");
            Err(CollectiveError::Shape { tensor, rank: before + 1, found: found.into(), wanted })
        }
    }
}

/// Returns the error of a tensor that does not have `len` elements of `piece` for each rank.
fn other_len<const N: usize>(
    tensor: &'static str,
    found: Option<[usize; N]>,
    piece: &str,
    [ranks, len]: [usize; 2],
) -> CollectiveError {
    let wanted = format!("{} elements: the {len} of `{piece}` for each of {ranks} ranks", ranks * len);
    CollectiveError::Shape { tensor, rank: 0, found: found.map_or_else(Vec::new, Vec::from), wanted }
}

/// Returns the error of a type without an instance, which [`ModelElement`] excludes.
fn without_instance() -> CollectiveError {
    let wanted = "elements of `bf16`, `f16` or `f32`".to_owned();
    CollectiveError::Shape { tensor: "x", rank: 0, found: vec![], wanted }
}
