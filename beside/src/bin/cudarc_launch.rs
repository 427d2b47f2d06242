//! PTX of ours, loaded and launched by cudarc. Needs a GPU.
//!
//! `launch::parameters` checks the arguments and encodes the tensor maps, as our own launch does.

use std::mem::MaybeUninit;

use cudarc::driver::{CudaContext, DeviceRepr, LaunchConfig, PushKernelArg, sys};
use cudarc::nvrtc::Ptx;
use tma_beside::{matrix, scale, scaled};
use tma_runtime::launch::{self, Arg, Parameter};
use tma_runtime::map::Descriptor;
use tma_runtime::prelude::*;

/// A tensor map as an argument of cudarc's launches.
#[repr(transparent)]
struct Map(Descriptor);

// SAFETY: the 128 bytes are what a kernel's parameter holds.
unsafe impl DeviceRepr for Map {}

fn main() -> anyhow::Result<()> {
    let device = Device::cuda(0)?;
    let shape = [300, 132];
    let host = matrix(shape);
    let src = device.tensor(&host, shape)?;
    let mut dst = device.filled_bytes::<f32, 2>(shape, 0xff)?;

    let spec = &scale::SPEC;
    let args = [Arg::map(src.view()), Arg::map_mut(dst.view_mut()), Arg::scalar(2.5f32)];
    let parameters = launch::parameters(&device, spec, &args)?;
    let [Parameter::Map(from), Parameter::Map(to), Parameter::Number(factor)] = parameters[..] else {
        anyhow::bail!("`scale` takes two tensor maps and a number");
    };
    anyhow::ensure!(from == encoded_by_cudarc(src.as_ptr(), shape)?, "the driver encodes other bytes");

    let context = CudaContext::new(0)?;
    let queue = context.default_stream();
    let function = context.load_module(Ptx::from_src(spec.ptx))?.load_function(spec.entry)?;
    let attribute = sys::CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
    function.set_attribute(attribute, spec.shared_bytes as i32)?;
    let [x, y, z] = spec.threads;
    let [columns, rows, planes] = scale::tiles_of_dst(shape).blocks();
    let config = LaunchConfig {
        grid_dim: (u32::try_from(columns)?, u32::try_from(rows)?, u32::try_from(planes)?),
        block_dim: (x, y, z),
        shared_mem_bytes: spec.shared_bytes,
    };
    let (from, to) = (Map(from), Map(to));
    let mut builder = queue.launch_builder(&function);
    builder.arg(&from).arg(&to).arg(&factor);
    // SAFETY: these are the kernel's parameters, and both tensors are alive until it has run.
    unsafe { builder.launch(config)? };
    queue.synchronize()?;

    anyhow::ensure!(dst.to_vec()? == scaled(&host, 2.5), "the product differs from plain Rust");
    println!("{}: cudarc launched our PTX over 300 × 132 floats, equal to plain Rust", device.name());
    Ok(())
}

/// The tensor map of `scale`'s first parameter as the driver encodes it, asked for by hand.
fn encoded_by_cudarc(address: u64, [rows, cols]: [usize; 2]) -> anyhow::Result<Descriptor> {
    let mut map = MaybeUninit::<Descriptor>::zeroed();
    let extents = [cols as u64, rows as u64];
    let strides = [cols as u64 * 4];
    let (tile, steps) = ([32u32, 64], [1u32, 1]);
    // SAFETY: the lists have as many numbers as a matrix has dimensions, strides one fewer, and the
    // driver writes 128 bytes.
    unsafe {
        sys::cuTensorMapEncodeTiled(
            map.as_mut_ptr().cast(),
            sys::CUtensorMapDataType::CU_TENSOR_MAP_DATA_TYPE_FLOAT32,
            2,
            std::ptr::without_provenance_mut(address as usize),
            extents.as_ptr(),
            strides.as_ptr(),
            tile.as_ptr(),
            steps.as_ptr(),
            sys::CUtensorMapInterleave::CU_TENSOR_MAP_INTERLEAVE_NONE,
            sys::CUtensorMapSwizzle::CU_TENSOR_MAP_SWIZZLE_NONE,
            sys::CUtensorMapL2promotion::CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
            sys::CUtensorMapFloatOOBfill::CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE,
        )
        .result()?;
        Ok(map.assume_init())
    }
}
