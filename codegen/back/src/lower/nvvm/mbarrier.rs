//! mbarrier instructions. Source: "mbarrier".

use std::borrow::Cow;

use super::Operand::{self, B32, B64, Pred, Remote, Shared};
use super::{Effect, Instruction, memory};

pub(in crate::lower) const MBARRIER_INIT: Instruction =
    memory("mbarrier.init.shared::cta.b64 [$0], $1;", &[Shared, B32], 78);
pub(in crate::lower) const MBARRIER_INVAL: Instruction =
    memory("mbarrier.inval.shared::cta.b64 [$0];", &[Shared], 78);

pub(in crate::lower) const MBARRIER_ARRIVE: Instruction =
    memory("mbarrier.arrive.shared::cta.b64 _, [$0];", &[Shared], 78);
pub(in crate::lower) const MBARRIER_ARRIVE_MANY: Instruction =
    memory("mbarrier.arrive.shared::cta.b64 _, [$0], $1;", &[Shared, B32], 78);
pub(in crate::lower) const MBARRIER_ARRIVE_TOKEN: Instruction = Instruction {
    text: Cow::Borrowed("mbarrier.arrive.shared::cta.b64 $0, [$1];"),
    result: Some(B64),
    operands: Cow::Borrowed(&[Shared]),
    effect: Effect::Memory,
    ptx: 78,
};
pub(in crate::lower) const MBARRIER_ARRIVE_DROP: Instruction =
    memory("mbarrier.arrive_drop.shared::cta.b64 _, [$0];", &[Shared], 78);
pub(in crate::lower) const MBARRIER_ARRIVE_EXPECT_TX: Instruction =
    memory("mbarrier.arrive.expect_tx.shared::cta.b64 _, [$0], $1;", &[Shared, B32], 80);
pub(in crate::lower) const MBARRIER_EXPECT_TX: Instruction =
    memory("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [$0], $1;", &[Shared, B32], 80);

// Arrivals at the barrier of another block.

/// With `cluster`, the writes of this thread become visible to the threads of the barrier's block.
pub(in crate::lower) fn remote_mbarrier_arrive(cluster: bool) -> Instruction {
    memory(
        match cluster {
            true => "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [$0];",
            false => "mbarrier.arrive.shared::cluster.b64 _, [$0];",
        },
        &[Remote],
        80,
    )
}

pub(in crate::lower) const REMOTE_MBARRIER_ARRIVE_EXPECT_TX: Instruction =
    memory("mbarrier.arrive.expect_tx.release.cluster.shared::cluster.b64 _, [$0], $1;", &[Remote, B32], 80);

// Waits. With `cluster`, the writes of threads of other blocks become visible.

/// Returns the opcode of a wait, and the first PTX version that has it. Without a scope, it is that
/// of the block.
fn opcode(wait: &str, cluster: bool) -> (String, u32) {
    let (scope, ptx) = if cluster { (".acquire.cluster", 80) } else { ("", 78) };
    (format!("mbarrier.{wait}{scope}.shared::cta.b64"), ptx)
}

/// Creates a single test.
fn question(wait: &str, operands: &'static [Operand], cluster: bool) -> Instruction {
    let (opcode, ptx) = opcode(wait, cluster);
    let others: String = (2..=operands.len()).map(|i| format!(", ${i}")).collect();
    Instruction {
        text: Cow::Owned(format!("{opcode} $0, [$1]{others};")),
        result: Some(Pred),
        operands: Cow::Borrowed(operands),
        effect: Effect::Convergent,
        ptx,
    }
}

/// Creates a wait until the phase completes. The loop is part of the text, so LLVM can neither
/// unroll nor rotate it.
fn endless(wait: &str, operands: &'static [Operand], cluster: bool) -> Instruction {
    let (opcode, ptx) = opcode(wait, cluster);
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
        operands: Cow::Borrowed(operands),
        effect: Effect::Convergent,
        ptx,
    }
}

pub(in crate::lower) fn mbarrier_test_wait(cluster: bool) -> Instruction {
    question("test_wait.parity", &[Shared, B32], cluster)
}

pub(in crate::lower) fn mbarrier_try_wait(cluster: bool) -> Instruction {
    question("try_wait.parity", &[Shared, B32], cluster)
}

pub(in crate::lower) fn mbarrier_try_wait_for(cluster: bool) -> Instruction {
    question("try_wait.parity", &[Shared, B32, B32], cluster)
}

pub(in crate::lower) fn mbarrier_wait(cluster: bool) -> Instruction {
    endless("try_wait.parity", &[Shared, B32], cluster)
}

pub(in crate::lower) fn mbarrier_wait_token(cluster: bool) -> Instruction {
    endless("try_wait", &[Shared, B64], cluster)
}
