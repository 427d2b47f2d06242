//! A kernel as a custom operation of candle, with its gradient.
//!
//! Tensors that candle has on the CPU are copied to the device and back. With the feature
//! `candle-cuda` the kernel also runs on candle's own GPU tensors, in candle's stream, without a
//! copy.

use candle_core::{CpuStorage, CustomOp1, DType, Layout, Shape, Tensor, Var, bail};
use tma_runtime::prelude::*;

/// `dst = src × factor`, one block per tile.
#[tma_kernel(threads = 128)]
pub fn scale(
    src: TensorMap<Tile<f32, Shape2<64, 32>>>,
    dst: TensorMap<Tile<f32, Shape2<64, 32>>>,
    factor: f32,
) {
    let tile: Tile<f32, Shape2<64, 32>> = shared();
    let full: Barrier = shared();
    let leader = thread_idx().x == 0;
    if leader {
        full.init(1);
        fence_barrier_init();
        full.arrive_expect_tx(tile.bytes());
        src.load(tile, src.block_tile(), full);
    }
    sync_threads();
    full.wait(0);
    for i in (thread_idx().x..64 * 32).step_by(128) {
        let element = [i / 32, i % 32];
        tile.set(element, tile.get(element) * factor);
    }
    fence_proxy_async();
    sync_threads();
    if leader {
        dst.store(dst.block_tile(), tile);
        bulk_commit_group();
        bulk_wait_group_read::<0>();
    }
}

/// Multiplies a matrix of `f32` by a number.
#[derive(Clone)]
struct Scale {
    /// Where tensors are multiplied that candle has on the CPU.
    device: Device,
    factor: f32,
}

impl CustomOp1 for Scale {
    fn name(&self) -> &'static str {
        "tma-scale"
    }

    fn cpu_fwd(&self, storage: &CpuStorage, layout: &Layout) -> candle_core::Result<(CpuStorage, Shape)> {
        let (rows, cols) = layout.shape().dims2()?;
        let (CpuStorage::F32(values), Some((start, end))) = (storage, layout.contiguous_offsets()) else {
            bail!("{} takes a contiguous matrix of f32: call `contiguous()` first", self.name());
        };
        let scaled = self.scaled(&values[start..end], [rows, cols]).map_err(candle_core::Error::wrap)?;
        Ok((CpuStorage::F32(scaled), layout.shape().clone()))
    }

    #[cfg(feature = "candle-cuda")]
    fn cuda_fwd(
        &self,
        storage: &candle_core::CudaStorage,
        layout: &Layout,
    ) -> candle_core::Result<(candle_core::CudaStorage, Shape)> {
        cuda::scaled(storage, layout, self.factor)
    }

    /// The gradient is multiplied by the same number.
    fn bwd(&self, _arg: &Tensor, _res: &Tensor, grad_res: &Tensor) -> candle_core::Result<Option<Tensor>> {
        Ok(Some(grad_res.contiguous()?.apply_op1(self.clone())?))
    }
}

impl Scale {
    fn scaled(&self, values: &[f32], shape: [usize; 2]) -> Result<Vec<f32>, Error> {
        let src = self.device.tensor(values, shape)?;
        let mut dst = self.device.zeros(shape)?;
        scale::launch(&self.device, scale::tiles_of_dst(shape), &src, &mut dst, self.factor)?;
        dst.to_vec()
    }
}

/// candle's own GPU tensors.
#[cfg(feature = "candle-cuda")]
mod cuda {
    use super::scale;
    use candle_core::backend::BackendStorage;
    use candle_core::{CudaStorage, Error, Layout, Shape};
    use cudarc::driver::{CudaSlice, CudaStream, DevicePtr, DevicePtrMut};
    use tma_runtime::{Device, Stream, TensorView, TensorViewMut};

    pub(super) fn scaled(
        storage: &CudaStorage,
        layout: &Layout,
        factor: f32,
    ) -> candle_core::Result<(CudaStorage, Shape)> {
        let (rows, cols) = layout.shape().dims2()?;
        let (candle, values) = (storage.device(), storage.as_cuda_slice::<f32>()?);
        // SAFETY: the kernel writes all elements before anything reads them.
        let mut result = unsafe { candle.alloc::<f32>(rows * cols)? };
        launch(&candle.cuda_stream(), (values, layout), &mut result, factor).map_err(Error::wrap)?;
        Ok((CudaStorage::wrap_cuda_slice(result, candle.clone()), layout.shape().clone()))
    }

    /// Queues the kernel on candle's stream.
    fn launch(
        queue: &CudaStream,
        (values, layout): (&CudaSlice<f32>, &Layout),
        result: &mut CudaSlice<f32>,
        factor: f32,
    ) -> Result<(), tma_runtime::Error> {
        let (shape, strides) =
            ([layout.dims()[0], layout.dims()[1]], [layout.stride()[0], layout.stride()[1]]);
        let device = Device::cuda(queue.context().ordinal() as u32)?;
        let offset = (layout.start_offset() * size_of::<f32>()) as u64;
        // They keep cudarc's tensors in order with other streams of cudarc's.
        let (src, _reading) = values.device_ptr(queue);
        let (dst, _writing) = result.device_ptr_mut(queue);
        // SAFETY: candle keeps both tensors and the stream. Nothing else uses the result, and its
        // memory is freed in the order of the stream.
        unsafe {
            let stream = Stream::from_raw(&device, queue.cu_stream().cast())?;
            let src = TensorView::from_raw_checked(&device, src + offset, shape, strides)?;
            let dst = TensorViewMut::from_raw_checked(&device, dst, shape, [shape[1], 1])?;
            scale::launch(&stream, scale::tiles_of_dst(shape), src, dst, factor)
        }
    }
}

fn main() -> anyhow::Result<()> {
    #[cfg(feature = "candle-cuda")]
    let candle = candle_core::Device::new_cuda(0)?;
    #[cfg(not(feature = "candle-cuda"))]
    let candle = candle_core::Device::Cpu;
    let device = Device::open()?;
    let operation = Scale { device: device.clone(), factor: 2.5 };

    let (rows, cols) = (300, 132);
    let host: Vec<f32> = (0..rows * cols).map(|i| (i % 1000) as f32).collect();
    let x = Var::from_vec(host.clone(), (rows, cols), &candle)?;
    let y = x.apply_op1(operation)?;
    let wanted: Vec<f32> = host.iter().map(|x| x * 2.5).collect();
    anyhow::ensure!(y.flatten_all()?.to_vec1::<f32>()? == wanted, "the product differs from plain Rust");

    let gradient = y.backward()?.remove(&x).ok_or_else(|| anyhow::anyhow!("there is no gradient"))?;
    anyhow::ensure!(gradient.dtype() == DType::F32 && gradient.dims2()? == (rows, cols));
    let gradient = gradient.flatten_all()?.to_vec1::<f32>()?;
    anyhow::ensure!(gradient.iter().all(|g| *g == 2.5), "the gradient is not the factor");
    println!(
        "{}: an operation of candle on {:?}: {rows} × {cols} floats and their gradients, equal to plain Rust",
        device.name(),
        candle.location(),
    );
    Ok(())
}
