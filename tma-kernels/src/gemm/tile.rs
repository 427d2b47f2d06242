//! Tiles of C, with measured times. `lab/gemm.md`, "The choice", tells how they were measured.

/// A tile of C, and the blocks that compute it: `T128x256Cluster2x1` is 128 rows and 256 columns per
/// block, in clusters of two blocks along M and one along N.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Tile {
    /// 128 × 256 per block, in clusters of two stacked blocks.
    T128x256Cluster2x1,
    /// 128 × 192 per block, in clusters of two stacked blocks.
    T128x192Cluster2x1,
    /// 128 × 128 per block, in clusters of two stacked blocks.
    T128x128Cluster2x1,
    /// 128 × 128 per block, in clusters of two blocks side by side.
    T128x128Cluster1x2,
    /// 128 × 176 per warpgroup, two of which alternate, in clusters of two stacked blocks.
    PingPong128x176,
    /// 128 × 128 per warpgroup, two of which alternate, in clusters of two stacked blocks.
    PingPong128x128,
    /// 128 × 128 per cluster of two blocks, each of which sums half of K.
    SplitK128x128,
    /// 64 × 128 per cluster of two blocks, each of which sums half of K.
    SplitK64x128,
    /// 128 × 64 per block, in clusters of two blocks side by side.
    T128x64Cluster1x2,
    /// 64 × 128 per block, in clusters of four blocks side by side.
    T64x128Cluster1x4,
    /// 64 × 128 per block, in clusters of two stacked blocks.
    T64x128Cluster2x1,
    /// 64 × 128 per block.
    T64x128,
    /// 64 × 64 per block.
    T64x64,
}

/// A tile's extents, and the measured times of its parts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Facts {
    /// The name within instance names.
    pub(crate) name: &'static str,
    /// Blocks per cluster along N and M.
    pub(crate) cluster: [u32; 2],
    /// Warpgroups per block that multiply.
    pub(crate) warpgroups: u32,
    /// Columns of a block's tile.
    pub(crate) columns: u32,
    /// The number of blocks of a cluster that split the sums of a tile along K.
    pub(crate) parts: u32,
    /// Nanoseconds per step of 128 bytes along K at the chip's highest clock.
    pub(super) step: f64,
    /// Nanoseconds per step that all clusters compute if the chip's power is the limit.
    pub(super) hot: f64,
    /// Whether clusters take tiles row by row if the L2 cache holds A and B. Stacked blocks each
    /// load their own rows of A, and adjacent clusters load the same rows of it at the same time.
    /// Tiles of 128 × 192 and more load too little for this to matter.
    pub(super) by_rows: bool,
    /// The relative duration of a step if all clusters compute half tiles, for which they load the
    /// data of a whole tile. Only tiles of the kernel `plain` can be halved, and of those only the
    /// ones for which it was measured.
    pub(super) half: Option<f64>,
    /// Nanoseconds for the rest of a tile: the first load and the last store.
    pub(super) rest: f64,
    /// Nanoseconds by which the last tile takes longer, since no other tile hides its end.
    pub(super) last: f64,
    /// Nanoseconds by which each work unit takes longer if sums are split.
    pub(super) split: f64,
    /// Bytes per nanosecond from global memory if each byte is read once.
    pub(super) stream: f64,
}

/// The relative duration of a step in which only one of two warpgroups multiplies, if few clusters
/// load at that time.
const ALONE: f64 = 0.55;

impl Tile {
    /// All tiles, those with the least traffic first.
    pub const ALL: [Self; 13] = [
        Self::T128x256Cluster2x1,
        Self::PingPong128x176,
        Self::PingPong128x128,
        Self::T128x192Cluster2x1,
        Self::T128x128Cluster2x1,
        Self::T128x128Cluster1x2,
        Self::SplitK128x128,
        Self::SplitK64x128,
        Self::T128x64Cluster1x2,
        Self::T64x128Cluster1x4,
        Self::T64x128Cluster2x1,
        Self::T64x128,
        Self::T64x64,
    ];

    /// Returns whether one warpgroup of a block multiplies while the other stores.
    pub(crate) const fn alternates_warpgroups(self) -> bool {
        matches!(self, Self::PingPong128x176 | Self::PingPong128x128)
    }

    /// Returns the known facts about the tile. They are fitted to times of an H200, and `by_rows`,
    /// `half` and `last` to some of an H100, with driver 580 and mostly in bf16: `lab/gemm.md`,
    /// "The choice".
    #[rustfmt::skip]
    pub(crate) const fn facts(self) -> Facts {
        match self {
            Self::T128x256Cluster2x1 => Facts { name: "t128x256_cluster2x1", cluster: [1, 2], warpgroups: 2, columns: 256, parts: 1, step: 580.0, hot: 745.0, by_rows: false, half: Some(0.6), rest: 2550.0, last: 0.0, split: 7500.0, stream: 3.7 },
            Self::PingPong128x176 => Facts { name: "ping_pong128x176", cluster: [1, 2], warpgroups: 2, columns: 176, parts: 1, step: 403.0, hot: 528.0, by_rows: true, half: None, rest: 600.0, last: 1500.0, split: 7500.0, stream: 3.7 },
            Self::PingPong128x128 => Facts { name: "ping_pong128x128", cluster: [1, 2], warpgroups: 2, columns: 128, parts: 1, step: 325.0, hot: 398.0, by_rows: true, half: None, rest: 450.0, last: 0.0, split: 7500.0, stream: 3.7 },
            Self::T128x192Cluster2x1 => Facts { name: "t128x192_cluster2x1", cluster: [1, 2], warpgroups: 2, columns: 192, parts: 1, step: 368.0, hot: 614.0, by_rows: false, half: Some(0.87), rest: 3150.0, last: 0.0, split: 7500.0, stream: 3.7 },
            Self::T128x128Cluster2x1 => Facts { name: "t128x128_cluster2x1", cluster: [1, 2], warpgroups: 2, columns: 128, parts: 1, step: 333.0, hot: 396.0, by_rows: true, half: Some(0.8), rest: 450.0, last: 0.0, split: 8000.0, stream: 3.7 },
            Self::T128x128Cluster1x2 => Facts { name: "t128x128_cluster1x2", cluster: [2, 1], warpgroups: 2, columns: 128, parts: 1, step: 340.0, hot: 405.0, by_rows: false, half: None, rest: 450.0, last: 0.0, split: 8000.0, stream: 3.7 },
            Self::SplitK128x128 => Facts { name: "split_k128x128", cluster: [1, 2], warpgroups: 2, columns: 128, parts: 2, step: 347.0, hot: 355.0, by_rows: false, half: None, rest: 2360.0, last: 0.0, split: 8000.0, stream: 3.4 },
            Self::SplitK64x128 => Facts { name: "split_k64x128", cluster: [1, 2], warpgroups: 1, columns: 128, parts: 2, step: 215.0, hot: 206.0, by_rows: false, half: None, rest: 1500.0, last: 0.0, split: 8000.0, stream: 4.0 },
            Self::T128x64Cluster1x2 => Facts { name: "t128x64_cluster1x2", cluster: [2, 1], warpgroups: 2, columns: 64, parts: 1, step: 139.0, hot: 261.0, by_rows: false, half: None, rest: 1300.0, last: 0.0, split: 5100.0, stream: 3.7 },
            Self::T64x128Cluster1x4 => Facts { name: "t64x128_cluster1x4", cluster: [4, 1], warpgroups: 1, columns: 128, parts: 1, step: 215.0, hot: 206.0, by_rows: false, half: None, rest: 1600.0, last: 0.0, split: 8000.0, stream: 3.95 },
            Self::T64x128Cluster2x1 => Facts { name: "t64x128_cluster2x1", cluster: [1, 2], warpgroups: 1, columns: 128, parts: 1, step: 143.0, hot: 255.0, by_rows: false, half: None, rest: 1100.0, last: 0.0, split: 8000.0, stream: 3.75 },
            Self::T64x128 => Facts { name: "t64x128", cluster: [1, 1], warpgroups: 1, columns: 128, parts: 1, step: 143.0, hot: 243.0, by_rows: false, half: None, rest: 1040.0, last: 0.0, split: 3000.0, stream: 3.7 },
            Self::T64x64 => Facts { name: "t64x64", cluster: [1, 1], warpgroups: 1, columns: 64, parts: 1, step: 145.0, hot: 100.0, by_rows: false, half: None, rest: 570.0, last: 0.0, split: 2700.0, stream: 3.4 },
        }
    }
}

impl Facts {
    /// Returns rows and columns of a cluster's tile.
    pub(crate) fn extents(&self) -> [usize; 2] {
        let [wide, tall] = self.cluster.map(|blocks| blocks as usize);
        [tall * self.warpgroups as usize * 64 / self.parts as usize, wide * self.columns as usize]
    }

    /// Returns the relative duration of a step in which one of two warpgroups multiplies, if the
    /// fraction `busy` of all clusters has such a step at that time. For a tile for which it was
    /// not measured, the full duration is assumed.
    pub(super) fn half_step(&self, busy: f64) -> f64 {
        ALONE + busy * (self.half.unwrap_or(1.0) - ALONE)
    }

    /// Returns the number of blocks per cluster.
    pub(crate) fn blocks(&self) -> u32 {
        self.cluster[0] * self.cluster[1]
    }
}
