//! Round trips between maps and bytes, and each field of `tensormap.replace`.

use super::*;

fn tiled() -> TensorMap {
    TensorMap {
        element: DataType::Bf16,
        address: 0x1234_5678_9ab0,
        extents: vec![1 << 32, 7, 1],
        byte_strides: vec![(1 << 40) - 16, 48],
        mode: Mode::Tiled { box_extents: vec![256, 1, 17] },
        element_strides: vec![1, 8, 3],
        interleave: Interleave::B16,
        swizzle: Swizzle::B128,
        fill: Fill::Nan,
    }
}

fn columns() -> TensorMap {
    let (lower, upper) = (vec![-16, 15, 0], vec![15, -16, -1]);
    TensorMap {
        extents: vec![64, 60, 50, 40, 3],
        byte_strides: vec![128, 7680, 384_000, 15_360_000],
        element_strides: vec![1, 2, 3, 4, 1],
        mode: Mode::Im2col { lower, upper, channels: 256, pixels: 1024 },
        interleave: Interleave::None,
        ..tiled()
    }
}

#[test]
fn maps_round_trip_through_bytes() {
    let line = TensorMap {
        extents: vec![100],
        byte_strides: vec![],
        element_strides: vec![1],
        mode: Mode::Tiled { box_extents: vec![16] },
        ..tiled()
    };
    for map in [tiled(), columns(), line] {
        assert_eq!(decode(&encode(&map)), Some(map));
    }
}

#[test]
fn other_bytes_are_no_map() {
    assert_eq!(decode(&[0; DESCRIPTOR_BYTES]), None);
    let good = encode(&tiled());
    for (at, value) in [
        (0, 0),
        (7, 2),
        (RANK, 5),
        (MODE, 2),
        (ELEMENT, 13),
        (INTERLEAVE, 3),
        (SWIZZLE, 4),
        (FILL, 2),
        (127, 1),
    ] {
        let mut bad = good;
        bad[at] = value;
        assert_eq!(decode(&bad), None, "byte {at}");
    }
}

/// The effect of a replacement on a map.
type Change = fn(&mut TensorMap);

#[test]
fn fields_are_replaced_one_by_one() {
    let changes: [(Field, u64, Change); 12] = [
        (Field::GlobalAddress, 0x40, |map| map.address = 0x40),
        (Field::GlobalDim(1), 9, |map| map.extents[1] = 9),
        (Field::GlobalDim(0), 0, |map| map.extents[0] = 1 << 32),
        (Field::GlobalStride(1), 64, |map| map.byte_strides[1] = 64),
        (Field::ElementStride(2), 2, |map| map.element_strides[2] = 2),
        (Field::BoxDim(0), 8, |map| map.mode = Mode::Tiled { box_extents: vec![8, 1, 17] }),
        (Field::Elemtype, 12, |map| map.element = DataType::Tf32Ftz),
        (Field::InterleaveLayout, 2, |map| map.interleave = Interleave::B32),
        (Field::SwizzleMode, 1, |map| map.swizzle = Swizzle::B32),
        (Field::FillMode, 0, |map| map.fill = Fill::Zeros),
        (Field::Rank, 1, |map| {
            map.extents.pop();
            map.byte_strides.pop();
            map.element_strides.pop();
            map.mode = Mode::Tiled { box_extents: vec![256, 1] };
        }),
        (Field::Rank, 2, |_| {}),
    ];
    for (field, value, change) in changes {
        let (mut bytes, mut wanted) = (encode(&tiled()), tiled());
        assert_eq!(replace(&mut bytes, field, value), Ok(()));
        change(&mut wanted);
        assert_eq!(decode(&bytes), Some(wanted), "{field:?}");
    }
}

#[test]
fn a_map_can_be_made_of_zeros() {
    let mut bytes = [0; DESCRIPTOR_BYTES];
    let fields = [
        (Field::GlobalAddress, 0x1000),
        (Field::Rank, 1),
        (Field::BoxDim(0), 16),
        (Field::BoxDim(1), 4),
        (Field::GlobalDim(0), 64),
        (Field::GlobalDim(1), 32),
        (Field::GlobalStride(0), 128),
        (Field::ElementStride(0), 1),
        (Field::ElementStride(1), 1),
        (Field::Elemtype, 1),
    ];
    for (field, value) in fields {
        assert_eq!(replace(&mut bytes, field, value), Ok(()));
    }
    let made = decode(&bytes).unwrap();
    assert_eq!(made.check(), Ok(()));
    assert_eq!((made.extents, made.byte_strides, made.element), (vec![64, 32], vec![128], DataType::U16));
}

#[test]
fn nothing_else_is_changed() {
    let mut garbage = [7; DESCRIPTOR_BYTES];
    assert!(replace(&mut garbage, Field::Rank, 1).is_err_and(|why| why.contains("neither")));
    let mut other = encode(&columns());
    assert!(replace(&mut other, Field::Rank, 1).is_err_and(|why| why.contains("im2col")));
    assert_eq!((garbage, other), ([7; DESCRIPTOR_BYTES], encode(&columns())));
}
