//! Buffers in simulated memory, and the kernel arguments that refer to them.

use std::fs;
use std::path::Path;

use ptx_sim::tensor_map::{Mode, TensorMap};
use ptx_sim::{Arg, GlobalMemory};

use super::arguments::{Argument, Buffer, Map, MapMode};
use super::npy::{self, Array};
use super::numbers::Type;

/// The most bytes of a buffer. The host's memory holds all of them.
const MOST_BYTES: u64 = 1 << 32;

/// A buffer in simulated memory.
#[derive(Clone, Debug)]
pub(crate) struct DeviceBuffer {
    pub(crate) address: u64,
    pub(crate) ty: Type,
    /// Extents, outermost first.
    pub(crate) shape: Vec<u64>,
    bytes: u64,
}

impl DeviceBuffer {
    /// Returns the length in elements.
    pub(crate) fn len(&self) -> u64 {
        self.bytes / self.ty.bytes() as u64
    }

    /// Returns the current contents.
    pub(crate) fn read(&self, memory: &GlobalMemory) -> Result<Array, String> {
        let mut bytes = zeroed(self.bytes)?;
        memory
            .read(self.address, &mut bytes)
            .map_err(|fault| format!("cannot read the buffer: {fault:?}"))?;
        Ok(Array { ty: self.ty, shape: self.shape.clone(), bytes })
    }
}

/// Allocates all buffers, those of `--buffer` before those of `--arg`, and returns them with the
/// arguments of the kernel.
///
/// # Errors
///
/// If a file holds no array, a buffer is too large, an index refers to no buffer, or a map is
/// larger than its buffer.
pub(crate) fn allocate(
    memory: &mut GlobalMemory,
    buffers: &[Buffer],
    arguments: &[Argument],
) -> Result<(Vec<DeviceBuffer>, Vec<Arg>), String> {
    let passed = arguments.iter().filter_map(|argument| match argument {
        Argument::Buffer(buffer) => Some(buffer),
        Argument::Scalar(_) | Argument::Address(_) | Argument::Length(_) | Argument::Map(_) => None,
    });
    let all = buffers.iter().chain(passed).map(|buffer| put(memory, buffer));
    let all = all.collect::<Result<Vec<_>, _>>()?;
    let mut next_passed = buffers.len();
    let args = arguments.iter().map(|argument| match argument {
        Argument::Scalar(bytes) => Ok(Arg::Bytes(bytes.clone())),
        Argument::Buffer(_) => {
            next_passed += 1;
            Ok(Arg::Address(find(&all, next_passed - 1)?.address))
        }
        Argument::Address(index) => Ok(Arg::Address(find(&all, *index)?.address)),
        Argument::Length(index) => Ok(Arg::Bytes(find(&all, *index)?.len().to_le_bytes().to_vec())),
        Argument::Map(map) => Ok(Arg::Map(tensor_map(find(&all, map.buffer)?, map)?)),
    });
    let args = args.collect::<Result<Vec<_>, String>>()?;
    Ok((all, args))
}

/// Returns the buffer with this index.
///
/// # Errors
///
/// If there are fewer buffers. The message says how many there are.
pub(crate) fn find(all: &[DeviceBuffer], index: usize) -> Result<&DeviceBuffer, String> {
    all.get(index)
        .ok_or_else(|| format!("there is no buffer {index}: there are {}, counted from 0", all.len()))
}

fn put(memory: &mut GlobalMemory, buffer: &Buffer) -> Result<DeviceBuffer, String> {
    let array = match buffer {
        Buffer::Zeros { ty, shape } => {
            let bytes = zeroed(count(*ty, shape)? * ty.bytes() as u64)?;
            Array { ty: *ty, shape: shape.clone(), bytes }
        }
        Buffer::Random { ty, shape, seed } => {
            let mut bytes = zeroed(count(*ty, shape)? * ty.bytes() as u64)?;
            ty.fill_randomly(&mut bytes, *seed);
            Array { ty: *ty, shape: shape.clone(), bytes }
        }
        Buffer::Npy(file) => load(file)?,
    };
    let bytes = array.bytes.len() as u64;
    let address = memory.allocate(bytes, true).ok_or("the buffers do not fit in global memory")?;
    memory
        .write(address, &array.bytes)
        .map_err(|fault| format!("a buffer does not fit in global memory: {fault:?}"))?;
    Ok(DeviceBuffer { address, ty: array.ty, shape: array.shape, bytes })
}

/// Returns a vector of this many zeros.
///
/// # Errors
///
/// If the host has no memory for them.
pub(crate) fn zeroed(count: u64) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    let length = usize::try_from(count).ok().filter(|length| bytes.try_reserve_exact(*length).is_ok());
    bytes.resize(length.ok_or_else(|| format!("out of host memory: cannot allocate {count} bytes"))?, 0);
    Ok(bytes)
}

fn load(file: &Path) -> Result<Array, String> {
    let bytes = fs::read(file).map_err(|error| format!("{}: {error}", file.display()))?;
    npy::read(&bytes).map_err(|error| format!("{}: {error}", file.display()))
}

/// Returns the number of elements of a new buffer.
fn count(ty: Type, shape: &[u64]) -> Result<u64, String> {
    let count = shape.iter().try_fold(1_u64, |count, extent| count.checked_mul(*extent));
    count.filter(|count| *count <= MOST_BYTES / ty.bytes() as u64).ok_or_else(|| {
        format!("a buffer of {shape:?} elements of type {} has more than {MOST_BYTES} bytes", ty.name())
    })
}

/// Builds the tensor map, with its innermost dimension first. The launch makes the checks that the
/// driver would make.
fn tensor_map(buffer: &DeviceBuffer, map: &Map) -> Result<TensorMap, String> {
    let rank = map.extents.len();
    let size = u64::from(map.interleave.slice().unwrap_or(map.element.bytes()));
    let overflow = || format!("the strides of the map of {:?} overflow 64 bits", map.extents);
    let strides = match &map.strides {
        Some(strides) => reversed(strides),
        None => dense(&map.extents).ok_or_else(overflow)?,
    };
    let byte_strides: Option<Vec<u64>> = strides.iter().map(|stride| stride.checked_mul(size)).collect();
    let byte_strides = byte_strides.ok_or_else(overflow)?;
    let extents = reversed(&map.extents);
    let mut end = size;
    for (stride, extent) in [size].iter().chain(&byte_strides).zip(&extents) {
        let span = extent.saturating_sub(1).checked_mul(*stride);
        end = span.and_then(|span| span.checked_add(end)).ok_or_else(overflow)?;
    }
    if end > buffer.bytes {
        return Err(format!(
            "the tensor of the map needs {end} bytes, but buffer {} has {}",
            map.buffer, buffer.bytes
        ));
    }
    Ok(TensorMap {
        element: map.element,
        address: buffer.address,
        extents,
        byte_strides,
        mode: mode(&map.mode),
        element_strides: map.steps.as_deref().map_or_else(|| vec![1; rank], reversed),
        interleave: map.interleave,
        swizzle: map.swizzle,
        fill: map.fill,
    })
}

fn mode(mode: &MapMode) -> Mode {
    match mode {
        MapMode::Box(extents) => Mode::Tiled { box_extents: reversed(extents) },
        MapMode::Column { pixels, channels, lower, upper } => Mode::Im2col {
            lower: reversed(lower),
            upper: reversed(upper),
            channels: *channels,
            pixels: *pixels,
        },
    }
}

fn reversed<T: Copy>(list: &[T]) -> Vec<T> {
    list.iter().rev().copied().collect()
}

/// Returns the strides of a dense tensor, innermost first, for all dimensions but the innermost.
/// The unit is the innermost element (or slice). `None` on overflow.
fn dense(extents: &[u64]) -> Option<Vec<u64>> {
    let inner = extents.iter().skip(1).rev();
    inner
        .scan(Some(1_u64), |stride, extent| {
            *stride = stride.and_then(|stride| stride.checked_mul(*extent));
            Some(*stride)
        })
        .collect()
}
