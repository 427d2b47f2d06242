//! Maps against a plain reading of their parameters, and each rule in a flipped pair.

use super::*;

fn map(extents: &[u64], box_extents: &[u32], element: Element, swizzle: Swizzle) -> TensorMap {
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
        box_extents: box_extents.to_vec(),
        element_strides: vec![1; extents.len()],
        swizzle,
        fill: Fill::Zeros,
    }
}

/// Shared offset and global address of each element of a box, in the tensor or not: counted up in the plainest way.
fn elements(map: &TensorMap, at: [i32; 5]) -> Vec<(u32, Option<u64>)> {
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
                scale *= map.box_extents[dimension].div_ceil(map.element_strides[dimension]);
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
            if index[dimension] < map.box_extents[dimension].div_ceil(map.element_strides[dimension]) {
                break;
            }
            index[dimension] = 0;
            dimension += 1;
        }
    }
}

/// The same from the units of a walk.
fn walked(map: &TensorMap, at: [i32; 5]) -> Vec<(u32, Option<u64>)> {
    let walk = Walk::new(map, at);
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
    assert_eq!(walked(map, at), elements(map, at), "{map:?} at {at:?}");
}

#[test]
fn walks_agree_with_the_parameters_in_each_rank() {
    let extents = [40, 6, 5, 4, 3];
    let boxes = [16, 3, 2, 2, 2];
    for rank in 1..=5 {
        let map = map(&extents[..rank], &boxes[..rank], Element::F16, Swizzle::None);
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
    use Element::{Bf16, F16, F32, F32Ftz, F64, I32, I64, Tf32, Tf32Ftz, U8, U16, U32, U64};
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
            let map = map(&[256, 40], &[row, 32], Element::U8, swizzle);
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
    let mut skipping = map(&[64, 20, 9], &[16, 8, 5], Element::F32, Swizzle::None);
    skipping.element_strides = vec![1, 3, 2];
    assert_eq!(skipping.rows(), 3 * 3);
    agrees(&skipping, [0; 5]);
    agrees(&skipping, [4, 15, 3, 0, 0]);
    agrees(&skipping, [0, -2, -1, 0, 0]);
}

#[test]
fn each_rule_refuses_what_breaks_it() {
    let good = map(&[64, 64], &[32, 8], Element::F16, Swizzle::B64);
    assert_eq!(good.check(), Ok(()));
    let refused = |change: &dyn Fn(&mut TensorMap), what: &str| {
        let mut bad = good.clone();
        change(&mut bad);
        let message = bad.check().unwrap_err().to_string();
        assert!(message.contains(what), "{message}");
    };
    refused(&|map| map.address += 8, "address");
    refused(&|map| map.extents[1] = 0, "extent 0 of dimension 1");
    refused(&|map| map.extents[0] = (1 << 32) + 1, "dimension 0");
    refused(&|map| map.byte_strides[0] = 136, "stride 136");
    refused(&|map| map.byte_strides[0] = 1 << 40, "stride");
    refused(&|map| map.box_extents[1] = 257, "box extent 257");
    refused(&|map| map.box_extents[0] = 4, "rows of 8 bytes");
    refused(&|map| map.box_extents[0] = 64, "exceed the swizzle's span of 64");
    refused(&|map| map.element_strides[1] = 9, "element stride 9");
    refused(&|map| map.element_strides.truncate(1), "1 element strides");
    refused(&|map| map.extents.clear(), "a rank of 0");
    refused(&|map| (map.fill, map.element) = (Fill::Nan, Element::U16), "NaN");
}

#[test]
fn descriptors_hold_ids() {
    assert_eq!(TensorMap::id_of(&TensorMap::descriptor(7)), Some(7));
    assert_eq!(TensorMap::id_of(&[0; DESCRIPTOR_BYTES]), None);
    assert_eq!(TensorMap::id_of(&TensorMap::descriptor(7)[..14]), None);
}

#[test]
fn fills_are_numbers_or_not() {
    let mut map = map(&[64], &[16], Element::F32, Swizzle::None);
    assert_eq!(map.fill_unit(), [0; 16]);
    map.fill = Fill::Nan;
    let first = map.fill_unit().first_chunk().copied().map(f32::from_le_bytes);
    assert!(first.is_some_and(f32::is_nan));
}

#[test]
fn loads_round_and_flush_as_the_type_says() {
    let mut unit = [0; 16];
    let values = [1.0f32 + 1.0 / 2048.0, 1.0 + 3.0 / 2048.0, f32::from_bits(1), -2.5];
    let fill = |unit: &mut [u8; 16]| {
        for (word, value) in unit.chunks_exact_mut(4).zip(values) {
            word.copy_from_slice(&value.to_le_bytes());
        }
    };
    let read = |unit: &[u8; 16]| -> Vec<f32> {
        unit.chunks_exact(4).map(|word| f32::from_le_bytes([word[0], word[1], word[2], word[3]])).collect()
    };
    fill(&mut unit);
    Element::F32.convert(&mut unit);
    assert_eq!(read(&unit), values);
    Element::F32Ftz.convert(&mut unit);
    assert_eq!(read(&unit), [values[0], values[1], 0.0, -2.5]);
    fill(&mut unit);
    Element::Tf32.convert(&mut unit);
    assert_eq!(read(&unit)[..2], [1.0, 1.0 + 4.0 / 2048.0]);
}
