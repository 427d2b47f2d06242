//! Tensors of a safetensors file go to the device.

use std::{env, fs};

use anyhow::{Context, bail, ensure};
use safetensors::tensor::TensorView as Stored;
use safetensors::{Dtype, SafeTensors};
use tma_beside::{matrix, scale, scaled};
use tma_runtime::prelude::*;

/// Copies a stored matrix to the device. The format's numbers are little-endian.
fn to_device(device: &Device, stored: &Stored<'_>) -> anyhow::Result<DeviceTensor<f32, 2>> {
    let &[rows, cols] = stored.shape() else { bail!("a tensor of shape {:?} is no matrix", stored.shape()) };
    ensure!(stored.dtype() == Dtype::F32, "the elements are {:?}, not f32", stored.dtype());
    let (numbers, _) = stored.data().as_chunks();
    let elements: Vec<_> = numbers.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect();
    Ok(device.tensor(&elements, [rows, cols])?)
}

fn main() -> anyhow::Result<()> {
    let device = Device::open()?;
    let shape = [300, 132];
    let host = matrix(shape);

    // A file as another program would write it.
    let bytes: Vec<u8> = host.iter().flat_map(|x| x.to_le_bytes()).collect();
    let weight = Stored::new(Dtype::F32, shape.to_vec(), &bytes)?;
    let path = env::temp_dir().join(format!("tma-weights-{}.safetensors", std::process::id()));
    safetensors::serialize_to_file([("weight", weight)], None, &path)?;

    let file = fs::read(&path)?;
    fs::remove_file(&path)?;
    let tensors = SafeTensors::deserialize(&file)?;
    let src = to_device(&device, &tensors.tensor("weight").context("the file has no such tensor")?)?;
    let mut dst = device.zeros(src.shape())?;
    scale::launch(&device, scale::tiles_of_dst(dst.shape()), &src, &mut dst, 2.5)?;
    ensure!(dst.to_vec()? == scaled(&host, 2.5), "the product differs from plain Rust");
    println!("{}: scaled `weight` of a safetensors file, equal to plain Rust", device.name());
    Ok(())
}
