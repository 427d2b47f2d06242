//! Arguments of the kernel, and selection of the instance.

use tma_runtime::Scalar;
use tma_runtime::launch::{
    Arg, Corners, GlobalSlice, KernelSpec, L2Promotion, LaunchOn, MapOptions, launch, resident_blocks,
};
use tma_runtime::prelude::*;

use super::choose::choose;
use super::kernel::convolution::forward::INSTANCES;
use super::shape::Problem;
use super::{ConvError, ConvOptions, ConvTile};
use crate::dependent::dependent;

mod sealed {
    pub trait Sealed {
        /// The prefix of instance names.
        const NAME: &'static str;
    }

    impl Sealed for tma_runtime::prelude::bf16 {
        const NAME: &'static str = "bf16";
    }

    impl Sealed for tma_runtime::prelude::f16 {
        const NAME: &'static str = "f16";
    }
}

/// The element types of [`conv2d`](super::conv2d()): `bf16` and `f16`.
#[diagnostic::on_unimplemented(
    message = "a convolution needs tensors of `bf16` or `f16`, not of `{Self}`",
    label = "neither `bf16` nor `f16`"
)]
pub trait ConvElement: Scalar + sealed::Sealed {}

impl ConvElement for bf16 {}
impl ConvElement for f16 {}

/// Returns the instance for an element type and a tile. A test ensures that each exists.
fn instance<T: ConvElement>(tile: ConvTile) -> Option<&'static KernelSpec> {
    let is_it = |kernel: &&KernelSpec| {
        let name = kernel.name.rsplit_once("::").and_then(|(_, instance)| instance.rsplit_once('_'));
        name == Some((T::NAME, tile.facts().name))
    };
    INSTANCES.iter().find(is_it)
}

/// Checks the tensors, and queues the kernel unless there is nothing to compute.
pub(super) fn queue<T: ConvElement>(
    on: &impl LaunchOn,
    images: TensorView<'_, T, 4>,
    filters: TensorView<'_, T, 4>,
    output: TensorViewMut<'_, T, 4>,
    options: ConvOptions<'_, T>,
) -> Result<(), ConvError> {
    let problem = Problem::of([images.shape(), filters.shape(), output.shape()], &options)?;
    if problem.pixels() == 0 || problem.filters == 0 {
        return Ok(());
    }
    if !problem.is_empty {
        return run(on, &problem, [images, filters], output, &options);
    }
    // Nothing is summed: use filters of one tap, and zeros, since tensor maps have no empty
    // tensors.
    let problem = Problem {
        channels: 8,
        taps: [1; 2],
        stride: [1; 2],
        padding: [0; 2],
        dilation: [1; 2],
        is_empty: false,
        ..problem
    };
    let [height, width] = problem.extents;
    let images = on.device().zeros([problem.images, height, width, problem.channels])?;
    let filters = on.device().zeros([problem.filters, 1, 1, problem.channels])?;
    run(on, &problem, [images.view(), filters.view()], output, &options)
}

fn run<T: ConvElement>(
    on: &impl LaunchOn,
    problem: &Problem,
    [images, filters]: [TensorView<'_, T, 4>; 2],
    output: TensorViewMut<'_, T, 4>,
    options: &ConvOptions<'_, T>,
) -> Result<(), ConvError> {
    let tile = options.tile.unwrap_or_else(|| choose(problem, on.device().multiprocessors()));
    let facts = tile.facts();
    let Some(kernel) = instance::<T>(tile) else { return Ok(()) };
    let tiles = facts.tiles(problem);
    let most = resident_blocks(on, kernel)?.max(1) as usize;
    // Few blocks, as long as there are no more rounds: idle multiprocessors leave the others more
    // power.
    let blocks = tiles.div_ceil(tiles.div_ceil(most)) as u32;

    let nothing = on.device().zeros::<T, 1>([0])?;
    let count = |value: usize| Arg::scalar(value as u32);
    let Problem { extents, taps, stride, padding, dilation, .. } = *problem;
    let args = [
        Arg::map(images).with(columns(problem)),
        Arg::map(filters.permute([1, 2, 0, 3])?).with(plain()),
        Arg::global(options.bias.map_or(nothing.slice(), GlobalSlice::new)),
        Arg::map_mut(output).with(MapOptions { corners: Some(Corners::default()), ..plain() }),
        count(problem.pixels()),
        count(extents[0]),
        count(extents[1]),
        count(problem.filters),
        count(problem.channels),
        count(taps[0]),
        count(taps[1]),
        count(stride[0]),
        count(stride[1]),
        count(padding[0]),
        count(padding[1]),
        count(dilation[0]),
        count(dilation[1]),
        Arg::scalar(u32::from(options.relu)),
    ];
    Ok(launch(&dependent(on), kernel, Grid::x(blocks), &args)?)
}

/// Returns the options of a map whose rows are fetched into the L2 cache 256 bytes at a time.
fn plain() -> MapOptions {
    MapOptions { l2_promotion: L2Promotion::B256, ..MapOptions::default() }
}

/// Returns the options of the map of images: the positions of the filters' first taps.
fn columns(problem: &Problem) -> MapOptions {
    let mut options = plain();
    let mut corners = Corners::default();
    for axis in 0..2 {
        [corners.lower[axis], corners.upper[axis]] = problem.corners(axis);
        options.element_strides[axis + 1] = problem.stride[axis] as u32;
    }
    MapOptions { corners: Some(corners), ..options }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_tile_has_instances() {
        for tile in ConvTile::ALL {
            assert!(instance::<bf16>(tile).is_some() && instance::<f16>(tile).is_some(), "{tile:?}");
        }
        assert_eq!(INSTANCES.len(), 2 * ConvTile::ALL.len());
    }
}
