//! Tensor maps, sound and not.

use arbitrary::{Result, Unstructured};
use ptx_sim::TensorMap;
use ptx_sim::tensor_map::{DataType, Fill, Interleave, Mode, Swizzle};

use crate::draw::{below, mostly, number, once_in};

const ELEMENTS: [DataType; 13] = [
    DataType::U8,
    DataType::U16,
    DataType::U32,
    DataType::I32,
    DataType::U64,
    DataType::I64,
    DataType::F16,
    DataType::Bf16,
    DataType::F32,
    DataType::F32Ftz,
    DataType::F64,
    DataType::Tf32,
    DataType::Tf32Ftz,
];

const SWIZZLES: [Swizzle; 4] = [Swizzle::None, Swizzle::B32, Swizzle::B64, Swizzle::B128];

const INTERLEAVES: [Interleave; 3] = [Interleave::None, Interleave::B16, Interleave::B32];

/// A map in tiled mode that a launch takes, of a tensor with `rank` dimensions in the `bytes` bytes
/// at `address`.
pub(crate) fn sound(address: u64, bytes: u64, rank: usize, u: &mut Unstructured<'_>) -> Result<TensorMap> {
    let element = *u.choose(&ELEMENTS)?;
    let size = u64::from(element.bytes());
    let swizzle = *u.choose(&SWIZZLES)?;
    let units = below(u, swizzle.span().unwrap_or(256) as usize / 16)?.max(1) as u64;
    let row = (units * 16 / size).min(256) as u32;
    let mut map = TensorMap {
        element,
        address,
        extents: vec![1 + below(u, 2 * row as usize)? as u64],
        byte_strides: vec![],
        mode: Mode::Tiled { box_extents: vec![] },
        element_strides: vec![1],
        interleave: Interleave::None,
        swizzle,
        fill: if element.is_float() && once_in(u, 2)? { Fill::Nan } else { Fill::Zeros },
    };
    let mut box_extents = vec![row];
    let mut stride = (map.extents[0] * size).next_multiple_of(16);
    for _ in 1..rank {
        // What is left for this dimension and those outside of it.
        let most = (bytes / stride).clamp(1, 9) as usize;
        let extent = 1 + below(u, most)? as u64;
        map.extents.push(extent);
        map.byte_strides.push(stride);
        box_extents.push(1 + below(u, 4)? as u32);
        map.element_strides.push(1 + below(u, 2)? as u32);
        stride *= extent;
    }
    map.mode = Mode::Tiled { box_extents };
    Ok(map)
}

/// The same in im2col mode, which wants three dimensions at least; its numbers are likely, but not
/// sure, to be taken.
fn column(mut map: TensorMap, u: &mut Unstructured<'_>) -> Result<TensorMap> {
    let spatial = map.rank().saturating_sub(2);
    let mut corner = |_| Ok(below(u, 3)? as i32 - 1);
    map.mode = Mode::Im2col {
        lower: (0..spatial).map(&mut corner).collect::<Result<_>>()?,
        upper: (0..spatial).map(&mut corner).collect::<Result<_>>()?,
        channels: 16 * (1 + below(u, 3)? as u32),
        pixels: 1 + below(u, 40)? as u32,
    };
    Ok(map)
}

/// A map of any rank with some of its parameters replaced by whatever numbers.
pub(crate) fn any(address: u64, bytes: u64, u: &mut Unstructured<'_>) -> Result<TensorMap> {
    let rank = 1 + below(u, 5)?;
    let mut map = sound(address, bytes, rank, u)?;
    if once_in(u, 4)? {
        map = column(map, u)?;
    }
    for _ in 0..below(u, 4)? {
        spoil(&mut map, u)?;
    }
    Ok(map)
}

fn spoil(map: &mut TensorMap, u: &mut Unstructured<'_>) -> Result<()> {
    let at = below(u, map.rank())?;
    let number = number(u)?;
    match below(u, 10)? {
        0 => map.address = map.address.wrapping_add(number),
        1 => replace(&mut map.extents, at, number),
        2 => replace(&mut map.byte_strides, at, number),
        3 => match &mut map.mode {
            Mode::Tiled { box_extents } => replace(box_extents, at, number as u32),
            Mode::Im2col { channels, .. } if once_in(u, 4)? => *channels = number as u32,
            Mode::Im2col { pixels, .. } if once_in(u, 4)? => *pixels = number as u32,
            Mode::Im2col { lower, upper, .. } => {
                replace(if once_in(u, 2)? { lower } else { upper }, at, number as i32);
            }
        },
        4 => replace(&mut map.element_strides, at, number as u32),
        5 => map.swizzle = *u.choose(&SWIZZLES)?,
        6 => map.element = *u.choose(&ELEMENTS)?,
        7 => map.fill = Fill::Nan,
        8 => map.interleave = *u.choose(&INTERLEAVES)?,
        // A list that is too long or too short for the others.
        _ => match below(u, 4)? {
            0 => map.extents.push(number),
            1 => drop(map.byte_strides.pop()),
            2 => map.mode = Mode::Tiled { box_extents: vec![16; at] },
            _ => map.element_strides.clear(),
        },
    }
    Ok(())
}

fn replace<T>(list: &mut [T], at: usize, by: T) {
    list.iter_mut().skip(at).take(1).zip([by]).for_each(|(old, new)| *old = new);
}

/// A coordinate: mostly of this tensor.
pub(crate) fn coordinate(u: &mut Unstructured<'_>, usual: usize) -> Result<u32> {
    let usual = below(u, usual)? as u64;
    Ok(mostly(u, usual)? as u32)
}
