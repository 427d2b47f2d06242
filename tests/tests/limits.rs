//! Numbers of the hardware that the compiler, the runtime and the simulator each have for themselves: they are the same.

use ptx_sim::TensorMap;
use ptx_sim::tensor_map::{Element, Fill, Interleave, Mode, Swizzle};
use tma_codegen::limits;
use tma_runtime::{layout, map};

#[test]
fn the_compiler_and_the_runtime_have_the_same() {
    assert_eq!(limits::MAX_RANK, layout::MAX_RANK);
    assert_eq!(limits::BOX_EXTENT, map::MAX_BOX_EXTENT);
    assert_eq!(limits::BOX_INNER_BYTES, map::ALIGNMENT);
    assert_eq!(limits::COLUMN_PIXELS, map::MAX_COLUMN_PIXELS);
    assert_eq!(limits::INTERLEAVED_RANK, map::MIN_INTERLEAVED_RANK);
    let ranks = [limits::IM2COL_RANKS.start(), limits::IM2COL_RANKS.end()].map(|&rank| rank as usize);
    assert_eq!(ranks, [*map::IM2COL_RANKS.start(), *map::IM2COL_RANKS.end()]);
}

#[test]
fn the_compiler_and_the_simulator_have_the_same_shared_memory() {
    assert_eq!(limits::SHARED_BYTES, u64::from(ptx_sim::MOST_SHARED_BYTES));
}

/// A map that keeps every rule: boxes of a tensor of bytes, or columns.
fn good(rank: usize, mode: Mode) -> TensorMap {
    TensorMap {
        element: Element::U8,
        address: 0,
        extents: vec![256; rank],
        byte_strides: vec![256; rank - 1],
        mode,
        element_strides: vec![1; rank],
        interleave: Interleave::None,
        swizzle: Swizzle::None,
        fill: Fill::Zeros,
    }
}

fn boxes(box_extents: &[u32]) -> TensorMap {
    good(box_extents.len(), Mode::Tiled { box_extents: box_extents.to_vec() })
}

fn columns(rank: usize, pixels: u32) -> TensorMap {
    let corners = vec![0; rank.saturating_sub(2)];
    good(rank, Mode::Im2col { lower: corners.clone(), upper: corners, channels: 16, pixels })
}

/// That the simulator takes the first map, which is at the runtime's limit, and refuses the second, which is beyond it.
#[track_caller]
fn ends_between(taken: TensorMap, refused: TensorMap) {
    assert_eq!(taken.check(), Ok(()));
    assert!(refused.check().is_err(), "taken: {refused:?}");
}

#[test]
fn the_simulator_takes_the_tensors_that_the_runtime_takes() {
    let tensor = |address, extent, stride| TensorMap {
        address,
        extents: vec![256, extent],
        byte_strides: vec![stride],
        ..boxes(&[16, 1])
    };
    let (unit, extent, stride) = (map::ALIGNMENT, map::MAX_EXTENT, map::STRIDE_LIMIT);
    ends_between(tensor(unit, 1, unit), tensor(unit / 2, 1, unit));
    ends_between(tensor(unit, 1, unit), tensor(unit, 1, unit / 2));
    ends_between(tensor(0, extent, unit), tensor(0, extent + 1, unit));
    ends_between(tensor(0, 1, stride - unit), tensor(0, 1, stride));
}

#[test]
fn the_simulator_takes_the_boxes_that_the_runtime_takes() {
    let most = map::MAX_BOX_EXTENT;
    ends_between(boxes(&[16, most]), boxes(&[16, most + 1]));
    let unit = map::ALIGNMENT as u32;
    ends_between(boxes(&[unit, 4]), boxes(&[unit / 2, 4]));
    let rows = (map::MAX_BOX_BYTES / 256 / 16) as u32;
    ends_between(boxes(&[256, 16, rows]), boxes(&[256, 16, rows + 1]));
    let stepped = |step| TensorMap { element_strides: vec![1, step], ..boxes(&[16, 64]) };
    ends_between(stepped(map::MAX_ELEMENT_STRIDE), stepped(map::MAX_ELEMENT_STRIDE + 1));
    let interleaved = |rank: usize| TensorMap { interleave: Interleave::B16, ..boxes(&[16, 1, 1][..rank]) };
    ends_between(interleaved(map::MIN_INTERLEAVED_RANK), interleaved(map::MIN_INTERLEAVED_RANK - 1));
    let of_rank = |rank: usize| boxes(&[16, 1, 1, 1, 1, 1][..rank]);
    ends_between(of_rank(layout::MAX_RANK), of_rank(layout::MAX_RANK + 1));
}

#[test]
fn the_simulator_takes_the_columns_that_the_runtime_takes() {
    let most = map::MAX_COLUMN_PIXELS;
    ends_between(columns(3, most), columns(3, most + 1));
    let ranks = map::IM2COL_RANKS;
    ends_between(columns(*ranks.start(), 16), columns(ranks.start() - 1, 16));
    ends_between(columns(*ranks.end(), 16), columns(ranks.end() + 1, 16));
}
