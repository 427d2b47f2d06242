//! The number of blocks of a launch.

use crate::error::Error;

pub use tma_model::limits::GRID_BLOCKS as MAX_GRID;

/// The blocks of a launch along x, y and z. The x index varies fastest.
///
/// A grid can hold any numbers; a launch rejects those that the hardware does not support.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Grid([u64; 3]);

impl Grid {
    /// Makes a grid of `x * y * z` blocks.
    pub const fn new(x: u32, y: u32, z: u32) -> Self {
        Self([x as u64, y as u64, z as u64])
    }

    /// Makes a grid of `x` blocks along x.
    pub const fn x(x: u32) -> Self {
        Self::new(x, 1, 1)
    }

    /// Makes a grid of one block per tile of a tensor, including partial tiles.
    ///
    /// `extents` and `tile` are in elements, outermost first. The innermost dimension maps to x,
    /// the next to y, and all others together to z, the innermost of them fastest. A tile extent of
    /// zero makes an empty grid, which the launch rejects.
    ///
    /// ```
    /// # use tma_runtime::launch::Grid;
    /// assert_eq!(Grid::tiles([129, 64], [128, 64]), Grid::new(1, 2, 1));
    /// ```
    pub fn tiles<const N: usize>(extents: [usize; N], tile: [u32; N]) -> Self {
        let mut blocks = [1u64; 3];
        for (dimension, (extent, tile)) in extents.into_iter().zip(tile).rev().enumerate() {
            let tiles = (extent as u64)
                .checked_div(u64::from(tile))
                .map_or(0, |whole| whole + u64::from(!(extent as u64).is_multiple_of(u64::from(tile))));
            let axis = &mut blocks[dimension.min(2)];
            *axis = axis.saturating_mul(tiles);
        }
        Self(blocks)
    }

    /// Returns the number of blocks along x, y and z.
    pub const fn blocks(self) -> [u64; 3] {
        self.0
    }

    /// Returns the number of blocks along x, y and z, if the hardware supports it.
    ///
    /// # Errors
    ///
    /// [`Error::GridZero`] and [`Error::GridTooLarge`].
    pub(crate) fn checked(self, kernel: &'static str) -> Result<[u32; 3], Error> {
        let mut checked = [0; 3];
        for (i, axis) in ['x', 'y', 'z'].into_iter().enumerate() {
            let (found, limit) = (self.0[i], MAX_GRID[i]);
            checked[i] = match u32::try_from(found) {
                Ok(0) => return Err(Error::GridZero { kernel, axis }),
                Ok(blocks) if found <= limit => blocks,
                _ => return Err(Error::GridTooLarge { kernel, axis, found, limit }),
            };
        }
        Ok(checked)
    }
}

impl From<u32> for Grid {
    fn from(x: u32) -> Self {
        Self::x(x)
    }
}

impl From<(u32, u32)> for Grid {
    fn from(xy: (u32, u32)) -> Self {
        Self::new(xy.0, xy.1, 1)
    }
}

impl From<(u32, u32, u32)> for Grid {
    fn from(xyz: (u32, u32, u32)) -> Self {
        Self::new(xyz.0, xyz.1, xyz.2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(grid: Grid) -> Option<&'static str> {
        grid.checked("kernel").err().map(|error| error.code())
    }

    #[test]
    fn tiles_cover_remainders() {
        assert_eq!(Grid::tiles([128, 64], [128, 64]), Grid::new(1, 1, 1));
        assert_eq!(Grid::tiles([129, 65], [128, 64]), Grid::new(2, 2, 1));
        assert_eq!(Grid::tiles([1000], [256]), Grid::x(4));
        assert_eq!(Grid::tiles([2, 3, 5, 64, 64], [1, 1, 2, 64, 32]), Grid::new(2, 1, 18));
    }

    #[test]
    fn tma0610_no_blocks_along_an_axis() {
        assert_eq!(code(Grid::new(1, 1, 1)), None);
        assert_eq!(code(Grid::new(1, 0, 1)), Some("TMA0610"));
        assert_eq!(code(Grid::tiles([64], [0])), Some("TMA0610"));
        assert_eq!(code(Grid::tiles([0], [64])), Some("TMA0610"));
    }

    #[test]
    fn tma0611_too_many_blocks_along_an_axis() {
        assert_eq!(code(Grid::x(2_147_483_647)), None);
        assert_eq!(code(Grid::x(2_147_483_648)), Some("TMA0611"));
        assert_eq!(code(Grid::new(1, 65_535, 65_535)), None);
        assert_eq!(code(Grid::new(1, 65_536, 1)), Some("TMA0611"));
        assert_eq!(code(Grid::new(1, 1, 65_536)), Some("TMA0611"));
        assert_eq!(code(Grid::tiles([usize::MAX, usize::MAX, 1, 1], [1; 4])), Some("TMA0611"));
    }
}
