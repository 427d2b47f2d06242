//! Indices of elements in registers, in each iteration of unrolled loops.

use super::{SUM, flipped};

/// The kernel would read registers without a value.
#[test]
fn tma0208_elements_that_are_not_there() {
    let rows = "let mut rows = Rows::<f32, 64>::filled(0.0);";
    for (broken, message, kept) in [
        ("out.set(0, sum[64]);", "index 64 is out of bounds", "out.set(0, sum[63]);"),
        ("sum[64] = 1.0;", "index 64 is out of bounds", "sum[63] = 1.0;"),
        ("rows[2] = 1.0;", "a thread holds 2 elements", "rows[1] = 1.0;"),
    ] {
        let of = |body: &str| format!("{SUM} {rows} {body}");
        flipped(&of(broken), "TMA0208", message, &of(kept));
    }
    for (broken, turn, kept) in [
        (
            "for j in unroll(0..3u32) { sum.columns::<64>(j).store(a); }",
            "columns 128 to 191 are out of bounds: `Accumulator<f32, 64, 128>` has 128 columns\n\
             note: in the iteration of the unrolled loop where `j` is 2",
            "for j in unroll(0..2u32) { sum.columns::<64>(j).store(a); }",
        ),
        (
            "for i in unroll(0..33) { sum[2 * i] = 0.0; }",
            "index 64 is out of bounds: a thread holds 64 elements\n\
             note: in the iteration of the unrolled loop where `i` is 32",
            "for i in unroll(0..32) { sum[2 * i] = 0.0; }",
        ),
        (
            "for i in unroll(0..4) { for r in unroll(0..=1) { out.set(0, sum.row_max()[i / 2 + r]); } }",
            "`i` is 2 and `r` is 1",
            "for i in unroll(0..4) { for r in unroll(0..=1) { out.set(0, sum.row_max()[i / 4 + r]); } }",
        ),
        (
            "let mut i = 60; for _ in unroll(0..3) { sum[i] = 1.0; i += 2; }",
            "index 64",
            "let mut i = 60; for _ in unroll(0..2) { sum[i] = 1.0; i += 2; }",
        ),
        (
            "for i in unroll(0..66) { if i < 65 { sum[i] = 1.0; } }",
            "`i` is 64",
            "for i in unroll(0..66) { if i < 64 { sum[i] = 1.0; } else { break; } }",
        ),
        (
            "let places = [1, 64]; for i in unroll(0..2) { sum[places[i]] = 1.0; }",
            "`i` is 1",
            "let places = [1, 63]; for i in unroll(0..2) { sum[places[i]] = 1.0; }",
        ),
    ] {
        let of = |body: &str| format!("{SUM} {body}");
        flipped(&of(broken), "TMA0208", turn, &of(kept));
    }
}

/// An element of a large accumulator is one operation, whatever the number of elements.
#[test]
fn an_element_counts_once() {
    let source = "
        #[tma_kernel(threads = 128)]
        pub fn kernel(out: Global<f32>) {
            let mut sum = Accumulator::<f32, 64, 256>::zero();
            for turn in unroll(0..10u32) {
                for i in unroll(0..sum.len()) {
                    sum[i] = sum[i] * sum[i] + sum[i];
                }
            }
            out.set(thread_idx().x, sum[0]);
        }";
    let checked = tma_codegen::check("src/kernel.rs", source);
    assert!(checked.is_ok(), "{}", checked.err().map_or_else(String::new, |error| error.to_string()));
}
