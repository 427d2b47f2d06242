//! Products of matrices, `C = activation(alpha · A · B + beta · C + residual + bias)`, by kernels
//! that `docs/gemm.md` explains.
//!
//! ```
//! use tma_kernels::gemm::{GemmOptions, gemm};
//! use tma_runtime::prelude::*;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let device = Device::open()?;
//! let a = device.tensor(&[bf16::from_f32(0.5); 64 * 32], [64, 32])?;
//! let b = device.tensor(&[bf16::from_f32(2.0); 32 * 16], [32, 16])?;
//! let mut c = device.zeros::<bf16, 2>([64, 16])?;
//! gemm(&device, &a, &b, &mut c, GemmOptions::default())?;
//! assert_eq!(c.to_vec()?, [bf16::from_f32(32.0); 64 * 16]);
//! # Ok(())
//! # }
//! ```

mod array;
pub mod choose;
mod divide;
mod edge;
mod epilogue;
mod error;
pub mod folded;
pub mod full;
pub mod grouped;
mod instances;
pub mod kernel;
pub mod picked;
pub mod scaled;
mod tile;
pub mod turns;
mod types;

pub use array::{Matrices, MatricesMut, gemm_array};
pub use choose::Choice;
pub use divide::Division;
pub use epilogue::Epilogue;
pub use error::GemmError;
pub use grouped::{GroupedOptions, GroupedWorkspace, gemm_grouped};
pub use picked::{Indices, gemm_picked};
pub use scaled::{Promoted, Scales, gemm_scaled};
pub use tile::Tile;
pub use types::Product;

use crate::dependent::dependent;
use choose::Problem;
use divide::Units;
use edge::Edge;
use instances::Key;
use tma_runtime::launch::{Arg, GlobalSlice, L2Promotion, LaunchOn, MapArg, MapArgMut, MapOptions, launch};
use tma_runtime::prelude::*;
use tma_runtime::{Scalar, launch::resident_blocks};

/// What is applied to each element of the result at the end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Activation {
    /// Nothing.
    #[default]
    None,
    /// 0 if x < 0, else x.
    Relu,
    /// x / 2 · (1 + tanh(√(2/π) · (x + 0.044715 · x³))).
    Gelu,
    /// x / (1 + exp(-x)).
    Silu,
}

/// What products are added up in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sums {
    /// What [`Product`] names first.
    #[default]
    Exact,
    /// `f16`, rounded after each instruction, which adds up 16 products. Only for matrices of `f16`
    /// alone, without other options. It is no faster on Hopper: for results as of earlier GPUs.
    Half,
}

/// How A and B are stored, and what becomes of their product.
#[derive(Debug)]
pub struct GemmOptions<'a, C: Scalar, const N: usize> {
    /// A is stored K × M, not M × K. Only for elements of 16 bits.
    pub transpose_a: bool,
    /// B is stored N × K, not K × N. Elements of other than 16 bits must be.
    pub transpose_b: bool,
    /// The factor of the product. With 0 neither A nor B is read.
    pub alpha: f32,
    /// What earlier elements of C are multiplied by before they are added. With 0 they are not
    /// read.
    pub beta: f32,
    /// A matrix of C's shape that is added.
    pub residual: Option<TensorView<'a, C, N>>,
    /// A row of N elements that is added to each row.
    pub bias: Option<TensorView<'a, C, 1>>,
    /// What is applied last.
    pub activation: Activation,
    /// Kernels with other functions between the sums and C, which this caller's package has made.
    pub epilogue: Option<Epilogue<'a>>,
    /// What products are added up in.
    pub sums: Sums,
    /// The kernel's tile, and how tiles are divided; by default [`choose`](choose::choose) chooses.
    pub choice: Option<Choice>,
    /// Memory for products whose sums are divided among clusters. Without it, such a product
    /// allocates its own and waits when that is freed.
    pub workspace: Option<&'a mut Workspace>,
}

impl<C: Scalar, const N: usize> Default for GemmOptions<'_, C, N> {
    fn default() -> Self {
        Self {
            transpose_a: false,
            transpose_b: false,
            alpha: 1.0,
            beta: 0.0,
            residual: None,
            bias: None,
            activation: Activation::None,
            epilogue: None,
            sums: Sums::Exact,
            choice: None,
            workspace: None,
        }
    }
}

/// Memory in which blocks exchange sums that are divided among them. One product at a time uses it:
/// give each stream its own.
#[derive(Debug)]
pub struct Workspace {
    partials: DeviceTensor<f32, 1>,
    tickets: DeviceTensor<u32, 1>,
}

impl Workspace {
    /// Memory for every product whose sums are divided by choice: 35 MB on an H200.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfMemory`], [`Error::KernelFault`] and [`Error::Driver`].
    pub fn new(device: &Device) -> Result<Self, Error> {
        Self::of(device, 2 * device.multiprocessors() as usize, 2)
    }

    /// For the sums of so many blocks of so many warpgroups, which have 64 × 256 each.
    fn of(device: &Device, blocks: usize, warpgroups: usize) -> Result<Self, Error> {
        let partials = device.zeros([blocks * warpgroups * 64 * 256])?;
        Ok(Self { partials, tickets: device.zeros([blocks * warpgroups])? })
    }

    /// Whether it is enough for the sums of so many blocks.
    fn holds(&self, blocks: usize, facts: &tile::Facts) -> bool {
        let warpgroups = blocks * facts.warpgroups as usize;
        self.partials.len() >= warpgroups * 64 * facts.columns as usize && self.tickets.len() >= warpgroups
    }
}

/// Queues `C = activation(alpha · A · B + beta · C + residual + bias)`.
///
/// The tensors have two dimensions, or three, of which the first counts the products of a batch. A
/// is M × K, B is K × N and C is M × N, unless [`transpose_a`](GemmOptions::transpose_a) or
/// [`transpose_b`](GemmOptions::transpose_b) says that one is stored the other way. Elements, and
/// the type of sums, are those of [`Product`]. A product without elements is nothing to do; with a
/// K of 0 it is zeros.
///
/// Rows of A and B, as they are stored, begin at multiples of 16 bytes. Rows of C may begin and end
/// anywhere, except those of `i32`, of [`Sums::Half`] and of a transposed A: the copy engine stores as many 16 bytes of
/// a row as there are, and threads the rest, which is slower.
///
/// Sums that are divided among clusters are added in a fixed order: the same matrices give the same
/// bits each time.
///
/// # Errors
///
/// `TMA0546` if the matrices do not fit each other or are too large, `TMA0547` if no kernel
/// multiplies so, and those of [`launch`].
pub fn gemm<AB: Product<C>, C: Scalar, const N: usize>(
    on: &impl LaunchOn,
    a: impl MapArg<AB, N>,
    b: impl MapArg<AB, N>,
    mut c: impl MapArgMut<C, N>,
    options: GemmOptions<'_, C, N>,
) -> Result<(), GemmError> {
    const { assert!(N == 2 || N == 3, "matrices have two dimensions, or three in a batch") };
    let (a, b, mut c) = (a.view(), b.view(), c.view_mut());
    let operands = Operands::of(a.shape(), b.shape(), c.shape(), &options)?;
    if operands.batches == 0 || operands.m == 0 || operands.n == 0 {
        return Ok(());
    }
    if operands.k > 0 && options.alpha != 0.0 {
        return queue(on, &operands, [cube(a)?, cube(b)?], cube_mut(c.reborrow())?, options);
    }
    let (operands, [a, b]) = operands.of_zeros::<AB, C, N>(on.device(), [operands.batches; 2], &options)?;
    queue(on, &operands, [a.view(), b.view()], cube_mut(c)?, options)
}

/// The extents of a product.
#[derive(Clone, Copy)]
struct Operands {
    m: usize,
    n: usize,
    k: usize,
    batches: usize,
    /// Whether elements of C may share memory: products become such that do not.
    may_overlap: bool,
}

impl Operands {
    /// Of matrices of these shapes, if they fit.
    fn of<C: Scalar, const N: usize>(
        a: [usize; N],
        b: [usize; N],
        c: [usize; N],
        options: &GemmOptions<'_, C, N>,
    ) -> Result<Self, GemmError> {
        let batches = c[..N - 2].iter().product();
        let [m, n, k] = [c[N - 2], c[N - 1], a[if options.transpose_a { N - 2 } else { N - 1 }]];
        let fits = |matrix, found: &[usize], [rows, columns]: [usize; 2]| {
            let wanted = [&c[..N - 2], &[rows, columns]].concat();
            let found = found.to_vec();
            if found == wanted { Ok(()) } else { Err(GemmError::Shape { matrix, found, wanted }) }
        };
        fits("A", &a, if options.transpose_a { [k, m] } else { [m, k] })?;
        fits("B", &b, if options.transpose_b { [n, k] } else { [k, n] })?;
        if let Some(residual) = &options.residual {
            fits("`residual`", &residual.shape(), [m, n])?;
        }
        if let Some(bias) = &options.bias
            && bias.shape() != [n]
        {
            let (found, wanted) = (bias.shape().to_vec(), vec![n]);
            return Err(GemmError::Shape { matrix: "`bias`", found, wanted });
        }
        let tiles = m.div_ceil(64).saturating_mul(n.div_ceil(64)).saturating_mul(batches);
        if [m, n, k].iter().any(|&extent| extent >= 1 << 31) || tiles >= 1 << 28 {
            return Err(GemmError::TooLarge { extents: [m, n, k, batches] });
        }
        Ok(Self { m, n, k, batches, may_overlap: false })
    }

    /// So many matrices of zeros for A and for B, where K or alpha is 0: nothing is added up, but
    /// tensor maps have no empty tensors.
    fn of_zeros<AB: Scalar, C: Scalar, const N: usize>(
        self,
        device: &Device,
        [of_a, of_b]: [usize; 2],
        options: &GemmOptions<'_, C, N>,
    ) -> Result<(Self, [DeviceTensor<AB, 3>; 2]), Error> {
        let k = 16 / size_of::<AB>();
        let zeros = |is_k_last, count, extent: usize| {
            let extent = extent.next_multiple_of(k);
            device.zeros::<AB, 3>(if is_k_last { [count, extent, k] } else { [count, k, extent] })
        };
        let a = zeros(!options.transpose_a, of_a, self.m)?;
        let b = zeros(options.transpose_b, of_b, self.n)?;
        Ok((Self { k, ..self }, [a, b]))
    }
}

/// A tensor as a batch of matrices.
fn cube<T: Scalar, const N: usize>(view: TensorView<'_, T, N>) -> Result<TensorView<'_, T, 3>, Error> {
    let (shape, strides) = cubic(view.shape(), view.strides());
    view.with_strides(shape, strides)
}

/// As [`cube`].
fn cube_mut<T: Scalar, const N: usize>(
    view: TensorViewMut<'_, T, N>,
) -> Result<TensorViewMut<'_, T, 3>, Error> {
    let (shape, strides) = cubic(view.shape(), view.strides());
    view.with_strides(shape, strides)
}

fn cubic<const N: usize>(shape: [usize; N], strides: [usize; N]) -> ([usize; 3], [usize; 3]) {
    let [rows, columns, line] = [shape[N - 2], shape[N - 1], strides[N - 2]];
    match N {
        2 => ([1, rows, columns], [rows.saturating_mul(line), line, strides[N - 1]]),
        _ => ([shape[0], rows, columns], [strides[0], line, strides[N - 1]]),
    }
}

/// Chooses an instance, and queues it.
fn queue<AB: Product<C>, C: Scalar, const N: usize>(
    on: &impl LaunchOn,
    operands: &Operands,
    [a, b]: [TensorView<'_, AB, 3>; 2],
    c: TensorViewMut<'_, C, 3>,
    options: GemmOptions<'_, C, N>,
) -> Result<(), GemmError> {
    let GemmOptions { alpha, beta, residual, bias, activation, .. } = options;
    let &Operands { m, n, k, batches, may_overlap } = operands;
    let device = on.device();
    let layout =
        [["nn", "nt"], ["tn", "tt"]][usize::from(options.transpose_a)][usize::from(options.transpose_b)];
    let epilogue = options.epilogue;
    let types = match options.sums {
        Sums::Exact => AB::NAME,
        Sums::Half => AB::HALF.ok_or(GemmError::no_half_sums(AB::NAME))?,
    };
    let edge = Edge::of(&c);
    let by_threads = edge.is_reached() && instances::has_options(types);
    let is_more = alpha != 1.0
        || beta != 0.0
        || residual.is_some()
        || bias.is_some()
        || activation != Activation::None
        || by_threads;
    let find = |Choice { tile, division }: Choice| {
        if by_threads && tile.facts().columns == 256 {
            return None;
        }
        let of = |is_full| instances::find(Key { is_full, types, tile, layout });
        match (&epilogue, division) {
            (None, Division::Halved) if !is_more && tile.facts().half.is_some() => of(false),
            (_, Division::Halved) => None,
            (Some(epilogue), _) => epilogue.find(Key { is_full: true, types, tile, layout }),
            (None, Division::Whole) if !is_more => of(false).or_else(|| of(true)),
            (None, _) => of(true),
        }
    };
    let problem = Problem { extents: [m, n, k], batches, bytes: [size_of::<AB>(), size_of::<C>()] };
    let chosen = || choose::choose(&problem, device.multiprocessors(), |choice| find(choice).is_some());
    let missing = || match (&epilogue, options.choice) {
        (_, Some(Choice { division: Division::Halved, .. })) => GemmError::not_halved(types),
        (Some(epilogue), choice) => epilogue.missing(types, layout, choice.is_some()),
        (None, _) => GemmError::missing(types, layout, is_more),
    };
    let choice = options.choice.or_else(chosen).ok_or_else(missing)?;
    let kernel = find(choice).ok_or_else(missing)?;

    let facts = choice.tile.facts();
    let tiles = problem.tiles(&facts);
    let most = (resident_blocks(on, kernel)? / facts.blocks()).max(1) as usize;
    let units = Units::of(tiles, problem.steps(), choice.division, most);
    // Blocks that share sums compute one tile.
    let clusters = if facts.parts > 1 { tiles } else { units.clusters(most) } as u32;
    let grid = Grid::new(clusters * facts.cluster[0], facts.cluster[1], 1);

    let is_early = choose::begins_early(&problem, choice, device.multiprocessors());
    let launch_chosen = |args: &[Arg<'_>]| {
        let launched = if is_early {
            launch(&dependent(on), kernel, grid, args)
        } else {
            launch(on, kernel, grid, args)
        };
        Ok(launched?)
    };

    let band = choose::band(&problem, choice) as u32;
    let stagger = choose::stagger(&problem, choice.tile);
    let options_of_maps = MapOptions { l2_promotion: L2Promotion::B256, ..MapOptions::default() };
    let options_of_c = MapOptions { overlap: may_overlap, ..options_of_maps };
    let mut args = vec![Arg::map(a).with(options_of_maps), Arg::map(b).with(options_of_maps)];
    let sizes = [m as u32, n as u32, k as u32, stagger, band].map(Arg::scalar);
    if kernel.params.len() <= args.len() + 1 + sizes.len() + 2 {
        args.push(Arg::map_mut(c).with(options_of_c));
        args.extend(sizes);
        args.extend([units.len(), units.whole].map(|number| Arg::scalar(number as u32)));
        args.truncate(kernel.params.len()); // `turns` takes no `whole`, and `folded` neither of them
        return launch_chosen(&args);
    }

    let (nothing, mut no_rows, mut placeholder) = (device.zeros::<C, 1>([0])?, device.zeros([0])?, None);
    let (of_c, of_edge) = edge.arguments(device, c, options_of_c, &mut placeholder, &mut no_rows)?;
    args.push(of_c);
    args.extend(sizes);
    let (mut no_partials, mut no_tickets) = (device.zeros([0])?, device.zeros([0])?);
    let mut own = None;
    let (partials, tickets) = if units.sharing > 0 {
        // Sums that are left, or counters of tiles that are shared, whichever are more.
        let blocks = (units.leaves * units.sharing).max(tiles - units.whole) * facts.blocks() as usize;
        let given = options.workspace.filter(|given| given.holds(blocks, &facts));
        let workspace = match given {
            Some(given) => given,
            None => own.insert(Workspace::of(device, blocks, facts.warpgroups as usize)?),
        };
        (&mut workspace.partials, &mut workspace.tickets)
    } else {
        (&mut no_partials, &mut no_tickets)
    };
    let Units { whole, sharing, share, shared, length, .. } = units;
    args.extend([whole, sharing, share, shared, length].map(|number| Arg::scalar(number as u32)));
    args.extend([
        Arg::scalar(alpha),
        Arg::scalar(beta),
        Arg::global(residual.map_or(nothing.slice(), GlobalSlice::new)),
        Arg::global(bias.map_or(nothing.slice(), GlobalSlice::new)),
        Arg::scalar(activation as u32),
        Arg::global_mut(partials.slice_mut()),
        Arg::global_mut(tickets.slice_mut()),
    ]);
    args.extend(of_edge);
    args.extend(epilogue.into_iter().flat_map(Epilogue::into_arguments));
    launch_chosen(&args)
}
