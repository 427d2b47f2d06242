//! Checks of views of memory that was allocated elsewhere.

use super::RawView;
use super::part::reach;
use crate::device::Device;
use crate::error::{Error, ForeignError, ViewError};
use crate::spec::Scalar;

impl<const N: usize> RawView<'_, N> {
    /// Checks that all elements are in allocated memory of the device.
    pub(super) fn in_memory_of(&self, device: &Device, element: Scalar) -> Result<(), Error> {
        let Self { address, shape, strides, .. } = *self;
        if shape.contains(&0) {
            return Ok(());
        }
        let unit = u64::from(element.bytes());
        if !address.is_multiple_of(unit) {
            return Err(ForeignError::Misaligned { address, element }.into());
        }
        let reached = reach(shape.into_iter().zip(strides));
        // If the size overflows, it is larger than any allocation.
        let bytes = u64::try_from(reached.saturating_mul(u128::from(unit))).unwrap_or(u64::MAX);
        let available = device.reachable(address, bytes)? / unit;
        if reached > u128::from(available) {
            let (shape, strides) = (shape.to_vec(), strides.to_vec());
            return Err(ViewError::Reach { shape, strides, reached, available }.into());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::prelude::*;

    fn code<T>(result: Result<T, Error>) -> Option<&'static str> {
        result.err().map(|error| error.code())
    }

    #[test]
    fn views_of_addresses_stay_in_their_allocation() {
        let device = Device::simulator();
        let tensor = device.zeros::<f32, 2>([8, 16]).expect("a tensor");
        let at = tensor.as_ptr();
        let read = |at, shape, strides| {
            // SAFETY: nothing is launched.
            code(unsafe { TensorView::<f32, 2>::from_raw_checked(&device, at, shape, strides) })
        };
        assert_eq!(read(at, [8, 16], [16, 1]), None);
        assert_eq!(read(at + 64, [7, 16], [16, 1]), None);
        assert_eq!(read(at, [15, 16], [8, 1]), None);
        assert_eq!(read(at, [0, 1 << 60], [1 << 60, 1]), None);
        assert_eq!(read(at + 64, [8, 16], [16, 1]), Some("TMA0542"));
        assert_eq!(read(at, [8, 16], [17, 1]), Some("TMA0542"));
        assert_eq!(read(at, [8, usize::MAX], [usize::MAX, 1]), Some("TMA0542"));
        assert_eq!(read(at + 2, [1, 1], [1, 1]), Some("TMA0564"));
        assert_eq!(read(0x1000, [1, 1], [1, 1]), Some("TMA0618"));
        assert_eq!(read(at + 512, [1, 1], [1, 1]), Some("TMA0618"));
    }

    #[test]
    fn writable_views_have_disjoint_elements() {
        let device = Device::simulator();
        let mut tensor = device.zeros::<f32, 2>([8, 16]).expect("a tensor");
        let at = tensor.view_mut().as_ptr();
        let write = |shape, strides| {
            // SAFETY: nothing is launched.
            code(unsafe { TensorViewMut::<f32, 2>::from_raw_checked(&device, at, shape, strides) })
        };
        assert_eq!(write([8, 16], [16, 1]), None);
        assert_eq!(write([15, 16], [8, 1]), Some("TMA0543"));
    }
}
