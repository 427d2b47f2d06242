//! Operands of tensor cores: a descriptor reads the elements that the tile contains.

use proptest::prelude::*;
use tma_model::mma::{Descriptor, Major, Operand, OperandTile, ROWS};
use tma_model::{Scalar, Swizzle, TileSwizzle, TileType};

fn swizzle() -> impl Strategy<Value = TileSwizzle> {
    prop::sample::select(vec![
        TileSwizzle::None,
        TileSwizzle::Panels16,
        TileSwizzle::B32,
        TileSwizzle::B64,
        TileSwizzle::B128,
    ])
}

fn scalar() -> impl Strategy<Value = Scalar> {
    prop::sample::select(vec![
        Scalar::F16,
        Scalar::Bf16,
        Scalar::Tf32,
        Scalar::E4m3,
        Scalar::E5m2,
        Scalar::I8,
        Scalar::U8,
    ])
}

/// An operand tile, and the tile of a tensor map whose boxes are its panels.
fn tile() -> impl Strategy<Value = (OperandTile, TileType)> {
    (scalar(), swizzle(), any::<bool>(), 1..5_u32, 1..7_u32).prop_filter_map(
        "an operand",
        |(scalar, swizzle, transposed, steps, wide)| {
            let element = Operand::of(scalar)?;
            let major = if transposed { Major::Mn } else { Major::K };
            let pattern = swizzle.pattern();
            let k = steps * 256 / element.bits();
            let panel = pattern.span().unwrap_or(16) * 8 / element.bits();
            let extents = match major {
                Major::K => [wide * 40, k],
                Major::Mn if wide == 1 => [k, panel.min(8)],
                Major::Mn => [k, wide * panel],
            };
            let tile = OperandTile { element, extents, swizzle: pattern, major };
            let columns = panel.min(extents[1]);
            let boxes = TileType { element: scalar, extents: vec![extents[0], columns], swizzle };
            tile.faults().is_empty().then_some((tile, boxes))
        },
    )
}

/// Returns where the copies write element (`row`, `column`) of a tile of several boxes.
fn written(boxes: &TileType, [row, column]: [u32; 2]) -> u32 {
    let panel = boxes.inner_extent();
    let at = u64::from(column / panel) * boxes.shared_bytes()
        + u64::from(row) * boxes.row_pitch()
        + u64::from(column % panel * boxes.element.bytes());
    boxes.swizzle.pattern().permute(at as u32)
}

proptest! {
    #[test]
    fn a_tile_has_the_layout_of_its_copies((tile, boxes) in tile(), at in any::<[prop::sample::Index; 2]>()) {
        let (i, k) = (at[0].index(tile.mn() as usize) as u32, at[1].index(tile.k() as usize) as u32);
        let place = if tile.major == Major::K { [i, k] } else { [k, i] };
        prop_assert_eq!(tile.offset(i, k), written(&boxes, place));
        prop_assert!(tile.offset(i, k) < tile.bytes());
    }

    /// At each k-step and each band of rows, a descriptor reads the elements that the tile has
    /// there.
    #[test]
    fn descriptors_read_the_elements_of_the_tile((tile, _) in tile(), base in 0..20_u32, at in any::<[prop::sample::Index; 2]>()) {
        let (i, k) = (at[0].index(tile.mn() as usize) as u32, at[1].index(tile.k() as usize) as u32);
        let start = base * tile.alignment();
        let (step, within) = (k / tile.step(), k % tile.step());
        let unit = if tile.major == Major::K { 8 } else { tile.panel_elements() };
        let firsts = (0..=i).filter(|first| first % unit == 0);
        for first in firsts {
            let Some(moved) = tile.advance_mn(first) else {
                return Err(TestCaseError::fail("no operand starts at a multiple of 8 rows or of a panel"));
            };
            let start = start + tile.advance_k(step) + moved;
            let descriptor = tile.descriptor(start);
            prop_assert_eq!(descriptor.faults(), []);
            let read = Descriptor::decode(descriptor.encode());
            prop_assert_eq!(read, Ok(descriptor));
            let address = descriptor.address(tile.major, tile.element, i - first, within);
            let held = base * tile.alignment() + tile.offset(i, k);
            prop_assert_eq!(address, held, "from {} of {:?}", first, tile);
        }
    }

    /// Decoding and encoding are inverse for all bits that are a valid descriptor.
    #[test]
    fn decoding_and_encoding_undo_each_other(bits in any::<u64>()) {
        if let Ok(descriptor) = Descriptor::decode(bits) {
            prop_assert_eq!(descriptor.faults(), []);
            prop_assert_eq!(descriptor.encode(), bits);
        }
        let fields = bits & (0x3fff | 0x3fff << 16 | 0x3fff << 32 | 7 << 49 | 3 << 62);
        prop_assert_eq!(Descriptor::decode(fields).map(Descriptor::encode), Ok(fields));
    }
}

/// The lines of an operand of bits have the layout of those of bytes.
#[test]
fn bits_are_read_by_the_byte() {
    let bits =
        OperandTile { element: Operand::B1, extents: [ROWS, 1024], swizzle: Swizzle::B128, major: Major::K };
    let bytes = OperandTile { element: Operand::U8, extents: [ROWS, 128], ..bits };
    assert_eq!(bits.faults(), []);
    for i in 0..ROWS {
        for k in 0..1024 {
            assert_eq!(bits.offset(i, k), bytes.offset(i, k / 8));
        }
    }
    assert_eq!((0..4).map(|step| bits.advance_k(step)).collect::<Vec<_>>(), [0, 32, 64, 96]);
}
