//! Rows of a matrix are shared out to all GPUs, or to simulated devices where there are none.
//!
//! The code takes any number of devices. Each has a thread, which copies its rows, launches, and
//! copies the result back; a launch queues, so one thread could also serve them all.

use std::thread;

use tma_beside::{matrix, scale, scaled};
use tma_runtime::prelude::*;

/// `src × factor`, a share of the rows on each of the devices.
fn scale_rows(
    devices: &[Device],
    src: &[f32],
    [rows, cols]: [usize; 2],
    factor: f32,
) -> anyhow::Result<Vec<f32>> {
    let share = rows.div_ceil(devices.len().max(1)).max(1) * cols;
    let parts = thread::scope(|scope| {
        let work = devices.iter().zip(src.chunks(share));
        let threads = work.map(|(device, part)| scope.spawn(move || scale_part(device, part, cols, factor)));
        // All are started before the first is waited for.
        let threads: Vec<_> = threads.collect();
        let join = |thread: thread::ScopedJoinHandle<'_, _>| {
            thread.join().unwrap_or_else(|_| Err(anyhow::anyhow!("a thread panicked")))
        };
        threads.into_iter().map(join).collect::<anyhow::Result<Vec<_>>>()
    })?;
    Ok(parts.concat())
}

fn scale_part(device: &Device, part: &[f32], cols: usize, factor: f32) -> anyhow::Result<Vec<f32>> {
    let shape = [part.len() / cols, cols];
    let src = device.tensor(part, shape)?;
    let mut dst = device.zeros(shape)?;
    scale::launch(device, scale::tiles_of_dst(shape), &src, &mut dst, factor)?;
    Ok(dst.to_vec()?)
}

fn main() -> anyhow::Result<()> {
    let mut devices = Device::all_cuda()?;
    if devices.is_empty() {
        devices = (0..3).map(|_| Device::simulator()).collect();
    }
    let shape = [1000, 132];
    let host = matrix(shape);
    // One, two, and so on to all of them.
    for count in 1..=devices.len() {
        let found = scale_rows(&devices[..count], &host, shape, 2.5)?;
        anyhow::ensure!(
            found == scaled(&host, 2.5),
            "on {count} devices the product differs from plain Rust"
        );
    }
    let (count, name) = (devices.len(), devices[0].name());
    println!("{name}: scaled 1000 × 132 floats on 1 to {count} devices, equal to plain Rust");
    Ok(())
}
