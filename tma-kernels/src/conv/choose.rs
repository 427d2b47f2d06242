//! The choice of the pixels and filters that a block computes at a time: the fastest according to a
//! model of the running time, which is fitted to measurements.

use super::shape::Problem;

/// The pixels and filters that a block computes at a time: `T128x256` is 128 pixels and 256
/// filters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ConvTile {
    /// 128 pixels and 256 filters.
    T128x256,
    /// 192 pixels and 128 filters.
    T192x128,
    /// 128 pixels and 128 filters.
    T128x128,
    /// 64 pixels and 128 filters.
    T64x128,
    /// 128 pixels and 64 filters.
    T128x64,
    /// 64 pixels and 64 filters.
    T64x64,
}

/// A tile's extents, and the measured times of its parts.
#[derive(Clone, Copy, Debug)]
pub(super) struct Facts {
    /// Pixels of a block's tile.
    pub(super) pixels: usize,
    /// Filters of a block's tile.
    pub(super) filters: usize,
    /// Nanoseconds per step of 64 channels of a tap.
    step: f64,
    /// Nanoseconds for the rest of a tile.
    rest: f64,
}

impl ConvTile {
    /// All tiles, those with the least traffic first.
    pub const ALL: [Self; 6] =
        [Self::T128x256, Self::T192x128, Self::T128x128, Self::T64x128, Self::T128x64, Self::T64x64];

    /// Returns the known facts about the tile. They are fitted to nineteen convolutions on an H200
    /// with driver 580, in bf16: `lab/convolution.md`, "The choice".
    #[rustfmt::skip]
    pub(super) const fn facts(self) -> Facts {
        match self {
            Self::T128x256 => Facts { pixels: 128, filters: 256, step: 597.0, rest: 4114.0 },
            Self::T192x128 => Facts { pixels: 192, filters: 128, step: 412.0, rest: 4805.0 },
            Self::T128x128 => Facts { pixels: 128, filters: 128, step: 292.0, rest: 2933.0 },
            Self::T64x128 => Facts { pixels: 64, filters: 128, step: 189.0, rest: 1242.0 },
            Self::T128x64 => Facts { pixels: 128, filters: 64, step: 232.0, rest: 962.0 },
            Self::T64x64 => Facts { pixels: 64, filters: 64, step: 163.0, rest: 465.0 },
        }
    }
}

impl Facts {
    /// Returns the number of tiles of a problem.
    pub(super) fn tiles(&self, problem: &Problem) -> usize {
        problem.pixels().div_ceil(self.pixels) * problem.filters.div_ceil(self.filters)
    }
}

/// Returns the tile that is expected to be fastest on this many multiprocessors, each of which
/// computes one tile after the other.
pub(super) fn choose(problem: &Problem, multiprocessors: u32) -> ConvTile {
    let nanoseconds = |tile: ConvTile| {
        let facts = tile.facts();
        let rounds = facts.tiles(problem).div_ceil(multiprocessors.max(1) as usize) as f64;
        rounds * (facts.rest + problem.steps() as f64 * facts.step)
    };
    let [mut best, ..] = ConvTile::ALL;
    for tile in ConvTile::ALL {
        if nanoseconds(tile) < nanoseconds(best) {
            best = tile;
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::super::{ConvError, ConvOptions};
    use super::*;

    /// The fastest tiles measured, by images, extents, channels, filters, taps and stride.
    #[test]
    fn the_fastest_is_chosen() -> Result<(), ConvError> {
        for (shape, wanted) in [
            ([64, 56, 64, 64, 3, 1], ConvTile::T128x64),
            ([64, 28, 128, 128, 3, 1], ConvTile::T192x128),
            ([64, 14, 256, 256, 3, 1], ConvTile::T192x128),
            ([64, 7, 512, 512, 3, 1], ConvTile::T128x128),
            ([64, 28, 256, 256, 3, 2], ConvTile::T192x128),
            ([256, 14, 256, 256, 3, 1], ConvTile::T128x256),
            ([32, 14, 256, 256, 3, 1], ConvTile::T128x128),
            ([1, 56, 64, 64, 3, 1], ConvTile::T64x64),
            ([8, 7, 512, 512, 3, 1], ConvTile::T64x64),
        ] {
            let [images, extent, channels, filters, taps, stride] = shape;
            let options =
                ConvOptions::<f32> { stride: [stride; 2], padding: [taps / 2; 2], ..Default::default() };
            let out = extent / stride;
            let shapes = [
                [images, extent, extent, channels],
                [filters, taps, taps, channels],
                [images, out, out, filters],
            ];
            assert_eq!(choose(&Problem::of(shapes, &options)?, 132), wanted, "{shape:?}");
        }
        Ok(())
    }
}
