//! Selection of an instance, and its launch.

use super::choose::chosen::{ChoiceKey, chosen};
use super::choose::{self, Choice, Problem};
use super::divide::{Division, Units};
use super::edge::Edge;
use super::extents::Extents;
use super::few_rows;
use super::full::with_options::full;
use super::instances::{FullKernels, Instance, Layout, find_plain};
use super::{Activation, GemmError, GemmOptions, Product, Sums, Workspace};
use crate::dependent::dependent_if;
use std::any::TypeId;
use tma_runtime::Scalar;
use tma_runtime::launch::{L2Promotion, LaunchOn, MapOptions, resident_blocks};
use tma_runtime::prelude::*;

/// The matrices of a GEMM, as batches.
pub(super) struct Operands<'a, AB: Scalar, C: Scalar> {
    pub(super) a: TensorView<'a, AB, 3>,
    pub(super) b: TensorView<'a, AB, 3>,
    pub(super) c: TensorViewMut<'a, C, 3>,
}

/// Queues a GEMM of matrices of these extents. Of `options`, the epilogue is in `full`.
pub(super) fn queue<AB: Product<C>, C: Scalar, const N: usize>(
    on: &impl LaunchOn,
    extents: &Extents,
    operands: Operands<'_, AB, C>,
    full: FullKernels<'_>,
    options: GemmOptions<'_, C, N>,
) -> Result<(), GemmError> {
    match options.sums {
        Sums::Exact => queue_summed::<AB, AB::Sum, C, N>(on, extents, operands, full, options),
        Sums::Half => queue_summed::<AB, f16, C, N>(on, extents, operands, full, options),
    }
}

/// Queues a GEMM with sums in `SUM`.
fn queue_summed<AB: Product<C>, SUM: Scalar, C: Scalar, const N: usize>(
    on: &impl LaunchOn,
    extents: &Extents,
    operands: Operands<'_, AB, C>,
    full: FullKernels<'_>,
    options: GemmOptions<'_, C, N>,
) -> Result<(), GemmError> {
    let &Extents { m, n, k, batches, may_overlap } = extents;
    let edge = Edge::of(&operands.c);
    let wanted = Wanted::of::<AB, C, N>(full, edge, &options)?;
    let problem = Problem { extents: [m, n, k], batches, bytes: [size_of::<AB>(), size_of::<C>()] };
    let multiprocessors = on.device().multiprocessors();
    let may_allocate = options.workspace.is_some() || !on.stream().map_or(Ok(false), Stream::is_capturing)?;
    let has = |choice: Choice| {
        let shares_sums = match choice.division {
            Division::Parts(_) | Division::Even => true,
            Division::Whole | Division::Halved => false,
        };
        (may_allocate || !shares_sums) && wanted.find::<AB, SUM, C>(choice).is_some()
    };
    let choose = || choose::choose(&problem, multiprocessors, has);
    let choice = options.choice.or_else(|| match wanted.full {
        FullKernels::Own(_) => {
            chosen(wanted.key::<AB, SUM, C>(problem, multiprocessors, may_allocate), choose)
        }
        FullKernels::Epilogue(_) | FullKernels::Picked(_) => choose(),
    });
    if few_rows::supports(&operands, &wanted.full, &options)
        && let Some(instance) = few_rows::Instance::find(&problem, choice, multiprocessors)
    {
        return instance.queue(on, &problem, operands, options);
    }
    let missing = || wanted.missing::<AB, C>(options.choice, &operands.c);
    let choice = choice.ok_or_else(missing)?;
    let instance = wanted.find::<AB, SUM, C>(choice).ok_or_else(missing)?;

    let facts = choice.tile.facts();
    let tiles = problem.tiles(&facts);
    let most = (resident_blocks(on, instance.spec())? / facts.blocks()).max(1) as usize;
    let units = Units::of(tiles, problem.steps(), choice.division, most);
    // Blocks that share sums compute one tile.
    let clusters = if facts.parts > 1 { tiles } else { units.clusters(most) } as u32;
    let grid = Grid::new(clusters * facts.cluster[0], facts.cluster[1], 1);
    let on = dependent_if(choose::begins_early(&problem, choice, multiprocessors), on);

    let [m, n, k] = [m, n, k].map(|extent| extent as u32);
    let band = choose::band(&problem, choice) as u32;
    let k_shift = choose::k_shift(&problem, choice.tile);
    let [count, whole] = [units.len(), units.whole].map(|units| units as u32);
    let Operands { a, b, c } = operands;
    let (a, b) = (a.l2_promotion(L2Promotion::B256), b.l2_promotion(L2Promotion::B256));
    let options_of_c =
        MapOptions { l2_promotion: L2Promotion::B256, overlap: may_overlap, ..MapOptions::default() };
    let kernel = match instance {
        Instance::Full(kernel) => kernel,
        Instance::Plain(kernel) => {
            let c = c.map_options(options_of_c);
            return Ok(kernel.launch(on, grid, a, b, c, m, n, k, k_shift, band, count, whole)?);
        }
        Instance::PingPong(kernel) => {
            let c = c.map_options(options_of_c);
            return Ok(kernel.launch(on, grid, a, b, c, m, n, k, k_shift, band, count)?);
        }
        Instance::PingPongNoSwizzle(kernel) => {
            let c = c.map_options(options_of_c);
            return Ok(kernel.launch(on, grid, a, b, c, m, n, k, k_shift, band, count)?);
        }
        Instance::SplitK(kernel) => {
            let c = c.map_options(options_of_c);
            return Ok(kernel.launch(on, grid, a, b, c, m, n, k, k_shift)?);
        }
    };

    let device = on.device();
    let nothing = device.zeros::<C, N>([0; N])?;
    let no_bias = device.zeros::<C, 1>([0])?;
    let (mut placeholder, mut no_rows) = (None, device.zeros([0])?);
    let parts = edge.parts(device, c, &mut placeholder, &mut no_rows)?;
    let mut own = None;
    let stored = units.stored(tiles) * facts.blocks() as usize;
    let workspace = match options.workspace {
        Some(given) => {
            given.grow(stored, &facts)?;
            given
        }
        None => own.insert(Workspace::of(device, stored * facts.warpgroups as usize)?),
    };
    let [sharing_units, unit_steps, shared_steps, tile_stride] =
        [units.sharing, units.share, units.shared, units.length].map(|number| number as u32);
    Ok(kernel.launch(
        on,
        grid,
        a,
        b,
        parts.copied.map_options(options_of_c),
        m,
        n,
        k,
        k_shift,
        band,
        whole,
        sharing_units,
        unit_steps,
        shared_steps,
        tile_stride,
        options.alpha,
        options.beta,
        options.residual.unwrap_or(nothing.view()),
        options.bias.unwrap_or(no_bias.view()),
        options.activation as u32,
        &mut workspace.partials,
        &mut workspace.tickets,
        parts.rows,
        parts.row_stride,
        parts.matrix_stride,
        parts.edge,
    )?)
}

/// The properties of an instance that a GEMM needs.
struct Wanted<'a> {
    /// The element types, as in the names of instances.
    types: &'static str,
    sums: Sums,
    layout: Layout,
    /// Whether there are operations between the sums and C, or rows of C that threads store.
    has_options: bool,
    /// Whether threads store a part of C's rows.
    by_threads: bool,
    full: FullKernels<'a>,
}

impl<'a> Wanted<'a> {
    /// Returns the properties that a GEMM with these options needs, and with a C that has this
    /// edge.
    fn of<AB: Product<C>, C: Scalar, const N: usize>(
        full: FullKernels<'a>,
        edge: Edge,
        options: &GemmOptions<'_, C, N>,
    ) -> Result<Self, GemmError> {
        let &GemmOptions { transpose_a, transpose_b, alpha, beta, sums, activation, .. } = options;
        let (types, is_stored_by_threads) = match sums {
            Sums::Exact => (AB::NAME, full::keys::<AB, C>().next().is_some()),
            Sums::Half => (AB::HALF.ok_or(GemmError::no_half_sums(AB::NAME))?, false),
        };
        let by_threads = edge.is_reached() && is_stored_by_threads;
        let has_options = alpha != 1.0
            || beta != 0.0
            || options.residual.is_some()
            || options.bias.is_some()
            || activation != Activation::None
            || by_threads;
        let layout = Layout { transpose_a, transpose_b };
        Ok(Self { types, sums, layout, has_options, by_threads, full })
    }

    /// Returns the instance for a choice, if there is one.
    fn find<AB: Scalar, SUM: Scalar, C: Scalar>(
        &self,
        Choice { tile, division }: Choice,
    ) -> Option<Instance<'_, AB, SUM, C>> {
        if self.by_threads && tile.facts().columns == 256 {
            return None;
        }
        let plain = || if self.has_options { None } else { find_plain(tile, self.layout) };
        let full = || match self.sums {
            Sums::Exact => self.full.find(tile, self.layout).map(Instance::Full),
            Sums::Half => None,
        };
        match (&self.full, division) {
            (FullKernels::Own(_), Division::Halved) => plain().filter(|_| tile.facts().half.is_some()),
            (FullKernels::Epilogue(_) | FullKernels::Picked(_), Division::Halved) => None,
            (FullKernels::Own(_), Division::Whole) => plain().or_else(full),
            (_, Division::Whole | Division::Parts(_) | Division::Even) => full(),
        }
    }

    /// Returns all that a choice depends on, if the kernels are the library's own.
    fn key<AB: Scalar, SUM: Scalar, C: Scalar>(
        &self,
        problem: Problem,
        multiprocessors: u32,
        may_allocate: bool,
    ) -> ChoiceKey {
        let &Self { layout, has_options, by_threads, .. } = self;
        let types = TypeId::of::<(AB, SUM, C)>();
        ChoiceKey { problem, multiprocessors, types, layout, has_options, by_threads, may_allocate }
    }

    /// Returns the error that there is no instance, for the caller's choice or for any.
    fn missing<AB: Scalar, C: Scalar>(
        &self,
        choice: Option<Choice>,
        c: &TensorViewMut<'_, C, 3>,
    ) -> GemmError {
        let types = self.types;
        match (&self.full, choice) {
            (_, Some(Choice { division: Division::Halved, .. })) => GemmError::not_halved(types),
            (FullKernels::Epilogue(_), _) => GemmError::missing_epilogue(types, choice.is_some()),
            (FullKernels::Picked(_), _) if self.sums == Sums::Half || !self.full.has_types::<AB, C>() => {
                GemmError::no_indices(types)
            }
            (FullKernels::Picked(_), Some(_)) => GemmError::no_choice_of_indices(types),
            (FullKernels::Picked(_), None) => GemmError::missing(types, self.layout, true),
            (FullKernels::Own(_), _)
                if self.by_threads && self.layout.transpose_a && size_of::<AB>() == 2 =>
            {
                let ([_, _, n], [_, row, _]) = (c.shape(), c.strides());
                GemmError::Rows { types, bytes: [n, row].map(|elements| elements * size_of::<C>()) }
            }
            (FullKernels::Own(_), _) => GemmError::missing(types, self.layout, self.has_options),
        }
    }
}
