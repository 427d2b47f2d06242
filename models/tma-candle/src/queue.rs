//! The devices and streams on which operations are queued: one of each device of candle.

use std::cell::{RefCell, RefMut};
use std::rc::Rc;
use std::sync::LazyLock;

use candle_core::{Device as CandleDevice, bail};
use tma_kernels::attention::AttentionWorkspace;
use tma_kernels::cached::CacheWorkspace;
use tma_kernels::gemm::Workspace;
use tma_kernels::model::GradientWorkspace;
use tma_runtime::prelude::*;

use crate::error::{Refused, Result};

/// The simulated device of tensors that candle has on the CPU.
static SIMULATOR: LazyLock<Device> = LazyLock::new(Device::simulator);

thread_local! {
    /// The queues that the thread has used. candle's default stream is another one on each thread.
    static QUEUES: RefCell<Vec<Rc<Queue>>> = const { RefCell::new(Vec::new()) };
}

/// A device and a stream of candle or cudarc, as kernels of this project take them, and the memory
/// that kernels reuse.
///
/// It is made when a thread first uses the stream, and kept, since a workspace belongs to one
/// stream and a stream of candle's to one thread.
#[derive(Debug)]
pub struct Queue {
    stream: Stream,
    gemm: RefCell<Workspace>,
    cached: RefCell<CacheWorkspace>,
    sums: RefCell<GradientWorkspace>,
    attention: RefCell<AttentionWorkspace>,
    /// The numbers from 0 on.
    counted: RefCell<Rc<DeviceTensor<u32, 1>>>,
    /// Keeps the stream alive. `None` on the simulator.
    #[cfg(feature = "cuda")]
    adopted: Option<std::sync::Arc<cudarc::driver::CudaStream>>,
}

impl Queue {
    /// Returns the queue of a device of candle: its stream or, for the CPU, a simulated device,
    /// which is the same one for all threads.
    ///
    /// # Errors
    ///
    /// Those of [`Device::cuda`] and [`Stream::from_raw`], and a device of Metal.
    pub fn of(device: &CandleDevice) -> Result<Rc<Self>> {
        match device {
            CandleDevice::Cpu => kept(Self::is_simulated, Self::simulated),
            #[cfg(feature = "cuda")]
            CandleDevice::Cuda(device) => Self::of_stream(&device.cuda_stream()),
            #[cfg(not(feature = "cuda"))]
            CandleDevice::Cuda(_) => bail!("tma-candle was built without its feature `cuda`: enable it"),
            CandleDevice::Metal(_) => {
                bail!("tma-candle has no kernels for Metal: move tensors to a GPU of CUDA")
            }
        }
    }

    /// Returns the queue of a stream of cudarc, which is kept until the thread ends. Use few
    /// streams.
    ///
    /// # Errors
    ///
    /// Those of [`Device::cuda`] and [`Stream::from_raw`].
    #[cfg(feature = "cuda")]
    pub fn of_stream(stream: &std::sync::Arc<cudarc::driver::CudaStream>) -> Result<Rc<Self>> {
        kept(
            |queue| {
                queue.adopted.as_ref().is_some_and(|adopted| {
                    adopted.cu_stream() == stream.cu_stream()
                        && adopted.context().cu_ctx() == stream.context().cu_ctx()
                })
            },
            || {
                let device = Device::cuda(stream.context().ordinal() as u32)?;
                // SAFETY: the queue keeps the stream, and drops its own handle first.
                let adopted = unsafe { Stream::from_raw(&device, stream.cu_stream().cast())? };
                Ok(Self { adopted: Some(stream.clone()), ..Self::on(adopted)? })
            },
        )
    }

    /// Returns the device.
    pub fn device(&self) -> &Device {
        self.stream.device()
    }

    /// Returns the stream, on which kernels can be queued between candle's.
    pub fn stream(&self) -> &Stream {
        &self.stream
    }

    /// Returns candle's or cudarc's stream.
    #[cfg(feature = "cuda")]
    pub(crate) fn adopted(&self) -> Result<&cudarc::driver::CudaStream> {
        match &self.adopted {
            Some(adopted) => Ok(adopted),
            None => bail!("tma-candle: a tensor on a GPU has the queue of the simulator"),
        }
    }

    /// Returns the memory for GEMMs whose sums are split.
    pub(crate) fn gemm_workspace(&self) -> RefMut<'_, Workspace> {
        self.gemm.borrow_mut()
    }

    /// Returns the memory for attention over a cache.
    pub(crate) fn cache_workspace(&self) -> RefMut<'_, CacheWorkspace> {
        self.cached.borrow_mut()
    }

    /// Returns the memory for gradients of norms, biases and embeddings.
    pub(crate) fn gradient_workspace(&self) -> RefMut<'_, GradientWorkspace> {
        self.sums.borrow_mut()
    }

    /// Returns the memory for gradients of attention.
    pub(crate) fn attention_workspace(&self) -> RefMut<'_, AttentionWorkspace> {
        self.attention.borrow_mut()
    }

    /// Returns a tensor of the numbers from 0 on, so many of them or more.
    pub(crate) fn counted(&self, least: usize) -> Result<Rc<DeviceTensor<u32, 1>>, Refused> {
        let mut counted = self.counted.borrow_mut();
        if counted.len() < least {
            let count = least.next_power_of_two().max(1024);
            let numbers: Vec<u32> = (0..count as u32).collect();
            *counted = Rc::new(self.device().tensor(&numbers, [count])?);
        }
        Ok(counted.clone())
    }

    fn is_simulated(&self) -> bool {
        #[cfg(feature = "cuda")]
        return self.adopted.is_none();
        #[cfg(not(feature = "cuda"))]
        return true;
    }

    fn simulated() -> Result<Self, Refused> {
        Self::on(SIMULATOR.stream()?)
    }

    fn on(stream: Stream) -> Result<Self, Refused> {
        let device = stream.device();
        Ok(Self {
            gemm: RefCell::new(Workspace::empty(device)?),
            cached: RefCell::new(CacheWorkspace::new(device)?),
            sums: RefCell::new(GradientWorkspace::new(device)?),
            attention: RefCell::new(AttentionWorkspace::new(device)?),
            counted: RefCell::new(Rc::new(device.zeros([0])?)),
            stream,
            #[cfg(feature = "cuda")]
            adopted: None,
        })
    }
}

/// Returns the thread's queue that is wanted, which is made if there is none.
fn kept(
    is_wanted: impl Fn(&Queue) -> bool,
    make: impl FnOnce() -> Result<Queue, Refused>,
) -> Result<Rc<Queue>> {
    let found = QUEUES.with_borrow(|queues| queues.iter().find(|queue| is_wanted(queue)).cloned());
    if let Some(found) = found {
        return Ok(found);
    }
    let made = Rc::new(make().map_err(|refused| refused.of("tma-candle"))?);
    QUEUES.with_borrow_mut(|queues| queues.push(made.clone()));
    Ok(made)
}
