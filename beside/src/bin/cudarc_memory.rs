//! Memory and a stream of cudarc, and a launch of ours. Needs a GPU.

use cudarc::driver::{CudaContext, CudaSlice, CudaStream, DevicePtr, DevicePtrMut, DriverError};
use tma_beside::{matrix, scale, scaled};
use tma_runtime::prelude::*;

const DOUBLINGS: i32 = 40;

/// Queues `dst = src × factor` on the stream of cudarc's.
fn scale_slices(
    queue: &CudaStream,
    src: &CudaSlice<f32>,
    dst: &mut CudaSlice<f32>,
    shape: [usize; 2],
    factor: f32,
) -> Result<(), Error> {
    let device = Device::cuda(queue.context().ordinal() as u32)?;
    let strides = [shape[1], 1];
    // The guards tell cudarc that the slices are in use, so that its other streams wait.
    let (src, _reading) = src.device_ptr(queue);
    let (dst, _writing) = dst.device_ptr_mut(queue);
    // SAFETY: the slices are borrowed until the launch is queued; then cudarc orders what it does
    // with them after it. The stream outlives `stream`.
    unsafe {
        let stream = Stream::from_raw(&device, queue.cu_stream().cast())?;
        let src = TensorView::from_raw_checked(&device, src, shape, strides)?;
        let dst = TensorViewMut::from_raw_checked(&device, dst, shape, strides)?;
        scale::launch(&stream, scale::tiles_of_dst(shape), src, dst, factor)
    }
}

/// Our own tensors on a stream of cudarc's: copies to the host wait for it, although it was made
/// not to wait for the default stream. The launches take milliseconds, and the copy is asked for
/// before they have run.
fn doubled_often(queue: &CudaStream, host: &[f32], shape: [usize; 2]) -> Result<Vec<f32>, Error> {
    let device = Device::cuda(queue.context().ordinal() as u32)?;
    // SAFETY: the stream outlives `stream`.
    let stream = unsafe { Stream::from_raw(&device, queue.cu_stream().cast())? };
    let mut values = device.tensor(host, shape)?;
    let mut doubles = device.zeros(shape)?;
    for _ in 0..DOUBLINGS {
        scale::launch(&stream, scale::tiles_of_dst(shape), &values, &mut doubles, 2.0)?;
        scale::launch(&stream, scale::tiles_of_dst(shape), &doubles, &mut values, 1.0)?;
    }
    // What was queued is known after the stream is not.
    drop(stream);
    values.to_vec()
}

/// A context that is not the primary one, and its memory.
fn scale_in_another_context(host: &[f32], shape: [usize; 2]) -> anyhow::Result<Vec<f32>> {
    let context = CudaContext::new_non_primary(0, 0)?;
    // SAFETY: the device and its tensors are dropped before the context, at the end of this
    // function.
    let device = unsafe { Device::from_context(context.cu_ctx().cast())? };
    anyhow::ensure!(device.id() != Device::cuda(0)?.id(), "the contexts share their memory");
    let src = device.tensor(host, shape)?;
    let mut dst = device.zeros(shape)?;
    scale::launch(&device, scale::tiles_of_dst(shape), &src, &mut dst, 2.5)?;
    let product = dst.to_vec()?;
    let mut elsewhere = Device::cuda(0)?.zeros(shape)?;
    let refused = scale::launch(&device, scale::tiles_of_dst(shape), &src, &mut elsewhere, 2.5);
    anyhow::ensure!(refused.is_err_and(|error| error.code() == "TMA0514"), "memory of another context");
    Ok(product)
}

/// Arguments that the checks reject.
fn refusals(queue: &CudaStream, slice: &CudaSlice<f32>, host: &[f32]) -> anyhow::Result<()> {
    let device = Device::cuda(0)?;
    let (address, _guard) = slice.device_ptr(queue);
    let code = |address: u64, rows: usize| {
        // SAFETY: nothing is launched.
        let view = unsafe { TensorView::<f32, 2>::from_raw_checked(&device, address, [rows, 132], [132, 1]) };
        view.err().map(|error| error.code())
    };
    anyhow::ensure!(code(address, 300).is_none(), "cudarc's memory is refused");
    anyhow::ensure!(code(address, 1 << 30) == Some("TMA0542"), "memory beyond the allocation");
    anyhow::ensure!(code(address + 2, 1) == Some("TMA0564"), "an odd address");
    anyhow::ensure!(code(host.as_ptr().addr() as u64, 1) == Some("TMA0564"), "memory of the host");
    let other = CudaContext::new_non_primary(0, 0)?;
    let foreign = other.new_stream()?;
    // SAFETY: refused.
    let stream = unsafe { Stream::from_raw(&device, foreign.cu_stream().cast()) };
    anyhow::ensure!(stream.is_err_and(|error| error.code() == "TMA0564"), "a stream of another context");
    Ok(())
}

fn main() -> anyhow::Result<()> {
    // A program of ours finds out first whether there is a GPU: cudarc panics without a driver.
    let device = Device::cuda(0)?;
    let context = CudaContext::new(0)?;
    let queue = context.new_stream()?;
    let shape = [300, 132];
    let host = matrix(shape);

    let src = queue.clone_htod(&host)?;
    let mut dst = queue.alloc_zeros::<f32>(host.len())?;
    scale_slices(&queue, &src, &mut dst, shape, 2.5)?;
    let back: Result<Vec<f32>, DriverError> = queue.clone_dtoh(&dst);
    anyhow::ensure!(back? == scaled(&host, 2.5), "the product differs from plain Rust");

    let large = [4096, 4096];
    let found = doubled_often(&queue, &matrix(large), large)?;
    let wanted = scaled(&matrix(large), 2f32.powi(DOUBLINGS));
    anyhow::ensure!(found == wanted, "a copy did not wait for the stream");
    let elsewhere = scale_in_another_context(&host, shape)?;
    anyhow::ensure!(elsewhere == scaled(&host, 2.5), "the product of another context differs");
    refusals(&queue, &src, &host)?;
    println!("{}: scaled 300 × 132 floats of cudarc's in its stream, equal to plain Rust", device.name());
    Ok(())
}
