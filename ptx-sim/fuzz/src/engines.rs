//! A kernel that does what its arguments say: one step after the other of those that synchronise
//! and copy, with whatever addresses, counts and bytes, and by some of its threads only.

use std::sync::LazyLock;

use arbitrary::{Result, Unstructured};
use ptx_sim::{Arg, GlobalMemory, LaunchConfig, Module};

use crate::draw::{below, mostly, once_in};
use crate::launch::{BUFFER, Launch, address};
use crate::maps;

/// One byte of the script names one of these in its low five bits.
///
/// `%r1` is the address of an mbarrier, `%r2` and `%r3` of tiles, `%r11` and `%r12` the same in
/// block `%r7` of the cluster; `%d1` is in global memory, `%d2` a tensor map; then bytes, count,
/// parity, and two coordinates.
const STEPS: [&str; 32] = [
    "mbarrier.init.shared::cta.b64 [%r1], %r5;",
    "fence.mbarrier_init.release.cluster;",
    "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r1], %r4;",
    "mbarrier.arrive.shared::cta.b64 _, [%r1], %r5;",
    "mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r1], %r6;",
    "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p1, [%r1], %r6; @!%p1 bra again;",
    "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r11], %r5;",
    "mbarrier.arrive_drop.shared::cta.b64 _, [%r1], %r5;",
    "mbarrier.inval.shared::cta.b64 [%r1];",
    "mbarrier.expect_tx.relaxed.cluster.shared::cluster.b64 [%r11], %r4;",
    "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r2], [%d1], %r4, [%r1];",
    "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%r2], [%d1], %r4, [%r1], %h1;",
    "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%r12], [%r3], %r4, [%r11];",
    "cp.async.bulk.global.shared::cta.bulk_group [%d1], [%r2], %r4;",
    "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%d1], [%r2], %r4;",
    "cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.add.s32 [%r12], [%r3], %r4, [%r11];",
    "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%r2], [%d2, {%r8, %r9}], [%r1];",
    "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster \
        [%r2], [%d2, {%r8, %r9}], [%r1], %h1;",
    "cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%d2, {%r8, %r9}], [%r2];",
    "cp.async.bulk.commit_group; cp.async.bulk.wait_group.read 0;",
    "cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;",
    "fence.proxy.async;",
    "barrier.sync %r6, %r5;",
    "barrier.arrive %r6, %r5;",
    "bar.sync 0;",
    "barrier.cluster.arrive; barrier.cluster.wait;",
    "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.b32 [%r12], %r4, [%r11];",
    "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [%r12], %r4, [%r11];",
    "cp.async.cg.shared.global [%r2], [%d1], 16; cp.async.mbarrier.arrive.noinc.shared.b64 [%r1];",
    "ld.shared.b32 %r4, [%r2]; st.shared::cluster.b32 [%r12], %r4;",
    "atom.global.add.u32 %r4, [%d1], %r4; cp.async.bulk.prefetch.L2.global [%d1], %r4;",
    "exit;",
];

/// Bytes of a script: a step each.
const SCRIPT: usize = 16;

/// The high three bits of a step say who does it: everybody, or those for whom the bit of that
/// number is set in `%r13`.
fn text() -> String {
    let labels: Vec<_> = (0..STEPS.len()).map(|step| format!("step{step}")).collect();
    let steps = STEPS.iter().zip(&labels).map(|(step, label)| format!("{label}:\n{step}\nbra.uni next;\n"));
    let steps: String = steps.collect();
    let labels = labels.join(", ");
    format!(
        ".version 8.6\n.target sm_90a\n.address_size 64\n.extern .shared .align 1024 .b8 shared[];\n\
         .visible .entry steps(.param .u32 barrier, .param .u32 tile, .param .u32 from, .param .u32 bytes,\n\
             .param .u32 count, .param .u32 parity, .param .u32 rank, .param .u32 x, .param .u32 y,\n\
             .param .u64 data, .param .u64 first, .param .u64 second, .param .align 64 .b8 map[128])\n{{\n\
         .reg .pred %p<4>; .reg .b16 %h<2>; .reg .b32 %r<24>; .reg .b64 %d<8>;\n\
         mov.b32 %r10, shared;\n\
         ld.param.u32 %r1, [barrier]; add.u32 %r1, %r1, %r10;\n\
         ld.param.u32 %r2, [tile]; add.u32 %r2, %r2, %r10;\n\
         ld.param.u32 %r3, [from]; add.u32 %r3, %r3, %r10;\n\
         ld.param.u32 %r4, [bytes]; ld.param.u32 %r5, [count]; ld.param.u32 %r6, [parity];\n\
         ld.param.u32 %r7, [rank]; ld.param.u32 %r8, [x]; ld.param.u32 %r9, [y]; cvt.u16.u32 %h1, %r7;\n\
         ld.param.u64 %d1, [data]; ld.param.u64 %d3, [first]; ld.param.u64 %d4, [second];\n\
         mov.b64 %d5, map; cvta.param.u64 %d2, %d5;\n\
         mapa.shared::cluster.u32 %r11, %r1, %r7; mapa.shared::cluster.u32 %r12, %r2, %r7;\n\
         mov.u32 %r14, %tid.x; setp.eq.u32 %p2, %r14, 0; selp.b32 %r13, 31, 15, %p2;\n\
         and.b32 %r15, %r14, 31; setp.eq.u32 %p2, %r15, 0; @%p2 or.b32 %r13, %r13, 32;\n\
         and.b32 %r15, %r14, 1; shl.b32 %r15, %r15, 6; or.b32 %r13, %r13, %r15;\n\
         mov.u32 %r15, %cluster_ctarank; setp.eq.u32 %p2, %r15, 0; @%p2 or.b32 %r13, %r13, 128;\n\
         mov.b32 %r16, 0;\n\
         again:\n\
         setp.ge.u32 %p2, %r16, {SCRIPT}; @%p2 bra done;\n\
         and.b32 %r17, %r16, 7; shl.b32 %r17, %r17, 3;\n\
         setp.lt.u32 %p2, %r16, 8; selp.b64 %d5, %d3, %d4, %p2; shr.u64 %d5, %d5, %r17; cvt.u32.u64 %r17, %d5;\n\
         bfe.u32 %r18, %r17, 5, 3; shr.u32 %r18, %r13, %r18; and.b32 %r18, %r18, 1;\n\
         setp.eq.u32 %p3, %r18, 0; @%p3 bra next;\n\
         and.b32 %r17, %r17, 31;\n\
         targets: .branchtargets {labels};\n\
         brx.idx %r17, targets;\n\
         {steps}next:\nadd.u32 %r16, %r16, 1;\nbra.uni again;\ndone:\nret;\n}}\n"
    )
}

/// The kernel; it is sound, so a test would find that it does not load.
pub(crate) fn module() -> &'static Module {
    static MODULE: LazyLock<Module> = LazyLock::new(|| Module::load(&text()).expect("the kernel loads"));
    &MODULE
}

/// A launch of it with a likely block and cluster.
pub(crate) fn launch(u: &mut Unstructured<'_>) -> Result<Launch> {
    let mut memory = GlobalMemory::default();
    let data = address(&mut memory, u)?;
    let cluster = [*u.choose(&[1, 2, 4])?, 1, 1];
    let threads = *u.choose(&[32, 1, 64, 96])?;
    let word = |value: u64| Arg::Bytes((value as u32).to_le_bytes().into());
    let tile = |u: &mut Unstructured<'_>| {
        let usual = 128 * (1 + below(u, 16)? as u64);
        Ok(word(mostly(u, usual)?))
    };
    let tiles = [tile(u)?, tile(u)?];
    let barrier = 8 * below(u, 3)? as u64;
    let bytes = 16 * below(u, 65)? as u64;
    let count = if once_in(u, 2)? { 32 * (1 + below(u, 3)?) } else { 1 + below(u, 4)? } as u64;
    let numbers = [barrier, bytes, count, below(u, 3)? as u64, below(u, 5)? as u64];
    let mut spoilt = [0; 5];
    for (spoilt, number) in spoilt.iter_mut().zip(numbers) {
        *spoilt = mostly(u, number)?;
    }
    let [barrier, bytes, count, parity, rank] = spoilt.map(word);
    let map = maps::sound(data, BUFFER, 1 + (1 + below(u, 5)?) % 5, u)?;
    let coordinates = [maps::coordinate(u, 64)?, maps::coordinate(u, 6)?].map(|at| word(at.into()));
    let scripts = [u.arbitrary::<u64>()?, u.arbitrary::<u64>()?].map(|script| script.to_le_bytes().into());
    let mut args = vec![barrier];
    args.extend(tiles);
    args.extend([bytes, count, parity, rank]);
    args.extend(coordinates);
    args.push(Arg::Address(data));
    args.extend(scripts.map(Arg::Bytes));
    args.push(Arg::Map(map));
    let config = LaunchConfig {
        grid: [cluster[0] * (1 + below(u, 2)? as u32), 1, 1],
        block: [threads, 1, 1],
        cluster,
        dynamic_shared_bytes: 8192,
        ..LaunchConfig::default()
    };
    Ok(Launch { module: module(), name: "steps".to_owned(), config, memory, args })
}
