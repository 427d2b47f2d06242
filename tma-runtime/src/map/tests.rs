//! Flipped pairs: each rule is tested with two tensors or boxes that differ in one property, one
//! accepted and one refused.

use tma_model::tensor_map::Fill;
use tma_model::{DataType, Swizzle as Pattern};

use super::*;
use crate::layout::{DeviceId, row_major_strides};
use crate::map::options::{Corners, MapOptions};
use crate::spec::{Scalar, TileSwizzle};

fn boxed(extents: &[u32]) -> Mode {
    Mode::Tiled { box_extents: extents.to_vec() }
}

/// A tensor and a box that satisfy every rule. Each test changes one property.
struct Case<const N: usize> {
    element: Scalar,
    address: u64,
    shape: [usize; N],
    strides: [usize; N],
    tile: &'static [u32],
    tile_element: Scalar,
    mode: MapMode,
    swizzle: TileSwizzle,
    written: bool,
    options: MapOptions,
}

impl<const N: usize> Case<N> {
    fn new(shape: [usize; N], tile: &'static [u32]) -> Self {
        Self {
            element: Scalar::F16,
            address: 0x7000_0000,
            shape,
            strides: row_major_strides(shape),
            tile,
            tile_element: Scalar::F16,
            mode: MapMode::Tiled,
            swizzle: TileSwizzle::None,
            written: false,
            options: MapOptions::default(),
        }
    }

    fn map(&self) -> Result<TensorMap, Error> {
        self.params().map(|params| params.map)
    }

    fn params(&self) -> Result<MapParams, Error> {
        let layout = Layout::new(DeviceId::Cuda(0), self.element, self.address, self.shape, self.strides);
        let spec = MapSpec {
            element: self.tile_element,
            mode: self.mode,
            box_extents: self.tile,
            swizzle: self.swizzle,
            written: self.written,
        };
        map_params("src", &MapSource { layout, options: self.options }, &spec)
    }

    /// Checks the error's code, and that its message contains the code, the tensor and `words`.
    #[track_caller]
    fn refused(&self, code: &str, words: &[&str]) {
        let error = self.map().expect_err("the map keeps every rule");
        let message = error.to_string();
        assert_eq!(error.code(), code, "{message}");
        assert!(message.starts_with(&format!("{code}: ")), "{message}");
        for word in ["`src`"].iter().chain(words) {
            assert!(message.contains(word), "no {word:?} in: {message}");
        }
    }

    #[track_caller]
    fn accepted(&self) -> TensorMap {
        match self.map() {
            Ok(map) => map,
            Err(error) => panic!("{error}"),
        }
    }
}

#[test]
fn dimensions_are_reversed_and_strides_in_bytes() {
    let mut case = Case::new([3, 5, 7, 64], &[1, 2, 4, 64]);
    case.strides = [2560, 512, 72, 1];
    let map = case.accepted();
    assert_eq!(map.extents, [64, 7, 5, 3]);
    assert_eq!(map.byte_strides, [144, 1024, 5120]);
    assert_eq!(map.mode, boxed(&[64, 4, 2, 1]));
    assert_eq!((map.element, map.swizzle, map.address), (DataType::F16, Pattern::None, 0x7000_0000));
}

#[test]
fn one_and_five_dimensions() {
    let line = Case::new([1000], &[256]).accepted();
    assert_eq!((line.extents, line.byte_strides, line.mode), (vec![1000], vec![], boxed(&[256])));
    let five = Case::new([2, 3, 4, 5, 8], &[1, 1, 1, 5, 8]).accepted();
    assert_eq!(five.byte_strides, [16, 80, 320, 960]);
}

#[test]
fn tma0501_address_is_a_multiple_of_16_bytes() {
    let mut case = Case::new([128, 64], &[128, 64]);
    case.address = 0x1010;
    case.accepted();
    case.address = 0x1018;
    case.refused("TMA0501", &["0x1018", "8 bytes past"]);
}

#[test]
fn tma0502_extents_are_between_1_and_2_to_the_32() {
    Case::new([1 << 32], &[256]).accepted();
    Case::new([(1 << 32) + 1], &[256]).refused("TMA0502", &["4294967297 elements", "split"]);
    Case::new([1, 64], &[1, 64]).accepted();
    Case::new([0, 64], &[1, 64]).refused("TMA0502", &["0 rows"]);
}

#[test]
fn tma0503_strides_are_multiples_of_16_bytes() {
    Case::new([128, 72], &[128, 64]).accepted();
    Case::new([128, 68], &[128, 64])
        .refused("TMA0503", &["rows of `src` are 136 bytes apart", "they are 144 bytes"]);
}

#[test]
fn tma0504_strides_are_less_than_2_to_the_40_bytes() {
    let mut case = Case::new([2, 64], &[2, 64]);
    case.strides = [(1 << 39) - 8, 1];
    assert_eq!(case.accepted().byte_strides, [(1 << 40) - 16]);
    case.strides = [1 << 39, 1];
    case.refused("TMA0504", &["rows of `src` are 1099511627776 bytes"]);
    case.strides = [usize::MAX, 1];
    case.refused("TMA0504", &["36893488147419103230 bytes"]);
}

#[test]
fn tma0505_innermost_stride_is_1() {
    let mut case = Case::new([128, 64], &[128, 64]);
    case.strides = [64, 1];
    case.accepted();
    case.strides = [1, 128];
    case.refused("TMA0505", &["stride 128"]);
}

#[test]
fn tma0506_tensor_and_box_have_equal_ranks() {
    Case::new([128, 64], &[128, 64]).accepted();
    Case::new([1, 128, 64], &[128, 64]).refused("TMA0506", &["has 3 dimensions", "the kernel's box has 2"]);
    Case::new([64], &[]).refused("TMA0506", &["has 1 dimension,", "the kernel's box has 0"]);
}

#[test]
fn tma0507_box_extents_are_between_1_and_256() {
    Case::new([1024, 64], &[256, 64]).accepted();
    Case::new([1024, 64], &[257, 64]).refused("TMA0507", &["1 to 256 rows", "has 257"]);
    Case::new([1024, 64], &[0, 64]).refused("TMA0507", &["1 to 256 rows", "has 0"]);
}

#[test]
fn tma0508_box_rows_are_multiples_of_16_bytes() {
    Case::new([128, 64], &[8, 8]).accepted();
    Case::new([128, 64], &[8, 12]).refused("TMA0508", &["24", "32 bytes long"]);
}

#[test]
fn tma0509_box_rows_are_no_longer_than_the_swizzle_span() {
    for (swizzle, fits, exceeds) in [
        (TileSwizzle::B32, &[8, 16][..], &[8, 24][..]),
        (TileSwizzle::B64, &[8, 32], &[8, 40]),
        (TileSwizzle::B128, &[8, 64], &[8, 72]),
    ] {
        let mut case = Case::new([128, 128], fits);
        case.swizzle = swizzle;
        case.accepted();
        case.tile = exceeds;
        case.refused("TMA0509", &["span of"]);
    }
    Case::new([128, 128], &[8, 72]).accepted();
}

#[test]
fn tma0510_elements_are_those_of_the_kernel() {
    let mut case = Case::new([128, 64], &[128, 64]);
    case.element = Scalar::F16;
    case.accepted();
    case.element = Scalar::Bf16;
    case.refused("TMA0510", &["`f16`", "`bf16`"]);
}

#[test]
fn tma0525_written_elements_have_distinct_addresses() {
    let mut case = Case::new([128, 64], &[8, 64]);
    case.strides = [64, 1];
    case.written = true;
    case.accepted();
    case.strides = [56, 1];
    case.refused("TMA0525", &["[1, 0] and [0, 56]", "strides longer"]);
    // A window that slides by 56 elements, for reading.
    case.written = false;
    assert_eq!(case.accepted().byte_strides, [112]);

    // Every row at the same address.
    case.strides = [0, 1];
    case.accepted();
    case.written = true;
    case.refused("TMA0525", &["[1, 0] and [0, 0]"]);
    case.options.overlap = true;
    case.accepted();
}

#[test]
fn tma0518_rows_stored_to_are_whole_units() {
    let mut case = Case::new([128, 64], &[128, 64]);
    case.shape = [128, 60];
    case.accepted();
    case.written = true;
    case.refused("TMA0518", &["120 bytes", "16 bytes"]);
    case.shape = [128, 56];
    case.accepted();
}

#[test]
fn the_stride_of_a_single_row_does_not_matter() {
    let mut case = Case::new([1, 4], &[16, 64]);
    assert_eq!(case.accepted().byte_strides, [16]);
    case.strides = [usize::MAX, 1];
    assert_eq!(case.accepted().byte_strides, [16]);
    case.shape = [2, 4];
    case.refused("TMA0504", &[]);

    let mut outer = Case::new([1, 2, 8], &[1, 2, 8]);
    outer.strides = [3, 512, 1];
    assert_eq!(outer.accepted().byte_strides, [1024, 1024]);

    let mut column = Case::new([128, 1], &[128, 8]);
    column.strides = [8, 99];
    assert_eq!(column.accepted().extents, [1, 128]);
    column.shape = [128, 2];
    column.refused("TMA0505", &["stride 99"]);
}

#[test]
fn options_reach_the_map_innermost_first() {
    let mut case = Case::new([64, 64, 64], &[4, 8, 16]);
    case.options = MapOptions {
        fill: Fill::Nan,
        l2_promotion: L2Promotion::B256,
        element_strides: [3, 2, 1, 1, 1],
        corners: None,
        overlap: false,
    };
    let map = case.map().expect("every rule holds");
    assert_eq!(map.element_strides, [1, 2, 3]);
    assert_eq!(map.mode, boxed(&[16, 15, 10]));
    assert_eq!(map.fill, Fill::Nan);
    assert_eq!(case.params().expect("as above").l2_promotion, L2Promotion::B256);
}

#[test]
fn tma0519_elements_are_1_to_8_apart_and_rows_contiguous() {
    let with = |strides: [u32; MAX_RANK]| {
        let mut case = Case::new([64, 64], &[8, 8]);
        case.options.element_strides = strides;
        case.map().map(|_| ()).map_err(|error| error.code())
    };
    assert_eq!(with([8, 1, 1, 1, 1]), Ok(()));
    assert_eq!(with([9, 1, 1, 1, 1]), Err("TMA0519"));
    assert_eq!(with([0, 1, 1, 1, 1]), Err("TMA0519"));
    assert_eq!(with([1, 2, 1, 1, 1]), Err("TMA0519"));
}

#[test]
fn tma0520_a_box_with_steps_spans_at_most_256() {
    let with = |stride| {
        let mut case = Case::new([1024, 64], &[64, 8]);
        case.options.element_strides[0] = stride;
        case.map().map(|_| ()).map_err(|error| error.code())
    };
    assert_eq!(with(4), Ok(()));
    assert_eq!(with(5), Err("TMA0520"));
}

#[test]
fn tma0521_only_floats_are_filled_with_nan() {
    let with = |element| {
        let mut case = Case::new([64, 64], &[8, 16]);
        (case.element, case.tile_element, case.options.fill) = (element, element, Fill::Nan);
        case.map().map(|_| ()).map_err(|error| error.code())
    };
    assert_eq!(with(Scalar::F32), Ok(()));
    assert_eq!(with(Scalar::U32), Err("TMA0521"));
    assert_eq!(with(Scalar::E4m3), Err("TMA0521"));
}

/// Makes images of 9 × 11 pixels of 32 channels, with these corners of height and width.
fn columns(lower: [i32; 2], upper: [i32; 2]) -> Case<4> {
    let mut case = Case::new([3, 9, 11, 32], &[64, 32]);
    case.mode = MapMode::Im2col { rank: 4 };
    let corners = Corners { lower: [lower[0], lower[1], 0], upper: [upper[0], upper[1], 0] };
    case.options =
        MapOptions { element_strides: [1, 2, 3, 1, 1], corners: Some(corners), ..MapOptions::default() };
    case
}

#[test]
fn columns_are_reversed_and_the_images_have_no_step() {
    let map = columns([-1, -2], [3, 4]).accepted();
    let moved = Mode::Im2col { lower: vec![-2, -1], upper: vec![4, 3], channels: 32, pixels: 64 };
    assert_eq!((map.extents, map.element_strides, map.mode), (vec![32, 11, 9, 3], vec![1, 3, 2, 1], moved));
}

#[test]
fn tma0506_columns_are_of_tensors_of_their_rank() {
    let mut case = columns([0; 2], [0; 2]);
    case.mode = MapMode::Im2col { rank: 5 };
    case.refused("TMA0506", &["5"]);
    // No kernel has such maps, but a hand-written specification may.
    case.mode = MapMode::Im2col { rank: 2 };
    case.refused("TMA0506", &["2", "3"]);
    let three = Case { tile: &[4, 64, 32], ..columns([0; 2], [0; 2]) };
    three.refused("TMA0506", &["3", "2"]);
}

#[test]
fn tma0507_columns_have_up_to_1024_pixels_of_256_channels() {
    let of = |tile| Case { tile, ..columns([0; 2], [0; 2]) };
    of(&[1024, 64]).accepted();
    of(&[64, 256]).accepted();
    of(&[1025, 32]).refused("TMA0507", &["1 to 1024 rows", "has 1025"]);
    of(&[64, 264]).refused("TMA0507", &["1 to 256 columns", "has 264"]);
}

#[test]
fn tma0519_steps_of_pixels_are_1_to_8() {
    let mut case = columns([0; 2], [0; 2]);
    case.options.element_strides = [1, 8, 1, 1, 1];
    case.accepted();
    case.options.element_strides = [1, 9, 1, 1, 1];
    case.refused("TMA0519", &["along dimension 1 of `src` is 9"]);
}

#[test]
fn tma0532_corners_have_as_many_bits_as_the_rank_leaves() {
    columns([-128, 0], [127, 0]).accepted();
    columns([-129, 0], [0, 0]).refused("TMA0532", &["dimension 1", "-128 to 127", "-129"]);
    columns([0, 0], [0, 128]).refused("TMA0532", &["dimension 2", "128"]);
    let corners = |lower, upper| Some(Corners { lower: [lower, 0, 0], upper: [upper, 0, 0] });
    let mut line = Case::new([3, 9, 32], &[64, 32]);
    line.mode = MapMode::Im2col { rank: 3 };
    line.options.corners = corners(-32768, 32767);
    line.accepted();
    line.options.corners = corners(-32769, 0);
    line.refused("TMA0532", &["-32769"]);
    let mut volume = Case::new([3, 9, 9, 9, 32], &[64, 32]);
    volume.mode = MapMode::Im2col { rank: 5 };
    volume.options.corners = corners(-16, 15);
    volume.accepted();
    volume.options.corners = corners(0, 16);
    volume.refused("TMA0532", &["-16 to 15"]);
}

#[test]
fn tma0533_a_bounding_box_holds_a_pixel() {
    columns([8, 0], [0, 0]).accepted();
    columns([9, 0], [0, 0]).refused("TMA0533", &["dimension 1", "from pixel 9 to pixel 8"]);
    columns([0, 5], [0, -5]).accepted();
    columns([0, 5], [0, -6]).refused("TMA0533", &["dimension 2"]);
}

#[test]
fn tma0534_stores_are_within_the_tensor() {
    let written = |lower, upper| Case { written: true, ..columns(lower, upper) };
    written([0, 2], [-1, 0]).accepted();
    columns([-1, 0], [0, 1]).accepted();
    written([-1, 0], [0, 0]).refused("TMA0534", &["dimension 1", "-1 and 0"]);
    written([0, 0], [0, 1]).refused("TMA0534", &["dimension 2", "0 and 1"]);
}

/// Makes 2 images with 4 slices of channels, 5 rows and 24 pixels per row.
fn interleaved(swizzle: TileSwizzle, pixel: usize) -> Case<4> {
    let tile: &[u32] = if pixel == 8 { &[2, 1, 3, 128] } else { &[2, 1, 3, 256] };
    Case { swizzle, ..Case::new([2, 4, 5, 24 * pixel], tile) }
}

#[test]
fn interleaved_layouts_count_pixels_along_dimension_0() {
    for (swizzle, pixel) in [(TileSwizzle::Interleave16, 8), (TileSwizzle::Interleave32, 16)] {
        let map = interleaved(swizzle, pixel).accepted();
        assert_eq!(map.extents, [24, 5, 4, 2]);
        assert_eq!(map.mode, boxed(&[16, 3, 1, 2]));
        let row = 24 * 2 * pixel as u64;
        assert_eq!(map.byte_strides, [row, 5 * row, 4 * 5 * row]);
    }
}

#[test]
fn interleaved_layouts_of_32_bytes_start_and_step_at_multiples_of_32() {
    Case { address: 0x7000_0010, ..interleaved(TileSwizzle::Interleave16, 8) }.accepted();
    Case { address: 0x7000_0010, ..interleaved(TileSwizzle::Interleave32, 16) }.refused("TMA0501", &["32"]);
    let strides = [9000, 2000, 392, 1];
    Case { strides, ..interleaved(TileSwizzle::Interleave16, 8) }.accepted();
    Case { strides, ..interleaved(TileSwizzle::Interleave32, 16) }.refused("TMA0503", &["784", "32"]);
}

#[test]
fn interleaved_layouts_step_along_pixels() {
    let mut case = interleaved(TileSwizzle::Interleave16, 8);
    case.options.element_strides = [1, 1, 2, 8, 1];
    let map = case.accepted();
    assert_eq!(map.element_strides, [8, 2, 1, 1]);
    assert_eq!(map.mode, boxed(&[128, 5, 1, 2]));
    case.options.element_strides = [1, 1, 1, 9, 1];
    case.refused("TMA0519", &["9"]);
}

#[test]
fn tma0520_interleaved_boxes_end_before_the_next_pixel() {
    for (stride, most) in [(2, 128), (3, 80), (5, 48), (8, 32)] {
        let tiles: &'static [[u32; 4]] =
            &[[2, 1, 3, 128 * 8], [2, 1, 3, 80 * 8], [2, 1, 3, 48 * 8], [2, 1, 3, 32 * 8]];
        for tile in tiles {
            let mut case = Case { tile, ..interleaved(TileSwizzle::Interleave16, 8) };
            case.options.element_strides = [1, 1, 1, stride, 1];
            if tile[3] <= most * 8 {
                case.accepted();
            } else {
                case.refused("TMA0520", &["at most 256 pixels", &format!("reduce the tile to {most},")]);
            }
        }
    }
}

#[test]
fn tma0522_interleaved_boxes_are_of_one_slice_and_whole_pixels() {
    let case = interleaved(TileSwizzle::Interleave16, 8);
    case.accepted();
    Case { tile: &[2, 2, 3, 128], ..case }.refused("TMA0522", &["1 slice"]);
    Case { tile: &[2, 1, 3, 96], ..case }.refused("TMA0522", &["multiples of 8"]);
    Case { tile: &[2, 1, 3, 2048], ..interleaved(TileSwizzle::Interleave16, 8) }.accepted();
    Case { tile: &[2, 1, 3, 2112], ..interleaved(TileSwizzle::Interleave16, 8) }
        .refused("TMA0507", &["2112"]);
    Case { swizzle: TileSwizzle::Interleave16, ..Case::new([64, 64], &[1, 64]) }
        .refused("TMA0522", &["3 to 5"]);
}

#[test]
fn tma0523_interleaved_rows_are_of_whole_pixels() {
    Case { shape: [2, 4, 5, 184], ..interleaved(TileSwizzle::Interleave16, 8) }.accepted();
    Case { shape: [2, 4, 5, 188], ..interleaved(TileSwizzle::Interleave16, 8) }
        .refused("TMA0523", &["188", "8"]);
}

#[test]
fn tma0524_a_box_has_at_most_228_kib() {
    Case::new([512, 512, 64], &[57, 32, 64]).accepted();
    Case::new([512, 512, 64], &[58, 32, 64]).refused("TMA0524", &["237568", "233472"]);
}
