//! The encoding of a map as the 128 bytes of a descriptor, and the changes that `tensormap.replace`
//! makes to them.
//!
//! The layout of a GPU's descriptor is not documented, and this one need not agree with it: a
//! kernel that copies, changes and uses descriptors cannot tell the difference. Numbers are
//! little-endian, and dimension 0 comes first:
//!
//! | bytes | contents |
//! | --- | --- |
//! | 0 to 7 | `TMASIM`, 0, and the version of this table, 1 |
//! | 8 to 15 | global address |
//! | 16 to 47 | four strides, of dimensions 1 to 4, in bytes |
//! | 48 to 67 | five extents, less one |
//! | 68 to 77 | five box extents, less one; in im2col mode three lower corners, channels less one, pixels less one |
//! | 78 to 83 | in im2col mode, three upper corners |
//! | 84 to 88 | five element strides, less one |
//! | 89 to 95 | rank less one, mode (1 is im2col), element type, interleave, swizzle, fill, 0 |
//! | 96 to 127 | 0 |
//!
//! Storing values less one makes 128 zeros a map that only lacks its fields, as on a GPU, where
//! kernels build whole descriptors with `tensormap.replace` (CUDA Programming Guide, "Encoding a
//! tensor map on the device").

use super::{DESCRIPTOR_BYTES, DataType, Fill, Interleave, MAX_RANK, Mode, Swizzle, TensorMap};

/// The first bytes of every descriptor.
const MAGIC: [u8; 8] = *b"TMASIM\0\x01";

const ADDRESS: usize = 8;
const STRIDES: usize = 16;
const EXTENTS: usize = 48;
const BOX: usize = 68;
const UPPER: usize = 78;
const STEPS: usize = 84;
const RANK: usize = 89;
const MODE: usize = 90;
const ELEMENT: usize = 91;
const INTERLEAVE: usize = 92;
const SWIZZLE: usize = 93;
const FILL: usize = 94;
const END: usize = 95;

/// The bytes of a descriptor.
pub(crate) type Descriptor = [u8; DESCRIPTOR_BYTES];

/// A field that `tensormap.replace` changes. Dimensions are those of the PTX ISA's `ord`, from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Field {
    /// `.global_address`.
    GlobalAddress,
    /// `.rank`: the new value is the rank less one.
    Rank,
    /// `.box_dim` of a dimension.
    BoxDim(usize),
    /// `.global_dim` of a dimension.
    GlobalDim(usize),
    /// `.global_stride` in bytes. Index 0 is the stride of dimension 1.
    GlobalStride(usize),
    /// `.element_stride` of a dimension.
    ElementStride(usize),
    /// `.elemtype`.
    Elemtype,
    /// `.interleave_layout`.
    InterleaveLayout,
    /// `.swizzle_mode`.
    SwizzleMode,
    /// `.fill_mode`.
    FillMode,
}

fn put<const N: usize>(bytes: &mut Descriptor, at: usize, value: [u8; N]) {
    bytes[at..at + N].copy_from_slice(&value);
}

fn get<const N: usize>(bytes: &Descriptor, at: usize) -> [u8; N] {
    std::array::from_fn(|index| bytes[at + index])
}

/// Returns the offset of a dimension's number.
const fn field_offset(start: usize, size: usize, dimension: usize) -> usize {
    start + size * dimension
}

/// Writes the first `MAX_RANK` numbers of a list, less one, with `N` bytes each.
fn put_list<const N: usize>(bytes: &mut Descriptor, start: usize, list: impl Iterator<Item = u64>) {
    for (dimension, value) in list.take(MAX_RANK).enumerate() {
        let value = value.wrapping_sub(1).to_le_bytes();
        put::<N>(bytes, field_offset(start, N, dimension), std::array::from_fn(|index| value[index]));
    }
}

fn put_corners(bytes: &mut Descriptor, start: usize, corners: &[i32]) {
    for (spatial, &corner) in corners.iter().take(3).enumerate() {
        put(bytes, field_offset(start, 2, spatial), (corner as i16).to_le_bytes());
    }
}

fn corners(bytes: &Descriptor, start: usize, rank: usize) -> Vec<i32> {
    (0..rank.saturating_sub(2))
        .map(|spatial| i16::from_le_bytes(get(bytes, field_offset(start, 2, spatial))).into())
        .collect()
}

/// Encodes a map that [`check`](TensorMap::check) accepts, as the bytes of a kernel's parameter.
pub fn encode(map: &TensorMap) -> [u8; DESCRIPTOR_BYTES] {
    let mut bytes = [0; DESCRIPTOR_BYTES];
    put(&mut bytes, 0, MAGIC);
    put(&mut bytes, ADDRESS, map.address.to_le_bytes());
    for (index, stride) in map.byte_strides.iter().take(MAX_RANK - 1).enumerate() {
        put(&mut bytes, field_offset(STRIDES, 8, index), stride.to_le_bytes());
    }
    put_list::<4>(&mut bytes, EXTENTS, map.extents.iter().copied());
    put_list::<1>(&mut bytes, STEPS, map.element_strides.iter().map(|&step| step.into()));
    match &map.mode {
        Mode::Tiled { box_extents } => {
            put_list::<2>(&mut bytes, BOX, box_extents.iter().map(|&extent| extent.into()));
        }
        Mode::Im2col { lower, upper, channels, pixels } => {
            bytes[MODE] = 1;
            put_corners(&mut bytes, BOX, lower);
            put_corners(&mut bytes, UPPER, upper);
            put_list::<2>(
                &mut bytes,
                field_offset(BOX, 2, 3),
                [*channels, *pixels].map(u64::from).into_iter(),
            );
        }
    }
    bytes[RANK] = map.rank().saturating_sub(1) as u8;
    bytes[ELEMENT] = DataType::REPLACE.iter().position(|element| *element == map.element).unwrap_or(0) as u8;
    bytes[INTERLEAVE] = map.interleave as u8;
    bytes[SWIZZLE] = map.swizzle as u8;
    bytes[FILL] = map.fill as u8;
    bytes
}

/// Decodes the map in a descriptor without checking it. Returns `None` if the bytes are no
/// descriptor.
pub fn decode(bytes: &[u8; DESCRIPTOR_BYTES]) -> Option<TensorMap> {
    let rank = usize::from(bytes[RANK]) + 1;
    if !bytes.starts_with(&MAGIC) || rank > MAX_RANK || bytes[END..].iter().any(|byte| *byte != 0) {
        return None;
    }
    let short = |at| u32::from(u16::from_le_bytes(get(bytes, at))) + 1;
    let list = |start| (0..rank).map(|dimension| short(field_offset(start, 2, dimension))).collect();
    let mode = match bytes[MODE] {
        0 => Mode::Tiled { box_extents: list(BOX) },
        1 => Mode::Im2col {
            lower: corners(bytes, BOX, rank),
            upper: corners(bytes, UPPER, rank),
            channels: short(field_offset(BOX, 2, 3)),
            pixels: short(field_offset(BOX, 2, 4)),
        },
        _ => return None,
    };
    Some(TensorMap {
        element: *DataType::REPLACE.get(usize::from(bytes[ELEMENT]))?,
        address: u64::from_le_bytes(get(bytes, ADDRESS)),
        extents: (0..rank)
            .map(|dimension| {
                u64::from(u32::from_le_bytes(get(bytes, field_offset(EXTENTS, 4, dimension)))) + 1
            })
            .collect(),
        byte_strides: (0..rank - 1)
            .map(|index| u64::from_le_bytes(get(bytes, field_offset(STRIDES, 8, index))))
            .collect(),
        mode,
        element_strides: bytes[STEPS..STEPS + rank].iter().map(|&step| u32::from(step) + 1).collect(),
        interleave: match bytes[INTERLEAVE] {
            0 => Interleave::None,
            1 => Interleave::B16,
            2 => Interleave::B32,
            _ => return None,
        },
        swizzle: match bytes[SWIZZLE] {
            0 => Swizzle::None,
            1 => Swizzle::B32,
            2 => Swizzle::B64,
            3 => Swizzle::B128,
            _ => return None,
        },
        fill: match bytes[FILL] {
            0 => Fill::Zeros,
            1 => Fill::Nan,
            _ => return None,
        },
    })
}

/// Changes a field, as `tensormap.replace.tile` does. Values too wide for a field lose their upper
/// bits.
///
/// Fails with the reason if the bytes are neither a descriptor in tiled mode nor zeros.
pub(crate) fn replace(bytes: &mut Descriptor, field: Field, value: u64) -> Result<(), &'static str> {
    if bytes.iter().all(|byte| *byte == 0) {
        put(bytes, 0, MAGIC);
    } else if !bytes.starts_with(&MAGIC) {
        return Err("where there is neither a tensor map nor 128 zeros");
    } else if bytes[MODE] != 0 {
        return Err("where the tensor map is in im2col mode: `.tile` is the only mode that can be changed");
    }
    let less = value.wrapping_sub(1);
    match field {
        Field::GlobalAddress => put(bytes, ADDRESS, value.to_le_bytes()),
        Field::Rank => bytes[RANK] = value as u8,
        Field::BoxDim(dimension) => put(bytes, field_offset(BOX, 2, dimension), (less as u16).to_le_bytes()),
        Field::GlobalDim(dimension) => {
            put(bytes, field_offset(EXTENTS, 4, dimension), (less as u32).to_le_bytes());
        }
        Field::GlobalStride(index) => put(bytes, field_offset(STRIDES, 8, index), value.to_le_bytes()),
        Field::ElementStride(dimension) => bytes[field_offset(STEPS, 1, dimension)] = less as u8,
        Field::Elemtype => bytes[ELEMENT] = value as u8,
        Field::InterleaveLayout => bytes[INTERLEAVE] = value as u8,
        Field::SwizzleMode => bytes[SWIZZLE] = value as u8,
        Field::FillMode => bytes[FILL] = value as u8,
    }
    Ok(())
}

#[cfg(test)]
mod tests;
