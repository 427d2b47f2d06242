//! The 16-byte units of a box, each with its place in the tile and in the tensor.

use super::{MAX_RANK, TensorMap, UNIT};

/// A box of a map at coordinates.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Walk<'m> {
    map: &'m TensorMap,
    at: [i32; MAX_RANK],
}

/// Up to 16 bytes of a row of the box.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Unit {
    /// Where it is in shared memory.
    pub(crate) shared: u32,
    /// Where its first byte is in global memory; none if all of it is outside of the tensor.
    pub(crate) global: Option<u64>,
    /// The bytes of it that are in the tensor: from here
    pub(crate) from: u32,
    /// to here, exclusive. What is not among them is filled by a load.
    pub(crate) to: u32,
}

impl<'m> Walk<'m> {
    /// The box of `map` whose first element is `at`.
    pub(crate) fn new(map: &'m TensorMap, at: [i32; MAX_RANK]) -> Self {
        Self { map, at }
    }

    /// Units of a row.
    fn in_row(&self) -> u32 {
        self.map.row_bytes().div_ceil(UNIT).max(1)
    }

    /// Units of the box.
    pub(crate) fn units(&self) -> u32 {
        self.map.rows().saturating_mul(self.in_row())
    }

    /// Unit `number`, of a tile whose first byte is at shared offset `tile`.
    pub(crate) fn unit(&self, number: u32, tile: u32) -> Unit {
        let (mut row, column) = (number / self.in_row(), number % self.in_row());
        let shared = self.map.swizzle.permute(tile + row * self.map.row_pitch() + column * UNIT);

        let mut global = self.map.address;
        let mut inside = true;
        for dimension in 1..self.map.rank() {
            let taken = self.map.taken(dimension);
            let index = i64::from(self.at[dimension]) + i64::from(row % taken * self.map.step(dimension));
            row /= taken;
            match u64::try_from(index) {
                Ok(index) if index < self.map.extents[dimension] => {
                    global = global.wrapping_add(index.wrapping_mul(self.map.byte_strides[dimension - 1]));
                }
                Ok(_) | Err(_) => inside = false,
            }
        }
        let (from, to, start) = self.columns(column);
        if !inside || from >= to {
            return Unit { shared, global: None, from: 0, to: 0 };
        }
        Unit { shared, global: Some(global.wrapping_add_signed(start)), from, to }
    }

    /// Of the unit `column` of a row: the bytes that are in the tensor, and the offset of its first byte in the tensor's row.
    fn columns(&self, column: u32) -> (u32, u32, i64) {
        let element = i64::from(self.map.element.bytes());
        let start = i64::from(self.at[0]) * element + i64::from(column * UNIT);
        let end = i64::try_from(self.map.extents[0]).unwrap_or(i64::MAX).saturating_mul(element);
        let clip = |byte: i64| (byte - start).clamp(0, i64::from(UNIT)) as u32;
        (clip(0), clip(end), start)
    }
}
