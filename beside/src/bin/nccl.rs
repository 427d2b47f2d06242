//! NCCL adds up the matrices of all GPUs, between kernels of ours. Needs a GPU, and `libnccl.so`.
//!
//! Each GPU multiplies its matrix by a weight, NCCL sums over the GPUs, and each divides by the sum
//! of the weights: all of it queued on one stream of cudarc's per GPU, without waiting in between.

use std::sync::Arc;

use cudarc::driver::{CudaContext, CudaSlice, CudaStream, DevicePtrMut};
use cudarc::nccl::result::NcclError;
use cudarc::nccl::safe::{Comm, ReduceOp, group_end, group_start};
use tma_beside::{matrix, scale};
use tma_runtime::prelude::*;

const SHAPE: [usize; 2] = [300, 132];

/// A GPU with a stream and a matrix of cudarc's.
struct Rank {
    device: Device,
    queue: Arc<CudaStream>,
    values: CudaSlice<f32>,
}

impl Rank {
    /// The matrix of rank `n` is the first one, `n + 1` times.
    fn new(ordinal: usize, device: Device) -> anyhow::Result<Self> {
        let queue = CudaContext::new(ordinal)?.new_stream()?;
        let times = (ordinal + 1) as f32;
        let host: Vec<f32> = matrix(SHAPE).iter().map(|x| x * times).collect();
        let values = queue.clone_htod(&host)?;
        Ok(Self { device, queue, values })
    }

    /// Queues `values = values × factor`: tiles are read before they are written.
    fn scale(&mut self, factor: f32) -> Result<(), Error> {
        let (address, _guard) = self.values.device_ptr_mut(&self.queue);
        let strides = [SHAPE[1], 1];
        // SAFETY: the slice is borrowed until the launch is queued; then cudarc orders what it does
        // with it after it. Each block loads its tile before it stores it, and no other.
        unsafe {
            let stream = Stream::from_raw(&self.device, self.queue.cu_stream().cast())?;
            let src = TensorView::from_raw_checked(&self.device, address, SHAPE, strides)?;
            let dst = TensorViewMut::from_raw_checked(&self.device, address, SHAPE, strides)?;
            scale::launch(&stream, scale::tiles_of_dst(SHAPE), src, dst, factor)
        }
    }
}

fn main() -> anyhow::Result<()> {
    let devices = Device::all_cuda()?;
    anyhow::ensure!(!devices.is_empty(), "this program needs a GPU, and the feature `cuda`");
    let ranks = devices.into_iter().enumerate().map(|(ordinal, device)| Rank::new(ordinal, device));
    let mut ranks = ranks.collect::<anyhow::Result<Vec<_>>>()?;
    let queues = ranks.iter().map(|rank| rank.queue.clone()).collect();
    let comms = Comm::from_devices(queues).map_err(failed)?;

    let weights: Vec<f32> = (1..=ranks.len()).map(|rank| rank as f32).collect();
    for (rank, weight) in ranks.iter_mut().zip(&weights) {
        rank.scale(*weight)?;
    }
    group_start().map_err(failed)?;
    for (rank, comm) in ranks.iter_mut().zip(&comms) {
        comm.all_reduce_in_place(&mut rank.values, &ReduceOp::Sum).map_err(failed)?;
    }
    group_end().map_err(failed)?;
    for rank in &mut ranks {
        rank.scale(1.0 / weights.iter().sum::<f32>())?;
    }

    // Rank `n` has `n + 1` times the first matrix, with the weight `n + 1`.
    let total: f32 = weights.iter().map(|weight| weight * weight).sum();
    let factor = 1.0 / weights.iter().sum::<f32>();
    let wanted: Vec<f32> = matrix(SHAPE).iter().map(|x| x * total * factor).collect();
    for rank in &ranks {
        let found = rank.queue.clone_dtoh(&rank.values)?;
        anyhow::ensure!(found == wanted, "the mean on {} differs from plain Rust", rank.device.id());
    }
    let (count, name) = (ranks.len(), ranks[0].device.name());
    println!("{name}: the weighted mean of {count} matrices on {count} GPUs by NCCL, equal to plain Rust");
    Ok(())
}

fn failed(error: NcclError) -> anyhow::Error {
    anyhow::anyhow!("NCCL: {error:?}")
}
