//! Device functions of GEMMs on teams.

use tma_runtime::tma_module;

/// Flags that count launches, by which a rank waits for another.
#[tma_module]
pub mod flags {
    use tma_runtime::prelude::*;

    /// Returns whether a flag is still that of a launch before this one. The difference decides,
    /// since numbers of launches wrap.
    #[tma_device]
    pub fn is_before(flag: u32, launch: u32) -> bool {
        (flag.wrapping_sub(launch) as i32) < 0
    }

    /// Waits until another rank has set flag `i` of this one in this launch. What it did before is
    /// visible then.
    #[tma_device]
    pub fn wait_for_peer(flags: Peers<Global<u32>>, i: u32, launch: u32) {
        while is_before(flags.own().load(i, Order::Acquire, Scope::System), launch) {}
    }
}

/// The warp that loads tiles of A and B.
#[tma_module]
pub mod producer {
    use tma_runtime::prelude::*;

    use crate::gemm::device::producer::Operand;
    use crate::gemm::device::schedule::{TileCoords, operand_coords};

    /// Loads the tiles of A and B for the tile of C at `at`. There is one B for all parts of A.
    #[tma_device]
    pub fn load_tiles<
        AB: TileElement,
        const BK: u32,
        const MN_B: bool,
        const BM: u32,
        const SLICE_A: u32,
        const ROWS_B: u32,
        const COLUMNS_B: u32,
        const SLICE_B: u32,
        const STAGES: u32,
    >(
        producer: &mut Producer<(Operand<AB, BM, BK>, Operand<AB, ROWS_B, COLUMNS_B>), STAGES>,
        a: TensorMap<Operand<AB, SLICE_A, BK>>,
        b: TensorMap<Operand<AB, SLICE_B, COLUMNS_B>>,
        at: TileCoords,
        steps: u32,
    ) {
        for step in 0..steps {
            let slot = producer.acquire();
            a.load_sliced(slot.0, [at.batch, at.row, step * BK], slot.barrier(), ClusterAxis::X);
            let of_b = operand_coords::<MN_B>(0, at.column, step * BK);
            b.load_sliced(slot.1, of_b, slot.barrier(), ClusterAxis::Y);
        }
    }
}
