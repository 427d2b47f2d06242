//! Copies in the asynchronous proxy, and earlier writes by threads.

use super::{Placement, run, run_with};
use ptx_sim::FindingKind::{MissingProxyFence, MixedProxies, Race};
use ptx_sim::{Checks, GlobalOrder};

pub(super) const FENCE: &str = "fence.proxy.async.global;";

/// Loads 16 bytes at `x`, and reads the first word into `%b`.
fn load(before: &str) -> String {
    format!(
        "mbarrier.init.shared::cta.b64 [bar], 1; fence.mbarrier_init.release.cluster; {before}\n\
         mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 16;\n\
         cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [tile], [%x], 16, [bar];\n\
         poll: mbarrier.try_wait.parity.shared::cta.b64 %p3, [bar], 0; @!%p3 bra poll; ld.shared.u32 %b, [tile];"
    )
}

/// Stores 16 bytes to `x` with this copy instruction.
pub(super) fn store(copy: &str) -> String {
    format!(
        "mov.u32 %r3, 1; st.shared.v4.u32 [tile], {{%r3, %r3, %r3, %r3}}; fence.proxy.async.shared::cta;\n\
         {copy} [%x], [tile], 16; cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;"
    )
}

pub(super) const STORE: &str = "cp.async.bulk.global.shared::cta.bulk_group";
pub(super) const ADD: &str = "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32";

#[test]
fn a_copy_of_data_of_its_own_thread_requires_a_fence() {
    run(Placement::SeparateClusters, &[&load(&format!("st.global.u32 [%x], 7; {FENCE}"))])
        .clean()
        .never(&[&[0, 0]]);
    run(Placement::SeparateClusters, &[&load("st.global.u32 [%x], 7;")]).always_found(MissingProxyFence);
    // A fence of shared memory does not suffice. One of all memory does.
    run(Placement::SeparateClusters, &[&load("st.global.u32 [%x], 7; fence.proxy.async.shared::cta;")])
        .found(MissingProxyFence);
    run(Placement::SeparateClusters, &[&load("st.global.u32 [%x], 7; fence.proxy.async;")]).clean();
    // The same is found if order in global memory is not checked, and nothing else is.
    let checks = Checks { global_order: GlobalOrder::Never, ..Checks::ALL };
    run_with(checks, Placement::SeparateClusters, &[&load("st.global.u32 [%x], 7;")])
        .always_found(MissingProxyFence);
    let race = ["st.global.u32 [%x], 1;", &load("")];
    run_with(checks, Placement::SeparateClusters, &race).clean();
    run_with(checks, Placement::Block, &race).clean();
}

#[test]
fn a_copy_of_data_of_another_cluster_requires_a_fence_after_the_acquire() {
    let reader = |before: &str, after: &str| {
        let body = load(after);
        format!("{before} ld.acquire.gpu.global.u32 %a, [%y]; setp.ne.u32 %p2, %a, 1; @%p2 bra END;\n{body}")
    };
    let writer = |fence: &str| format!("st.global.u32 [%x], 7; {fence} st.release.gpu.global.u32 [%y], 1;");
    let both = |fence: &str, before: &str, after: &str| {
        run(Placement::SeparateClusters, &[&writer(fence), &reader(before, after)])
    };
    both("", "", FENCE).clean().never(&[&[], &[1, 0]]).sometimes(&[&[], &[1, 7]]);
    both("", "", "").found(MissingProxyFence);
    both("", FENCE, "").found(MissingProxyFence);
    // A fence in the writer only: the PTX ISA does not decide this.
    both(FENCE, "", "").clean();
}

#[test]
fn a_store_that_is_complete_can_be_released() {
    let reader = format!("ld.acquire.gpu.global.u32 %a, [%y]; {}", super::THEN_X);
    let right = format!("{} st.release.gpu.global.u32 [%y], 1;", store(STORE));
    run(Placement::SeparateClusters, &[&right, &reader])
        .clean()
        .never(&[&[], &[1, 0]])
        .sometimes(&[&[], &[1, 1]]);
    let read_only = right.replace("wait_group 0", "wait_group.read 0");
    run(Placement::SeparateClusters, &[&read_only, &reader]).found(Race);
}

#[test]
fn copies_of_clusters_race_as_threads_do() {
    run(Placement::SeparateClusters, &[&store(STORE), "ld.global.u32 %a, [%x];"]).always_found(Race);
    run(Placement::SeparateClusters, &[&store(STORE), "st.global.u32 [%x], 9;"]).always_found(Race);
    run(Placement::SeparateClusters, &[&load(""), "st.global.u32 [%x], 9;"]).always_found(Race);
    // Equal values.
    run(Placement::SeparateClusters, &[&store(STORE), &store(STORE)]).clean();
    run(Placement::SeparateClusters, &[&store(STORE), "st.global.u32 [%x], 1;"]).clean();
}

#[test]
fn reductions_commute_only_with_reductions() {
    run(Placement::SeparateClusters, &[&store(ADD), &store(ADD)]).clean();
    run(Placement::SeparateClusters, &[&store(ADD), "red.global.add.u32 [%x], 1;"])
        .always_found(MixedProxies);
    run(Placement::SeparateClusters, &[&store(ADD), "st.global.u32 [%x], 1;"]).always_found(Race);
    run(Placement::SeparateClusters, &[&store(ADD), &store(STORE)]).always_found(Race);
}
