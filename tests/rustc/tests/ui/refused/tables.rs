//! Keys and launchers of another kernel, and arguments that the kernel does not take.

use tma_runtime::prelude::*;

#[tma_kernel(threads = 32, instances(T in [f32, f16], N in [4, 8], let M = N * 2))]
pub fn sums<T: TileElement, const N: u32, const M: u32>(rows: Global<T>, out: Global<f32>) {
    out.set(N, M as f32);
}

#[tma_kernel(threads = 32, instances(N in [4]))]
pub fn others<const N: u32>(out: Global<f32>) {
    out.set(N, 1.0);
}

fn launch(device: &Device, rows: &DeviceTensor<f32, 1>, out: &mut DeviceTensor<f32, 1>) -> Option<()> {
    sums::find::<f32>(sums::Key { n: 4, m: 8 })?;
    sums::find::<f32>(others::Key { n: 4 })?;
    sums::table().find::<others::Launcher<'_>>(others::Key { n: 4 })?;
    let launcher = sums::find::<f16>(sums::Key { n: 4 })?;
    launcher.launch(device, 1, rows, out).ok()
}

fn main() {}
