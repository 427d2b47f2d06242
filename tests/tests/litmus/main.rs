//! Litmus tests: small programs whose threads access the same memory, with the outcomes that the
//! memory model forbids. A forbidden outcome must never occur. Outcomes that the model allows, but
//! that no interleaving of the threads explains, are counted and printed: a device need not show
//! them.
//!
//! On the simulator each program runs a few hundred times under each of several seeds; on a GPU,
//! with `TMA_DEVICE=cuda` and the feature `cuda`, 2^20 times.
//!
//! Sources: PTX ISA, "Memory Consistency Model"; J. Alglave, M. Batty, A. F. Donaldson et al., "GPU
//! Concurrency: Weak Behaviours and Programming Assumptions", ASPLOS 2015, for many instances at
//! once, scattered addresses, random delays and noise of other blocks.
#![cfg(feature = "llvm")]

mod counting;
mod histogram;
mod in_global;
mod in_shared;
mod proxies;

use counting::counters::{last_adds_up, swaps, tickets};
use histogram::{Outcome, Program, is_simulated, judge};
use in_global::litmus::{
    chain, coherence, independent_reads, load_buffering, message, passed_on, store_buffering, thin_air,
};
use in_shared::shared_litmus::{in_block, in_cluster};
use proxies::rows::read_and_replaced;
use tma_runtime::launch::KernelSpec;

/// Judges each instance of a program. `asked` is an outcome that is forbidden unless the name of
/// the instance contains one of `allowed`, and `decisive` holds if the test was meaningful.
fn judge_all(
    instances: &'static [KernelSpec],
    blocks: u32,
    observations: usize,
    asked: Outcome,
    decisive: Outcome,
    allowed: &[&str],
) -> anyhow::Result<()> {
    for spec in instances {
        let is_allowed = allowed.iter().any(|mode| spec.name.contains(mode));
        judge(&Program { spec, blocks, observations, asked, decisive, is_allowed })?;
    }
    Ok(())
}

/// `bulk_wait_group` waits until a store is complete. A copy may overtake an earlier read of its
/// destination (PTX ISA, "Async proxy"), unless there is a proxy fence of global memory between
/// them.
#[test]
fn a_copy_may_overtake_a_read() -> anyhow::Result<()> {
    let [older, newer]: [Outcome; 2] = [|seen| seen[0] > 0, |seen| seen[1] > 0];
    for spec in &read_and_replaced::INSTANCES {
        let is_bare = spec.name.ends_with("bare");
        // The simulator reports an error instead.
        if is_bare && is_simulated() {
            continue;
        }
        for (asked, is_allowed) in [(older, false), (newer, is_bare)] {
            judge(&Program { spec, blocks: 4, observations: 2, asked, decisive: |_| true, is_allowed })?;
        }
    }
    Ok(())
}

/// The modes of instances whose flags do not order anything.
const RELAXED: &[&str] = &["::relaxed"];

#[test]
fn a_datum_comes_before_its_flag() -> anyhow::Result<()> {
    let stale = |seen: &[u32]| seen[0] == 1 && seen[1] == 0;
    judge_all(&message::INSTANCES, 2, 2, stale, |seen| seen[0] == 1, RELAXED)
}

#[test]
fn a_datum_in_shared_memory_comes_before_its_flag() -> anyhow::Result<()> {
    let stale = |seen: &[u32]| seen[0] == 1 && seen[1] == 0;
    judge_all(&in_block::INSTANCES, 2, 2, stale, |seen| seen[0] == 1, RELAXED)?;
    judge_all(&in_cluster::INSTANCES, 2, 2, stale, |seen| seen[0] == 1, RELAXED)
}

/// Release and acquire do not forbid it either.
#[test]
fn both_may_read_before_either_write_is_seen() -> anyhow::Result<()> {
    let asked = |seen: &[u32]| seen == [0, 0];
    judge_all(&store_buffering::INSTANCES, 2, 2, asked, |seen| seen != [1, 1], &["::relaxed", "::ordered"])
}

#[test]
fn neither_reads_what_comes_after_its_own_release() -> anyhow::Result<()> {
    let asked = |seen: &[u32]| seen == [1, 1];
    judge_all(&load_buffering::INSTANCES, 2, 2, asked, |seen| seen != [0, 0], RELAXED)
}

#[test]
fn nothing_comes_out_of_thin_air() -> anyhow::Result<()> {
    judge_all(&thin_air::INSTANCES, 2, 2, |seen| seen != [0, 0], |_| true, &[])
}

#[test]
fn an_element_does_not_go_backwards() -> anyhow::Result<()> {
    let asked = |seen: &[u32]| seen[1] < seen[0] || seen[1] > 2;
    judge_all(&coherence::INSTANCES, 2, 2, asked, |seen| seen[0] > 0, &[])
}

#[test]
fn a_message_may_be_passed_on() -> anyhow::Result<()> {
    let asked = |seen: &[u32]| seen[1] == 1 && (seen[0] == 0 || seen[2] == 0);
    judge_all(&passed_on::INSTANCES, 4, 3, asked, |seen| seen[1] == 1, RELAXED)
}

/// In the decisive outcome the relaxed addition comes after the releasing one.
#[test]
fn an_addition_carries_a_release_on() -> anyhow::Result<()> {
    let asked = |seen: &[u32]| seen[1] % 2 == 1 && seen[2] == 0;
    judge_all(&chain::INSTANCES, 4, 3, asked, |seen| seen[0] == 1 && seen[1] == 3, RELAXED)
}

/// Release and acquire do not forbid it either.
#[test]
fn two_readers_may_disagree_on_the_order_of_writes() -> anyhow::Result<()> {
    let asked = |seen: &[u32]| seen == [1, 0, 1, 0];
    let decisive = |seen: &[u32]| seen[0] == 1 && seen[2] == 1;
    judge_all(&independent_reads::INSTANCES, 4, 4, asked, decisive, &["::relaxed", "::ordered"])
}

#[test]
fn the_last_block_has_all_parts() -> anyhow::Result<()> {
    judge_all(&last_adds_up::INSTANCES, 4, 1, |seen| seen[0] != 15, |seen| seen[0] == 15, RELAXED)
}

/// A counter returns each number once.
#[test]
fn no_ticket_is_taken_twice() -> anyhow::Result<()> {
    judge(&Program {
        spec: &tickets::SPEC,
        blocks: 1,
        observations: 1,
        asked: |seen| seen[0] != 0,
        decisive: |seen| seen[0] == 0,
        is_allowed: false,
    })
}

/// Of four roles that swap their numbers in, each finds another number. Of four that claim an
/// element, one succeeds, and the others find its number.
#[test]
fn swaps_and_claims_are_atomic() -> anyhow::Result<()> {
    fn is_torn(seen: &[u32]) -> bool {
        let (old, owner) = seen.split_at(4);
        let is_twice = old.iter().enumerate().any(|(i, x)| *x > 4 || old[..i].contains(x));
        let winners: Vec<_> = (0..4).filter(|&role| owner[role] == 0).collect();
        let [winner] = winners[..] else { return true };
        is_twice || !old.contains(&0) || (0..4).any(|i| i != winner && owner[i] != winner as u32 + 1)
    }
    judge(&Program {
        spec: &swaps::SPEC,
        blocks: 4,
        observations: 8,
        asked: is_torn,
        decisive: |seen| !is_torn(seen),
        is_allowed: false,
    })
}
