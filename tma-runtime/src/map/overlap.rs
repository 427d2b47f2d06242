//! Search for elements of a tensor that share memory.
//!
//! The driver's documentation computes each stride from the extent inside it plus padding
//! (`globalStrides`), so that elements never overlap. The driver nevertheless accepts shorter
//! strides, and loads through them are well defined: a window that slides over a signal is a matrix
//! whose rows overlap. Overlapping stores race, and the last one wins.

use crate::layout::{Layout, MAX_RANK};

/// The maximum number of search steps. If each stride exceeds the reach of the dimensions inside
/// it, one step per dimension suffices. A layout that takes more steps than this is accepted.
const MOST: u32 = 1 << 16;

/// Returns the indices, outermost dimension first, of two elements of a tensor at the same address,
/// if there are any.
pub(super) fn overlap(layout: &Layout) -> Option<[Vec<u64>; 2]> {
    // Longest stride first, so that the remaining reach soon bounds the search.
    let mut order: Vec<usize> = (0..layout.shape().len()).filter(|&at| layout.shape()[at] > 1).collect();
    order.sort_by_key(|&at| std::cmp::Reverse(layout.strides()[at]));
    let mut search = Search { layout, order: &order, offsets: [0; MAX_RANK], steps: 0 };
    if !search.reaches_zero(0, 0) {
        return None;
    }
    let offsets = &search.offsets[..layout.shape().len()];
    let indices = |sign: i128| offsets.iter().map(|&by| (by * sign).max(0) as u64).collect();
    Some([indices(1), indices(-1)])
}

/// A search for the distance, along each dimension, between two elements at the same address.
struct Search<'a> {
    layout: &'a Layout,
    order: &'a [usize],
    offsets: [i128; MAX_RANK],
    steps: u32,
}

impl Search<'_> {
    /// Returns whether the dimensions from `depth` on in the order can bring a distance in memory
    /// back to 0 with `offsets` not all zeros.
    fn reaches_zero(&mut self, depth: usize, distance: i128) -> bool {
        self.steps += 1;
        let Some((&at, inner)) = self.order.get(depth..).and_then(<[usize]>::split_first) else {
            return distance == 0 && self.offsets != [0; MAX_RANK];
        };
        let (extent, stride) = self.dimension(at);
        // The largest distance that the remaining dimensions can cover.
        let reach: i128 =
            inner.iter().map(|&at| self.dimension(at)).map(|(extent, stride)| (extent - 1) * stride).sum();
        let most = extent - 1;
        // The range of `by` for which distance + by × stride is within the reach. The first
        // dimension that differs does so upwards.
        let start = if self.offsets == [0; MAX_RANK] { 0 } else { -most };
        let (from, to) = match stride {
            0 => (start, most),
            _ => (
                (-(reach + distance).div_euclid(stride)).max(start),
                (reach - distance).div_euclid(stride).min(most),
            ),
        };
        for by in from..=to {
            self.offsets[at] = by;
            if self.steps >= MOST {
                break;
            }
            if self.reaches_zero(depth + 1, distance + by * stride) {
                return true;
            }
        }
        self.offsets[at] = 0;
        false
    }

    fn dimension(&self, at: usize) -> (i128, i128) {
        (self.layout.shape()[at].into(), self.layout.strides()[at].into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::DeviceId;
    use crate::spec::Scalar;

    fn found<const N: usize>(shape: [usize; N], strides: [usize; N]) -> Option<[Vec<u64>; 2]> {
        overlap(&Layout::new(DeviceId::Cuda(0), Scalar::F32, 0, shape, strides))
    }

    #[test]
    fn strides_may_be_in_any_order() {
        assert_eq!(found([3, 2, 4, 8], [8, 96, 24, 1]), None);
        assert_eq!(found([3, 2, 4, 8], [8, 88, 24, 1]), Some([vec![0, 1, 0, 0], vec![2, 0, 3, 0]]));
    }

    #[test]
    fn rows_may_interleave() {
        // Rows at 0, 16 and 32, and at 24, 40 and 56: the second dimension reaches beyond the step
        // of the first.
        assert_eq!(found([2, 3, 8], [24, 16, 1]), None);
        assert_eq!(found([3, 4, 8], [24, 16, 1]), Some([vec![2, 0, 0], vec![0, 3, 0]]));
    }

    #[test]
    fn one_element_is_no_two() {
        assert_eq!(found([1, 1, 8], [0, 3, 1]), None);
        assert_eq!(found([1], [0]), None);
        assert_eq!(found([2], [0]), Some([vec![1], vec![0]]));
    }

    #[test]
    fn the_same_as_looking_at_all_elements() {
        for case in 0..20_000_usize {
            let shape = [1 + case % 3, 1 + case / 3 % 3, 1 + case / 9 % 4];
            let strides = [case / 36 % 11, case / 400 % 7, case / 2800 % 8];
            let mut addresses: Vec<usize> = (0..shape.iter().product())
                .map(|i| [i % shape[0], i / shape[0] % shape[1], i / shape[0] / shape[1]])
                .map(|index| index.iter().zip(strides).map(|(i, stride)| i * stride).sum())
                .collect();
            let all = addresses.len();
            addresses.sort_unstable();
            addresses.dedup();
            let found = found(shape, strides);
            assert_eq!(found.is_some(), addresses.len() < all, "{shape:?}, {strides:?}");
            let Some(pair) = found else { continue };
            let [a, b] =
                pair.map(|at| at.iter().zip(strides).map(|(&i, stride)| i as usize * stride).sum::<usize>());
            assert_eq!(a, b, "{shape:?}, {strides:?}");
        }
    }
}
