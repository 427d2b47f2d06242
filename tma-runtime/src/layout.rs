//! A tensor's layout in memory, with element type and rank as values. Backends work on it.

use crate::spec::Scalar;
use std::fmt;

pub use tma_model::limits::MAX_RANK;

/// The memory that an address belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DeviceId {
    /// The GPU with this ordinal, in the driver's numbering.
    Cuda(u32),
    /// A context that another library made on a GPU, numbered in the order in which contexts were
    /// first passed to [`Device::from_context`](crate::Device::from_context).
    Context(u32),
    /// A simulated device. Each has its own memory.
    Simulator(u32),
}

impl fmt::Display for DeviceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cuda(ordinal) => write!(f, "GPU {ordinal}"),
            Self::Context(number) => write!(f, "CUDA context {number}"),
            Self::Simulator(number) => write!(f, "simulator {number}"),
        }
    }
}

/// A tensor's address, shape and strides, with its element type and rank as values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    device: DeviceId,
    element: Scalar,
    address: u64,
    rank: u32,
    shape: [u64; MAX_RANK],
    strides: [u64; MAX_RANK],
}

impl Layout {
    /// Returns the layout of a tensor at `address`, with `shape` and `strides` in elements,
    /// outermost first.
    pub fn new<const N: usize>(
        device: DeviceId,
        element: Scalar,
        address: u64,
        shape: [usize; N],
        strides: [usize; N],
    ) -> Self {
        const { assert!(N >= 1 && N <= MAX_RANK, "a tensor must have 1 to 5 dimensions") };
        // Unused dimensions are zero, so that equal layouts compare equal.
        let widen = |from: [usize; N]| {
            let mut to = [0; MAX_RANK];
            for (to, from) in to.iter_mut().zip(from) {
                *to = from as u64;
            }
            to
        };
        Self { device, element, address, rank: N as u32, shape: widen(shape), strides: widen(strides) }
    }

    /// Returns the memory that contains the tensor.
    pub const fn device(&self) -> DeviceId {
        self.device
    }

    /// Returns the element type.
    pub const fn element(&self) -> Scalar {
        self.element
    }

    /// Returns the address of the first element.
    pub const fn address(&self) -> u64 {
        self.address
    }

    /// Returns the layout of a tensor of the same shape and strides at another address.
    pub(crate) const fn at(self, address: u64) -> Self {
        Self { address, ..self }
    }

    /// Returns the extents in elements, outermost first.
    pub fn shape(&self) -> &[u64] {
        &self.shape[..self.rank as usize]
    }

    /// Returns the strides in elements, outermost first.
    pub fn strides(&self) -> &[u64] {
        &self.strides[..self.rank as usize]
    }

    /// Returns the number of elements, if they are contiguous in row-major order.
    pub fn contiguous_len(&self) -> Option<u64> {
        let mut len = 1u64;
        for (&extent, &stride) in self.shape().iter().zip(self.strides()).rev() {
            // A dimension of extent 1 is never stepped along, whatever its stride.
            if extent > 1 && stride != len {
                return None;
            }
            len = len.checked_mul(extent)?;
        }
        Some(len)
    }
}

/// Returns the strides of a contiguous row-major tensor, in elements, outermost first.
///
/// The caller has checked that the product of the extents fits in a `usize`. The strides of a
/// tensor without elements are meaningless, and saturate.
pub(crate) fn row_major_strides<const N: usize>(shape: [usize; N]) -> [usize; N] {
    let mut strides = [1; N];
    let mut stride = 1usize;
    for (i, extent) in shape.into_iter().enumerate().rev() {
        strides[i] = stride;
        stride = stride.saturating_mul(extent);
    }
    strides
}

#[cfg(test)]
mod tests {
    use super::*;

    fn len<const N: usize>(shape: [usize; N], strides: [usize; N]) -> Option<u64> {
        Layout::new(DeviceId::Cuda(0), Scalar::F32, 0, shape, strides).contiguous_len()
    }

    #[test]
    fn row_major_is_contiguous() {
        assert_eq!(row_major_strides([4, 3, 2]), [6, 2, 1]);
        assert_eq!(len([4, 3, 2], [6, 2, 1]), Some(24));
        assert_eq!(len([4, 3, 2], [8, 2, 1]), None);
        assert_eq!(len([4, 3, 2], [1, 4, 12]), None);
    }

    #[test]
    fn the_stride_of_a_single_row_does_not_count() {
        assert_eq!(len([1, 8], [999, 1]), Some(8));
        assert_eq!(len([2, 8], [999, 1]), None);
    }
}
