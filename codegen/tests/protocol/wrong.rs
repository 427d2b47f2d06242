//! Wrong kernels, such as others have written and found out later.

use std::fs;

use tma_codegen::check::CheckedKernel;
use tma_codegen::check::protocol::{Budget, Verdict, judge};

use crate::tree::root;
use crate::verdict;

/// The files with wrong kernels, whose messages are kept beside them: those of others among them,
/// such as FlashKDA's fence before a loop, DeepEP's wait for one group too few, flash-attention's
/// flipped phase, and TileLang's bytes without an arrival.
const FILES: [&str; 3] = ["protocol_waits", "protocol_memory", "protocol_pipelines"];

/// Each has its error in the line that says so.
#[test]
fn each_wrong_kernel_is_refused_in_its_line() {
    let (mut wrong, mut all) = (vec![], 0);
    for file in FILES {
        let path = root().join(format!("codegen/tests/diagnostics/{file}.rs"));
        let source = fs::read_to_string(&path).expect("a source file");
        let marks = source.lines().enumerate().filter_map(|(index, line)| {
            line.split_once("//~ ").map(|(_, code)| (index + 1, code.trim().to_owned()))
        });
        let marks: Vec<_> = marks.collect();
        let accepted = tma_codegen::check(file, &source).unwrap_or_else(|failure| panic!("{failure}"));
        all += accepted.kernels.len();
        let found: Vec<_> = accepted.kernels.iter().map(|checked| found(&checked.kernel)).collect();
        for (kernel, mark) in found.iter().zip(&marks).filter(|(kernel, mark)| kernel != mark) {
            wrong.push(format!("{file}: found {kernel:?}, marked {mark:?}"));
        }
        assert_eq!(found.len(), marks.len(), "{file}: a mark for each kernel");
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(all > 30, "{all} kernels");
}

/// The line and the code of what is wrong.
fn found(kernel: &CheckedKernel) -> (usize, String) {
    match judge(kernel, Budget::MACRO).verdict {
        Verdict::Broken(diagnostic) => (diagnostic.span.start().line, diagnostic.code().to_string()),
        other => (0, format!("{}: {other:?}", kernel.kernel().name)),
    }
}

/// Nothing is certain that happens for launches alone that a kernel may not be made for.
#[test]
fn launches_that_may_never_be_are_no_error() {
    let source = "#[tma_kernel(threads = 64)]
        fn k(src: TensorMap<Tile<f32, Shape2<32, 32>>>, out: Global<f32>, tiles: u32) {
            let tile: Tile<f32, Shape2<32, 32>> = shared();
            let full: Barrier = shared();
            if thread_idx().x == 0 { full.init(1); fence_barrier_init(); }
            sync_threads();
            for k in 0..tiles {
                if thread_idx().x == 0 && k == 0 {
                    full.arrive_expect_tx(tile.bytes());
                    src.load(tile, [0, 0], full);
                }
            }
            full.wait(0);
            out.set(thread_idx().x, tile.get([0, lane_idx()]));
        }";
    assert!(matches!(verdict(source), Verdict::NotDecided(_)), "{:?}", verdict(source));
}
