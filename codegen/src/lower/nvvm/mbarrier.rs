//! mbarrier instructions. Source: "mbarrier".

use std::borrow::Cow;

use super::Operand::{B32, Pred, Shared};
use super::{Effect, Instruction, convergent, memory};

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
pub(in crate::lower) const MBARRIER_TRY_WAIT: Instruction = Instruction {
    text: Cow::Borrowed("mbarrier.try_wait.parity.shared::cta.b64 $0, [$1], $2;"),
    result: Some(Pred),
    operands: Cow::Borrowed(&[Shared, B32]),
    effect: Effect::Convergent,
    ptx: 78,
};

/// Waits without end. The loop is part of the text, so that LLVM neither unrolls nor rotates it.
pub(in crate::lower) const MBARRIER_WAIT: Instruction = convergent(
    "{\n\
     \t.reg .pred %done;\n\
     wait_${:uid}:\n\
     \tmbarrier.try_wait.parity.shared::cta.b64 %done, [$0], $1;\n\
     \t@!%done bra wait_${:uid};\n\
     \t}",
    &[Shared, B32],
    78,
);
