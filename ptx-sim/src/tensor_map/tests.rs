//! Maps compared with a direct evaluation of their parameters, and each rule as a flipped pair.

use super::*;

fn map(extents: &[u64], box_extents: &[u32], element: DataType, swizzle: Swizzle) -> TensorMap {
    let mut stride = (extents[0] * u64::from(element.bytes())).next_multiple_of(16);
    let byte_strides = extents[1..]
        .iter()
        .map(|extent| {
            let this = stride;
            stride *= extent;
            this
        })
        .collect();
    TensorMap {
        element,
        address: 0x1000,
        extents: extents.to_vec(),
        byte_strides,
        mode: Mode::Tiled { box_extents: box_extents.to_vec() },
        element_strides: vec![1; extents.len()],
        interleave: Interleave::None,
        swizzle,
        fill: Fill::Zeros,
    }
}

/// Returns the shared offset and global address of each element of a box, inside the tensor or not,
/// computed in the most direct way.
fn elements(map: &TensorMap, at: [i32; 5]) -> Vec<(u32, Option<u64>)> {
    let Mode::Tiled { box_extents } = &map.mode else { return Vec::new() };
    let rank = map.rank();
    let mut index = vec![0u32; rank];
    let mut found = Vec::new();
    loop {
        let (mut offset, mut scale) = (0, 1);
        let mut address = Some(map.address);
        for dimension in 0..rank {
            let place =
                i64::from(at[dimension]) + i64::from(index[dimension] * map.element_strides[dimension]);
            let stride = match dimension {
                0 => u64::from(map.element.bytes()),
                _ => map.byte_strides[dimension - 1],
            };
            let inside = place >= 0 && (place as u64) < map.extents[dimension];
            address = address.filter(|_| inside).map(|address| address + place as u64 * stride);
            if dimension > 0 {
                offset += index[dimension] * scale;
                scale *= box_extents[dimension].div_ceil(map.element_strides[dimension]);
            }
        }
        let plain = offset * map.row_pitch() + index[0] * map.element.bytes();
        found.push((map.swizzle.permute(plain), address));

        let mut dimension = 0;
        loop {
            if dimension == rank {
                return found;
            }
            index[dimension] += 1;
            if index[dimension] < box_extents[dimension].div_ceil(map.element_strides[dimension]) {
                break;
            }
            index[dimension] = 0;
            dimension += 1;
        }
    }
}

/// Returns the same from the units of a walk.
fn walked(map: &TensorMap, at: [i32; 5]) -> Vec<(u32, Option<u64>)> {
    let walk = Walk::new(map, at, [0; 3]);
    let bytes = map.element.bytes();
    let units = (0..walk.units()).map(|number| walk.unit(number, 0));
    units
        .flat_map(|unit| {
            (0..UNIT).step_by(bytes as usize).map(move |byte| {
                let inside = (unit.from..unit.to).contains(&byte);
                let address = unit.global.map(|global| global.wrapping_add(byte.into()));
                (unit.shared + byte, address.filter(|_| inside))
            })
        })
        .collect()
}

fn agrees(map: &TensorMap, at: [i32; 5]) {
    assert_eq!(map.check(), Ok(()));
    let found = walked(map, at);
    assert_eq!(found, elements(map, at), "{map:?} at {at:?}");
    let is_outside = found.iter().all(|(_, address)| address.is_none());
    assert_eq!(Walk::new(map, at, [0; 3]).is_outside(), is_outside, "{map:?} at {at:?}");
}

#[test]
fn walks_agree_with_the_parameters_in_each_rank() {
    let extents = [40, 6, 5, 4, 3];
    let boxes = [16, 3, 2, 2, 2];
    for rank in 1..=5 {
        let map = map(&extents[..rank], &boxes[..rank], DataType::F16, Swizzle::None);
        for at in [
            [0; 5],
            [8, 1, 1, 1, 1],
            [32, 4, 4, 3, 2],
            [-8, -1, -1, -1, -1],
            [800, 0, 0, 0, 0],
            [-80, 0, 0, 0, 0],
        ] {
            agrees(&map, at);
        }
    }
}

#[test]
fn walks_agree_with_each_element_type() {
    use DataType::{Bf16, F16, F32, F32Ftz, F64, I32, I64, Tf32, Tf32Ftz, U8, U16, U32, U64};
    for element in [U8, U16, U32, I32, U64, I64, F16, Bf16, F32, F32Ftz, F64, Tf32, Tf32Ftz] {
        let width = 64 / element.bytes();
        let map = map(&[u64::from(width) * 2 + 1, 9], &[width, 4], element, Swizzle::B64);
        agrees(&map, [0; 5]);
        agrees(&map, [width as i32 * 2, 7, 0, 0, 0]);
        agrees(&map, [-(width as i32), -2, 0, 0, 0]);
    }
}

#[test]
fn walks_agree_with_each_swizzle_and_short_rows() {
    for (swizzle, span) in [(Swizzle::B32, 32), (Swizzle::B64, 64), (Swizzle::B128, 128)] {
        for row in (16..=span).step_by(16) {
            let map = map(&[256, 40], &[row, 32], DataType::U8, swizzle);
            assert_eq!([map.row_pitch(), map.box_bytes()], [span, row * 32]);
            agrees(&map, [16, 3, 0, 0, 0]);
        }
    }
}

#[test]
fn the_swizzle_of_128_bytes_is_the_documented_one() {
    // PTX ISA, "128B swizzle mode": row r of eight has its unit u at u ^ r.
    for row in 0..16 {
        for unit in 0..8 {
            assert_eq!(Swizzle::B128.permute(row * 128 + unit * 16), row * 128 + (unit ^ (row % 8)) * 16);
        }
    }
    assert_eq!(Swizzle::B64.permute(128 + 16), 128);
    assert_eq!(Swizzle::B32.permute(128), 128 + 16);
}

#[test]
fn element_strides_skip() {
    let mut skipping = map(&[64, 20, 9], &[16, 8, 5], DataType::F32, Swizzle::None);
    skipping.element_strides = vec![1, 3, 2];
    assert_eq!(skipping.rows(), 3 * 3);
    agrees(&skipping, [0; 5]);
    agrees(&skipping, [4, 15, 3, 0, 0]);
    agrees(&skipping, [0, -2, -1, 0, 0]);
}

#[test]
fn each_rule_rejects_violations() {
    let good = map(&[64, 64], &[32, 8], DataType::F16, Swizzle::B64);
    assert_eq!(good.check(), Ok(()));
    let refused = |change: &dyn Fn(&mut TensorMap), expected: &str| {
        let mut bad = good.clone();
        change(&mut bad);
        let message = bad.check().unwrap_err().to_string();
        assert!(message.contains(expected), "{message}");
    };
    refused(&|map| map.address += 8, "address");
    refused(&|map| map.extents[1] = 0, "extent 0 of dimension 1");
    refused(&|map| map.extents[0] = (1 << 32) + 1, "dimension 0");
    refused(&|map| map.byte_strides[0] = 136, "stride 136");
    refused(&|map| map.byte_strides[0] = 1 << 40, "stride");
    let boxed = |first, second| Mode::Tiled { box_extents: vec![first, second] };
    refused(&|map| map.mode = boxed(32, 257), "box extent 257");
    refused(&|map| map.mode = boxed(4, 8), "rows of 8 bytes");
    refused(&|map| map.mode = boxed(64, 8), "exceed the swizzle's span of 64");
    refused(&|map| map.mode = Mode::Tiled { box_extents: vec![32] }, "1 box extents");
    refused(
        &|map| (map.mode, map.element, map.swizzle) = (boxed(256, 256), DataType::U32, Swizzle::None),
        "a box of 262144 bytes",
    );
    refused(&|map| map.element_strides[1] = 9, "element stride 9");
    refused(&|map| map.element_strides.truncate(1), "1 element strides");
    refused(&|map| map.extents.clear(), "a rank of 0");
    refused(&|map| (map.fill, map.element) = (Fill::Nan, DataType::U16), "NaN");
}

#[test]
fn fills_are_numbers_or_not() {
    let mut map = map(&[64], &[16], DataType::F32, Swizzle::None);
    assert_eq!(fill_unit(&map), [0; 16]);
    map.fill = Fill::Nan;
    let unit = fill_unit(&map);
    assert_eq!(unit[..4], [0xf7, 0x7f, 0xf7, 0x7f]);
    assert!(unit.first_chunk().copied().map(f32::from_le_bytes).is_some_and(f32::is_nan));
    assert!(unit.first_chunk().copied().map(f64::from_le_bytes).is_some_and(f64::is_nan));
}

#[test]
fn loads_round_as_the_type_says() {
    let converted = |element: DataType, bits: u32| {
        let mut bytes = bits.to_le_bytes();
        convert(element, &mut bytes);
        u32::from_le_bytes(bytes)
    };
    for (bits, rounded) in [
        (0x3f80_0000, 0x3f80_0000),
        (0x3f80_1000, 0x3f80_0000),
        (0x3f80_1001, 0x3f80_2000),
        (0x3f80_3000, 0x3f80_4000),
        (0xff7f_ffff, 0xff80_0000),
        (0xff80_0000, 0xff80_0000),
        (0xff80_0001, 0x7fff_e000),
        (0x0000_1001, 0x0000_2000),
    ] {
        for element in [DataType::Tf32, DataType::Tf32Ftz] {
            assert_eq!(converted(element, bits), rounded, "{bits:#x}");
        }
        for element in [DataType::F32, DataType::F32Ftz, DataType::U32] {
            assert_eq!(converted(element, bits), bits);
        }
    }
}

/// Returns a tensor of 2 images of 3×4 pixels with 8 channels of 2 bytes, in columns of 10 pixels.
fn columns(lower: [i32; 2], upper: [i32; 2]) -> TensorMap {
    TensorMap {
        mode: Mode::Im2col { lower: lower.into(), upper: upper.into(), channels: 8, pixels: 10 },
        ..map(&[8, 4, 3, 2], &[8, 1, 1, 1], DataType::U16, Swizzle::None)
    }
}

/// Returns the image, row and column of each pixel that a copy moves; `None` for those outside the
/// tensor.
fn pixels(map: &TensorMap, at: [i32; 5], offsets: [u16; 3]) -> Vec<Option<[u64; 3]>> {
    assert_eq!(map.check(), Ok(()));
    let walk = Walk::new(map, at, offsets);
    let place = |address: u64| (address - map.address) / 16;
    (0..walk.units())
        .map(|number| walk.unit(number, 0).global.map(place))
        .map(|pixel| pixel.map(|pixel| [pixel / 12, pixel / 4 % 3, pixel % 4]))
        .collect()
}

#[test]
fn columns_cross_rows_and_images() {
    let whole = pixels(&columns([0, 0], [0, 0]), [0, 2, 1, 0, 0], [0; 3]);
    let wanted = [
        [0, 1, 2],
        [0, 1, 3],
        [0, 2, 0],
        [0, 2, 1],
        [0, 2, 2],
        [0, 2, 3],
        [1, 0, 0],
        [1, 0, 1],
        [1, 0, 2],
        [1, 0, 3],
    ];
    assert_eq!(whole, wanted.map(Some));
}

#[test]
fn a_3x3_filter_reads_the_elements_of_a_convolution() {
    // With padding 1 and stride 1, the output has the extents of the tensor, and output (h, w) of
    // tap (r, s) reads (h + r - 1, w + s - 1).
    let map = columns([-1, -1], [-1, -1]);
    for (r, s) in [(0, 0), (0, 2), (1, 1), (2, 0), (2, 2)] {
        let wanted: Vec<_> = (0..10_i64)
            .map(|output| {
                let (row, column) = (output / 4 + r - 1, output % 4 + s - 1);
                let inside = (0..3).contains(&row) && (0..4).contains(&column);
                inside.then_some([0, row as u64, column as u64])
            })
            .collect();
        assert_eq!(pixels(&map, [0, -1, -1, 0, 0], [s as u16, r as u16, 0]), wanted, "tap {r}, {s}");
    }
}

#[test]
fn a_convolution_with_stride_2_skips() {
    let mut map = columns([-1, -1], [0, 0]);
    map.element_strides = vec![1, 2, 2, 1];
    let wanted = [None, None, None, None, Some([0, 1, 1]), Some([0, 1, 3]), None, None, None, None];
    assert_eq!(pixels(&map, [0, -1, -1, 0, 0], [0; 3]), wanted);
}

#[test]
fn each_column_rule_rejects_violations() {
    let refused = |change: &dyn Fn(&mut TensorMap), expected: &str| {
        let mut bad = columns([-1, -1], [-1, -1]);
        assert_eq!(bad.check(), Ok(()));
        change(&mut bad);
        let message = bad.check().unwrap_err().to_string();
        assert!(message.contains(expected), "{message}");
    };
    let with = |lower: &[i32], upper: &[i32], channels, pixels| Mode::Im2col {
        lower: lower.into(),
        upper: upper.into(),
        channels,
        pixels,
    };
    refused(
        &|map| map.mode = with(&[-129, 0], &[0, 0], 8, 1),
        "a corner at -129; with rank 4 it is -128 to 127",
    );
    refused(&|map| map.mode = with(&[0, 0], &[0, 128], 8, 1), "a corner at 128");
    refused(&|map| map.mode = with(&[0], &[0, 0], 8, 1), "1 lower and 2 upper corners");
    refused(&|map| map.mode = with(&[0, 2], &[0, -2], 8, 1), "from 2 to 0 in dimension 2");
    refused(&|map| map.mode = with(&[0, 0], &[0, 0], 0, 1), "0 channels");
    refused(&|map| map.mode = with(&[0, 0], &[0, 0], 4, 1), "rows of 8 bytes");
    refused(&|map| map.mode = with(&[0, 0], &[0, 0], 8, 1025), "1025 pixels");
    refused(&|map| map.extents[1] = 1 << 32, "ends below 2^31");
    let flat = |map: &mut TensorMap| {
        (map.extents, map.byte_strides, map.element_strides) = (vec![8, 4], vec![16], vec![1, 1]);
    };
    refused(&flat, "a rank of 2; it is 3 to 5 in im2col mode");
}

/// Returns 2 images of 3 slices of 4×5 pixels, with 32 bytes of channels per slice: NC/16HWC16.
fn sliced() -> TensorMap {
    TensorMap {
        interleave: Interleave::B32,
        swizzle: Swizzle::B32,
        byte_strides: vec![160, 640, 1920],
        ..map(&[5, 4, 3, 2], &[8, 2, 9, 2], DataType::U16, Swizzle::None)
    }
}

#[test]
fn a_copy_of_an_interleaved_layout_takes_one_slice() {
    let mut map = sliced();
    map.element_strides = vec![3, 1, 1, 1];
    assert_eq!([map.rows(), map.row_bytes(), map.box_bytes()], [4, 96, 384]);
    let walk = Walk::new(&map, [-1, 1, 2, 0, 0], [0; 3]);
    // Columns -1, 2 and 5 of rows 1 and 2, of both images, each with two units.
    let wanted = (0..24).map(|unit| {
        let (pixel, half) = (unit / 2, unit % 2);
        let (column, row, image) = (pixel % 3, pixel / 3 % 2, pixel / 6);
        let address = 0x1000 + image * 1920 + 2 * 640 + (1 + row) * 160 + 2 * 32 + half * 16;
        (Swizzle::B32.permute(unit as u32 * 16), (column == 1).then_some(address))
    });
    let found = (0..walk.units()).map(|number| walk.unit(number, 0)).map(|unit| (unit.shared, unit.global));
    assert_eq!(found.collect::<Vec<_>>(), wanted.collect::<Vec<_>>());
}

#[test]
fn a_tile_has_the_layout_of_its_swizzle() {
    for swizzle in [Swizzle::None, Swizzle::B32, Swizzle::B64, Swizzle::B128] {
        for columns in 1..=9 {
            let map = TensorMap {
                interleave: Interleave::B16,
                swizzle,
                // Pixels of 16 bytes, which no span pads, in an odd number of rows.
                ..map(&[9, 5, 3, 2], &[columns, 3, 1, 1], DataType::U64, Swizzle::None)
            };
            let walk = Walk::new(&map, [0; 5], [0; 3]);
            let tile = 0x80;
            let end = (0..walk.units()).map(|number| walk.unit(number, tile).shared + UNIT).max();
            assert!(
                end.is_some_and(|end| end <= tile + map.tile_bytes()),
                "{swizzle:?}, {columns} columns: {end:?}"
            );
            assert_eq!(map.box_bytes(), columns * 3 * UNIT, "the barrier gets the bytes of the box alone");
        }
    }
}

#[test]
fn each_interleaved_layout_rule_rejects_violations() {
    let refused = |change: &dyn Fn(&mut TensorMap), expected: &str| {
        let mut bad = sliced();
        assert_eq!(bad.check(), Ok(()));
        change(&mut bad);
        let message = bad.check().unwrap_err().to_string();
        assert!(message.contains(expected), "{message}");
    };
    refused(&|map| map.address += 16, "not a multiple of 32");
    refused(&|map| map.byte_strides[1] += 16, "stride 656 of dimension 2; it is a multiple of 32");
    refused(&|map| map.swizzle = Swizzle::B64, "without a swizzle of 32");
    refused(&|map| map.element_strides[0] = 9, "element stride 9 of dimension 0");
    let flat = |map: &mut TensorMap| {
        (map.extents, map.byte_strides, map.element_strides) = (vec![5, 4], vec![160], vec![1, 1]);
    };
    refused(&flat, "a rank of 2; it is 3 to 5 with an interleaved layout");
}

#[test]
fn sizes_that_no_number_holds_are_no_panic() {
    let mut wild = map(&[64, 64], &[32, 8], DataType::F64, Swizzle::None);
    wild.mode = Mode::Tiled { box_extents: vec![u32::MAX; 2] };
    assert_eq!((wild.box_bytes(), wild.tile_bytes()), (u32::MAX, u32::MAX));
    assert!(wild.check().is_err());
}
