//! Runs the kernel on the simulator under several seeds. A seed determines everything that the
//! hardware is free to choose: the order of warps, and the time at which copies land. A launch
//! fails on any mistake in the kernel that the compiler has not already rejected.

use new_package::scale;
use tma_runtime::testing::under_seeds;

#[test]
fn scale_doubles() -> anyhow::Result<()> {
    under_seeds(8, |device| -> anyhow::Result<()> {
        // No multiples of the tile: what lies outside of the tensor is neither read nor written.
        let shape = [50, 100];
        let host: Vec<f32> = (0..shape[0] * shape[1]).map(|i| i as f32).collect();
        let src = device.tensor(&host, shape)?;
        let mut dst = device.zeros(shape)?;
        scale::launch(device, scale::tiles_of_dst(shape), 2.0, &src, &mut dst)?;
        let wanted: Vec<f32> = host.iter().map(|x| 2.0 * x).collect();
        anyhow::ensure!(dst.to_vec()? == wanted, "a wrong result");
        Ok(())
    })?;
    Ok(())
}
