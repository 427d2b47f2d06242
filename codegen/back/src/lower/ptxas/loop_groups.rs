//! Waits for all groups of multiplications, if the awaited one was in flight at the beginning of an
//! iteration of a loop. A loop that is unrolled does not count, unless it writes a sum: ptxas finds
//! no loop there, but serialises (C7515) if a sum changes beside multiplications of the same stage.
//!
//! * Cures: C7514, "Potential Performance Loss: wgmma.mma_async instructions are serialized due to
//!   non wgmma instructions reading accumulator registers of a wgmma between start and end of the
//!   pipeline stage". In other kernels it was C7518.
//! * Seen with: ptxas 13.0.
//! * Test: `Workaround::LoopGroups` in `codegen/back/tests/flights/workarounds.rs`.
//!
//! ptxas does not count groups across iterations of loops. It serialises a multiplication whose
//! accumulator is touched while anything is in flight. The checker of the protocol follows the same
//! waits as the GPU, so `check/flights.rs` computes both numbers.

use tma_front::ir::StmtId;

use super::Workaround;
use crate::lower::Cx;

/// Returns the number of groups that may be in flight after a wait.
pub(in crate::lower) fn pending(cx: &Cx<'_, '_>, wait: StmtId) -> u32 {
    let flights = cx.kernel.flights();
    match cx.workarounds.has(Workaround::LoopGroups) {
        true => flights.pending(wait),
        false => flights.younger(wait),
    }
}
