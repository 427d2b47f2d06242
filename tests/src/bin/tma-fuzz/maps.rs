//! Tensor maps, sound and not.

use ptx_sim::TensorMap;
use ptx_sim::tensor_map::{Element, Fill, Interleave, Mode, Swizzle};

use crate::draw::Draw;

const ELEMENTS: [Element; 13] = [
    Element::U8,
    Element::U16,
    Element::U32,
    Element::I32,
    Element::U64,
    Element::I64,
    Element::F16,
    Element::Bf16,
    Element::F32,
    Element::F32Ftz,
    Element::F64,
    Element::Tf32,
    Element::Tf32Ftz,
];

const SWIZZLES: [Swizzle; 4] = [Swizzle::None, Swizzle::B32, Swizzle::B64, Swizzle::B128];

const INTERLEAVES: [Interleave; 3] = [Interleave::None, Interleave::B16, Interleave::B32];

/// A map in tiled mode that the launch takes, of a tensor in the `bytes` bytes at `address`.
pub(crate) fn sound(address: u64, bytes: u64, draw: &Draw) -> TensorMap {
    let element = *draw.one_of(&ELEMENTS);
    let size = u64::from(element.bytes());
    let swizzle = *draw.one_of(&SWIZZLES);
    let rank = 1 + draw.below(5);
    let units = draw.below(swizzle.span().unwrap_or(256) as usize / 16).max(1) as u64;
    let row = (units * 16 / size).min(256) as u32;
    let mut map = TensorMap {
        element,
        address,
        extents: vec![1 + draw.below(2 * row as usize) as u64],
        byte_strides: vec![],
        mode: Mode::Tiled { box_extents: vec![] },
        element_strides: vec![1],
        interleave: Interleave::None,
        swizzle,
        fill: if element.is_float() && draw.once_in(2) { Fill::Nan } else { Fill::Zeros },
    };
    let mut box_extents = vec![row];
    let mut stride = (map.extents[0] * size).next_multiple_of(16);
    for _ in 1..rank {
        // What is left for this dimension and those outside of it.
        let most = (bytes / stride).clamp(1, 9) as usize;
        let extent = 1 + draw.below(most) as u64;
        map.extents.push(extent);
        map.byte_strides.push(stride);
        box_extents.push(1 + draw.below(4) as u32);
        map.element_strides.push(1 + draw.below(2) as u32);
        stride *= extent;
    }
    map.mode = Mode::Tiled { box_extents };
    map
}

/// The same in im2col mode, which wants three dimensions at least; its numbers are likely, but not sure, to be taken.
fn column(mut map: TensorMap, draw: &Draw) -> TensorMap {
    let spatial = map.rank().saturating_sub(2);
    let corner = |_| draw.below(3) as i32 - 1;
    map.mode = Mode::Im2col {
        lower: (0..spatial).map(corner).collect(),
        upper: (0..spatial).map(corner).collect(),
        channels: draw.mostly(16 * (1 + draw.below(3)) as u64) as u32,
        pixels: draw.mostly(1 + draw.below(40) as u64) as u32,
    };
    map
}

/// A map with some of its parameters replaced by whatever numbers.
pub(crate) fn any(address: u64, bytes: u64, draw: &Draw) -> TensorMap {
    let mut map = sound(address, bytes, draw);
    if draw.once_in(4) {
        map = column(map, draw);
    }
    for _ in 0..draw.below(4) {
        let at = draw.below(map.rank());
        let number = draw.number();
        match draw.below(10) {
            0 => map.address = map.address.wrapping_add(number),
            1 => replace(&mut map.extents, at, number),
            2 => replace(&mut map.byte_strides, at, number),
            3 => match &mut map.mode {
                Mode::Tiled { box_extents } => replace(box_extents, at, number as u32),
                Mode::Im2col { lower, upper, .. } => {
                    replace(if draw.once_in(2) { lower } else { upper }, at, number as i32);
                }
            },
            4 => replace(&mut map.element_strides, at, number as u32),
            5 => map.swizzle = *draw.one_of(&SWIZZLES),
            6 => map.element = *draw.one_of(&ELEMENTS),
            7 => map.fill = Fill::Nan,
            8 => map.interleave = *draw.one_of(&INTERLEAVES),
            // A list that is too long or too short for the others.
            _ => match draw.below(4) {
                0 => map.extents.push(number),
                1 => drop(map.byte_strides.pop()),
                2 => map.mode = Mode::Tiled { box_extents: vec![16; at] },
                _ => map.element_strides.clear(),
            },
        }
    }
    map
}

fn replace<T>(list: &mut [T], at: usize, by: T) {
    list.iter_mut().skip(at).take(1).zip([by]).for_each(|(old, new)| *old = new);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sound_maps_pass_and_others_mostly_do_not() {
        let draw = Draw::new(3);
        for _ in 0..1000 {
            let map = sound(1 << 36, 1 << 14, &draw);
            assert_eq!(map.check(), Ok(()), "{map:#?}");
        }
        let passed = (0..1000).filter(|_| any(1 << 36, 1 << 14, &draw).check().is_ok()).count();
        assert!((200..800).contains(&passed), "{passed} of 1000 pass");
    }
}
