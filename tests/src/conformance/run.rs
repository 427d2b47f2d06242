//! Runs a case and compares the result with plain Rust.

use tma_model::ReduceOp;
use tma_runtime::launch::{Arg, Fill, MapOptions, launch};
use tma_runtime::prelude::*;
use tma_runtime::spec::Scalar;

use super::reduce::Reduce;
use super::tile_positions::TilePositions;
use super::{Case, Operation};
use crate::compare::same;
use crate::random::{Sample, noise};

/// Calls a method for the case's rank.
macro_rules! by_rank {
    ($case:expr, $method:ident::<$T:ty>($($arg:expr),*)) => {
        match $case.rank() {
            1 => $case.$method::<$T, 1>($($arg),*),
            2 => $case.$method::<$T, 2>($($arg),*),
            3 => $case.$method::<$T, 3>($($arg),*),
            4 => $case.$method::<$T, 4>($($arg),*),
            _ => $case.$method::<$T, 5>($($arg),*),
        }
    };
}

impl Case {
    /// Runs the case.
    ///
    /// # Errors
    ///
    /// The error of the device, or the first element that differs from plain Rust.
    pub fn run(&self, device: &Device) -> anyhow::Result<()> {
        if let Operation::Columns(form) = self.operation {
            return self.run_columns(device, form);
        }
        if let Operation::Reduce(op) = self.operation {
            return match self.map.element {
                Scalar::U32 => by_rank!(self, reduce::<u32>(device, op)),
                Scalar::I32 => by_rank!(self, reduce::<i32>(device, op)),
                Scalar::U64 => by_rank!(self, reduce::<u64>(device, op)),
                Scalar::I64 => by_rank!(self, reduce::<i64>(device, op)),
                Scalar::F16 => by_rank!(self, reduce::<f16>(device, op)),
                Scalar::Bf16 => by_rank!(self, reduce::<bf16>(device, op)),
                Scalar::F32 => by_rank!(self, reduce::<f32>(device, op)),
                other => anyhow::bail!("no reductions of `{other}`"),
            };
        }
        match self.map.element {
            Scalar::U8 => by_rank!(self, copy::<u8>(device)),
            Scalar::U16 => by_rank!(self, copy::<u16>(device)),
            Scalar::U32 => by_rank!(self, copy::<u32>(device)),
            Scalar::I32 => by_rank!(self, copy::<i32>(device)),
            Scalar::U64 => by_rank!(self, copy::<u64>(device)),
            Scalar::I64 => by_rank!(self, copy::<i64>(device)),
            Scalar::F16 => by_rank!(self, copy::<f16>(device)),
            Scalar::Bf16 => by_rank!(self, copy::<bf16>(device)),
            Scalar::F32 => by_rank!(self, copy::<f32>(device)),
            Scalar::F64 => by_rank!(self, copy::<f64>(device)),
            Scalar::Tf32 => by_rank!(self, copy::<tf32>(device)),
            Scalar::E4m3 => by_rank!(self, copy::<e4m3>(device)),
            Scalar::E5m2 => by_rank!(self, copy::<e5m2>(device)),
            other => anyhow::bail!("tensor maps have no elements of type `{other}`"),
        }
    }

    fn copy<T: Sample, const N: usize>(&self, device: &Device) -> anyhow::Result<()> {
        let positions = TilePositions::<N>::new(&self.map, self.edge, self.operation.step());
        let (count, tile) = (positions.tensor.iter().product(), positions.tile_elements());
        let source = noise::<T>(401, count);
        let given = noise::<T>(402, tile);
        let options = self.options(&positions);
        // Each block of a cluster outputs what it received.
        let blocks = self.spec.cluster.most_blocks();

        let memory = device.tensor(&source, positions.tensor)?;
        let mut dst: DeviceTensor<T, N> = device.filled_bytes(positions.tensor, 0xab)?;
        let untouched = dst.to_vec()?;
        let mut seen: DeviceTensor<T, 1> = device.filled_bytes([tile * blocks as usize], 0xcd)?;
        let device_given = device.tensor(&given, [tile])?;
        // The loads' tensor ends one element before its rows do: loads are exact to the element.
        // SAFETY: a part of `memory`, which outlives the view and is only read.
        let src = unsafe {
            TensorView::<T, N>::from_raw(device, memory.as_ptr(), positions.loaded(), memory.view().strides())
        };
        let mut args = vec![Arg::map(src).with(options)];
        if self.operation == Operation::Multicast {
            args.push(Arg::global_mut(seen.slice_mut()));
        } else {
            let fill = Fill::Zeros;
            args.push(Arg::map_mut(dst.view_mut()).with(MapOptions { fill, ..options }));
            args.push(Arg::global_mut(seen.slice_mut()));
            args.push(Arg::global(device_given.slice()));
            args.push(Arg::scalar(self.how));
        }
        args.extend(positions.at.map(Arg::scalar));
        launch(device, self.spec, Grid::x(blocks), &args)?;

        match self.operation {
            Operation::Store | Operation::HintedStore | Operation::SteppedStore(_) => {
                let wanted = written(&positions, untouched, |_, i| Some(given[i]))?;
                same("the tensor", &dst.to_vec()?, &wanted)
            }
            Operation::Load
            | Operation::Prefetch
            | Operation::HintedLoad
            | Operation::SteppedLoad(_)
            | Operation::NanLoad
            | Operation::Multicast
            | Operation::Reduce(_)
            | Operation::Columns(_) => {
                let outside = match options.fill {
                    Fill::Zeros => T::default(),
                    Fill::Nan => T::nan().unwrap_or_default(),
                };
                let element = |i| positions.in_tensor(i, positions.loaded()).map_or(outside, |at| source[at]);
                let wanted: Vec<T> = (0..tile).map(element).collect();
                same("the tile", &seen.to_vec()?, &wanted.repeat(blocks as usize))
            }
        }
    }

    fn reduce<T: Reduce, const N: usize>(&self, device: &Device, op: ReduceOp) -> anyhow::Result<()> {
        let positions = TilePositions::<N>::new(&self.map, self.edge, 1);
        let count = positions.tensor.iter().product();
        let before: Vec<T> = (0..count).map(|i| T::operand(op, 403, i)).collect();
        let given: Vec<T> = (0..positions.tile_elements()).map(|i| T::operand(op, 404, i)).collect();

        let mut dst = device.tensor(&before, positions.tensor)?;
        let device_given = device.tensor(&given, [given.len()])?;
        let (dst_arg, given_arg) = (Arg::map_mut(dst.view_mut()), Arg::global(device_given.slice()));
        let mut args = vec![dst_arg, given_arg, Arg::scalar(self.how)];
        args.extend(positions.at.map(Arg::scalar));
        launch(device, self.spec, Grid::x(1), &args)?;

        let wanted = written(&positions, before, |old, i| old.reduced(op, given[i]))?;
        same("the tensor", &dst.to_vec()?, &wanted)
    }

    fn options<const N: usize>(&self, positions: &TilePositions<N>) -> MapOptions {
        let mut options = MapOptions::default();
        options.element_strides[..N].copy_from_slice(&positions.steps);
        if self.operation == Operation::NanLoad {
            options.fill = Fill::Nan;
        }
        options
    }
}

/// Returns the tensor with `element(old, i)` at the position of the tile's `i`-th element.
fn written<T: Sample, const N: usize>(
    positions: &TilePositions<N>,
    mut tensor: Vec<T>,
    element: impl Fn(T, usize) -> Option<T>,
) -> anyhow::Result<Vec<T>> {
    for i in 0..positions.tile_elements() {
        if let Some(at) = positions.in_tensor(i, positions.tensor) {
            tensor[at] = element(tensor[at], i).ok_or_else(|| anyhow::anyhow!("no such reduction"))?;
        }
    }
    Ok(tensor)
}
