//! Launches the kernel: on a GPU with the feature `cuda`, otherwise on the simulator.

use new_package::scale;
use tma_runtime::prelude::*;

fn main() -> anyhow::Result<()> {
    let device = Device::open()?;
    let shape = [100, 200];
    let host: Vec<f32> = (0..shape[0] * shape[1]).map(|i| i as f32).collect();
    let src = device.tensor(&host, shape)?;
    let mut dst = device.zeros(shape)?;
    scale::launch(&device, scale::tiles_of_dst(shape), 2.0, &src, &mut dst)?;
    let result = dst.to_vec()?;
    anyhow::ensure!(result.iter().zip(&host).all(|(y, x)| *y == 2.0 * x), "a wrong result");
    println!("{}: {} results as expected", device.name(), result.len());
    Ok(())
}
