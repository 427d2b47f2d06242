//! Copies that may overtake earlier accesses of threads: reads of the memory that they write, and
//! writes.

use super::proxies::{ADD, FENCE, STORE, store};
use super::{Placement, run, run_with};
use ptx_sim::FindingKind::MissingProxyFence;
use ptx_sim::{Checks, GlobalOrder};

/// Synchronises with the other block of the cluster.
const CLUSTER_BARRIER: &str = "barrier.cluster.arrive; barrier.cluster.wait;";

/// Returns a read, `between`, and a copy that replaces the value that was read.
fn replaced(between: &str) -> String {
    format!("ld.global.u32 %a, [%x];\n{between}\n{}", store(STORE))
}

#[test]
fn a_copy_may_overtake_a_read() {
    // `store` includes a fence of shared memory, which does not suffice.
    run(Placement::SeparateClusters, &[&replaced("")]).always_found(MissingProxyFence).sometimes(&[&[0]]);
    run(Placement::SeparateClusters, &[&replaced("fence.proxy.async.shared::cta;")]).found(MissingProxyFence);
    run(Placement::SeparateClusters, &[&replaced("").replace(STORE, ADD)]).always_found(MissingProxyFence);
    run(Placement::SeparateClusters, &[&replaced(FENCE)]).clean();
    run(Placement::SeparateClusters, &[&replaced("fence.proxy.async;")]).clean();
    // The same holds if order in global memory is not checked.
    let checks = Checks { global_order: GlobalOrder::Never, ..Checks::ALL };
    run_with(checks, Placement::SeparateClusters, &[&replaced("")]).always_found(MissingProxyFence);
    run_with(checks, Placement::SeparateClusters, &[&replaced(FENCE)]).clean();
}

#[test]
fn a_barrier_does_not_order_a_read_before_a_copy() {
    let copy = |fence: &str| format!("{CLUSTER_BARRIER} {fence} {}", store(STORE));
    let read = |fence: &str| format!("ld.global.u32 %a, [%x]; {fence} {CLUSTER_BARRIER}");
    run(Placement::Cluster, &[&read(""), &copy("")]).always_found(MissingProxyFence);
    run(Placement::Cluster, &[&read(FENCE), &copy("")]).clean();
    run(Placement::Cluster, &[&read(""), &copy(FENCE)]).clean();
    // A later read by another thread that has completed does not hide this one.
    let used = format!("ld.global.u32 %a, [%x]; st.shared.u32 [tile], %a;\n{}", store(STORE));
    run(Placement::Cluster, &[&read(""), &format!("{CLUSTER_BARRIER} {used}")])
        .always_found(MissingProxyFence);
}

#[test]
fn used_values_were_read() {
    let uses = [
        "st.shared.u32 [tile], %a;",
        "add.u32 %r4, %a, 1; mul.lo.u32 %r4, %r4, 3; st.shared.u32 [tile], %r4;",
        "st.global.u32 [%y], %a;",
        "red.global.add.u32 [%y], %a;",
        "shfl.sync.idx.b32 %r4, %a, 0, 31, 1;",
        "setp.ne.u32 %p2, %a, 0; vote.sync.any.pred %p3, %p2, 1;",
        "setp.ne.u32 %p2, %a, 0; @%p2 bra END;",
        "setp.ne.u32 %p2, %a, 0; @%p2 st.global.u32 [%y], 1;",
        "and.b32 %r4, %a, 4; cvt.u64.u32 %d3, %r4; add.u64 %d3, %d3, %y; ld.global.u32 %r5, [%d3];",
    ];
    for used in uses {
        run(Placement::SeparateClusters, &[&replaced(used)]).clean();
        let copy = format!("{CLUSTER_BARRIER} {}", store(STORE));
        let reader = format!("ld.global.u32 %a, [%x];\n{used} {CLUSTER_BARRIER}");
        run(Placement::Cluster, &[&reader, &copy]).clean();
        // Here the copy is not ordered after the use.
        let late = format!("ld.global.u32 %a, [%x];\n{CLUSTER_BARRIER} {used}");
        run(Placement::Cluster, &[&late, &copy]).always_found(MissingProxyFence);
    }
}

#[test]
fn deferrable_instructions_are_no_uses() {
    let others = [
        "add.u32 %a, %a, 1;",
        "setp.ne.u32 %p2, %a, 0; selp.u32 %a, 1, 2, %p2;",
        "setp.ne.u32 %p2, %a, 0; @%p2 mov.u32 %a, 3;",
        // Another value.
        "ld.global.u32 %b, [%y];\nst.shared.u32 [tile], %b;",
        // A use under a guard.
        "setp.ne.u32 %p2, %r1, 0; @%p2 st.shared.u32 [tile], %a;",
    ];
    for other in others {
        run(Placement::SeparateClusters, &[&replaced(other)]).always_found(MissingProxyFence);
    }
    let after = format!("{} st.shared.u32 [tile], %a;", replaced(""));
    run(Placement::SeparateClusters, &[&after]).always_found(MissingProxyFence);
}

#[test]
fn each_iteration_has_its_own_reads() {
    let passes = |read: &str| {
        format!(
            "mov.u32 %r4, 0; mov.u64 %d3, %x;\nagain: ld.global.u32 %a, [%d3];\n{read}\n\
             fence.proxy.async.shared::cta;\n{STORE} [%d3], [tile], 16; cp.async.bulk.commit_group;\n\
             cp.async.bulk.wait_group 0;\nadd.u64 %d3, %d3, 16; add.u32 %r4, %r4, 1;\n\
             setp.lt.u32 %p2, %r4, 3; @%p2 bra again;"
        )
    };
    let fill = "st.shared.v4.u32 [tile], {%r4, %r4, %r4, %r4};";
    let used = "st.shared.v4.u32 [tile], {%a, %a, %a, %a};";
    run(Placement::SeparateClusters, &[&passes(used)]).clean();
    run(Placement::SeparateClusters, &[&passes(fill)]).always_found(MissingProxyFence);
    let second = "setp.eq.u32 %p3, %r4, 1; @%p3 st.shared.u32 [tile], %a;";
    run(Placement::SeparateClusters, &[&passes(&format!("{fill} {second}"))]).always_found(MissingProxyFence);
}

#[test]
fn copies_of_other_clusters_overtake_as_well() {
    let copy = |fence: &str| {
        let body = store(STORE);
        format!("ld.acquire.gpu.global.u32 %c, [%y]; setp.ne.u32 %p2, %c, 1; @%p2 bra END; {fence}\n{body}")
    };
    let read =
        |between: &str| format!("ld.global.u32 %a, [%x];\n{between} st.release.gpu.global.u32 [%y], 1;");
    run(Placement::SeparateClusters, &[&read(""), &copy("")]).found(MissingProxyFence);
    run(Placement::SeparateClusters, &[&read(""), &copy(FENCE)]).clean();
    run(Placement::SeparateClusters, &[&read(FENCE), &copy("")]).clean();
    run(Placement::SeparateClusters, &[&read("st.global.u32 [%z], %a;"), &copy("")]).clean();
}

#[test]
fn a_copy_in_the_generic_proxy_that_is_complete_has_read() {
    let copied =
        "cp.async.ca.shared.global [tile], [%x], 16; cp.async.wait_all; fence.proxy.async.shared::cta;";
    let right =
        format!("{copied} {STORE} [%x], [tile], 16; cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;");
    run(Placement::SeparateClusters, &[&right]).clean();
}

/// A copy that replaces a value that a thread wrote may overtake the write.
#[test]
fn a_copy_may_precede_a_write() {
    let write = |fence: &str| format!("st.global.u32 [%x], 7; {fence}\n{}", store(STORE));
    run(Placement::SeparateClusters, &[&write("")]).always_found(MissingProxyFence);
    run(Placement::SeparateClusters, &[&write("fence.proxy.async.shared::cta;")]).found(MissingProxyFence);
    run(Placement::SeparateClusters, &[&write(FENCE)]).clean();
    run(Placement::SeparateClusters, &[&write("fence.proxy.async;")]).clean();
    let checks = Checks { global_order: GlobalOrder::Never, ..Checks::ALL };
    run_with(checks, Placement::SeparateClusters, &[&write("")]).always_found(MissingProxyFence);
}
