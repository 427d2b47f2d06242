//! Memory that several ranks of a team access. Every rank executes the same kernel, on other
//! devices, so nothing that orders the blocks of a grid orders these accesses. Flags with
//! system-wide scope may, but they are not followed.
//!
//! If only copies or threads of one kind access the memory, either all reading or all writing, the
//! kernel is judged like one for a single device: each element is assumed to have one writer.

use tma_front::ir::{Kernel, MemoryScope, StmtKind};

use super::located::Located;
use crate::{Undecided, UndecidedReason};

/// Returns the accesses to memory that other ranks may access in a conflicting way.
pub(super) fn undecided(kernel: &Kernel, all: &[Located<'_>]) -> Vec<Undecided> {
    let found = all.iter().filter(|one| !kernel.is_trusted(one.access.stmt.origin)).filter(|one| {
        let same_memory = |other: &&Located<'_>| {
            let is_of_peer = one.access.is_of_peer || other.access.is_of_peer;
            is_of_peer && other.access.param == one.access.param
        };
        let mut others = all.iter().filter(same_memory);
        if one.access.is_strong {
            is_narrow(one) && others.any(|other| other.access.writes || one.access.writes)
        } else {
            others.any(|other| {
                other.access.is_strong && (one.access.writes || other.access.writes)
                    || one.access.writes != other.access.writes
            })
        }
    });
    let undecided =
        |one: &Located<'_>| Undecided { reason: UndecidedReason::Peers, span: one.access.stmt.origin.span };
    found.map(undecided).collect()
}

/// Whether the scope of a strong access leaves out other devices.
fn is_narrow(one: &Located<'_>) -> bool {
    let StmtKind::Atomic(atomic) = &one.access.stmt.kind else { return false };
    atomic.scope != MemoryScope::System
}
