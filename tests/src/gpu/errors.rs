//! Errors on the host, each of which must have its code and leave the device usable.

use anyhow::ensure;
use tma_runtime::launch::{Arg, KernelParts, KernelSpec, launch};
use tma_runtime::prelude::*;

use super::runner::Test;
use crate::examples::{tma_copy, tma_copy::tma_copy::SPEC};
use crate::kernels::bulk::bulk_tile;
use crate::kernels::clusters::cluster_kernels::{cluster_places, cluster_places_at_launch};
use crate::kernels::values::value_arrays;

/// A misuse that must be refused.
struct Misuse {
    name: &'static str,
    code: &'static str,
    run: fn(&Device) -> Result<(), Error>,
}

/// Returns a test for each misuse.
pub fn tests() -> Vec<Test> {
    let test = |misuse: &'static Misuse| Test {
        name: format!("errors::{}::{}", misuse.code, misuse.name),
        run: Box::new(|device| check(device, misuse)),
    };
    MISUSES.iter().map(test).collect()
}

fn check(device: &Device, misuse: &Misuse) -> anyhow::Result<()> {
    match (misuse.run)(device) {
        Ok(()) => anyhow::bail!("it was not refused"),
        Err(error) => ensure!(error.code() == misuse.code, "another error: {error}"),
    }
    let source = [f16::ONE; 512];
    let mut dst = device.filled_bytes([1, 512], 0xab)?;
    tma_copy::launch(device, &device.tensor(&source, [1, 512])?, &mut dst)?;
    ensure!(dst.to_vec()? == source, "the device does not work afterwards");
    Ok(())
}

const MISUSES: &[Misuse] = &[
    Misuse { name: "address", code: "TMA0501", run: |device| launch_view(device, 8, [4, 64], [64, 1]) },
    Misuse {
        name: "no_elements",
        code: "TMA0502",
        run: |device| {
            let mut dst = device.zeros([4, 64])?;
            tma_copy::tma_copy::launch(device, 1, &device.zeros([0, 64])?, &mut dst)
        },
    },
    Misuse { name: "stride", code: "TMA0503", run: |device| launch_view(device, 0, [4, 64], [68, 1]) },
    Misuse {
        name: "long_stride",
        code: "TMA0504",
        run: |device| launch_view(device, 0, [2, 64], [1 << 39, 1]),
    },
    Misuse { name: "inner_stride", code: "TMA0505", run: |device| launch_view(device, 0, [4, 32], [64, 2]) },
    Misuse {
        name: "overlap",
        code: "TMA0525",
        run: |device| {
            let (src, whole) = (device.zeros([4, 64])?, device.zeros::<f16, 2>([4, 64])?);
            // SAFETY: rows inside of `whole`, each of which shares half of its elements with the
            // next; refused before anything is written.
            let view = unsafe { TensorViewMut::<f16, 2>::from_raw(device, whole.as_ptr(), [4, 64], [32, 1]) };
            tma_copy::tma_copy::launch(device, 1, &src, view)
        },
    },
    Misuse {
        name: "gaps",
        code: "TMA0511",
        run: |device| {
            let (whole, mut out) = (device.zeros::<u32, 1>([128])?, device.zeros([64])?);
            // SAFETY: every second element of `whole`, which outlives the launch.
            let view = unsafe { TensorView::<u32, 1>::from_raw(device, whole.as_ptr(), [64], [2]) };
            value_arrays::launch(device, 1, view, &mut out)
        },
    },
    Misuse {
        name: "bulk_address",
        code: "TMA0531",
        run: |device| {
            let (whole, mut dst) = (device.zeros::<u32, 1>([256])?, device.zeros([8, 32])?);
            // SAFETY: a part of `whole`, which outlives the launch.
            let view = unsafe { TensorView::<u32, 1>::from_raw(device, whole.as_ptr() + 4, [128], [1]) };
            bulk_tile::launch(device, 1, view, &mut dst)
        },
    },
    Misuse { name: "host_slice", code: "TMA0512", run: |device| device.tensor(&[1u8, 2, 3], [4]).map(drop) },
    Misuse {
        name: "shapes",
        code: "TMA0513",
        run: |device| {
            let stream = device.stream()?;
            device.zeros::<u8, 2>([4, 2])?.copy_from_device(&device.zeros([2, 4])?, &stream)
        },
    },
    Misuse { name: "too_large", code: "TMA0515", run: |device| device.zeros::<f64, 1>([1 << 61]).map(drop) },
    Misuse {
        name: "arguments",
        code: "TMA0516",
        run: |device| launch(device, &SPEC, Grid::x(1), &[Arg::scalar(1u32)]),
    },
    Misuse {
        name: "written_by_reference",
        code: "TMA0526",
        run: |device| {
            let (src, dst) = (device.zeros::<f16, 2>([1, 64])?, device.zeros::<f16, 2>([1, 64])?);
            launch(device, &SPEC, Grid::x(1), &[Arg::map(src.view()), Arg::map(dst.view())])
        },
    },
    Misuse { name: "no_such_gpu", code: "TMA0602", run: |_| Device::cuda(10_000).map(drop) },
    Misuse {
        name: "another_architecture",
        code: "TMA0604",
        run: |device| {
            let other = if device.compute_capability().0 == 9 { "sm_100a" } else { "sm_90a" };
            launch_with(device, |parts| KernelParts { ptx: retargeted(parts.ptx, other), ..parts })
        },
    },
    Misuse {
        name: "no_code",
        code: "TMA0605",
        run: |device| launch_with(device, |parts| KernelParts { ptx: "// no code\n", ..parts }),
    },
    Misuse {
        name: "broken_code",
        code: "TMA0606",
        run: |device| {
            launch_with(device, |parts| KernelParts {
                ptx: parts.ptx.replacen("ret;", "rte;", 1).leak(),
                ..parts
            })
        },
    },
    Misuse { name: "memory", code: "TMA0609", run: |device| device.zeros::<u8, 1>([1 << 45]).map(drop) },
    Misuse { name: "grid_of_none", code: "TMA0610", run: |device| launch_grid(device, Grid::new(1, 0, 1)) },
    Misuse {
        name: "grid_too_high",
        code: "TMA0611",
        run: |device| launch_grid(device, Grid::new(1, 65_536, 1)),
    },
    Misuse {
        name: "shared_memory",
        code: "TMA0612",
        run: |device| launch_with(device, |parts| KernelParts { shared_bytes: 1 << 20, ..parts }),
    },
    Misuse {
        name: "another_entry",
        code: "TMA0614",
        run: |device| launch_with(device, |parts| KernelParts { entry: "nothing", ..parts }),
    },
    Misuse {
        name: "other_parameters",
        code: "TMA0620",
        run: |device| {
            launch_with(device, |parts| KernelParts {
                ptx: parts.ptx.replacen(".b8 tma_copy_param_1[128]", ".b8 tma_copy_param_1[256]", 1).leak(),
                ..parts
            })
        },
    },
    Misuse {
        name: "part_of_a_cluster",
        code: "TMA0621",
        run: |device| launch_cluster(device, 3, Some([2, 1, 1])),
    },
    Misuse {
        name: "large_cluster",
        code: "TMA0622",
        run: |device| launch_cluster(device, 16, Some([16, 1, 1])),
    },
    Misuse { name: "no_cluster", code: "TMA0623", run: |device| launch_cluster(device, 2, None) },
    Misuse {
        name: "cluster_of_another_size",
        code: "TMA0624",
        run: |device| {
            cluster_places::two::launch(device.with().cluster([4, 1, 1]), 4, &mut device.zeros([40])?)
        },
    },
];

/// Launches a copy from a view of this shape that starts `offset` bytes after an aligned address.
fn launch_view(device: &Device, offset: u64, shape: [usize; 2], strides: [usize; 2]) -> Result<(), Error> {
    let (whole, mut dst) = (device.zeros::<f16, 2>([8, 64])?, device.zeros([4, 64])?);
    // SAFETY: the view is inside of `whole`, or refused before anything is read.
    let view = unsafe { TensorView::<f16, 2>::from_raw(device, whole.as_ptr() + offset, shape, strides) };
    tma_copy::tma_copy::launch(device, 1, view, &mut dst)
}

fn launch_grid(device: &Device, grid: Grid) -> Result<(), Error> {
    let (src, mut dst) = (device.zeros::<f16, 2>([1, 64])?, device.zeros([1, 64])?);
    tma_copy::tma_copy::launch(device, grid, &src, &mut dst)
}

fn launch_cluster(device: &Device, blocks: u32, cluster: Option<[u32; 3]>) -> Result<(), Error> {
    let mut out = device.zeros([10 * blocks as usize])?;
    match cluster {
        Some(extents) => cluster_places_at_launch::launch(device.with().cluster(extents), blocks, &mut out),
        None => cluster_places_at_launch::launch(device, blocks, &mut out),
    }
}

/// Launches the copy with a changed specification.
fn launch_with(device: &Device, change: impl FnOnce(KernelParts) -> KernelParts) -> Result<(), Error> {
    // SAFETY: the spec is the copy's own, or is refused before it runs.
    let spec = unsafe { KernelSpec::from_parts(change(*SPEC.parts())) };
    let spec: &'static KernelSpec = Box::leak(Box::new(spec));
    let (src, mut dst) = (device.zeros::<f16, 2>([1, 64])?, device.zeros::<f16, 2>([1, 64])?);
    launch(device, spec, Grid::x(1), &[Arg::map(src.view()), Arg::map_mut(dst.view_mut())])
}

/// Returns the PTX with its target replaced.
fn retargeted(ptx: &str, target: &str) -> &'static str {
    let lines = ptx.lines().map(|line| match line.strip_prefix(".target ") {
        Some(_) => format!(".target {target}\n"),
        None => format!("{line}\n"),
    });
    lines.collect::<String>().leak()
}
