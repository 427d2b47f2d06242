//! Data of a tensor copy must be multiplied with the swizzle that it was loaded with, and in the
//! order of its rows.

use crate::common::Matrix;
use ptx_sim::tensor_map::{DataType, Swizzle};
use ptx_sim::{Arg, FindingKind, GlobalMemory, LaunchConfig, Module, launch};

/// Two loads of 32 rows of 128 bytes, and a multiplication whose descriptor has swizzle 1.
const KERNEL: &str = include_str!("findings/swizzle_of_another_tile.ptx");
/// After the wait, each thread overwrites 64 bytes of the tile.
const REWRITTEN: &str = "mad.lo.u32 %r7, %r1, 64, %r2; mov.u32 %r4, 0;
    st.shared.v4.u32 [%r7], {%r4, %r4, %r4, %r4}; st.shared.v4.u32 [%r7+16], {%r4, %r4, %r4, %r4};
    st.shared.v4.u32 [%r7+32], {%r4, %r4, %r4, %r4}; st.shared.v4.u32 [%r7+48], {%r4, %r4, %r4, %r4};
    fence.proxy.async.shared::cta; bar.sync 0;";

fn found(kernel: &str, swizzle: Swizzle) -> Vec<FindingKind> {
    let module = Module::load(kernel).expect("it loads");
    let mut memory = GlobalMemory::default();
    let bytes = [1; 4 * 64 * 128];
    let map = Matrix::new(&mut memory, DataType::U32, [64, 128], Some(&bytes)).map([32, 32], swizzle);
    let out = memory.allocate(4 * 1024, false).expect("there is room");
    let args =
        [Arg::Map(map.clone()), Arg::Map(map), Arg::Address(out), Arg::Bytes(1024_u64.to_le_bytes().into())];
    let config = LaunchConfig { block: [128, 1, 1], ..LaunchConfig::default() };
    let report = launch(&module, &mut memory, "k", &config, &args).expect("it starts");
    report.findings.iter().map(|finding| finding.kind).collect()
}

/// Returns the kernel with another swizzle in its descriptor: 2 is 64 bytes, 3 is 32.
fn with_code(code: u64) -> String {
    let (before, after) = (1 << 62 | 0x40_0001_0000_u64, code << 62 | 0x40_0001_0000);
    let (before, after) = (format!("{before:#018x}"), format!("{after:#018x}"));
    assert!(KERNEL.contains(&before));
    KERNEL.replace(&before, &after)
}

#[test]
fn the_map_and_the_descriptor_have_one_swizzle() {
    assert_eq!(found(&with_code(1), Swizzle::B128), []);
    assert_eq!(found(&with_code(1), Swizzle::None), [FindingKind::SwizzleMismatch]);
    assert_eq!(found(&with_code(2), Swizzle::B128), [FindingKind::SwizzleMismatch]);
    assert_eq!(found(&with_code(3), Swizzle::B128), [FindingKind::SwizzleMismatch]);
}

/// Threads may write data in any layout.
#[test]
fn later_writes_by_threads_clear_the_layout() {
    let rewritten = KERNEL.replace("// 64 rows of", &format!("{REWRITTEN}\n// 64 rows of"));
    assert_ne!(rewritten, KERNEL);
    assert_eq!(found(&rewritten, Swizzle::None), []);
    // Only a part is overwritten.
    let some = rewritten.replace("mad.lo.u32 %r7, %r1, 64, %r2;", "mad.lo.u32 %r7, %r4, 64, %r2;");
    assert!(found(&some, Swizzle::None).contains(&FindingKind::SwizzleMismatch));
}

/// Returns the kernel with other offsets in the descriptor whose swizzle is 1, and with more memory
/// after the tile.
fn with_offsets(leading: u64, stride: u64) -> String {
    let (before, after) = (0x40_0001_0000_u64, stride >> 4 << 32 | leading >> 4 << 16);
    let [before, after] = [before, after].map(|offsets| format!("{:#018x}", 1 << 62 | offsets));
    let changed = KERNEL.replace(&before, &after).replace("tiles[8192]", "tiles[65536]");
    assert!(changed.contains(&after));
    changed
}

/// Two copies load 32 rows each, 8 rows in every 1024 bytes.
#[test]
fn neighbours_in_an_operand_are_neighbours_in_their_tile() {
    let found = |leading, stride| found(&with_offsets(leading, stride), Swizzle::B128);
    assert_eq!(found(16, 1024), []);
    for stride in [1040, 1152, 2048, 3072] {
        assert!(found(16, stride).contains(&FindingKind::LayoutMismatch), "{stride}");
    }
    // In K-major order with a swizzle, a single instruction does not use LBO, and an SBO of 0
    // repeats rows on purpose.
    assert_eq!(found(2048, 1024), []);
    assert_eq!(found(16, 0), []);
    // 4096 bytes further on is the other copy's data, whose rows may come next in any order.
    assert!(!found(16, 4096).contains(&FindingKind::LayoutMismatch));
}

/// Threads may write data in any order.
#[test]
fn tiles_written_by_threads_have_no_layout() {
    let written = with_offsets(16, 2048).replace("// 64 rows of", &format!("{REWRITTEN}\n// 64 rows of"));
    assert!(!found(&written, Swizzle::B128).contains(&FindingKind::LayoutMismatch));
}
