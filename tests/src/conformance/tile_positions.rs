//! A tensor, and the position of a tile in it.

use tma_runtime::spec::MapSpec;

use super::Edge;

/// A tensor, and a tile's position in it, outermost dimension first.
pub(super) struct TilePositions<const N: usize> {
    pub(super) tensor: [usize; N],
    pub(super) at: [i32; N],
    pub(super) steps: [u32; N],
    tile: [usize; N],
    /// Elements along the innermost dimension that the hardware counts as one: those of a pixel in
    /// an interleaved layout.
    pixel: usize,
}

impl<const N: usize> TilePositions<N> {
    /// Places a tile whose elements are `step` apart along one of the dimensions that support it, a
    /// different dimension for each step.
    pub(super) fn new(map: &MapSpec, edge: Edge, step: u32) -> Self {
        let tile: [usize; N] = std::array::from_fn(|d| map.box_extents[d] as usize);
        let element = map.element.bytes();
        let pixel = map.swizzle.pixel_bytes().map_or(1, |bytes| bytes / element) as usize;
        // The unit at which a copy may start along the innermost dimension.
        let unit = (map.swizzle.pixel_bytes().unwrap_or(16) / element) as usize;
        let inner = N - 1;

        let mut steps = [1; N];
        let stepped: Vec<usize> =
            (0..N).filter(|&d| d < inner && tile[d] > 1 || d == inner && pixel > 1).collect();
        if let Some(&d) = stepped.get(step as usize % stepped.len().max(1)) {
            steps[d] = step;
        }
        // From the first element to one past the last.
        let span: [usize; N] = std::array::from_fn(|d| match d == inner {
            true => tile[d] * steps[d] as usize,
            false => (tile[d] - 1) * steps[d] as usize + 1,
        });
        let tensor = std::array::from_fn(|d| span[d] + 2 * if d == inner { unit } else { 1 });
        let at = std::array::from_fn(|d| {
            let start = if d == inner { unit } else { 1 };
            let place = match edge {
                Edge::Inside => start,
                Edge::Over => (tensor[d] - span[d] / 2) / start * start,
                Edge::Past if d == 0 => tensor[d] + start,
                Edge::Past => 0,
                Edge::Before => return -(start as i32),
            };
            place as i32
        });
        Self { tensor, at, steps, tile, pixel }
    }

    pub(super) fn tile_elements(&self) -> usize {
        self.tile.iter().product()
    }

    /// Returns the extents for loads: rows end within a unit of the copy engine, but not within a
    /// pixel.
    pub(super) fn loaded(&self) -> [usize; N] {
        let mut extents = self.tensor;
        extents[N - 1] -= self.pixel;
        extents
    }

    /// Returns the index of the tile's `i`-th element in the tensor's memory, if within `extents`.
    pub(super) fn in_tensor(&self, i: usize, extents: [usize; N]) -> Option<usize> {
        let (mut rest, mut place, mut stride) = (i, 0, 1);
        for d in (0..N).rev() {
            let (index, step) = (rest % self.tile[d], self.steps[d] as usize);
            // Steps count pixels, not the elements in them.
            let pixel = if d == N - 1 { self.pixel } else { 1 };
            let offset = index / pixel * pixel * step + index % pixel;
            let at = usize::try_from(self.at[d] + offset as i32).ok()?;
            if at >= extents[d] {
                return None;
            }
            place += at * stride;
            rest /= self.tile[d];
            stride *= self.tensor[d];
        }
        Some(place)
    }
}
