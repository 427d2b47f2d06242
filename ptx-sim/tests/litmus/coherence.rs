//! Old values that strong loads may observe, and those that they must not.

use super::{Placement, run};

/// Both threads write, and then read the location that the other one writes.
fn store_buffering(write: &str, fence: &str, read: &str) -> super::Outcomes {
    let thread = |own: &str, other: &str| {
        format!("st.{write}.gpu.global.u32 [%{own}], 1; {fence} ld.{read}.gpu.global.u32 %a, [%{other}];")
    };
    run(Placement::SeparateClusters, &[&thread("x", "y"), &thread("y", "x")])
}

const BOTH_OLD: &[&[u32]] = &[&[0], &[0]];

#[test]
fn both_may_miss_the_other_write() {
    store_buffering("relaxed", "", "relaxed").clean().sometimes(BOTH_OLD);
    store_buffering("release", "", "acquire").clean().sometimes(BOTH_OLD);
    store_buffering("relaxed", "fence.acq_rel.gpu;", "relaxed").clean().sometimes(BOTH_OLD);
}

#[test]
fn sequentially_consistent_fences_have_one_order() {
    store_buffering("relaxed", "fence.sc.gpu;", "relaxed").clean().never(BOTH_OLD);
    store_buffering("relaxed", "fence.sc.cta;", "relaxed").clean().sometimes(BOTH_OLD);
}

#[test]
fn reads_of_a_location_are_coherent() {
    let reads = "ld.relaxed.gpu.global.u32 %a, [%x]; ld.relaxed.gpu.global.u32 %b, [%x];";
    let outcomes = run(Placement::SeparateClusters, &["st.relaxed.gpu.global.u32 [%x], 1;", reads]);
    outcomes.clean().never(&[&[], &[1, 0]]).sometimes(&[&[], &[0, 1]]);
    // Nor does it for a thread that is ordered after a reader of the new value.
    let first = "ld.relaxed.gpu.global.u32 %a, [%x]; st.release.gpu.global.u32 [%y], 1;";
    let then = "ld.acquire.gpu.global.u32 %a, [%y]; ld.relaxed.gpu.global.u32 %b, [%x];";
    let outcomes = run(Placement::SeparateClusters, &["st.relaxed.gpu.global.u32 [%x], 1;", first, then]);
    outcomes.clean().never(&[&[], &[1], &[1, 0]]).sometimes(&[&[], &[1], &[0, 0]]);
}

#[test]
fn independent_reads_of_independent_writes_may_differ() {
    let reads = |one: &str, two: &str, fence: &str| {
        format!("ld.acquire.gpu.global.u32 %a, [%{one}]; {fence} ld.acquire.gpu.global.u32 %b, [%{two}];")
    };
    let four = |fence: &str| {
        let (x, y) = ("st.relaxed.gpu.global.u32 [%x], 1;", "st.relaxed.gpu.global.u32 [%y], 1;");
        run(Placement::SeparateClusters, &[x, y, &reads("x", "y", fence), &reads("y", "x", fence)])
    };
    let split: &[&[u32]] = &[&[], &[], &[1, 0], &[1, 0]];
    four("").clean().sometimes(split);
    four("fence.sc.gpu;").clean().never(split);
}

#[test]
fn a_loop_that_waits_ends() {
    let wait = "wait: ld.acquire.gpu.global.u32 %a, [%y]; setp.eq.u32 %p2, %a, 0; @%p2 bra wait; ld.global.u32 %b, [%x];";
    let outcomes = run(
        Placement::SeparateClusters,
        &["st.global.u32 [%x], 7; st.release.gpu.global.u32 [%y], 1;", wait],
    );
    outcomes.clean().sometimes(&[&[], &[1, 7]]);
}
