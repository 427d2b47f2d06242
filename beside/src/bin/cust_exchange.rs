//! cust's context, stream and memory as ours, and ours as cust's; our PTX, launched by both. Needs
//! a GPU, and a `libcuda` to link with.

use anyhow::Context as _;
use tma_beside::{matrix, scale, scaled};
use tma_runtime::cust::context::Context;
use tma_runtime::cust::device::Device as Gpu;
use tma_runtime::cust::launch;
use tma_runtime::cust::memory::{CopyDestination, DeviceBuffer};
use tma_runtime::cust::stream::{Stream as Queue, StreamFlags};
use tma_runtime::launch::{self, Arg, Parameter};
use tma_runtime::prelude::*;

const SHAPE: [usize; 2] = [300, 132];

/// Our launch, with what cust made.
fn launch_ours(context: &Context, queue: Queue, host: &[f32]) -> anyhow::Result<Vec<f32>> {
    let device = Device::from_cust(context)?;
    let stream = Stream::from_cust(&device, queue)?;
    let src = DeviceTensor::from_cust(&device, DeviceBuffer::from_slice(host)?, SHAPE)?;
    let mut dst = device.zeros(SHAPE)?;
    scale::launch(&stream, scale::tiles_of_dst(SHAPE), &src, &mut dst, 2.5)?;
    // The tensor goes to cust, which copies it to the host after what is queued.
    let mut product = vec![0.0; host.len()];
    dst.into_cust::<f32>()?.copy_to(&mut product)?;
    Ok(product)
}

/// cust's launch of our PTX, with what we made.
fn launch_cust(device: &Device, host: &[f32]) -> anyhow::Result<Vec<f32>> {
    let (src, mut dst) = (device.tensor(host, SHAPE)?, device.zeros::<f32, 2>(SHAPE)?);
    let spec = &scale::SPEC;
    let args = [Arg::map(src.view()), Arg::map_mut(dst.view_mut()), Arg::scalar(2.5f32)];
    let parameters = launch::parameters(device, spec, &args)?;
    let [Parameter::Map(from), Parameter::Map(to), Parameter::Number(factor)] = parameters[..] else {
        anyhow::bail!("`scale` takes two tensor maps and a number");
    };
    let [columns, rows, planes] = scale::tiles_of_dst(SHAPE).blocks();
    let grid = (u32::try_from(columns)?, u32::try_from(rows)?, u32::try_from(planes)?);
    let ([x, y, z], bytes) = (spec.threads, spec.shared_bytes);

    let module = device.cust_module(spec)?;
    let function = module.get_function(spec.entry)?;
    let stream = device.stream()?;
    let queue = stream.as_cust().context("the device has no streams of cust's")?;
    // SAFETY: these are the kernel's parameters, and both tensors are alive until it has run.
    unsafe { launch!(function<<<grid, (x, y, z), bytes, queue>>>(from, to, factor))? };
    queue.synchronize()?;
    Ok(dst.to_vec()?)
}

fn main() -> anyhow::Result<()> {
    // A program of ours finds out first whether there is a GPU, and says what is missing.
    let device = Device::cuda(0)?;
    // cust's calls need a current context: this is the same one as the device's.
    let context = Context::new(Gpu::get_device(0)?)?;
    let queue = Queue::new(StreamFlags::DEFAULT, None)?;
    let host = matrix(SHAPE);
    let ours = launch_ours(&context, queue, &host)?;
    anyhow::ensure!(ours == scaled(&host, 2.5), "our product differs from plain Rust");
    let theirs = launch_cust(&device, &host)?;
    anyhow::ensure!(theirs == ours, "cust's product differs from ours");
    println!("{}: scaled 300 × 132 floats of cust's, and by cust, equal to plain Rust", device.name());
    Ok(())
}
