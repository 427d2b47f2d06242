//! Products of matrices, `C = activation(alpha · A · B + beta · C + residual + bias)`, by kernels
//! that `docs/gemm-kernel.md` explains.
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
pub mod dense;
pub mod device;
mod divide;
mod edge;
mod epilogue;
mod error;
pub mod full;
pub mod grouped;
mod instances;
pub mod picked;
pub mod ping_pong;
pub mod scaled;
pub mod split_k;
mod tile;
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

/// The activation function, which is applied last to each element of the result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Activation {
    /// The identity.
    #[default]
    None,
    /// ReLU: 0 if x < 0, else x.
    Relu,
    /// GELU: x / 2 · (1 + tanh(√(2/π) · (x + 0.044715 · x³))).
    Gelu,
    /// SiLU: x / (1 + exp(-x)).
    Silu,
}

/// The type in which products are summed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sums {
    /// The first type that [`Product`] lists.
    #[default]
    Exact,
    /// `f16`, rounded after each instruction, which sums 16 products. Only for matrices of `f16`,
    /// without other options. It is no faster on Hopper, but reproduces results of earlier GPUs.
    Half,
}

/// The layout of A and B, and the operations on their product.
#[derive(Debug)]
pub struct GemmOptions<'a, C: Scalar, const N: usize> {
    /// Whether A is stored K × M, not M × K. Only for elements of 16 bits.
    pub transpose_a: bool,
    /// Whether B is stored N × K, not K × N. Required unless elements have 16 bits.
    pub transpose_b: bool,
    /// The factor of the product. With 0 neither A nor B is read.
    pub alpha: f32,
    /// The factor of the previous elements of C, which are added to the product. With 0 they are
    /// not read.
    pub beta: f32,
    /// A matrix of C's shape, which is added.
    pub residual: Option<TensorView<'a, C, N>>,
    /// A row of N elements, which is added to each row.
    pub bias: Option<TensorView<'a, C, 1>>,
    /// The function that is applied last.
    pub activation: Activation,
    /// Kernels of the caller's package, with other functions between the sums and C.
    pub epilogue: Option<Epilogue<'a>>,
    /// The type in which products are summed.
    pub sums: Sums,
    /// The kernel's tile, and the division of tiles. The default is the result of
    /// [`choose`](choose::choose).
    pub choice: Option<Choice>,
    /// Memory for GEMMs whose sums are split among clusters. Without it, such a GEMM allocates its
    /// own, and waits when that is freed.
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

/// Memory through which blocks exchange sums that are split among them. Only one GEMM may use it at
/// a time: give each stream its own.
#[derive(Debug)]
pub struct Workspace {
    partials: DeviceTensor<f32, 1>,
    tickets: DeviceTensor<u32, 1>,
}

impl Workspace {
    /// Allocates the memory for every GEMM whose sums are split by default: 35 MB on an H200.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfMemory`], [`Error::KernelFault`] and [`Error::Driver`].
    pub fn new(device: &Device) -> Result<Self, Error> {
        Self::of(device, 2 * device.multiprocessors() as usize, 2)
    }

    /// Allocates the memory for the sums of `blocks` blocks of `warpgroups` warpgroups, 64 × 256
    /// each.
    fn of(device: &Device, blocks: usize, warpgroups: usize) -> Result<Self, Error> {
        let partials = device.zeros([blocks * warpgroups * 64 * 256])?;
        Ok(Self { partials, tickets: device.zeros([blocks * warpgroups])? })
    }

    /// Returns whether the memory suffices for the sums of this many blocks.
    fn holds(&self, blocks: usize, facts: &tile::Facts) -> bool {
        let warpgroups = blocks * facts.warpgroups as usize;
        self.partials.len() >= warpgroups * 64 * facts.columns as usize && self.tickets.len() >= warpgroups
    }
}

/// Queues `C = activation(alpha · A · B + beta · C + residual + bias)`.
///
/// The tensors have two dimensions, or three, the first of which counts the GEMMs of a batch. A is
/// M × K, B is K × N and C is M × N, unless [`transpose_a`](GemmOptions::transpose_a) or
/// [`transpose_b`](GemmOptions::transpose_b) states that one is stored the other way round. Element
/// types, and the type of sums, are those of [`Product`]. If C has no elements, nothing is done.
/// With a K of 0 the product is zero.
///
/// Rows of A and B, as stored, must begin at multiples of 16 bytes. Rows of C may begin and end
/// anywhere, except for C of `i32`, with [`Sums::Half`] and with a transposed A. The copy engine
/// stores as many units of 16 bytes of a row as possible, and threads store the rest, which is
/// slower.
///
/// Sums that are split among clusters are added in a fixed order: the same matrices produce the
/// same bits each time.
///
/// # Errors
///
/// `TMA0546` if the matrices do not match or are too large, `TMA0547` if no kernel supports the
/// GEMM, and the errors of [`launch`].
pub fn gemm<AB: Product<C>, C: Scalar, const N: usize>(
    on: &impl LaunchOn,
    a: impl MapArg<AB, N>,
    b: impl MapArg<AB, N>,
    mut c: impl MapArgMut<C, N>,
    options: GemmOptions<'_, C, N>,
) -> Result<(), GemmError> {
    const { assert!(N == 2 || N == 3, "matrices must have two dimensions, or three in a batch") };
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

/// The extents of a GEMM.
#[derive(Clone, Copy)]
struct Operands {
    m: usize,
    n: usize,
    k: usize,
    batches: usize,
    /// Whether elements of C may share memory, because the batch only writes matrices that do not.
    may_overlap: bool,
}

impl Operands {
    /// Returns the extents for matrices of these shapes, if they match.
    fn of<C: Scalar, const N: usize>(
        a: [usize; N],
        b: [usize; N],
        c: [usize; N],
        options: &GemmOptions<'_, C, N>,
    ) -> Result<Self, GemmError> {
        let batches = c[..N - 2].iter().product();
        let [m, n, k] = [c[N - 2], c[N - 1], a[if options.transpose_a { N - 2 } else { N - 1 }]];
        let [depth, columns] = if options.transpose_b { [b[N - 1], b[N - 2]] } else { [b[N - 2], b[N - 1]] };
        let fits = |matrix, found: &[usize], [rows, columns]: [usize; 2]| {
            let wanted = [&c[..N - 2], &[rows, columns]].concat();
            let found = found.to_vec();
            if found == wanted { Ok(()) } else { Err(GemmError::Shape { matrix, found, wanted }) }
        };
        // If A and B match each other, C is the one that does not.
        if depth == k && a[..N - 2] == b[..N - 2] {
            let wanted =
                [&a[..N - 2], &[a[if options.transpose_a { N - 1 } else { N - 2 }], columns]].concat();
            if c[..] != wanted[..] {
                return Err(GemmError::Shape { matrix: "C", found: c.to_vec(), wanted });
            }
        }
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

    /// Returns matrices of zeros for A and for B, in the given numbers, for a GEMM whose K or alpha
    /// is 0: nothing is summed, but tensor maps have no empty tensors.
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

/// Returns a tensor as a batch of matrices.
fn cube<T: Scalar, const N: usize>(view: TensorView<'_, T, N>) -> Result<TensorView<'_, T, 3>, Error> {
    let (shape, strides) = cubic(view.shape(), view.strides());
    view.with_strides(shape, strides)
}

/// Returns a mutable tensor as a batch of matrices.
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

/// Selects an instance, and queues it.
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
        (None, _) if by_threads && options.transpose_a && size_of::<AB>() == 2 && size_of::<C>() == 2 => {
            let [_, row, _] = c.strides();
            GemmError::Rows { types, bytes: [n, row].map(|elements| elements * size_of::<C>()) }
        }
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
        args.truncate(kernel.params.len()); // `turns` takes no `whole`, and `folded` takes neither
        return launch_chosen(&args);
    }

    let (nothing, mut no_rows, mut placeholder) = (device.zeros::<C, 1>([0])?, device.zeros([0])?, None);
    let (of_c, of_edge) = edge.arguments(device, c, options_of_c, &mut placeholder, &mut no_rows)?;
    args.push(of_c);
    args.extend(sizes);
    let (mut no_partials, mut no_tickets) = (device.zeros([0])?, device.zeros([0])?);
    let mut own = None;
    let (partials, tickets) = if units.sharing > 0 {
        // Enough for stored partial sums and for counters of shared tiles, whichever are more.
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
