//! Values of arguments, as Python passes them.

use tma_runtime::spec::Scalar;

/// The value of an argument.
#[derive(Clone, Copy, Debug)]
pub enum Value<'a> {
    /// `None`.
    None,
    /// An `int`.
    Int(i64),
    /// A `float`.
    Float(f64),
    /// A `bool`.
    Bool(bool),
    /// A `str`.
    Text(&'a str),
    /// A `dtype`.
    Element(Scalar),
    /// A tensor.
    Tensor(RawTensor<'a>),
}

/// A tensor of another library: an address, with shape and strides in elements.
#[derive(Clone, Copy, Debug)]
pub struct RawTensor<'a> {
    /// Address of the first element.
    pub data: u64,
    /// Type of the elements.
    pub element: Scalar,
    /// The memory that the address belongs to.
    pub place: Place,
    /// Extents, outermost first.
    pub shape: &'a [i64],
    /// Distances between elements, outermost first.
    pub strides: &'a [i64],
}

/// The memory that holds a tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Memory of the host.
    Host,
    /// Memory of the GPU with this ordinal.
    Cuda(u32),
}

impl RawTensor<'_> {
    /// Returns the number of elements from the first one to the end of the last one, or `None` if
    /// an extent or a stride is negative or the number is too large. It is 0 if there are none.
    pub(crate) fn reach(&self) -> Option<u64> {
        let mut reach: u64 = 1;
        let mut is_empty = false;
        for (&extent, &stride) in self.shape.iter().zip(self.strides) {
            let (extent, stride) = (u64::try_from(extent).ok()?, u64::try_from(stride).ok()?);
            is_empty |= extent == 0;
            reach = reach.checked_add(extent.saturating_sub(1).checked_mul(stride)?)?;
        }
        Some(if is_empty { 0 } else { reach })
    }

    /// Returns whether no two indices have the same element. If some are interleaved in an unusual
    /// way, it returns false although they might not.
    pub(crate) fn is_disjoint(&self) -> bool {
        let mut dimensions: Vec<_> =
            self.shape.iter().zip(self.strides).filter(|(extent, _)| **extent > 1).collect();
        dimensions.sort_unstable_by_key(|(_, stride)| **stride);
        let mut reach = 1i64;
        dimensions.into_iter().all(|(extent, stride)| {
            let is_beyond = *stride >= reach;
            reach = reach.saturating_add((extent - 1).saturating_mul(*stride));
            is_beyond
        })
    }
}

/// Returns the strides of a tensor of this shape in row-major order.
pub(crate) fn row_major(shape: &[i64]) -> Vec<i64> {
    let mut strides = vec![1; shape.len()];
    for i in (1..shape.len()).rev() {
        strides[i - 1] = shape[i].max(1).saturating_mul(strides[i]);
    }
    strides
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn expect(shape: &[i64], strides: &[i64], reach: Option<u64>, is_disjoint: bool) {
        let tensor = RawTensor { data: 0, element: Scalar::F32, place: Place::Host, shape, strides };
        assert_eq!((tensor.reach(), tensor.is_disjoint()), (reach, is_disjoint), "{shape:?} {strides:?}");
    }

    #[test]
    fn reach_and_overlap_follow_from_the_strides() {
        expect(&[], &[], Some(1), true);
        expect(&[3, 4], &[4, 1], Some(12), true);
        expect(&[3, 4], &[1, 3], Some(12), true);
        expect(&[3, 4], &[10, 1], Some(24), true);
        expect(&[3, 4], &[0, 1], Some(4), false);
        expect(&[3, 4], &[2, 1], Some(8), false);
        expect(&[0, 4], &[4, 1], Some(0), true);
        expect(&[1, 4], &[0, 1], Some(4), true);
        expect(&[3], &[-1], None, false);
        expect(&[i64::MAX, 3], &[i64::MAX, 1], None, true);
    }

    #[test]
    fn strides_are_row_major() {
        assert_eq!(row_major(&[2, 3, 4]), [12, 4, 1]);
        assert_eq!(row_major(&[2, 0, 4]), [4, 4, 1]);
        assert!(row_major(&[]).is_empty());
    }
}
