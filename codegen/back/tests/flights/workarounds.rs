//! Each workaround for ptxas is necessary: without it, ptxas has a note on some kernel, or needs a
//! stack, and with it does not.

use tma_codegen::{Accepted, Failure, Ptx, Target, Workaround, compile, compile_without};
use tma_setup::ptxas::{self, PtxasReport};

use crate::ASSEMBLER;
use crate::generate::{of_element, with_body};

/// The sign by which a missing workaround is recognised in the report of ptxas.
#[derive(Clone, Copy, Debug)]
enum Sign {
    /// A note with this code.
    Note(&'static str),
    /// A stack frame.
    Stack,
}

impl Sign {
    fn is_in(self, report: &PtxasReport) -> bool {
        match self {
            Self::Note(code) => report.warnings.iter().any(|line| line.contains(&format!("({code})"))),
            Self::Stack => report.stack > 0,
        }
    }
}

/// A kernel that needs a workaround.
struct Case {
    sign: Sign,
    kernel: String,
    target: Target,
}

fn case(workaround: Workaround) -> Case {
    let of_kernel = |code, kernel| Case { sign: Sign::Note(code), kernel, target: Target::Sm90a };
    let of_body = |code, body| of_kernel(code, with_body(body));
    match workaround {
        Workaround::NoCalls => of_body("C7510", "assert!(n != 3); s.mma(a, b, ()).wait();"),
        Workaround::WaitsAfterTraps => of_body(
            "C7517",
            "let mut f = s.mma(a, b, ()); for i in 0..n { if i == 7 { trap(); } f.mma(a, b, ()); } f.wait();",
        ),
        Workaround::ConditionalTraps => of_body(
            "C7517",
            "let mut f = s.mma(a, b, ()); for i in 0..n { out.set(i, x); f.mma(a, b, ()); } f.wait();",
        ),
        Workaround::LoopGroups => of_body(
            "C7514",
            "let mut f = s.mma(a, b, ()); for _ in 0..n { let g = t.mma(a, b, ()); f.wait(); \
             for i in unroll(0..s.len()) { s[i] *= x; } f = s.mma(a, b, ()); g.wait(); } f.wait();",
        ),
        Workaround::FreshRegisters => of_body(
            "C7511",
            "let f = s.mma(a, b, ()); t.mma(a, b, ()).wait(); t[8] += 1.0; let g = t.mma(a, b, ()); \
             f.wait(); g.wait();",
        ),
        Workaround::PackedHalves => of_kernel(
            "C7517",
            of_element(
                "f16",
                "for _ in 0..n { let f = s.mma(a, b, ()); let g = t.mma(a, b, ()); f.wait(); \
                 for i in unroll(0..s.len()) { s[i] = s[i] + s[i]; } g.wait(); \
                 for i in unroll(0..t.len()) { t[i] = t[i] + t[i]; } }",
            ),
        ),
        Workaround::OwnMemory => Case {
            sign: Sign::Stack,
            kernel: "#[tma_kernel(threads = 32)]\nfn k(map: TensorMap<Tile<f32, Shape1<32>>>) {\n\
                     let tile: Tile<f32, Shape1<32>> = shared(); let full: Barrier = shared();\n\
                     if thread_idx().x == 0 { full.init(1); fence_barrier_init();\n\
                     full.arrive_expect_tx(tile.bytes()); map.load(tile, [0], full); }\n\
                     sync_threads(); full.wait(0);\n}\n"
                .to_owned(),
            target: Target::Sm120a,
        },
        Workaround::SharedSums => of_body(
            "C7517",
            "let f = s.mma(a, b, ()); for i in unroll(0..t.len()) { t[i] *= x; } let g = t.mma(a, b, ()); \
             f.wait(); g.wait();",
        ),
        Workaround::LeftFences => of_body(
            "C7519",
            "t.mma(a, b, ()).wait(); s.mma(a, b, ()).wait(); for i in unroll(0..t.len()) { t[i] += x; } \
             s.mma(t.pack::<f16>(), b, ()).wait();",
        ),
        Workaround::NewSums => of_body(
            "C7511",
            "if n > 2 { let g = t.mma(a, b, ()); let f = s.mma(a, b, ()); g.wait(); f.wait(); } \
             else { t.mma(a, b, ()).wait(); } t[20] = x;",
        ),
        Workaround::SkippedTraps => of_body("C7517", "let f = s.mma(a, b, ()); assert!(n != 3); f.wait();"),
    }
}

/// Returns the report of ptxas on the PTX of a kernel.
fn report(target: Target, compiled: Result<Accepted<Ptx>, Failure>) -> PtxasReport {
    let ptx = &compiled.unwrap_or_else(|failure| panic!("{failure}")).kernels[0].text;
    ptxas::assemble(&ASSEMBLER, target.name(), ptx).unwrap_or_else(|error| panic!("{error}\n{ptx}"))
}

#[test]
fn each_workaround_is_necessary() {
    let mut problems = vec![];
    for workaround in Workaround::ALL {
        let Case { sign, kernel, target } = case(workaround);
        let with = report(target, compile("with.rs", &kernel, target));
        if !with.is_clean() || with.stack > 0 {
            problems.push(format!("with {workaround:?}: {with:?}"));
        }
        let without = report(target, compile_without("without.rs", &kernel, target, workaround));
        if !sign.is_in(&without) {
            problems.push(format!("no {sign:?} without {workaround:?}: {without:?}"));
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}
