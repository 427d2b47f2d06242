//! The location of shared memory: after the bytes that the system reserves, as on an H200, where
//! the first variable of a block is at address 1024.

use ptx_sim::{Arg, FindingKind, GlobalMemory, LaunchConfig, MOST_SHARED_BYTES, Module, Report, launch};

/// Returns a kernel in which a warp of each block runs `body`, and the first thread of each block
/// stores `%r1` to `%r4`.
fn kernel(variables: &str, body: &str) -> Module {
    let text = format!(
        ".version 8.6\n.target sm_90a\n.address_size 64\n.extern .shared .align 16 .b8 dyn[];\n\
         .visible .entry k(.param .u64 out)\n{{\n{variables}\n\
         .reg .pred %p; .reg .b32 %r<9>; .reg .b64 %d<9>;\n\
         mov.u32 %r1, 0; mov.u32 %r2, 0; mov.u32 %r3, 0; mov.u32 %r4, 0;\n{body}\n\
         ld.param.u64 %d1, [out]; mov.u32 %r8, %cluster_ctarank; mul.wide.u32 %d2, %r8, 16; add.u64 %d1, %d1, %d2;\n\
         st.global.v4.u32 [%d1], {{%r1, %r2, %r3, %r4}};\nret;\n}}\n"
    );
    Module::load(&text).expect("it loads")
}

/// Returns the words that each block stored, and the report.
fn run(module: &Module, blocks: u32, dynamic_shared_bytes: u32) -> (Vec<u32>, Report) {
    let mut memory = GlobalMemory::default();
    let out = memory.allocate(16 * u64::from(blocks), true).expect("there is room");
    let cluster = [blocks, 1, 1];
    let config = LaunchConfig { grid: cluster, cluster, dynamic_shared_bytes, ..LaunchConfig::default() };
    let report = launch(module, &mut memory, "k", &config, &[Arg::Address(out)]).expect("it starts");
    let mut bytes = vec![0; 16 * blocks as usize];
    memory.read(out, &mut bytes).expect("it is there");
    let words = bytes.chunks(4).map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]]));
    (words.collect(), report)
}

fn words(variables: &str, body: &str, dynamic_shared_bytes: u32) -> Vec<u32> {
    let (words, report) = run(&kernel(variables, body), 1, dynamic_shared_bytes);
    assert!(report.findings.is_empty(), "{:?}", report.findings);
    words
}

/// Returns the kind and text of the only finding.
fn refused(variables: &str, body: &str, dynamic_shared_bytes: u32) -> (FindingKind, String) {
    let module = kernel(variables, body);
    let (_, report) = run(&module, 1, dynamic_shared_bytes);
    assert_eq!(report.findings.iter().count(), 1, "{:?}", report.findings);
    let kind = report.findings.iter().next().expect("it is found").kind;
    (kind, report.findings.render(&module.sources(|_| None)))
}

#[test]
fn variables_start_after_the_reserved_bytes() {
    let variables = ".shared .align 8 .b8 first[8]; .shared .align 1024 .b8 tile[1024];";
    let addresses = "mov.u32 %r1, first; mov.u32 %r2, tile; mov.u32 %r3, dyn;\n\
                     mov.u64 %d4, tile; cvta.shared.u64 %d4, %d4;\n\
                     cvta.to.shared.u64 %d4, %d4; cvt.u32.u64 %r4, %d4;";
    assert_eq!(words(variables, addresses, 64), [1024, 2048, 3072, 2048]);
    assert_eq!(words("", "mov.u32 %r3, dyn;", 64), [0, 0, 1024, 0], "without static variables");
}

#[test]
fn special_registers_have_the_sizes() {
    let variables = ".shared .align 4 .b8 some[100];";
    let read = "mov.u32 %r5, some; mov.u32 %r6, dyn; mov.u32 %r1, %total_smem_size; mov.u32 %r2, %dynamic_smem_size;\n\
                mov.u32 %r3, %aggr_smem_size; sub.u32 %r4, %r6, %r5;";
    // 112 static bytes, including the padding that aligns the dynamic part, and 256 dynamic bytes,
    // in units of 128 bytes; and the same with the reserved bytes.
    assert_eq!(words(variables, read, 256), [384, 256, 1408, 112]);
    let read = "mov.u32 %r1, %reserved_smem_offset_begin; mov.u32 %r2, %reserved_smem_offset_end;\n\
                mov.u32 %r3, %reserved_smem_offset_cap;";
    assert_eq!(words("", read, 0), [0, 1024, 1024, 0]);
}

#[test]
fn reserved_shared_memory_is_rejected() {
    for address in [0, 4, 1020] {
        let (kind, text) = refused("", &format!("mov.u32 %r5, {address}; st.shared.u32 [%r5], %r1;"), 64);
        assert_eq!(kind, FindingKind::OutOfBounds, "{text}");
        let wanted = format!("4 bytes at {address:#x} of shared memory, but a block has only 0x400 to 0x440");
        assert!(text.contains(&wanted) && text.contains("the first 1024 bytes"), "{text}");
    }
    let barrier = "mov.u32 %r5, 0; mbarrier.init.shared.b64 [%r5], 1;";
    assert_eq!(refused("", barrier, 64).0, FindingKind::OutOfBounds);
    words("", "mov.u32 %r5, 1024; st.shared.u32 [%r5], %r1; st.shared.u32 [%r5+60], %r1;", 64);
}

#[test]
fn all_of_227_kib_can_be_used_and_no_more() {
    let last = "mov.u32 %r5, dyn; st.shared.u32 [%r5+232444], %r1; ld.shared.u32 %r2, [%r5+232444];";
    words("", last, MOST_SHARED_BYTES);
    let beyond = "mov.u32 %r5, dyn; st.shared.u32 [%r5+232448], %r1;";
    let (kind, text) = refused("", beyond, MOST_SHARED_BYTES);
    assert_eq!(kind, FindingKind::OutOfBounds, "{text}");
    assert!(text.contains("at 0x39000 of shared memory, but a block has only 0x400 to 0x39000"), "{text}");
    let config = LaunchConfig { dynamic_shared_bytes: MOST_SHARED_BYTES + 1, ..LaunchConfig::default() };
    let more = launch(&kernel("", ""), &mut GlobalMemory::default(), "k", &config, &[Arg::Address(0)]);
    let error = more.expect_err("no block has as much").to_string();
    assert!(error.contains("at most 232448 bytes of shared memory, not 232449"), "{error}");
}

/// `mapa` keeps the offset, so the other block's variable is also at 1024 there.
#[test]
fn a_cluster_has_the_same_addresses_in_each_block() {
    let body = "mov.u32 %r5, dyn; mov.u32 %r6, %cluster_ctarank; add.u32 %r7, %r6, 40; st.shared.u32 [%r5], %r7;\n\
                barrier.cluster.arrive; barrier.cluster.wait; xor.b32 %r6, %r6, 1;\n\
                mapa.shared::cluster.u32 %r7, %r5, %r6; ld.shared::cluster.u32 %r1, [%r7]; and.b32 %r2, %r7, 0xffff;\n\
                barrier.cluster.arrive; barrier.cluster.wait;";
    let (words, report) = run(&kernel("", body), 2, 64);
    assert!(report.findings.is_empty(), "{:?}", report.findings);
    assert_eq!(words, [41, 1024, 0, 0, 40, 1024, 0, 0]);
    let body = "mov.u32 %r5, 0; mapa.shared::cluster.u32 %r7, %r5, 1; ld.shared::cluster.u32 %r1, [%r7];\n\
                barrier.cluster.arrive; barrier.cluster.wait;";
    let (_, report) = run(&kernel("", body), 2, 64);
    assert!(report.findings.iter().any(|finding| finding.kind == FindingKind::OutOfBounds));
}

/// An address holds the block's rank above the 24-bit offset, as on an H200. This includes the
/// address of a variable, without any `mapa`.
#[test]
fn addresses_hold_the_rank_of_their_block() {
    const RANK: u32 = 1 << 24;
    let body = "mov.u32 %r1, dyn; mapa.shared::cluster.u32 %r2, %r1, 1; cvta.shared.u64 %d4, dyn;\n\
                mapa.u64 %d4, %d4, 0; cvta.to.shared.u64 %d4, %d4; cvt.u32.u64 %r3, %d4;\n\
                getctarank.shared::cluster.u32 %r4, %r1; getctarank.shared::cluster.u32 %r5, %r2;\n\
                mad.lo.u32 %r4, %r4, 10, %r5;";
    let (words, report) = run(&kernel("", body), 2, 64);
    assert!(report.findings.is_empty(), "{:?}", report.findings);
    assert_eq!(words, [1024, RANK + 1024, 1024, 1, RANK + 1024, RANK + 1024, 1024, 11]);
}

/// An address that one block passes to another keeps its meaning there.
#[test]
fn an_address_is_of_its_block_wherever_it_is_used() {
    let published = "mov.u32 %r5, dyn; mov.u32 %r6, %cluster_ctarank; add.u32 %r7, %r6, 40; st.shared.u32 [dyn], %r7;\n\
                xor.b32 %r6, %r6, 1; mapa.shared::cluster.u32 %r7, %r5, %r6; st.shared::cluster.u32 [%r7+4], %r5;\n\
                barrier.cluster.arrive; barrier.cluster.wait; ld.shared.u32 %r6, [dyn+4];\n\
                ld.shared::cluster.u32 %r1, [%r6]; barrier.cluster.arrive; barrier.cluster.wait;";
    let (words, report) = run(&kernel("", published), 2, 64);
    assert!(report.findings.is_empty(), "{:?}", report.findings);
    assert_eq!(words, [41, 0, 0, 0, 40, 0, 0, 0]);
    // The receiver cannot use it as an address of its own block.
    let as_own = published.replace("ld.shared::cluster.u32 %r1", "ld.shared.u32 %r1");
    let (_, report) = run(&kernel("", &as_own), 2, 64);
    assert!(report.findings.iter().any(|finding| finding.kind == FindingKind::OutOfBounds));
}
