//! A launch that ends early always says why: the type that stops it can only be made from a
//! finding. These tests cover each way in which a kernel can be stopped.

use crate::pairs::{block, cluster};
use ptx_sim::FindingKind::{
    self, BarrierMisuse, Deadlock, DivergentBarrier, Execution, IllegalCopy, InstructionLimit, Misaligned,
    OutOfBounds, TransactionBytes, Trap,
};

/// A kernel that ends normally or, with the text after `||`, is stopped before.
const ENDS: [(FindingKind, &str); 19] = [
    (Trap, "[[||trap;]]"),
    (OutOfBounds, "ld.global.u32 %r9, [%d2[[||+4096]]];"),
    (OutOfBounds, "st.shared.u32 [dyn[[||+4096]]], %r1;"),
    (OutOfBounds, "[[||mov.u64 %d4, 64; ld.global.u32 %r9, [%d4];]]"),
    (OutOfBounds, "[[||ld.local.u32 %r9, [4096];]]"),
    (Misaligned, "ld.global.u32 %r9, [%d2[[||+2]]];"),
    (
        BarrierMisuse,
        "[[mbarrier.init.shared::cta.b64 [dyn], 1;]] mbarrier.arrive.shared::cta.b64 %d4, [dyn];",
    ),
    (BarrierMisuse, "mbarrier.init.shared::cta.b64 [dyn], [[1||0]];"),
    (
        BarrierMisuse,
        "[[||mbarrier.init.shared::cta.b64 [dyn], 1; mbarrier.arrive.shared::cta.b64 %d4, [dyn], 2;]]",
    ),
    (
        TransactionBytes,
        "[[||mbarrier.init.shared::cta.b64 [dyn], 1; mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [dyn], 1048576;]]",
    ),
    (
        Deadlock,
        "[[||mbarrier.init.shared::cta.b64 [dyn], 1; wait: mbarrier.try_wait.parity.shared::cta.b64 %p1, [dyn], 0; @!%p1 bra wait;]]",
    ),
    (Deadlock, "[[||forever: bra forever;]]"),
    (InstructionLimit, "[[||mov.u32 %r10, 0; forever: add.u32 %r10, %r10, 1; bra forever;]]"),
    (DivergentBarrier, "[[||mov.u32 %r10, 16; bar.sync %r10;]]"),
    (DivergentBarrier, "[[||barrier.cluster.arrive;]] barrier.cluster.arrive; barrier.cluster.wait;"),
    (DivergentBarrier, "[[barrier.cluster.arrive;]] barrier.cluster.wait;"),
    (Execution, "[[||shfl.sync.idx.b32 %r9, %r1, 0, 31, 0;]]"),
    (IllegalCopy, "[[||mov.u32 %r10, 8; cp.async.bulk.prefetch.L2.global [%d2], %r10;]]"),
    (
        IllegalCopy,
        "[[||mov.u32 %r10, 8; cp.async.ca.shared.global [dyn], [%d2], 4, %r10;]] cp.async.wait_all;",
    ),
];

#[test]
fn every_early_end_has_a_finding() {
    for (kind, body) in ENDS {
        for seed in 0..4 {
            let kernel = cluster(1, 1, body);
            let (report, module, _) = kernel.run(true, seed);
            let text = report.findings.render(&module.sources(|_| None));
            assert!(!report.stopped, "seed {seed}, {body}:\n{text}");
            let (report, module, _) = kernel.run(false, seed);
            let text = report.findings.render(&module.sources(|_| None));
            assert!(report.stopped, "seed {seed}, {body}:\n{text}");
            assert!(
                report.findings.iter().any(|finding| finding.kind == kind),
                "seed {seed}, {body}:\n{text}"
            );
        }
    }
}

#[test]
fn a_used_up_limit_is_no_deadlock() {
    let kernel = block(32, "mov.u32 %r10, 0; forever: add.u32 %r10, %r10, 1; [[||bra forever;]]");
    kernel.returns(|_, _| 0);
    let text = kernel.lacks(InstructionLimit);
    assert!(!text.contains("deadlock"), "{text}");
}

#[test]
fn nonfatal_errors_do_not_stop_the_launch() {
    let kernel = block(64, "st.shared.u32 [dyn], %r1; [[||ld.shared.u32 %r9, [dyn+8];]]");
    let (report, ..) = kernel.run(false, 0);
    assert!(!report.stopped && !report.findings.is_empty());
}
