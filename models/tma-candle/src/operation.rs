//! Operations: kernels on the memory of candle's tensors.
//!
//! A tensor's storage is behind a lock, and several tensors may share one. An operation takes the
//! lock of each storage once, in the order of their addresses, as candle does: for reading, or for
//! writing if a kernel updates a tensor where it is.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

#[cfg(feature = "cuda")]
use candle_core::CudaStorage;
use candle_core::layout::LayoutRelation;
use candle_core::op::BackpropOp;
use candle_core::{
    CpuStorage, Device as CandleDevice, Error, InplaceOp1, Layout, Shape, Storage, Tensor, bail,
};
use tma_runtime::prelude::*;

use crate::backward::{Backward, Finished};
use crate::error::{Refused, Result};
use crate::memory::{Block, Copied, Element, collapsed, is_supported};
use crate::queue::Queue;

/// A tensor, and its name in messages.
pub(crate) type Argument<'a> = (&'static str, &'a Tensor);

/// An operation and its tensors.
pub(crate) struct Operation<'a> {
    pub(crate) name: &'static str,
    /// The tensors that are read. There is at least one.
    pub(crate) inputs: &'a [Argument<'a>],
    /// The tensors that are changed where they are.
    pub(crate) updated: &'a [Argument<'a>],
    /// Whether kernels may leave elements of the result, which are zeros then.
    pub(crate) is_partial: bool,
    /// The gradients of the inputs.
    pub(crate) backward: Backward,
}

impl<'a> Operation<'a> {
    /// Returns an operation that changes none of its tensors, and has no gradient.
    pub(crate) fn new(name: &'static str, inputs: &'a [Argument<'a>]) -> Self {
        let backward = Backward::Unsupported("it is for inference");
        Self { name, inputs, updated: &[], is_partial: false, backward }
    }

    /// Sets the gradients of the inputs, of which there are at most three.
    pub(crate) fn with_backward(self, backward: Backward) -> Self {
        Self { backward, ..self }
    }

    /// Checks the number of dimensions of an input.
    pub(crate) fn check_rank(&self, name: &str, dimensions: &[&str]) -> Result<()> {
        match self.inputs.iter().find(|(of_input, _)| *of_input == name) {
            Some((_, tensor)) if tensor.rank() != dimensions.len() => bail!(
                "{}: `{name}` must be {}, but is {:?}; call `reshape`",
                self.name,
                dimensions.join(" × "),
                tensor.dims()
            ),
            Some(_) | None => Ok(()),
        }
    }

    /// Queues the kernels of `queue`, and returns their result, a contiguous tensor of this shape.
    ///
    /// If one of the tensors has a gradient, so has the result, by [`Operation::backward`].
    pub(crate) fn run<T: Element>(
        &self,
        shape: impl Into<Shape>,
        queue: impl Fn(&Call<'_>) -> Result<(), Refused>,
    ) -> Result<Tensor> {
        let shape = shape.into();
        let device = self.device()?;
        self.check_gradients()?;
        let keys: Vec<usize> = self.arguments().map(|(_, tensor)| key(tensor)).collect();
        self.check_aliases(&keys)?;
        let mut storages: Vec<(usize, usize)> = keys.iter().copied().zip(0..).collect();
        storages.sort_unstable();
        storages.dedup_by_key(|(key, _)| *key);
        let call = Call {
            operation: self,
            on: Queue::of(&device)?,
            blocks: RefCell::new(vec![Block::default(); keys.len()]),
            shape: &shape,
            output: Cell::default(),
        };
        let result = Cell::new(None);
        let launch = || {
            let storage =
                allocate::<T>(&device, &call, || queue(&call).map_err(|refused| self.error(refused)))?;
            result.set(Some(storage));
            Ok(())
        };
        Locks { call: &call, keys: &keys, storages: &storages, launch: &launch }.take()?;
        let Some(storage) = result.take() else { bail!("{}: the result was not computed", self.name) };
        match self.inputs.iter().find(|(_, tensor)| tensor.track_op()) {
            None => Ok(Tensor::from_storage(storage, shape, BackpropOp::none(), false)),
            Some(tracked) => Finished::new(self, (storage, shape)).of(self.inputs, tracked),
        }
    }

    fn arguments(&self) -> impl Iterator<Item = &Argument<'a>> {
        self.inputs.iter().chain(self.updated)
    }

    /// Returns the device of all tensors, whose elements have types of kernels.
    fn device(&self) -> Result<CandleDevice> {
        let Some((first, tensor)) = self.arguments().next() else { bail!("{}: no tensors", self.name) };
        let device = tensor.device();
        for (name, other) in self.arguments() {
            if !is_supported(other.dtype()) {
                bail!("{}: no kernel takes `{name}` of {:?}; call `to_dtype`", self.name, other.dtype())
            }
            let [here, there] = [device, other.device()].map(CandleDevice::location);
            if here != there {
                bail!(
                    "{}: all tensors must be on one device: `{first}` is on {here:?} and `{name}` on {there:?}; call \
                     `to_device`",
                    self.name
                )
            }
        }
        Ok(device.clone())
    }

    /// Checks that no gradient is wanted of tensors that are changed where they are, of which
    /// candle would know nothing, or of an operation without gradients that changes some.
    fn check_gradients(&self) -> Result<()> {
        let inputs = match self.backward {
            Backward::Unsupported(_) if !self.updated.is_empty() => self.inputs,
            _ => &[],
        };
        match inputs.iter().chain(self.updated).find(|(_, tensor)| tensor.track_op()) {
            Some((name, _)) => {
                bail!("{}: `{name}` has a gradient, and the operation has none; call `detach`", self.name)
            }
            None => Ok(()),
        }
    }

    /// Checks that tensors which are changed share no elements with others.
    fn check_aliases(&self, keys: &[usize]) -> Result<()> {
        for (i, (name, tensor)) in self.updated.iter().enumerate() {
            let i = self.inputs.len() + i;
            for (j, (other_name, other)) in self.arguments().enumerate().take(i) {
                let shares = keys[i] == keys[j]
                    && Layout::relation(tensor.layout(), other.layout()) != LayoutRelation::Disjoint;
                if shares {
                    bail!(
                        "{}: `{name}` is changed, and must share no memory with `{other_name}`; call `copy`",
                        self.name
                    )
                }
            }
        }
        Ok(())
    }

    /// Returns candle's error.
    fn error(&self, refused: Refused) -> Error {
        let is_part =
            |(_, tensor): &Argument<'_>| !tensor.is_contiguous() || tensor.layout().start_offset() > 0;
        if self.arguments().any(is_part) { refused.with_copy() } else { refused }.of(self.name)
    }
}

/// Returns the identity of a storage.
fn key(tensor: &Tensor) -> usize {
    let (storage, _) = tensor.storage_and_layout();
    std::ptr::from_ref::<Storage>(&storage).addr()
}

/// The locks that are yet to be taken before the launch.
#[derive(Clone, Copy)]
struct Locks<'a> {
    call: &'a Call<'a>,
    /// The storage of each argument.
    keys: &'a [usize],
    /// Storages in their order, each with an argument that has it.
    storages: &'a [(usize, usize)],
    launch: &'a dyn Fn() -> Result<()>,
}

impl Locks<'_> {
    /// Takes the next lock, and all others while it is held, and launches.
    fn take(self) -> Result<()> {
        let Some(((key, argument), storages)) = self.storages.split_first() else { return (self.launch)() };
        let operation = self.call.operation;
        let rest = Self { storages, ..self };
        // candle refuses to change a tensor without elements, since its strides may be 0.
        let is_written =
            |((_, tensor), of_tensor): &(&Argument<'_>, &usize)| *of_tensor == key && tensor.elem_count() > 0;
        let mut updated = operation.updated.iter().zip(&self.keys[operation.inputs.len()..]);
        if let Some(((_, tensor), _)) = updated.find(is_written) {
            return tensor.inplace_op1(&Written { key: *key, rest });
        }
        let Some((_, tensor)) = operation.arguments().nth(*argument) else {
            bail!("{}: a storage has no tensor", operation.name)
        };
        let (storage, _) = tensor.storage_and_layout();
        match &*storage {
            Storage::Cpu(storage) => {
                let copied = Copied::of(self.call.on.device(), storage).map_err(|r| operation.error(r))?;
                rest.with(*key, copied.block())
            }
            #[cfg(feature = "cuda")]
            Storage::Cuda(storage) => {
                let (block, _guard) = crate::memory::lent(storage, self.call.on.adopted()?)?;
                rest.with(*key, block)
            }
            #[cfg(not(feature = "cuda"))]
            Storage::Cuda(_) => Err(Error::NotCompiledWithCudaSupport),
            Storage::Metal(_) => Err(Error::NotCompiledWithMetalSupport),
        }
    }

    /// Takes the other locks, with the memory of this storage.
    fn with(self, key: usize, block: Block) -> Result<()> {
        for (of_argument, slot) in self.keys.iter().zip(self.call.blocks.borrow_mut().iter_mut()) {
            if *of_argument == key {
                *slot = block;
            }
        }
        self.take()
    }
}

/// A storage that is changed.
struct Written<'a> {
    key: usize,
    /// The locks that are taken after it.
    rest: Locks<'a>,
}

impl InplaceOp1 for Written<'_> {
    fn name(&self) -> &'static str {
        self.rest.call.operation.name
    }

    fn cpu_fwd(&self, storage: &mut CpuStorage, _layout: &Layout) -> Result<()> {
        let Call { operation, on, .. } = self.rest.call;
        let copied = Copied::of(on.device(), storage).map_err(|refused| operation.error(refused))?;
        self.rest.with(self.key, copied.block())?;
        *storage = copied.to_storage().map_err(|refused| operation.error(refused))?;
        Ok(())
    }

    #[cfg(feature = "cuda")]
    fn cuda_fwd(&self, storage: &mut CudaStorage, _layout: &Layout) -> Result<()> {
        let (block, _guard) = crate::memory::lent_mut(storage, self.rest.call.on.adopted()?)?;
        self.rest.with(self.key, block)
    }
}

/// Allocates the result, launches, and returns it.
fn allocate<T: Element>(
    device: &CandleDevice,
    call: &Call<'_>,
    launch: impl Fn() -> Result<()>,
) -> Result<Storage> {
    let elements = call.shape.elem_count();
    match device {
        CandleDevice::Cpu => {
            let failed = |error: tma_runtime::Error| call.operation.error(error.into());
            // Kernels write all elements: a test would see the NaNs that they leave.
            let byte = if call.operation.is_partial { 0 } else { 0xff };
            let tensor = call.on.device().filled_bytes::<T, 1>([elements], byte).map_err(failed)?;
            call.output.set(Some(Block { address: tensor.as_ptr(), elements }));
            launch()?;
            Ok(Storage::Cpu(T::to_cpu_storage_owned(tensor.to_vec().map_err(failed)?)))
        }
        #[cfg(feature = "cuda")]
        CandleDevice::Cuda(device) => {
            use cudarc::driver::DevicePtrMut;

            let mut slice = match call.operation.is_partial {
                true => device.alloc_zeros::<T>(elements.max(1))?,
                // SAFETY: the kernels write all elements.
                false => unsafe { device.alloc::<T>(elements.max(1))? },
            };
            let (address, guard) = slice.device_ptr_mut(call.on.adopted()?);
            call.output.set(Some(Block { address, elements }));
            launch()?;
            drop(guard);
            Ok(Storage::Cuda(CudaStorage::wrap_cuda_slice(slice, device.clone())))
        }
        #[cfg(not(feature = "cuda"))]
        CandleDevice::Cuda(_) => Err(Error::NotCompiledWithCudaSupport),
        CandleDevice::Metal(_) => Err(Error::NotCompiledWithMetalSupport),
    }
}

/// An operation whose tensors have memory on the device.
pub(crate) struct Call<'a> {
    operation: &'a Operation<'a>,
    on: Rc<Queue>,
    /// The memory of each argument's storage.
    blocks: RefCell<Vec<Block>>,
    /// The shape of the result.
    shape: &'a Shape,
    /// The memory of the result, until its view is taken.
    output: Cell<Option<Block>>,
}

impl Call<'_> {
    /// Returns the queue.
    pub(crate) fn queue(&self) -> &Queue {
        &self.on
    }

    /// Returns the stream.
    pub(crate) fn on(&self) -> &Stream {
        self.on.stream()
    }

    /// Returns a tensor that is read, with `N` dimensions: the first ones merged, or ones in front.
    pub(crate) fn input<T: Element, const N: usize>(
        &self,
        name: &'static str,
    ) -> Result<TensorView<'_, T, N>, Refused> {
        match self.optional(name)? {
            Some(view) => Ok(view),
            None => Err(self.missing(name)),
        }
    }

    /// Returns the same of a tensor that there may be.
    pub(crate) fn optional<T: Element, const N: usize>(
        &self,
        name: &'static str,
    ) -> Result<Option<TensorView<'_, T, N>>, Refused> {
        let Some(i) = self.operation.inputs.iter().position(|(of_input, _)| *of_input == name) else {
            return Ok(None);
        };
        let tensor = self.operation.inputs[i].1;
        let (shape, strides) = self.checked::<T, N>(name, tensor)?;
        let Block { address, elements } = self.blocks.borrow()[i].from::<T>(tensor.layout().start_offset());
        // SAFETY: the storage has so many elements, and is locked until the kernels are queued. On
        // a GPU they run before any work that candle queues later.
        let all = unsafe { TensorView::<T, 1>::from_raw(self.on.device(), address, [elements], [1]) };
        Ok(Some(all.with_strides(shape, strides)?))
    }

    /// Returns a tensor that is changed. It is called once for each.
    pub(crate) fn updated<T: Element, const N: usize>(
        &self,
        name: &'static str,
    ) -> Result<TensorViewMut<'_, T, N>, Refused> {
        let found = self.operation.updated.iter().zip(self.operation.inputs.len()..);
        let Some(((_, tensor), i)) = found.into_iter().find(|((of_tensor, _), _)| *of_tensor == name) else {
            return Err(self.missing(name));
        };
        let (shape, strides) = self.checked::<T, N>(name, tensor)?;
        let Block { address, elements } = self.blocks.borrow()[i].from::<T>(tensor.layout().start_offset());
        // SAFETY: as for `optional`; the lock is for writing, and no other argument has these
        // elements.
        let all = unsafe { TensorViewMut::<T, 1>::from_raw(self.on.device(), address, [elements], [1]) };
        Ok(all.with_strides(shape, strides)?)
    }

    /// Returns the result. It is called once.
    pub(crate) fn output<T: Element, const N: usize>(&self) -> Result<TensorViewMut<'_, T, N>, Refused> {
        let Some(Block { address, elements }) = self.output.take() else {
            return Err(self.missing("result"));
        };
        let layout = Layout::contiguous(self.shape);
        let Some((shape, strides)) = collapsed(layout.dims(), layout.stride()) else {
            return Err(self.missing("result"));
        };
        // SAFETY: the memory was allocated for the result, and `take` returns it once.
        let all = unsafe { TensorViewMut::<T, 1>::from_raw(self.on.device(), address, [elements], [1]) };
        Ok(all.with_strides(shape, strides)?)
    }

    fn missing(&self, name: &str) -> Refused {
        Error::msg(format!("{}: there is no `{name}`", self.operation.name)).into()
    }

    /// Returns shape and strides with `N` dimensions of a tensor with elements of `T`.
    fn checked<T: Element, const N: usize>(
        &self,
        name: &str,
        tensor: &Tensor,
    ) -> Result<([usize; N], [usize; N]), Refused> {
        let operation = self.operation.name;
        if tensor.dtype() != T::DTYPE {
            let (found, wanted) = (tensor.dtype(), T::DTYPE);
            return Err(Error::msg(format!(
                "{operation}: `{name}` must be {wanted:?}, but is {found:?}; call `to_dtype(DType::{wanted:?})`"
            ))
            .into());
        }
        let layout = tensor.layout();
        collapsed(layout.dims(), layout.stride()).ok_or_else(|| {
            Error::msg(format!(
                "{operation}: the first dimensions of `{name}` must follow each other in memory, so that {N} are left: \
                 it is {:?} with the strides {:?}; call `contiguous()`",
                layout.dims(),
                layout.stride()
            ))
            .into()
        })
    }
}
