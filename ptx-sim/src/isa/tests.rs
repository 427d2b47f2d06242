//! The facts of instructions, which are given as text.

use super::facts::OpFootprint;
use super::{AccessOrder, Class, Effect, Facts, MemoryFence, MemoryScope, Op, Order, Synchronization, Wait};
use crate::module::Module;

/// Each instruction with its class, the memory it reads and writes, its effect, and whether it
/// signals or what it waits for.
const FACTS: [(&str, &str); 52] = [
    ("add.u32 %r1, %r2, 1", "Integer: reads nothing, writes nothing; Local"),
    ("setp.lt.f32 %p1, %f1, %f2", "Float: reads nothing, writes nothing; Local"),
    ("cvt.rzi.u32.f32 %r1, %f1", "Convert: reads nothing, writes nothing; Local"),
    ("mov.u32 %r1, %clock", "Integer: reads nothing, writes nothing; Visible"),
    ("activemask.b32 %r1", "Integer: reads nothing, writes nothing; Visible"),
    ("cvta.shared.u64 %rd1, %rd2", "Integer: reads nothing, writes nothing; Local"),
    (
        "ld.shared.v4.u32 {%r1, %r2, %r3, %r4}, [%r5]",
        "Load(Shared): reads 16 bytes of Machine(Shared), writes nothing; Local",
    ),
    (
        "ld.acquire.gpu.global.u32 %r1, [%rd1]",
        "Load(Global): reads 4 bytes of Machine(Global), writes nothing; Local",
    ),
    ("st.global.u32 [%rd1], %r1", "Store(Global): reads nothing, writes 4 bytes of Machine(Global); Visible"),
    ("st.local.u32 [%rd1], %r1", "Store(Local): reads nothing, writes 4 bytes of Local; Local"),
    (
        "atom.shared.add.u32 %r1, [%r2], %r3",
        "Atomic(Shared): reads 4 bytes of Machine(Shared), writes 4 bytes of Machine(Shared); Reported",
    ),
    (
        "red.global.add.u64 [%rd1], %rd2",
        "Atomic(Global): reads 8 bytes of Machine(Global), writes 8 bytes of Machine(Global); Reported",
    ),
    (
        "atom.global.v2.f32.add {%f1, %f2}, [%rd1], {%f1, %f2}",
        "Atomic(Global): reads 8 bytes of Machine(Global), writes 8 bytes of Machine(Global); Reported",
    ),
    ("discard.global.L2 [%rd1], 128", "Control: reads nothing, writes 128 bytes of Machine(Global); Visible"),
    ("applypriority.global.L2::evict_normal [%rd1], 128", "Control: reads nothing, writes nothing; Visible"),
    (
        "shfl.sync.idx.b32 %r1, %r2, 0, 31, -1",
        "Warp: reads nothing, writes nothing; Local; waits for Exchange",
    ),
    ("bar.warp.sync -1", "Warp: reads nothing, writes nothing; Visible; waits for WarpBarrier"),
    (
        "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r1}, [%r2]",
        "Warp: reads an object, writes nothing; Visible; waits for Exchange",
    ),
    (
        "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%f1, %f2, %f3, %f4}, {%r1, %r2}, {%r3}, {%f1, %f2, %f3, %f4}",
        "Tensor: reads nothing, writes nothing; Local; waits for Exchange",
    ),
    (
        "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%rd1, %rd2}, {%rd3}, {%rd4}, {%rd1, %rd2}",
        "Tensor: reads nothing, writes nothing; Local; waits for Exchange",
    ),
    ("wgmma.fence.sync.aligned", "Tensor: reads nothing, writes nothing; Local; signals"),
    (
        "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%r1, %r2, %r3, %r4}, %rd1, %rd2, 1, 1, 1, 0, 0",
        "Tensor: reads an object, writes nothing; Visible; signals",
    ),
    ("wgmma.commit_group.sync.aligned", "Tensor: reads nothing, writes nothing; Visible; signals"),
    (
        "wgmma.wait_group.sync.aligned 1",
        "Tensor: reads nothing, writes nothing; Visible; waits for MultiplyGroups(1)",
    ),
    ("setmaxnreg.dec.sync.aligned.u32 24", "Control: reads nothing, writes nothing; Visible; signals"),
    (
        "setmaxnreg.inc.sync.aligned.u32 240",
        "Control: reads nothing, writes nothing; Visible; waits for Registers(240)",
    ),
    ("bar.sync 0", "Barrier: reads nothing, writes nothing; Visible; waits for Barrier"),
    ("barrier.arrive 0, 64", "Barrier: reads nothing, writes nothing; Visible; signals"),
    ("barrier.cluster.arrive", "Barrier: reads nothing, writes nothing; Visible; signals"),
    ("barrier.cluster.wait", "Barrier: reads nothing, writes nothing; Visible; waits for Cluster"),
    ("mbarrier.init.shared.b64 [%r1], 1", "Mbarrier: reads an object, writes an object; Visible; signals"),
    (
        "mbarrier.arrive.shared.b64 %rd1, [%r1]",
        "Mbarrier: reads an object, writes an object; Visible; signals",
    ),
    (
        "mbarrier.test_wait.parity.shared.b64 %p1, [%r1], 0",
        "Mbarrier: reads an object, writes nothing; Local; waits for Mbarrier",
    ),
    ("mbarrier.pending_count.b64 %r1, %rd1", "Mbarrier: reads nothing, writes nothing; Local"),
    ("fence.proxy.async", "Fence: reads nothing, writes nothing; Local; signals"),
    ("cp.async.ca.shared.global [%r1], [%rd1], 4", "Copy: reads Global, writes Shared; Visible; signals"),
    ("cp.async.commit_group", "BulkGroup: reads nothing, writes nothing; Visible; signals"),
    (
        "cp.async.wait_group 1",
        "BulkGroup: reads nothing, writes nothing; Visible; waits for AsyncGroups(Some(1))",
    ),
    (
        "cp.async.mbarrier.arrive.shared.b64 [%r1]",
        "Mbarrier: reads nothing, writes an object; Visible; signals",
    ),
    (
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%rd1], 16, [%r2]",
        "Copy: reads Global, writes SharedCluster; Visible; signals",
    ),
    (
        "cp.async.bulk.global.shared::cta.bulk_group [%rd1], [%r1], 16",
        "Copy: reads Shared, writes Global; Visible; signals",
    ),
    (
        "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%rd1], [%r1], 16",
        "Copy: reads Shared, writes Global, combined; Visible; signals",
    ),
    (
        "cp.async.bulk.tensor.1d.global.shared::cta.bulk_group [%rd1, {%r1}], [%r2]",
        "Copy: reads Shared, writes Global; Visible; signals",
    ),
    ("cp.async.bulk.prefetch.L2.global [%rd1], 16", "Copy: reads Global, writes nothing; Visible; signals"),
    (
        "st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%r1], %r2, [%r3]",
        "Copy: reads nothing, writes SharedCluster; Visible; signals",
    ),
    ("cp.async.bulk.commit_group", "BulkGroup: reads nothing, writes nothing; Visible; signals"),
    (
        "cp.async.bulk.wait_group.read 0",
        "BulkGroup: reads nothing, writes nothing; Visible; waits for BulkGroups { pending: 0, read: true }",
    ),
    (
        "tensormap.replace.tile.rank.global.b1024.b32 [%rd1], 1",
        "Store(Global): reads an object, writes an object; Visible",
    ),
    ("bra $next", "Control: reads nothing, writes nothing; Local"),
    ("trap", "Control: reads nothing, writes nothing; Visible"),
    ("exit", "Control: reads nothing, writes nothing; Visible"),
    ("nanosleep.u32 20", "Control: reads nothing, writes nothing; Local"),
];

fn text(instruction: &str) -> String {
    format!(
        ".version 8.6\n.target sm_90a\n.address_size 64\n.visible .entry k() {{\n  .reg .b32 %r<8>;\n  \
         .reg .b64 %rd<8>;\n  .reg .b128 %q<4>;\n  .reg .f32 %f<8>;\n  .reg .pred %p<4>;\n  \
         {instruction};\n$next:\n  ret;\n}}\n"
    )
}

fn facts(instruction: &str) -> Facts {
    first_op(instruction).unwrap_or_else(|error| panic!("{instruction}: {error}")).facts()
}

fn shown(facts: &Facts) -> String {
    let footprint = |footprint| match footprint {
        OpFootprint::None => "nothing".to_owned(),
        OpFootprint::Object => "an object".to_owned(),
        OpFootprint::Lane(access) => format!("{} bytes of {:?}", access.bytes, access.memory),
        OpFootprint::Copy(copy) => {
            let combines = if copy.combines { ", combined" } else { "" };
            format!("{:?}{combines}", copy.space)
        }
    };
    let synchronization = match facts.synchronization {
        Synchronization::None => String::new(),
        Synchronization::Signals => "; signals".to_owned(),
        Synchronization::Waits(Wait::Barrier { .. }) => "; waits for Barrier".to_owned(),
        Synchronization::Waits(Wait::Mbarrier { .. }) => "; waits for Mbarrier".to_owned(),
        Synchronization::Waits(Wait::WarpBarrier { .. }) => "; waits for WarpBarrier".to_owned(),
        Synchronization::Waits(wait) => format!("; waits for {wait:?}"),
    };
    let (reads, writes) = (footprint(facts.reads), footprint(facts.writes));
    format!("{:?}: reads {reads}, writes {writes}; {:?}{synchronization}", facts.class, facts.effect)
}

#[test]
fn facts_of_instructions() {
    for (instruction, expected) in FACTS {
        assert_eq!(shown(&facts(instruction)), expected, "{instruction}");
    }
}

#[test]
fn facts_agree_with_each_other() {
    for (instruction, _) in FACTS {
        let facts = facts(instruction);
        let atomic = facts.effect == Effect::Reported;
        assert_eq!(facts.is_atomic(), atomic, "{instruction}: reads and writes at once");
        assert_eq!(matches!(facts.class, Class::Atomic(_)), atomic, "{instruction}");
        assert_eq!(facts.is_branch, instruction.starts_with("bra"), "{instruction}");
        let is_copy = |footprint| matches!(footprint, OpFootprint::Copy(_));
        if is_copy(facts.reads) || is_copy(facts.writes) {
            assert_eq!(facts.class, Class::Copy, "{instruction}");
            assert!(matches!(facts.synchronization, Synchronization::Signals), "{instruction}");
        }
    }
}

/// Returns the opcodes of the instructions for which a fact holds.
fn opcodes(holds: impl Fn(Facts) -> bool) -> Vec<&'static str> {
    let listed = FACTS.iter().filter(|(instruction, _)| holds(facts(instruction)));
    listed.filter_map(|(instruction, _)| instruction.split(' ').next()).collect()
}

fn first_op(instruction: &str) -> Result<Op, String> {
    let ptx = text(instruction);
    let module = Module::load(&ptx).map_err(|error| error.to_string())?;
    Ok(module.kernel("k").expect("it has the kernel").program.code[0].op.clone())
}

#[test]
fn accesses_keep_their_order_and_their_scope() {
    use MemoryScope::{Block, Cluster, Device, System};
    use Order::{AcqRel, Acquire, Relaxed, Release, Weak};
    let all = [
        ("ld.global.u32 %r1, [%rd1]", Weak, None),
        ("ld.weak.global.u32 %r1, [%rd1]", Weak, None),
        ("ld.volatile.global.u32 %r1, [%rd1]", Relaxed, Some(System)),
        ("ld.relaxed.cta.global.u32 %r1, [%rd1]", Relaxed, Some(Block)),
        ("ld.acquire.gpu.global.b64 %rd2, [%rd1]", Acquire, Some(Device)),
        ("ld.acquire.cluster.shared::cluster.b32 %r1, [%r2]", Acquire, Some(Cluster)),
        ("st.relaxed.sys.global.b32 [%rd1], %r1", Relaxed, Some(System)),
        ("st.release.cta.shared.b32 [%r2], %r1", Release, Some(Block)),
        ("atom.global.add.u32 %r1, [%rd1], %r2", Relaxed, Some(Device)),
        ("atom.acq_rel.sys.global.cas.b32 %r1, [%rd1], %r2, %r3", AcqRel, Some(System)),
        ("atom.acquire.cluster.shared::cluster.exch.b32 %r1, [%r2], %r3", Acquire, Some(Cluster)),
        ("red.release.gpu.global.add.u32 [%rd1], %r2", Release, Some(Device)),
        ("red.relaxed.gpu.global.v2.f32.add [%rd1], {%f1, %f2}", Relaxed, Some(Device)),
        ("atom.release.gpu.global.exch.b128 %q1, [%rd1], %q2", Release, Some(Device)),
    ];
    for (instruction, order, scope) in all {
        let expected = AccessOrder { order, scope };
        let found: Vec<_> = facts(instruction).accesses().map(|access| access.order).collect();
        assert!(!found.is_empty(), "{instruction}");
        assert!(found.into_iter().all(|found| found == expected), "{instruction}");
    }
}

#[test]
fn fences_keep_their_order_and_their_scope() {
    use MemoryScope::{Block, Cluster, Device, System};
    let all = [
        ("fence.acq_rel.gpu", Order::AcqRel, false, Device),
        ("fence.cta", Order::AcqRel, false, Block),
        ("fence.acquire.sys", Order::Acquire, false, System),
        ("fence.release.cluster", Order::Release, false, Cluster),
        ("fence.sc.cluster", Order::AcqRel, true, Cluster),
        ("membar.gl", Order::AcqRel, true, Device),
        ("membar.cta", Order::AcqRel, true, Block),
    ];
    for (instruction, order, sequential, scope) in all {
        let op = first_op(instruction).unwrap_or_else(|error| panic!("{instruction}: {error}"));
        let expected = MemoryFence { order, sequential, scope };
        assert!(matches!(op, Op::MemoryFence(found) if found == expected), "{instruction}: {op:?}");
    }
}

#[test]
fn orders_that_an_access_cannot_have_are_refused() {
    let all = [
        ("ld.release.gpu.global.u32 %r1, [%rd1]", "for a load"),
        ("st.acquire.gpu.global.u32 [%rd1], %r1", "for a store"),
        ("st.acq_rel.gpu.global.u32 [%rd1], %r1", "for a store"),
        ("red.acquire.gpu.global.add.u32 [%rd1], %r1", "for a reduction"),
    ];
    for (instruction, expected) in all {
        let error = first_op(instruction).expect_err(instruction);
        assert!(error.contains(expected), "{instruction}: {error}");
    }
}

#[test]
fn clusters_see_an_order_where_global_memory_is_shared() {
    let expected = [
        "ld.acquire.gpu.global.u32",
        "red.global.add.u64",
        "atom.global.v2.f32.add",
        "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32",
    ];
    assert_eq!(opcodes(|facts| facts.is_ordered_in_global()), expected);
}
