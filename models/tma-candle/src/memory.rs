//! The memory of candle's storages: copies on the simulator, and candle's own on a GPU.

use candle_core::{CpuStorage, DType, WithDType, bail};
#[cfg(feature = "cuda")]
use cudarc::driver::{CudaStream, DevicePtr, DevicePtrMut, SyncOnDrop};
use tma_runtime::Scalar;
use tma_runtime::prelude::*;

use crate::error::{Refused, Result};

/// The element types of tensors.
#[cfg(not(feature = "cuda"))]
pub(crate) trait Element: Scalar + WithDType {}

/// The element types of tensors.
#[cfg(feature = "cuda")]
pub(crate) trait Element:
    Scalar
    + WithDType
    + candle_core::cuda_backend::CudaDType
    + cudarc::driver::DeviceRepr
    + cudarc::driver::ValidAsZeroBits
{
}

/// Returns the error of a storage whose elements no kernel takes.
fn unsupported<T>(dtype: DType) -> Result<T> {
    bail!("no kernel takes tensors of {dtype:?}: call `to_dtype`")
}

macro_rules! elements {
    ($($dtype:ident: $element:ty),+) => {
        $(impl Element for $element {})+

        /// Returns whether tensors of a type can be arguments.
        pub(crate) fn is_supported(dtype: DType) -> bool {
            [$(DType::$dtype),+].contains(&dtype)
        }

        /// The elements of a tensor on the CPU, copied to a simulated device.
        pub(crate) enum Copied {
            $($dtype(DeviceTensor<$element, 1>)),+
        }

        impl Copied {
            pub(crate) fn of(device: &Device, storage: &CpuStorage) -> Result<Self, Refused> {
                match storage {
                    $(CpuStorage::$dtype(elements) => {
                        Ok(Self::$dtype(device.tensor(elements, [elements.len()])?))
                    })+
                    other => Ok(unsupported(candle_core::backend::BackendStorage::dtype(other))?),
                }
            }

            pub(crate) fn block(&self) -> Block {
                match self {
                    $(Self::$dtype(tensor) => Block { address: tensor.as_ptr(), elements: tensor.len() }),+
                }
            }

            pub(crate) fn to_storage(&self) -> Result<CpuStorage, Refused> {
                match self {
                    $(Self::$dtype(tensor) => Ok(CpuStorage::$dtype(tensor.to_vec()?))),+
                }
            }
        }

        /// Returns the memory of a storage, which the stream reads until the guard is dropped.
        #[cfg(feature = "cuda")]
        pub(crate) fn lent<'a>(
            storage: &'a candle_core::CudaStorage,
            stream: &'a CudaStream,
        ) -> Result<(Block, SyncOnDrop<'a>)> {
            match &storage.slice {
                $(candle_core::cuda_backend::CudaStorageSlice::$dtype(slice) => {
                    let (address, guard) = slice.device_ptr(stream);
                    Ok((Block { address, elements: slice.len() }, guard))
                })+
                _ => unsupported(candle_core::backend::BackendStorage::dtype(storage)),
            }
        }

        /// Returns the same of a storage that the stream writes.
        #[cfg(feature = "cuda")]
        pub(crate) fn lent_mut<'a>(
            storage: &'a mut candle_core::CudaStorage,
            stream: &'a CudaStream,
        ) -> Result<(Block, SyncOnDrop<'a>)> {
            let dtype = candle_core::backend::BackendStorage::dtype(storage);
            match &mut storage.slice {
                $(candle_core::cuda_backend::CudaStorageSlice::$dtype(slice) => {
                    let elements = slice.len();
                    let (address, guard) = slice.device_ptr_mut(stream);
                    Ok((Block { address, elements }, guard))
                })+
                _ => unsupported(dtype),
            }
        }
    };
}

elements!(U32: u32, BF16: bf16, F16: f16, F32: f32, F8E4M3: e4m3);

/// The memory of a storage on the device of the kernels.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Block {
    pub(crate) address: u64,
    pub(crate) elements: usize,
}

impl Block {
    /// Returns the memory from an element on.
    pub(crate) fn from<T>(self, element: usize) -> Self {
        let element = element.min(self.elements);
        Self { address: self.address + (element * size_of::<T>()) as u64, elements: self.elements - element }
    }
}

/// Returns shape and strides with `N` dimensions: the first ones merged into one, or ones in front.
/// `None` if they do not follow each other in memory.
pub(crate) fn collapsed<const N: usize>(
    dims: &[usize],
    strides: &[usize],
) -> Option<([usize; N], [usize; N])> {
    let (mut shape, mut steps) = ([1; N], [0; N]);
    let is_empty = dims.contains(&0);
    let mut pairs = dims.iter().copied().zip(strides.iter().copied()).rev();
    for i in (0..N).rev() {
        // A dimension of one index is as far from the next as if it had several.
        let next = if i + 1 < N { shape[i + 1] * steps[i + 1] } else { 1 };
        (shape[i], steps[i]) = match pairs.next() {
            Some((extent, stride)) if extent > 1 => (extent, stride),
            Some((extent, _)) => (extent, next),
            None => (1, next),
        };
    }
    for (extent, stride) in pairs {
        let follows = stride == shape[0] * steps[0] || shape[0] == 1 || extent == 1;
        if !follows && !is_empty {
            return None;
        }
        if shape[0] == 1 && extent > 1 {
            steps[0] = stride;
        }
        shape[0] *= extent;
    }
    Some((shape, steps))
}

#[cfg(test)]
mod tests {
    use super::collapsed;

    #[test]
    fn outer_dimensions_become_one() {
        assert_eq!(collapsed(&[2, 3, 4], &[12, 4, 1]), Some(([6, 4], [4, 1])));
        assert_eq!(collapsed(&[2, 3, 4], &[24, 8, 1]), Some(([6, 4], [8, 1])));
        assert_eq!(collapsed::<2>(&[2, 3, 4], &[30, 8, 1]), None);
        assert_eq!(collapsed(&[2, 3, 4], &[12, 4, 1]), Some(([24], [1])));
        assert_eq!(collapsed(&[5, 3, 4], &[0, 0, 1]), Some(([15, 4], [0, 1])));
        assert_eq!(collapsed::<2>(&[0, 3, 4], &[7, 5, 1]), Some(([0, 4], [5, 1])));
    }

    #[test]
    fn dimensions_of_one_index_have_any_stride() {
        assert_eq!(collapsed(&[1, 3, 1, 4], &[7, 8, 3, 1]), Some(([1, 3, 1, 4], [24, 8, 4, 1])));
        assert_eq!(collapsed(&[1, 3, 1, 4], &[7, 8, 3, 1]), Some(([3, 4], [8, 1])));
        assert_eq!(collapsed(&[4], &[1]), Some(([1, 1, 4], [4, 4, 1])));
        assert_eq!(collapsed(&[], &[]), Some(([1], [1])));
    }
}
