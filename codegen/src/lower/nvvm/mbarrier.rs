//! mbarrier instructions. Source: "mbarrier".

use std::borrow::Cow;

use super::Operand::{B32, Pred, Remote, Shared};
use super::{Effect, Instruction, memory};

pub(in crate::lower) const MBARRIER_INIT: Instruction =
    memory("mbarrier.init.shared::cta.b64 [$0], $1;", &[Shared, B32], 78);
pub(in crate::lower) const MBARRIER_INVAL: Instruction =
    memory("mbarrier.inval.shared::cta.b64 [$0];", &[Shared], 78);
pub(in crate::lower) const MBARRIER_ARRIVE: Instruction =
    memory("mbarrier.arrive.shared::cta.b64 _, [$0];", &[Shared], 78);
pub(in crate::lower) const MBARRIER_ARRIVE_EXPECT_TX: Instruction =
    memory("mbarrier.arrive.expect_tx.shared::cta.b64 _, [$0], $1;", &[Shared, B32], 80);
pub(in crate::lower) const MBARRIER_EXPECT_TX: Instruction =
    memory("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [$0], $1;", &[Shared, B32], 80);

// Arrivals at the barrier of another block: what this thread did is to be seen by that block's threads.

pub(in crate::lower) const REMOTE_MBARRIER_ARRIVE: Instruction =
    memory("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [$0];", &[Remote], 80);
pub(in crate::lower) const REMOTE_MBARRIER_ARRIVE_EXPECT_TX: Instruction =
    memory("mbarrier.arrive.expect_tx.release.cluster.shared::cluster.b64 _, [$0], $1;", &[Remote, B32], 80);

/// The opcode of a wait, and the first PTX version that has it. Without a scope it is that of the block.
const fn try_wait(cluster: bool) -> (&'static str, u32) {
    if cluster {
        ("mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64", 80)
    } else {
        ("mbarrier.try_wait.parity.shared::cta.b64", 78)
    }
}

/// Asks once. `cluster` tells whether other blocks may have arrived.
pub(in crate::lower) fn mbarrier_try_wait(cluster: bool) -> Instruction {
    let (opcode, ptx) = try_wait(cluster);
    Instruction {
        text: Cow::Owned(format!("{opcode} $0, [$1], $2;")),
        result: Some(Pred),
        operands: Cow::Borrowed(&[Shared, B32]),
        effect: Effect::Convergent,
        ptx,
    }
}

/// Waits without end. The loop is part of the text, so that LLVM neither unrolls nor rotates it.
pub(in crate::lower) fn mbarrier_wait(cluster: bool) -> Instruction {
    let (opcode, ptx) = try_wait(cluster);
    Instruction {
        text: Cow::Owned(format!(
            "{{\n\
             \t.reg .pred %done;\n\
             wait_${{:uid}}:\n\
             \t{opcode} %done, [$0], $1;\n\
             \t@!%done bra wait_${{:uid}};\n\
             \t}}"
        )),
        result: None,
        operands: Cow::Borrowed(&[Shared, B32]),
        effect: Effect::Convergent,
        ptx,
    }
}
