//! Arguments of the kernel, and selection of the instance.

use tma_runtime::Scalar;
use tma_runtime::launch::{LaunchOn, WithColumns, resident_blocks};
use tma_runtime::prelude::*;

use super::choose::choose;
use super::kernel::convolution::forward;
use super::shape::Problem;
use super::{ConvError, ConvOptions, ConvTile};
use crate::dependent::dependent;

mod sealed {
    pub trait Sealed {}
    impl Sealed for tma_runtime::prelude::bf16 {}
    impl Sealed for tma_runtime::prelude::f16 {}
}

/// The element types of [`conv2d`](super::conv2d()): `bf16` and `f16`.
#[diagnostic::on_unimplemented(
    message = "a convolution needs tensors of `bf16` or `f16`, not of `{Self}`",
    label = "neither `bf16` nor `f16`"
)]
pub trait ConvElement: Scalar + sealed::Sealed {}

impl ConvElement for bf16 {}
impl ConvElement for f16 {}

/// Returns the instance for a tile.
fn instance<T: ConvElement>(tile: ConvTile) -> Option<forward::Launcher<'static, T>> {
    let facts = tile.facts();
    forward::find(forward::Key { warpgroups: (facts.pixels / 64) as u32, bn: facts.filters as u32 })
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
        return run(on, &problem, images, filters, output, &options);
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
    run(on, &problem, images.view(), filters.view(), output, &options)
}

fn run<T: ConvElement>(
    on: &impl LaunchOn,
    problem: &Problem,
    images: TensorView<'_, T, 4>,
    filters: TensorView<'_, T, 4>,
    output: TensorViewMut<'_, T, 4>,
    options: &ConvOptions<'_, T>,
) -> Result<(), ConvError> {
    let tile = options.tile.unwrap_or_else(|| choose(problem, on.device().multiprocessors()));
    let Some(kernel) = instance::<T>(tile) else { unreachable!("{tile:?} has an instance of each type") };
    let tiles = tile.facts().tiles(problem);
    let most = resident_blocks(on, kernel.spec())?.max(1) as usize;
    // Few blocks, as long as there are no more rounds: idle multiprocessors leave the others more
    // power.
    let blocks = tiles.div_ceil(tiles.div_ceil(most)) as u32;

    let nothing = on.device().zeros::<T, 1>([0])?;
    let [height, width] = problem.extents.map(count);
    let [taps_y, taps_x] = problem.taps.map(count);
    let [stride_y, stride_x] = problem.stride.map(count);
    let [padding_y, padding_x] = problem.padding.map(count);
    let [dilation_y, dilation_x] = problem.dilation.map(count);
    Ok(kernel.launch(
        dependent(on),
        Grid::x(blocks),
        first_taps(images, problem),
        filters.permute([1, 2, 0, 3])?.l2_promotion(L2Promotion::B256),
        options.bias.unwrap_or(nothing.view()),
        output.im2col(Im2col::default()).l2_promotion(L2Promotion::B256),
        count(problem.pixels()),
        height,
        width,
        count(problem.filters),
        count(problem.channels),
        taps_y,
        taps_x,
        stride_y,
        stride_x,
        padding_y,
        padding_x,
        dilation_y,
        dilation_x,
        u32::from(options.relu),
    )?)
}

/// Returns an extent as the kernel takes it. Extents are below 2^31, which the problem has checked.
fn count(extent: usize) -> u32 {
    extent as u32
}

/// Returns the columns of the images that are the positions of the filters' first taps.
fn first_taps<'a, T: Scalar>(
    images: TensorView<'a, T, 4>,
    problem: &Problem,
) -> WithColumns<TensorView<'a, T, 4>> {
    let ([lower_y, upper_y], [lower_x, upper_x]) = (problem.corners(0), problem.corners(1));
    let strides = problem.stride.map(count);
    let columns = Im2col { lower: [lower_y, lower_x], upper: [upper_y, upper_x], strides };
    images.im2col(columns).l2_promotion(L2Promotion::B256)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_tile_has_instances() {
        for tile in ConvTile::ALL {
            assert!(instance::<bf16>(tile).is_some() && instance::<f16>(tile).is_some(), "{tile:?}");
        }
        assert_eq!(forward::INSTANCES.len(), 2 * ConvTile::ALL.len());
    }
}
