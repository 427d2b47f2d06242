//! Interoperability with cust: contexts, streams, memory and modules in both directions.

use anyhow::{Context as _, ensure};
use tma_runtime::cust::context::legacy::{Context as Created, ContextFlags, ContextStack};
use tma_runtime::cust::context::{Context, CurrentContext};
use tma_runtime::cust::launch;
use tma_runtime::cust::memory::{CopyDestination, DeviceBuffer};
use tma_runtime::cust::stream::{Stream as Queue, StreamFlags};
use tma_runtime::launch::{self as launches, Arg, KernelParts, KernelSpec, Parameter};
use tma_runtime::prelude::*;

use super::runner::{Run, Test};
use crate::examples::tma_scale::tma_scale;

const SHAPE: [usize; 2] = [300, 132];
const FACTOR: f32 = 2.5;

/// Returns a test for each kind of object.
pub fn tests() -> Vec<Test> {
    let all: [(&str, Box<Run>); 6] = [
        ("contexts", Box::new(contexts)),
        ("streams", Box::new(streams)),
        ("foreign_streams", Box::new(foreign_streams)),
        ("memory", Box::new(memory)),
        ("shared_memory", Box::new(shared_memory)),
        ("modules", Box::new(modules)),
    ];
    all.into_iter().map(|(name, run)| Test { name: format!("exchange::{name}"), run }).collect()
}

fn matrix() -> Vec<f32> {
    (0..SHAPE[0] * SHAPE[1]).map(|i| i as f32 / 7.0).collect()
}

fn scaled(values: &[f32]) -> Vec<f32> {
    values.iter().map(|x| x * FACTOR).collect()
}

#[track_caller]
fn code<T>(result: Result<T, Error>) -> Option<&'static str> {
    result.err().map(|error| error.code())
}

/// Both sides use the primary context, which outlives cust's references.
fn contexts(device: &Device) -> anyhow::Result<()> {
    let ours = device.to_cust()?;
    ensure!(ours.as_raw().cast() == device.raw_context(), "another context was given");
    let current = CurrentContext::get_device()?;
    let theirs = Context::new(current)?;
    let taken = Device::from_cust(&theirs)?;
    ensure!(taken.id() == device.id(), "a context of cust's became {:?}", taken.id());
    drop((ours, theirs));
    let host = matrix();
    ensure!(taken.tensor(&host, SHAPE)?.to_vec()? == host, "the context was released");
    Ok(())
}

/// Launches of both sides are ordered on a stream that either of them made.
fn streams(device: &Device) -> anyhow::Result<()> {
    let _current = device.to_cust()?;
    let theirs = Stream::from_cust(device, Queue::new(StreamFlags::DEFAULT, None)?)?;
    for stream in [theirs, device.stream()?] {
        let host = matrix();
        let (src, mut between, mut dst) =
            (device.tensor(&host, SHAPE)?, device.zeros(SHAPE)?, device.zeros(SHAPE)?);
        tma_scale::launch(&stream, tma_scale::tiles_of_dst(SHAPE), &src, &mut between, FACTOR)?;
        launch_by_cust(device, &stream, &between, &mut dst)?;
        let queue = stream.as_cust().context("the stream is none of cust's")?;
        ensure!(queue.as_inner().cast() == stream.raw(), "another stream was given");
        queue.synchronize()?;
        ensure!(dst.to_vec()? == scaled(&scaled(&host)), "the launches went out of order");
    }
    Ok(())
}

/// Queues `dst = src × FACTOR` by a launch of cust.
fn launch_by_cust(
    device: &Device,
    stream: &Stream,
    src: &DeviceTensor<f32, 2>,
    dst: &mut DeviceTensor<f32, 2>,
) -> anyhow::Result<()> {
    let spec = &tma_scale::SPEC;
    let module = device.cust_module(spec)?;
    let function = module.get_function(spec.entry)?;
    let args = [Arg::map(src.view()), Arg::map_mut(dst.view_mut()), Arg::scalar(FACTOR)];
    let parameters = launches::parameters(device, spec, &args)?;
    let [Parameter::Map(from), Parameter::Map(to), Parameter::Number(factor)] = parameters[..] else {
        anyhow::bail!("the kernel takes two tensor maps and a number");
    };
    let blocks = tma_scale::tiles_of_dst(SHAPE).blocks();
    let [x, y, z] = blocks.map(|blocks| u32::try_from(blocks).unwrap_or(u32::MAX));
    let (threads, bytes) = (spec.threads, spec.shared_bytes);
    let queue = stream.as_cust().context("the stream is none of cust's")?;
    // SAFETY: the arguments match the kernel's parameters, and both tensors outlive the launch.
    unsafe {
        launch!(function<<<(x, y, z), (threads[0], threads[1], threads[2]), bytes, queue>>>(from, to, factor))?;
    }
    // The module is unloaded when it is dropped, so the kernel must have run by then.
    queue.synchronize()?;
    Ok(())
}

/// Streams of another context are refused. Streams of another library are not converted to cust's.
fn foreign_streams(device: &Device) -> anyhow::Result<()> {
    let _current = device.to_cust()?;
    let gpu = CurrentContext::get_device()?;
    let created = Created::create_and_push(ContextFlags::SCHED_AUTO, gpu)?;
    let queue = Queue::new(StreamFlags::DEFAULT, None)?;
    let refused = code(Stream::from_cust(device, queue));
    ContextStack::pop()?;
    drop(created);
    ensure!(refused == Some("TMA0564"), "a stream of another context: {refused:?}");
    // SAFETY: null is the default stream.
    let default = unsafe { Stream::from_raw(device, std::ptr::null_mut())? };
    ensure!(default.as_cust().is_none(), "the default stream is cust's");
    Ok(())
}

/// Memory moves from cust to a tensor and back, with its contents.
fn memory(device: &Device) -> anyhow::Result<()> {
    let _current = device.to_cust()?;
    let host = matrix();
    let buffer = DeviceBuffer::from_slice(&host)?;
    let address = buffer.as_device_ptr().as_raw();
    let src = DeviceTensor::<f32, 2>::from_cust(device, buffer, SHAPE)?;
    ensure!(src.as_ptr() == address && src.to_vec()? == host, "the buffer changed");
    let mut dst = device.zeros(SHAPE)?;
    tma_scale::launch(device, tma_scale::tiles_of_dst(SHAPE), &src, &mut dst, FACTOR)?;
    let (given, mut back) = (dst.into_cust::<f32>()?, vec![0f32; host.len()]);
    given.copy_to(&mut back)?;
    ensure!(back == scaled(&host), "the tensor changed");

    // SAFETY: the buffer outlives the launch, and nothing writes it.
    let view = unsafe {
        let address = given.as_device_ptr().as_raw();
        TensorView::<f32, 2>::from_raw_checked(device, address, SHAPE, [SHAPE[1], 1])?
    };
    let mut again = device.zeros(SHAPE)?;
    tma_scale::launch(device, tma_scale::tiles_of_dst(SHAPE), view, &mut again, FACTOR)?;
    ensure!(again.to_vec()? == scaled(&scaled(&host)), "a view of a buffer differs");

    let bits: Vec<u16> = (0..64).map(|i| f16::from_f32(i as f32).to_bits()).collect();
    let halves = DeviceTensor::<f16, 1>::from_cust(device, DeviceBuffer::from_slice(&bits)?, [64])?;
    ensure!(halves.to_vec()?[63] == f16::from_f32(63.0), "bits of a buffer are another number");
    let (given, mut back) = (halves.into_cust::<u16>()?, vec![0u16; 64]);
    given.copy_to(&mut back)?;
    ensure!(back == bits, "numbers of a tensor are other bits");

    let none = DeviceTensor::<f32, 2>::from_cust(device, DeviceBuffer::<f32>::from_slice(&[])?, [0, 132])?;
    ensure!(none.into_cust::<f32>()?.is_empty(), "a tensor without elements");
    let short = DeviceTensor::<f32, 2>::from_cust(device, DeviceBuffer::from_slice(&host)?, [299, 132]);
    ensure!(code(short) == Some("TMA0512"), "a buffer of another length");
    Ok(())
}

/// A graph keeps the memory of its tensors.
fn shared_memory(device: &Device) -> anyhow::Result<()> {
    let (src, mut dst) = (device.tensor(&matrix(), SHAPE)?, device.zeros(SHAPE)?);
    let stream = device.stream()?;
    let graph = stream.capture(|capture| {
        tma_scale::launch(capture, tma_scale::tiles_of_dst(SHAPE), &src, &mut dst, FACTOR)
    })?;
    let refused = code(src.into_cust::<f32>());
    ensure!(refused == Some("TMA0564"), "memory of a graph: {refused:?}");
    graph.launch(&stream)?;
    ensure!(dst.to_vec()? == scaled(&matrix()), "the graph lost its memory");
    drop(graph);
    dst.into_cust::<f32>()?;
    Ok(())
}

/// A module that cannot be loaded is an error with its code.
fn modules(device: &Device) -> anyhow::Result<()> {
    let refused = |change: fn(KernelParts) -> KernelParts| {
        // SAFETY: the kernel is never launched.
        let spec = unsafe { KernelSpec::from_parts(change(*tma_scale::SPEC.parts())) };
        code(device.cust_module(Box::leak(Box::new(spec))))
    };
    ensure!(refused(|parts| parts).is_none(), "the kernel is refused");
    let broken = refused(|parts| KernelParts { ptx: parts.ptx.replacen("ret;", "rte;", 1).leak(), ..parts });
    ensure!(broken == Some("TMA0606"), "broken PTX: {broken:?}");
    let missing = refused(|parts| KernelParts { entry: "nothing", ..parts });
    ensure!(missing == Some("TMA0614"), "a missing function: {missing:?}");
    let simulated = code(Device::simulator().cust_module(&tma_scale::SPEC));
    ensure!(simulated == Some("TMA0564"), "a module for the simulator: {simulated:?}");
    Ok(())
}
