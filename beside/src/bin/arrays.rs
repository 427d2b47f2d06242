//! Matrices of `ndarray` go to the device and come back.

use ndarray::{Array2, ArrayView2, s};
use tma_beside::scale;
use tma_runtime::prelude::*;

/// Copies an array to the device, whatever its strides.
fn to_device(device: &Device, array: ArrayView2<'_, f32>) -> anyhow::Result<DeviceTensor<f32, 2>> {
    let rows = array.as_standard_layout();
    let (height, width) = rows.dim();
    let elements = rows.as_slice().ok_or_else(|| anyhow::anyhow!("the rows are not contiguous"))?;
    Ok(device.tensor(elements, [height, width])?)
}

/// Copies a tensor to an array.
fn to_array(tensor: &DeviceTensor<f32, 2>) -> anyhow::Result<Array2<f32>> {
    let [height, width] = tensor.shape();
    Ok(Array2::from_shape_vec((height, width), tensor.to_vec()?)?)
}

fn main() -> anyhow::Result<()> {
    let device = Device::open()?;
    let whole = Array2::from_shape_fn((264, 300), |(row, col)| (row + 2 * col) as f32);
    // A transposed half of it: the copy is row by row.
    let half = whole.slice(s![..132, ..]);
    let src = to_device(&device, half.t())?;
    let mut dst = device.zeros(src.shape())?;
    scale::launch(&device, scale::tiles_of_dst(dst.shape()), &src, &mut dst, 2.5)?;

    let wanted = half.t().map(|x| x * 2.5);
    anyhow::ensure!(to_array(&dst)? == wanted, "the product differs from ndarray's");
    println!("{}: scaled an array of 300 × 132, equal to ndarray", device.name());
    Ok(())
}
