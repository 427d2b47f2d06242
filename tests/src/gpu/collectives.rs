//! The collectives of `tma-kernels`, compared with plain Rust bit for bit.

use anyhow::Context;
use tma_kernels::model::ModelElement;
use tma_kernels::team::{
    AllReduceMethod, AllReduceOptions, CollectiveOptions, TeamWorkspace, all_gather, all_reduce,
    reduce_scatter,
};
use tma_runtime::prelude::*;

use super::runner::Test;
use crate::compare::same;
use crate::random::{Sample, hash, noise_of};

/// An element that is added up in `f32`.
pub trait Summand: ModelElement + Sample {
    /// Converts to `f32`.
    fn widened(self) -> f32;

    /// Rounds to the nearest element.
    fn rounded(sum: f32) -> Self;
}

impl Summand for f32 {
    fn widened(self) -> f32 {
        self
    }

    fn rounded(sum: f32) -> Self {
        sum
    }
}

/// Implements the trait for types of 16 bits.
macro_rules! narrow {
    ($($ty:ty)+) => { $(
        impl Summand for $ty {
            fn widened(self) -> f32 {
                self.to_f32()
            }

            fn rounded(sum: f32) -> Self {
                Self::from_f32(sum)
            }
        }
    )+ };
}

narrow! { bf16 f16 }

/// Tensors of a test.
#[derive(Clone, Copy, Debug)]
pub struct Extent {
    /// The number of elements of `x`, of a part, or of a piece.
    pub len: usize,
    /// The number of elements before them, which a call must not change.
    pub before: usize,
    /// The most blocks of a launch.
    pub blocks: Option<u32>,
}

/// The elements after a tensor, which a call must not change.
const AFTER: usize = 9;

/// Returns the numbers of each rank.
fn numbers<T: Summand>(team: &Team, seed: u64, len: usize) -> Vec<Vec<T>> {
    (0..team.ranks() as u64).map(|rank| noise_of(len, |i| T::random(hash(seed + rank, i)))).collect()
}

/// Returns tensors of each rank with `host` between elements that differ from all others.
fn between<T: Summand>(team: &Team, extent: Extent, host: &[Vec<T>]) -> Result<SymmetricTensor<T, 1>, Error> {
    let edge = |len: usize| (0..len).map(|i| T::rounded(i as f32 + 0.5));
    let padded = |host: &Vec<T>| edge(extent.before).chain(host.iter().copied()).chain(edge(AFTER)).collect();
    let host: Vec<Vec<T>> = host.iter().map(padded).collect();
    team.tensors(&host, [host.first().map_or(0, Vec::len)])
}

/// Returns views of the elements between the others.
fn views<T: Summand>(
    tensors: &SymmetricTensor<T, 1>,
    extent: Extent,
    len: usize,
) -> Result<Vec<TensorView<'_, T, 1>>, Error> {
    let range = extent.before..extent.before + len;
    tensors.views().map(|view| view.slice([range.clone()])).collect()
}

/// Returns mutable views of them.
fn views_mut<T: Summand>(
    tensors: &mut SymmetricTensor<T, 1>,
    extent: Extent,
    len: usize,
) -> Result<Vec<TensorViewMut<'_, T, 1>>, Error> {
    let range = extent.before..extent.before + len;
    tensors.views_mut().map(|view| view.slice([range.clone()])).collect()
}

/// Checks the tensors of all ranks, also the elements around `wanted`.
fn check<T: Summand>(
    what: &str,
    found: &SymmetricTensor<T, 1>,
    extent: Extent,
    wanted: &[Vec<T>],
) -> anyhow::Result<()> {
    let wanted = between(found.team(), extent, wanted)?.to_vecs()?;
    for (rank, (found, wanted)) in found.to_vecs()?.iter().zip(&wanted).enumerate() {
        same(what, found, wanted).with_context(|| format!("rank {rank} of {}, {extent:?}", wanted.len()))?;
    }
    Ok(())
}

/// Returns the sums over ranks, in their order.
fn sums<T: Summand>(of_ranks: &[Vec<T>]) -> Vec<T> {
    let sum = |i: usize| of_ranks.iter().map(|x| x[i].widened()).reduce(|sum, x| sum + x);
    let len = of_ranks.first().map_or(0, Vec::len);
    (0..len).map(|i| T::rounded(sum(i).unwrap_or_default())).collect()
}

/// The all-reduces of a test, which follow each other without a wait of the host.
const CALLS: usize = 4;

/// Reduces tensors of these extents in turn, several times.
///
/// # Errors
///
/// An error of a call, or wrong sums.
pub fn reduced<T: Summand>(
    team: &Team,
    extents: &[Extent],
    method: Option<AllReduceMethod>,
) -> anyhow::Result<()> {
    let mut workspace = TeamWorkspace::new(team)?;
    let mut hosts: Vec<_> =
        (0..).zip(extents).map(|(i, extent)| numbers::<T>(team, 400 + 8 * i, extent.len)).collect();
    let tensors = extents.iter().zip(&hosts).map(|(extent, host)| between(team, *extent, host));
    let mut tensors = tensors.collect::<Result<Vec<_>, _>>()?;
    for _ in 0..CALLS {
        for ((extent, tensor), host) in extents.iter().zip(&mut tensors).zip(&mut hosts) {
            let options = AllReduceOptions { method, blocks: extent.blocks };
            let mut x = views_mut(tensor, *extent, extent.len)?;
            all_reduce(team, &mut x[..], &mut workspace, options)
                .with_context(|| format!("{extent:?}, {method:?}"))?;
            *host = vec![sums(host); team.ranks()];
        }
    }
    for ((extent, tensor), host) in extents.iter().zip(&tensors).zip(&hosts) {
        check("sums on all ranks", tensor, *extent, host)?;
    }
    Ok(())
}

/// Gathers parts of these extents, whose ranks then add up all parts and distribute the pieces of the
/// sum, without a wait of the host in between.
///
/// # Errors
///
/// An error of a call, or wrong results.
pub fn gathered_and_scattered<T: Summand>(team: &Team, extents: &[Extent]) -> anyhow::Result<()> {
    let mut workspace = TeamWorkspace::new(team)?;
    let ranks = team.ranks();
    for extent in extents {
        let options = CollectiveOptions { blocks: extent.blocks };
        let len = extent.len;
        let host = numbers::<T>(team, 500, len);
        let nothing = |len| vec![vec![T::default(); len]; ranks];
        let part = between(team, *extent, &host)?;
        let mut all = between(team, *extent, &nothing(ranks * len))?;
        let mut sum = between(team, *extent, &nothing(len))?;
        for _ in 0..2 {
            let part = views(&part, *extent, len)?;
            let to = &mut views_mut(&mut all, *extent, ranks * len)?[..];
            all_gather(team, &part[..], to, &mut workspace, options)?;
            let x = views(&all, *extent, ranks * len)?;
            let out = &mut views_mut(&mut sum, *extent, len)?[..];
            reduce_scatter(team, &x[..], out, &mut workspace, options)?;
        }
        let wanted = vec![host.concat(); ranks];
        check("the parts of all ranks", &all, *extent, &wanted)?;
        let sums = sums(&wanted);
        let pieces: Vec<_> = (0..ranks).map(|rank| sums[rank * len..][..len].to_vec()).collect();
        check("pieces of sums", &sum, *extent, &pieces)?;
    }
    Ok(())
}

/// The kernels with several rounds in one launch. Their file imports functions of another package.
pub const KERNELS_OF_ROUNDS: [&str; 4] =
    ["rounds_of_parts", "rounds_of_pieces", "rounds_of_slots", "rounds_of_sums"];

/// Kernels that call the device functions of collectives several times. Simulated ranks end a launch
/// before the next one begins on any of them, so that only these show what the barriers order.
#[tma_module]
mod kernels {
    use tma_kernels::team::kernel::collectives::{
        THREADS, copy_to_all, reduce_by_slots, reduce_in_place, reduce_own_piece,
    };
    use tma_runtime::prelude::*;

    /// Adds 1 to each element.
    #[tma_device]
    fn increase(x: Global<f32>) {
        let mut i = thread_idx().x;
        while (i as u64) < x.len() {
            x.set(i, x.get(i) + 1.0);
            i += THREADS;
        }
    }

    /// In each round, increases the elements, and adds them up.
    #[tma_kernel(threads = 512)]
    pub fn rounds_of_sums(x: Peers<Global<f32>>, workspace: Peers<Global<u32>>, rounds: u32) {
        for _ in 0..rounds {
            increase(x.own());
            reduce_in_place::<f32, 1, 4, 4>(x, workspace);
        }
    }

    /// In each round, adds up the elements by slots in turns.
    #[tma_kernel(threads = 512)]
    pub fn rounds_of_slots(
        x: Peers<Global<f32>>,
        slots: Peers<Global<f32>>,
        workspace: Peers<Global<u32>>,
        slot_len: u32,
        rounds: u32,
    ) {
        for _ in 0..rounds {
            reduce_by_slots::<f32, 1, 4>(x, slots, workspace, slot_len);
        }
    }

    /// In each round, increases the elements, and adds up pieces.
    #[tma_kernel(threads = 512)]
    pub fn rounds_of_pieces(
        x: Peers<Global<f32>>,
        out: Peers<Global<f32>>,
        workspace: Peers<Global<u32>>,
        rounds: u32,
    ) {
        for _ in 0..rounds {
            increase(x.own());
            reduce_own_piece::<f32, 1, 4, 4>(x, out, workspace);
        }
    }

    /// In each round, adds the part of rank 0 to that of each rank, and gathers all parts.
    #[tma_kernel(threads = 512)]
    pub fn rounds_of_parts(
        part: Peers<Global<f32>>,
        all: Peers<Global<f32>>,
        workspace: Peers<Global<u32>>,
        rounds: u32,
    ) {
        let own = part.own();
        for _ in 0..rounds {
            let mut i = thread_idx().x;
            while (i as u64) < own.len() {
                own.set(i, own.get(i) + all.own().get(i));
                i += THREADS;
            }
            copy_to_all::<f32, 4>(part, all, workspace);
        }
    }
}

/// The rounds of a launch.
const ROUNDS: usize = 3;

/// Returns whole numbers of each rank, whose sums are exact, and flags for a block.
fn whole_numbers(team: &Team, len: usize) -> anyhow::Result<(Vec<Vec<f32>>, SymmetricTensor<u32, 1>)> {
    let of_rank = |rank| (0..len as u64).map(|i| (hash(600 + rank, i) % 100) as f32).collect();
    Ok(((0..team.ranks() as u64).map(of_rank).collect(), team.zeros([8])?))
}

/// Adds up the elements of all ranks several times in a launch.
///
/// # Errors
///
/// An error of the launch, or wrong sums.
pub fn rounds_of_sums(team: &Team) -> anyhow::Result<()> {
    let len = 700 * team.ranks() + 1;
    let (mut host, mut flags) = whole_numbers(team, len)?;
    let mut x = team.tensors(&host, [len])?;
    kernels::rounds_of_sums::launch(team, 1, &mut x, &mut flags, ROUNDS as u32)?;
    for _ in 0..ROUNDS {
        host.iter_mut().flatten().for_each(|x| *x += 1.0);
        host = vec![sums(&host); team.ranks()];
    }
    x.to_vecs()?.iter().zip(&host).try_for_each(|(found, wanted)| same("sums", found, wanted))
}

/// Adds up the elements of all ranks by slots, several times in a launch. Slots whose beginnings are
/// `slot_len` elements apart suffice if it is at least [`SLOT_LEN`].
///
/// # Errors
///
/// An error of the launch, or wrong sums.
pub fn rounds_of_slots_apart(team: &Team, slot_len: usize) -> anyhow::Result<()> {
    let len = SLOT_LEN - 1;
    let (mut host, mut flags) = whole_numbers(team, len)?;
    let mut x = team.tensors(&host, [len])?;
    let mut slots = team.zeros::<f32, 1>([2 * SLOT_LEN])?;
    let rounds = ROUNDS as u32 + 1;
    kernels::rounds_of_slots::launch(team, 1, &mut x, &mut slots, &mut flags, slot_len as u32, rounds)?;
    for _ in 0..rounds {
        host = vec![sums(&host); team.ranks()];
    }
    x.to_vecs()?.iter().zip(&host).try_for_each(|(found, wanted)| same("sums", found, wanted))
}

/// The elements of a slot: more vectors than a block has threads. The tensor has one element less, so
/// that some of them follow its last vector.
pub const SLOT_LEN: usize = 2100;

/// Adds up the elements of all ranks by slots, several times in a launch.
///
/// # Errors
///
/// An error of the launch, or wrong sums.
pub fn rounds_of_slots(team: &Team) -> anyhow::Result<()> {
    rounds_of_slots_apart(team, SLOT_LEN)
}

/// Adds up the pieces of all ranks several times in a launch.
///
/// # Errors
///
/// An error of the launch, or wrong sums.
pub fn rounds_of_pieces(team: &Team) -> anyhow::Result<()> {
    let (ranks, piece) = (team.ranks(), 2052);
    let (mut host, mut flags) = whole_numbers(team, ranks * piece)?;
    let mut x = team.tensors(&host, [ranks * piece])?;
    let mut out = team.zeros::<f32, 1>([piece])?;
    kernels::rounds_of_pieces::launch(team, 1, &mut x, &mut out, &mut flags, ROUNDS as u32)?;
    host.iter_mut().flatten().for_each(|x| *x += ROUNDS as f32);
    let sums = sums(&host);
    let wanted = sums.chunks(piece);
    out.to_vecs()?.iter().zip(wanted).try_for_each(|(found, wanted)| same("pieces", found, wanted))
}

/// Gathers the parts of all ranks several times in a launch.
///
/// # Errors
///
/// An error of the launch, or wrong parts.
pub fn rounds_of_parts(team: &Team) -> anyhow::Result<()> {
    let (ranks, len) = (team.ranks(), 2052);
    let (mut host, mut flags) = whole_numbers(team, len)?;
    let mut part = team.tensors(&host, [len])?;
    let mut all = team.zeros::<f32, 1>([ranks * len])?;
    kernels::rounds_of_parts::launch(team, 1, &mut part, &mut all, &mut flags, ROUNDS as u32)?;
    for _ in 1..ROUNDS {
        let first = host.first().cloned().unwrap_or_default();
        host.iter_mut().for_each(|part| part.iter_mut().zip(&first).for_each(|(x, first)| *x += first));
    }
    let wanted = host.concat();
    all.to_vecs()?.iter().try_for_each(|found| same("the parts of all ranks", found, &wanted))
}

/// Extents around vectors, blocks and what is exchanged in one shot.
const EXTENTS: [Extent; 8] = [
    Extent { len: 5, before: 0, blocks: None },
    Extent { len: (1 << 22) + 4099, before: 0, blocks: None },
    Extent { len: 1 << 12, before: 0, blocks: Some(1) },
    Extent { len: 100_003, before: 3, blocks: None },
    Extent { len: 1 << 17, before: 0, blocks: None },
    Extent { len: 1 << 20, before: 8, blocks: Some(5) },
    Extent { len: 77_777, before: 0, blocks: Some(64) },
    Extent { len: 0, before: 0, blocks: None },
];

/// Returns the tests on teams that `team` makes for the device of the run.
pub fn tests_on(team: fn(&Device) -> Result<Team, Error>) -> Vec<Test> {
    fn of<T: Summand>(team: fn(&Device) -> Result<Team, Error>, name: &str) -> Vec<Test> {
        let test = |test: &str, run: fn(&Team) -> anyhow::Result<()>| Test {
            name: format!("teams::{test}::{name}"),
            run: Box::new(move |device| run(&team(device)?)),
        };
        vec![
            test("reduced", |team| reduced::<T>(team, &EXTENTS, None)),
            test("reduced_in_one_shot", |team| {
                let fits = |extent: &Extent| extent.len < 1 << 17 && extent.blocks != Some(1);
                let extents: Vec<_> = EXTENTS.into_iter().filter(fits).collect();
                reduced::<T>(team, &extents, Some(AllReduceMethod::OneShot))
            }),
            test("reduced_in_two_shots", |team| reduced::<T>(team, &EXTENTS, Some(AllReduceMethod::TwoShot))),
            test("gathered_and_scattered", |team| gathered_and_scattered::<T>(team, &EXTENTS)),
        ]
    }
    let rounds = |test: &str, run: fn(&Team) -> anyhow::Result<()>| Test {
        name: format!("teams::{test}"),
        run: Box::new(move |device| run(&team(device)?)),
    };
    let mut tests = vec![
        rounds("rounds_of_sums", rounds_of_sums),
        rounds("rounds_of_slots", rounds_of_slots),
        rounds("rounds_of_pieces", rounds_of_pieces),
        rounds("rounds_of_parts", rounds_of_parts),
    ];
    tests.extend(of::<f32>(team, "f32"));
    tests.extend(of::<bf16>(team, "bf16"));
    tests.extend(of::<f16>(team, "f16"));
    tests
}
