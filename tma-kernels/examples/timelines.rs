//! Writes the simulator's timelines of a GEMM and of attention, which have the names of traces of a
//! GPU: `gemm.json` and `attention.json`. `cargo tma timeline gemm.json --svg gemm.svg` draws one.

use std::path::PathBuf;

use ptx_sim::cli::write_timeline;
use ptx_sim::{Module, Report};
use tma_kernels::attention::{AttentionOptions, attention};
use tma_kernels::gemm::{Choice, Division, GemmOptions, Tile, gemm};
use tma_runtime::prelude::*;
use tma_runtime::spec::KernelSpec;

/// The events of a file. The first clusters have fewer.
const EVENTS: usize = 20_000;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // The kernel that a GPU runs for 4096 x 4096 x 4096. Here the matrices are smaller.
    let device = writing("gemm.json");
    let [a, b] = [(); 2].map(|()| device.zeros::<bf16, 2>([512, 1024]));
    let (a, b, mut c) = (a?, b?, device.zeros::<bf16, 2>([512, 512])?);
    let choice = Choice { tile: Tile::T128x256Cluster2x1, division: Division::Whole };
    let options = GemmOptions { transpose_b: true, choice: Some(choice), ..GemmOptions::default() };
    gemm(&device, &a, &b, &mut c, options)?;

    let device = writing("attention.json");
    let q = device.zeros::<bf16, 4>([1, 1, 256, 128])?;
    let [k, v] = [(); 2].map(|()| device.zeros::<bf16, 4>([1, 1, 1024, 128]));
    let mut o = device.zeros(q.shape())?;
    attention(&device, &q, &k?, &v?, &mut o, AttentionOptions::default())?;
    Ok(())
}

/// Returns a simulated device that writes the timeline of each launch to `file`.
fn writing(file: &'static str) -> Device {
    let write = move |kernel: &'static KernelSpec, report: &Report| {
        let written = Module::load(kernel.ptx).map_err(|error| error.to_string()).and_then(|module| {
            write_timeline(&PathBuf::from(file), kernel.name, &report.trace, &module.sources(|_| None))
        });
        match written {
            Ok(line) => print!("{line}"),
            Err(error) => eprintln!("{file}: {error}"),
        }
    };
    Device::simulator().reporting(EVENTS, write)
}
