//! The layout of the tiles that tensor copies have written to shared memory.

use std::rc::Rc;

use tma_model::{Interleave, Swizzle};

use crate::tensor_map::{Mode, TensorMap};

/// A tile that a tensor copy has written.
#[derive(Debug)]
pub(in crate::machine) struct LoadedTile {
    pub(in crate::machine) swizzle: Swizzle,
    /// Chunks of 16 bytes in a row.
    width: u32,
    /// The numbers of rows after which the tile continues along one of its outer dimensions.
    panel_rows: Vec<u32>,
}

/// 16 bytes of a tile, numbered row by row.
#[derive(Clone, Debug)]
pub(in crate::machine) struct TileChunk {
    tile: Rc<LoadedTile>,
    number: u32,
}

impl LoadedTile {
    /// Returns the tile of a box of `map`, or `None` for an interleaved layout.
    pub(in crate::machine) fn of(map: &TensorMap) -> Option<Rc<Self>> {
        if map.interleave != Interleave::None {
            return None;
        }
        let extents: Vec<u32> = match &map.mode {
            Mode::Tiled { .. } => (1..map.rank()).map(|dimension| map.taken(dimension)).collect(),
            Mode::Im2col { .. } => vec![],
        };
        let panel_rows = extents.iter().scan(1_u32, |rows, &extent| {
            *rows = rows.saturating_mul(extent);
            Some(*rows)
        });
        Some(Rc::new(Self {
            swizzle: map.swizzle,
            width: map.units_in_row(),
            panel_rows: panel_rows.collect(),
        }))
    }
}

impl TileChunk {
    pub(in crate::machine) const fn new(tile: Rc<LoadedTile>, number: u32) -> Self {
        Self { tile, number }
    }

    pub(in crate::machine) fn swizzle(&self) -> Swizzle {
        self.tile.swizzle
    }

    /// Returns the row, and the chunk within the row.
    pub(in crate::machine) fn position(&self) -> [u32; 2] {
        [self.number / self.tile.width, self.number % self.tile.width]
    }

    /// Returns whether `next` belongs to another tile, or is directly below this chunk.
    pub(in crate::machine) fn is_above(&self, next: &Self) -> bool {
        !Rc::ptr_eq(&self.tile, &next.tile) || next.number == self.number + self.tile.width
    }

    /// Returns whether `next` belongs to another tile, or follows this chunk in its row. In a tile
    /// that is wider than its rows, the row continues in the next panel.
    pub(in crate::machine) fn is_beside(&self, next: &Self) -> bool {
        if !Rc::ptr_eq(&self.tile, &next.tile) {
            return true;
        }
        let ([row, chunk], [next_row, next_chunk]) = (self.position(), next.position());
        if next_chunk > 0 {
            return next.number == self.number + 1;
        }
        let is_next_panel =
            next_row.checked_sub(row).is_some_and(|rows| self.tile.panel_rows.contains(&rows));
        chunk + 1 == self.tile.width && is_next_panel
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tile() -> Rc<LoadedTile> {
        // A box of 2 chunks, 8 rows and 3 panels.
        Rc::new(LoadedTile { swizzle: Swizzle::B32, width: 2, panel_rows: vec![8, 24] })
    }

    fn chunk(tile: &Rc<LoadedTile>, [row, chunk]: [u32; 2]) -> TileChunk {
        TileChunk::new(tile.clone(), row * 2 + chunk)
    }

    #[test]
    fn rows_follow_each_other() {
        let tile = tile();
        let below = |to| chunk(&tile, [3, 1]).is_above(&chunk(&tile, to));
        assert!(below([4, 1]));
        assert!(![[3, 1], [4, 0], [5, 1], [2, 1], [11, 1], [12, 1]].into_iter().any(below));
    }

    #[test]
    fn a_row_continues_in_the_next_panel() {
        let tile = tile();
        let beside = |from, to| chunk(&tile, from).is_beside(&chunk(&tile, to));
        assert!(beside([3, 0], [3, 1]));
        assert!(beside([3, 1], [11, 0]));
        assert!(![[3, 0], [4, 1], [11, 1], [11, 0]].into_iter().any(|to| beside([3, 0], to)));
        assert!(![[3, 0], [4, 0], [10, 0], [12, 0], [19, 0]].into_iter().any(|to| beside([3, 1], to)));
    }

    /// Chunks of different copies may be adjacent in any way.
    #[test]
    fn tiles_may_be_adjacent_in_any_way() {
        let (tile, other) = (tile(), tile());
        let (one, two) = (chunk(&tile, [3, 1]), chunk(&other, [7, 1]));
        assert!(one.is_above(&two) && one.is_beside(&two));
    }
}
