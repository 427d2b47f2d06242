//! A tensor comes in by DLPack, is multiplied, and goes out by DLPack.
//!
//! On a GPU no element is copied. A simulated device gets a copy of tensors on the host, and gives
//! one.

use dlpark::legacy::Dlpack;
use tma_beside::dlpack::{export, import};
use tma_beside::{matrix, scale, scaled};
use tma_runtime::prelude::*;

/// `src × factor`, of whichever library the tensors are.
fn scale_dlpack(device: &Device, src: &Dlpack, factor: f32) -> anyhow::Result<Dlpack> {
    // SAFETY: `src` is borrowed until the kernel has run, and nobody writes it.
    let src = unsafe { import::<f32, 2>(device, &src.validate()?)? };
    let mut dst = device.zeros(src.shape())?;
    scale::launch(device, scale::tiles_of_dst(dst.shape()), &src, &mut dst, factor)?;
    device.synchronize()?;
    export(dst)
}

fn main() -> anyhow::Result<()> {
    let device = Device::open()?;
    let shape = [300, 132];
    let host = matrix(shape);
    let src = export(device.tensor(&host, shape)?)?;
    let product = scale_dlpack(&device, &src, 2.5)?;

    // As another library would read it.
    let tensor = product.validate()?;
    // SAFETY: the tensor is complete, and nobody else uses it.
    let product = unsafe { import::<f32, 2>(&device, &tensor)? };
    let mut copy = device.zeros(shape)?;
    scale::launch(&device, scale::tiles_of_dst(shape), &product, &mut copy, 1.0)?;
    anyhow::ensure!(copy.to_vec()? == scaled(&host, 2.5), "the product differs from plain Rust");
    println!("{}: 300 × 132 floats in and out by DLPack, equal to plain Rust", device.name());
    Ok(())
}
