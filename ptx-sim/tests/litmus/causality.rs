//! Message passing, and chains of messages.

use super::{Placement, THEN_X, run};
use ptx_sim::FindingKind::{Race, ScopeTooNarrow};

/// `%a` is the value of `y` that the reader sees, and `%b` the value of `x` that it sees
/// afterwards.
const STALE: &[&[u32]] = &[&[], &[1, 0]];

fn passing(placement: Placement, write: &str, read: &str) -> super::Outcomes {
    run(placement, &[&format!("st.global.u32 [%x], 1; {write}"), &format!("{read} {THEN_X}")])
}

#[test]
fn a_plain_flag_races() {
    let plain = run(
        Placement::SeparateClusters,
        &["st.global.u32 [%x], 1; st.global.u32 [%y], 1;", "ld.global.u32 %a, [%y]; ld.global.u32 %b, [%x];"],
    );
    plain.always_found(Race);
}

#[test]
fn a_relaxed_flag_orders_nothing() {
    let relaxed = passing(
        Placement::SeparateClusters,
        "st.relaxed.gpu.global.u32 [%y], 1;",
        "ld.relaxed.gpu.global.u32 %a, [%y];",
    );
    relaxed.found(Race);
}

#[test]
fn a_release_synchronises_with_an_acquire() {
    for placement in [Placement::SeparateClusters, Placement::Cluster, Placement::Block] {
        let right =
            passing(placement, "st.release.gpu.global.u32 [%y], 1;", "ld.acquire.gpu.global.u32 %a, [%y];");
        right.clean().never(STALE).sometimes(&[&[], &[1, 1]]).sometimes(&[&[], &[0, 9]]);
    }
    let cluster = "st.release.cluster.global.u32 [%y], 1;";
    passing(Placement::Cluster, cluster, "ld.acquire.cluster.global.u32 %a, [%y];").clean().never(STALE);
    let block = passing(
        Placement::Block,
        "st.release.cta.global.u32 [%y], 1;",
        "ld.acquire.cta.global.u32 %a, [%y];",
    );
    block.clean().never(STALE);
}

#[test]
fn a_scope_has_to_include_the_other_thread() {
    for (write, read) in [("cta", "cta"), ("gpu", "cta"), ("cta", "gpu"), ("cluster", "cluster")] {
        let narrow = passing(
            Placement::SeparateClusters,
            &format!("st.release.{write}.global.u32 [%y], 1;"),
            &format!("ld.acquire.{read}.global.u32 %a, [%y];"),
        );
        narrow.always_found(ScopeTooNarrow);
    }
}

#[test]
fn fences_order_relaxed_accesses() {
    let (write, read) = ("st.relaxed.gpu.global.u32 [%y], 1;", "ld.relaxed.gpu.global.u32 %a, [%y];");
    let fenced = |scope: &str| {
        let fence = format!("fence.acq_rel.{scope};");
        passing(Placement::SeparateClusters, &format!("{fence} {write}"), &format!("{read} {fence}"))
    };
    fenced("gpu").clean().never(STALE).sometimes(&[&[], &[1, 1]]);
    // Both fences must have a sufficient scope.
    fenced("cta").found(ScopeTooNarrow);
    let (wide, narrow) = ("fence.acq_rel.gpu;", "fence.acq_rel.cta;");
    passing(Placement::SeparateClusters, &format!("{narrow} {write}"), &format!("{read} {wide}"))
        .found(ScopeTooNarrow);
    passing(Placement::SeparateClusters, &format!("{wide} {write}"), &format!("{read} {narrow}"))
        .found(ScopeTooNarrow);
    passing(Placement::Block, &format!("{narrow} {write}"), &format!("{read} {narrow}")).clean().never(STALE);
    // No fence in the reader, and a fence after the write of the flag.
    passing(Placement::SeparateClusters, &format!("{wide} {write}"), read).found(Race);
    passing(Placement::SeparateClusters, &format!("{write} {wide}"), &format!("{read} {wide}")).found(Race);
    // A fence on one side, and a release or an acquire on the other.
    passing(Placement::SeparateClusters, &format!("{wide} {write}"), "ld.acquire.gpu.global.u32 %a, [%y];")
        .clean()
        .never(STALE);
    passing(Placement::SeparateClusters, "st.release.gpu.global.u32 [%y], 1;", &format!("{read} {wide}"))
        .clean()
        .never(STALE);
}

#[test]
fn releases_are_handed_on() {
    let last = "ld.acquire.gpu.global.u32 %a, [%z]; mov.u32 %b, 9; setp.eq.u32 %p2, %a, 1; @%p2 ld.global.u32 %b, [%x];";
    let middle = |scope: &str| {
        format!(
            "ld.acquire.{scope}.global.u32 %a, [%y]; setp.ne.u32 %p2, %a, 1; @%p2 bra END; st.release.gpu.global.u32 [%z], 1;"
        )
    };
    let three = |placement, scope: &str| {
        let first = format!("st.global.u32 [%x], 1; st.release.{scope}.global.u32 [%y], 1;");
        run(placement, &[&first, &middle(scope), last])
    };
    three(Placement::SeparateClusters, "gpu").clean().never(&[&[], &[], &[1, 0]]).sometimes(&[
        &[],
        &[1],
        &[1, 1],
    ]);
    three(Placement::Cluster, "cluster").clean().never(&[&[], &[], &[1, 0]]);
    three(Placement::Block, "cta").clean().never(&[&[], &[], &[1, 0]]);
    three(Placement::SeparateClusters, "cta").always_found(ScopeTooNarrow);
}

#[test]
fn atomic_operations_continue_a_release() {
    let reader = "ld.acquire.gpu.global.u32 %a, [%y]; mov.u32 %b, 9; setp.eq.u32 %p2, %a, 2; @%p2 ld.global.u32 %b, [%x];";
    // The first thread adds 1, and the second only continues from the first one's value.
    let writer = "st.global.u32 [%x], 1; st.release.gpu.global.u32 [%y], 1;";
    let chain = run(
        Placement::SeparateClusters,
        &[writer, "atom.relaxed.gpu.global.cas.b32 %a, [%y], 1, 2;", reader],
    );
    chain.clean().never(&[&[], &[], &[2, 0]]).sometimes(&[&[], &[1], &[2, 1]]);
    // A store does not continue the release sequence.
    let store =
        "ld.relaxed.gpu.global.u32 %a, [%y]; setp.eq.u32 %p2, %a, 1; @%p2 st.relaxed.gpu.global.u32 [%y], 2;";
    run(Placement::SeparateClusters, &[writer, store, reader]).found(Race);
}

/// "Memory Synchronization": an acquire synchronises with a release if each scope includes the
/// other thread, whichever thread has continued the release sequence in between.
#[test]
fn an_acquire_reaches_each_thread_that_has_released_for_itself() {
    let writer = "st.global.u32 [%x], 1; atom.release.gpu.global.add.u32 %a, [%y], 1;";
    // The second thread of a block releases to the same place, and then notifies the first.
    let own = "continue: atom.release.gpu.global.cas.b32 %a, [%y], 1, 2; setp.ne.u32 %p2, %a, 1; @%p2 bra continue;\n\
               st.release.cta.global.u32 [%z], 1;";
    let reader = |scope: &str| {
        format!(
            "wait: ld.acquire.cta.global.u32 %a, [%z]; setp.ne.u32 %p2, %a, 1; @%p2 bra wait;\n\
             ld.acquire.{scope}.global.u32 %a, [%y]; ld.global.u32 %b, [%x];"
        )
    };
    let outcomes = |scope: &str| run(Placement::Pairs, &[writer, "", own, &reader(scope)]);
    outcomes("gpu").clean().never(&[&[], &[], &[], &[2, 0]]).sometimes(&[&[], &[], &[], &[2, 1]]);
    outcomes("cta").found(ScopeTooNarrow).always_found(ScopeTooNarrow);
    // Within the block the narrow scope suffices.
    let own = own.replace("continue:", "st.global.u32 [%x+4], 1; continue:");
    let reader = reader("cta").replace("[%x]", "[%x+4]");
    run(Placement::Pairs, &["atom.release.gpu.global.add.u32 %a, [%y], 1;", "", &own, &reader]).clean();
}

/// "Release and Acquire Patterns": later strong writes of the same thread to the same place
/// continue its own release. They do not continue another thread's.
#[test]
fn a_store_hands_on_the_releases_of_its_own_thread_alone() {
    let writer = "st.global.u32 [%x], 1; atom.release.gpu.global.add.u32 %a, [%y], 1;";
    let middle = |order: &str| {
        format!(
            "continue: atom.{order}.gpu.global.cas.b32 %a, [%y], 1, 2; setp.ne.u32 %p2, %a, 1; @%p2 bra continue;\n\
             st.relaxed.gpu.global.u32 [%y], 3;"
        )
    };
    let reader = "ld.acquire.gpu.global.u32 %a, [%y]; mov.u32 %b, 9; setp.eq.u32 %p2, %a, 3; @%p2 ld.global.u32 %b, [%x];";
    let three = |order: &str| run(Placement::SeparateClusters, &[writer, &middle(order), reader]);
    three("acq_rel").clean().never(&[&[], &[], &[3, 0]]).sometimes(&[&[], &[], &[3, 1]]);
    for order in ["relaxed", "acquire", "release"] {
        three(order).found(Race);
    }
}

#[test]
fn a_release_sequence_continues_after_another_store() {
    let wait = |value: u32, name: &str| {
        format!("{name}: ld.relaxed.gpu.global.u32 %a, [%y]; setp.ne.u32 %p2, %a, {value}; @%p2 bra {name};")
    };
    let writer = |order: &str| {
        format!(
            "st.global.u32 [%x], 1; st.{order}.gpu.global.u32 [%y], 1; {} atom.relaxed.gpu.global.add.u32 %a, [%y], 1;",
            wait(2, "back")
        )
    };
    let other = format!("{} st.relaxed.gpu.global.u32 [%y], 2;", wait(1, "there"));
    let reader = "ld.acquire.gpu.global.u32 %a, [%y]; mov.u32 %b, 9; setp.eq.u32 %p2, %a, 3; @%p2 ld.global.u32 %b, [%x];";
    let three = |order: &str| run(Placement::SeparateClusters, &[&writer(order), &other, reader]);
    three("release").clean().never(&[&[], &[], &[3, 0]]).sometimes(&[&[], &[], &[3, 1]]);
    three("relaxed").found(Race);
}

#[test]
fn reductions_acquire_nothing() {
    let writer = "st.global.u32 [%x], 1; red.release.gpu.global.add.u32 [%y], 1;";
    let reader = |adds: &str| format!("{adds} fence.acq_rel.gpu; ld.global.u32 %b, [%x];");
    run(Placement::SeparateClusters, &[writer, &reader("red.relaxed.gpu.global.add.u32 [%y], 1;")])
        .always_found(Race);
    let atomic = format!("atom.relaxed.gpu.global.add.u32 %a, [%y], 1; fence.acq_rel.gpu; {THEN_X}");
    run(Placement::SeparateClusters, &[writer, &atomic]).clean().never(STALE).sometimes(&[&[], &[1, 1]]);
}

#[test]
fn the_last_block_sees_all_writes() {
    let block = |order: &str, own: &str, other: &str| {
        format!(
            "st.global.u32 [%{own}], 5; atom.{order}.gpu.global.add.u32 %a, [%z], 1; setp.eq.u32 %p2, %a, 1; mov.u32 %b, 9;\n\
             @%p2 ld.global.u32 %b, [%{other}];"
        )
    };
    let both =
        |order: &str| run(Placement::SeparateClusters, &[&block(order, "x", "y"), &block(order, "y", "x")]);
    let right = both("acq_rel");
    right.clean().never(&[&[1, 0]]).never(&[&[], &[1, 0]]).sometimes(&[&[1, 5]]).sometimes(&[&[], &[1, 5]]);
    both("relaxed").always_found(Race);
    both("release").always_found(Race);
    both("acquire").always_found(Race);
}

#[test]
fn a_fence_releases_knowledge_at_the_fence() {
    // Each writer has a fence of its own. The thread that sets the flag learns of the write before
    // or after its own fence.
    let writer = "st.global.u32 [%x], 1; fence.acq_rel.gpu; st.release.cta.global.u32 [%z], 1;";
    let learns = "ld.acquire.cta.global.u32 %a, [%z]; setp.ne.u32 %p2, %a, 1; @%p2 bra END;";
    let leader =
        |before: &str, after: &str| format!("{before} {learns} {after} st.relaxed.gpu.global.u32 [%y], 1;");
    let reader = format!("ld.acquire.gpu.global.u32 %a, [%y]; {THEN_X}");
    let fence = "fence.acq_rel.gpu;";
    run(Placement::Block, &[writer, &leader("", fence), &reader]).clean().sometimes(&[&[], &[], &[1, 1]]);
    run(Placement::Block, &[writer, &leader(fence, ""), &reader]).found(Race);
}
