//! Tensors from and to DLPack, by the crate `dlpark`.

use anyhow::{Context, Result, ensure};
use dlpark::ffi::{DLDevice, DLDeviceType, DLManagedTensor};
use dlpark::legacy::Dlpack;
use dlpark::metadata::Fixed;
use dlpark::{DlpackElement, OpaqueContext, TensorRef};
use tma_runtime::launch::MapArg;
use tma_runtime::layout::DeviceId;
use tma_runtime::prelude::*;
use tma_runtime::{DeviceTensor, Scalar, TensorView};

/// A tensor of another library, for kernels that read it.
#[derive(Debug)]
pub enum Imported<'a, T, const N: usize> {
    /// The other library's memory on the device.
    Borrowed(TensorView<'a, T, N>),
    /// A copy of its memory on the host.
    Copied(DeviceTensor<T, N>),
}

impl<T: Scalar, const N: usize> Imported<'_, T, N> {
    /// The extents in elements, outermost first.
    pub fn shape(&self) -> [usize; N] {
        MapArg::view(&self).shape()
    }
}

impl<T: Scalar, const N: usize> MapArg<T, N> for &Imported<'_, T, N> {
    fn view(&self) -> TensorView<'_, T, N> {
        match self {
            Imported::Borrowed(view) => *view,
            Imported::Copied(tensor) => tensor.view(),
        }
    }
}

/// A tensor of another library: borrowed if it is on the device, and copied if it is on the host.
///
/// # Errors
///
/// Its element type, rank or device differs, a stride is negative, or as
/// [`TensorView::from_raw_checked`] and [`Device::tensor`].
///
/// # Safety
///
/// The tensor's memory stays allocated and unchanged for `'a` and until what is queued with the
/// result has run. What wrote it has run, or is queued on a stream that comes before.
pub unsafe fn import<'a, T: Scalar + DlpackElement, const N: usize>(
    device: &Device,
    tensor: &TensorRef<'a>,
) -> Result<Imported<'a, T, N>> {
    ensure!(tensor.dtype().is::<T>(), "the tensor's elements are {:?}", tensor.dtype());
    let shape = extents(tensor.shape())?;
    if tensor.device().device_type == DLDeviceType::CPU {
        // SAFETY: as the caller promises.
        let elements = unsafe { tensor.cpu_slice::<T>()? };
        return Ok(Imported::Copied(device.tensor(elements, shape)?));
    }
    let gpu = u32::try_from(tensor.device().device_id)?;
    ensure!(
        tensor.device().device_type == DLDeviceType::CUDA && device.id() == DeviceId::Cuda(gpu),
        "the tensor is on {:?}, not on {}",
        tensor.device(),
        device.id()
    );
    let strides = extents(&tensor.strides_or_compact()?)?;
    // SAFETY: as the caller promises.
    unsafe {
        let address = tensor.offset_data_ptr::<T>()?.addr() as u64;
        Ok(Imported::Borrowed(TensorView::from_raw_checked(device, address, shape, strides)?))
    }
}

/// Gives a tensor to another library, without a copy. Of a simulated device it is a copy on the
/// host, since no other library reaches its memory.
///
/// The other library has to wait for what is queued: see [`Stream::synchronize`].
///
/// # Errors
///
/// As [`DeviceTensor::to_vec`], and if a tensor is too large for DLPack.
pub fn export<T: Scalar + DlpackElement, const N: usize>(tensor: DeviceTensor<T, N>) -> Result<Dlpack> {
    let shape = tensor.shape();
    match tensor.device().id() {
        DeviceId::Cuda(gpu) => {
            let (address, device) = (tensor.as_ptr(), DLDevice::cuda(i32::try_from(gpu)?));
            // SAFETY: the tensor owns the memory at its address.
            unsafe { finished::<T, N>(shape, address, device, Box::new(tensor)) }
        }
        // Others reach the memory of a GPU's primary context only.
        DeviceId::Context(_) | DeviceId::Simulator(_) => {
            let mut host = tensor.to_vec()?;
            let address = host.as_mut_ptr().expose_provenance() as u64;
            // SAFETY: the vector owns the memory at its address, which does not move with it.
            unsafe { finished::<T, N>(shape, address, DLDevice::CPU, Box::new(host)) }
        }
    }
}

/// # Safety
///
/// `owner` owns memory at the address for a row-major tensor of this shape.
unsafe fn finished<T: DlpackElement, const N: usize>(
    shape: [usize; N],
    address: u64,
    device: DLDevice,
    owner: impl OpaqueContext,
) -> Result<Dlpack> {
    let mut strides = [1; N];
    for i in (1..N).rev() {
        strides[i - 1] = strides[i] * shape[i];
    }
    let mut made = Fixed::new(shape, strides).initialize_as::<DLManagedTensor>(owner)?;
    made.set_data(std::ptr::with_exposed_provenance_mut(address as usize));
    made.set_dtype(T::DTYPE).set_device(device);
    // SAFETY: the metadata is that of the memory, as the caller promises.
    Ok(unsafe { made.finish() })
}

/// Extents or strides as this crate has them.
fn extents<const N: usize>(found: &[i64]) -> Result<[usize; N]> {
    let found: Vec<_> = found.iter().map(|&extent| usize::try_from(extent)).collect::<Result<_, _>>()?;
    let rank = found.len();
    found.try_into().ok().with_context(|| format!("the tensor has {rank} dimensions, not {N}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tensors_of_a_simulated_device_go_out_and_come_in() -> Result<()> {
        let device = Device::simulator();
        let out = export(device.tensor(&[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0], [2, 3])?)?;
        let tensor = out.validate()?;
        // SAFETY: nothing else uses the tensor.
        let back = unsafe { import::<f32, 2>(&device, &tensor)? };
        assert_eq!(back.shape(), [2, 3]);
        assert!(
            matches!(back, Imported::Copied(tensor) if tensor.to_vec()? == [1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
        );
        Ok(())
    }

    #[test]
    fn other_elements_ranks_and_devices_are_refused() -> Result<()> {
        let device = Device::simulator();
        let out = export(device.tensor(&[1.0f32, 2.0], [1, 2])?)?;
        let tensor = out.validate()?;
        // SAFETY: nothing else uses the tensor.
        unsafe {
            assert!(import::<i32, 2>(&device, &tensor).is_err());
            assert!(import::<f32, 1>(&device, &tensor).is_err());
            // SAFETY: it is refused before it is used.
            let elsewhere = finished::<f32, 2>([1, 2], 0x1000, DLDevice::cuda(0), Box::new(()))?;
            assert!(import::<f32, 2>(&device, &elsewhere.validate()?).is_err());
        }
        Ok(())
    }
}
