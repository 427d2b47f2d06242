//! Im2col mode: the order of the tensor's pixels in a column.

use super::{MAX_RANK, TensorMap};

/// The bounding box in one dimension.
#[derive(Clone, Copy)]
struct Bounds {
    first: i64,
    last: i64,
}

/// Returns the index after `count` steps from `from`, and the number of times that it wrapped
/// around. An index that would leave the bounds starts again at the first one.
fn wrapped(from: i64, count: i64, step: i64, bounds: Bounds) -> (i64, i64) {
    let Bounds { first, last } = bounds;
    let left = (last - from).max(0) / step + 1;
    if count < left {
        return (from + count * step, 0);
    }
    let rest = count - left;
    let round = (last - first).max(0) / step + 1;
    (first + rest % round * step, 1 + rest / round)
}

/// Returns the indices of pixel `number` of the column that starts at `at`.
///
/// The column advances within the bounding box by the element strides, from row to row, slice to
/// slice and image to image. The filter tap at `offsets` only shifts the element that is read.
/// Source: PTX ISA, "Im2col mode"; observed on an H200 with driver 580.
pub(super) fn pixel(
    map: &TensorMap,
    lower: &[i32],
    upper: &[i32],
    at: [i32; MAX_RANK],
    offsets: [u16; 3],
    number: u32,
) -> [i64; MAX_RANK] {
    let mut indices = at.map(i64::from);
    let mut carry = i64::from(number);
    for (spatial, dimension) in map.spatial_dimensions().enumerate() {
        let Some(slot) = indices.get_mut(dimension) else { break };
        let (first, last) = map.bounding_box(lower, upper, spatial);
        let bounds = Bounds { first, last };
        let step = i64::from(map.step(dimension));
        let (index, more) = wrapped(*slot, carry, step, bounds);
        *slot = index + i64::from(offsets.get(spatial).copied().unwrap_or(0));
        carry = more;
    }
    if let Some(images) = indices.get_mut(map.rank().saturating_sub(1)) {
        *images += carry;
    }
    indices
}

#[cfg(test)]
mod tests {
    use super::{Bounds, wrapped};

    #[test]
    fn steps_wrap_to_the_first_index() {
        let walk = |from, step, (first, last)| {
            let bounds = Bounds { first, last };
            (0..6).map(|count| wrapped(from, count, step, bounds)).collect::<Vec<_>>()
        };
        assert_eq!(walk(1, 1, (-1, 2)), [(1, 0), (2, 0), (-1, 1), (0, 1), (1, 1), (2, 1)]);
        assert_eq!(walk(0, 2, (-1, 2)), [(0, 0), (2, 0), (-1, 1), (1, 1), (-1, 2), (1, 2)]);
        assert_eq!(walk(3, 8, (3, 3)), [(3, 0), (3, 1), (3, 2), (3, 3), (3, 4), (3, 5)]);
    }
}
