//! Makes traps conditional where multiplications may be in flight in a loop.
//!
//! * Cures: C7517, "warpgroup.wait is injected in around line .. by compiler to allow use of
//!   registers defined by GMMA".
//! * Seen with: ptxas 13.0.
//! * Test: `Workaround::ConditionalTraps` in `codegen/back/tests/flights/workarounds.rs`.
//!
//! ptxas takes a trap for the end of the path. It inserts a wait before the trap if multiplications
//! are in flight in the loop around it, or at the entry or exit of the loop. There, the trap has a
//! condition that always holds, which ptxas does not know: that `%lanemask_eq` is not 0. Elsewhere
//! the trap is unconditional, as one more path costs registers.

/// The computation of a condition that always holds.
pub(super) const CONDITION: &str = "\t.reg .pred %stops;\n\
                                    \t.reg .b32 %place;\n\
                                    \tmov.u32 %place, %lanemask_eq;\n\
                                    \tsetp.ne.b32 %stops, %place, 0;\n";

/// A trap with this condition.
pub(super) const TRAP: &str = "@%stops trap;";
