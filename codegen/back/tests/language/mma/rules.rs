//! Each rule, with a kernel that satisfies it.

use super::*;

#[test]
fn tma0251_extents_of_accumulators() {
    for (broken, message, kept) in [
        ("Accumulator::<f32, 32, 64>", "has 32 rows", "Accumulator::<f32, 64, 64>"),
        ("Accumulator::<f32, 0, 64>", "has 0 rows", "Accumulator::<f32, 128, 64>"),
        (
            "Accumulator::<f32, 64, 12>",
            "8 to 256 columns, a multiple of 8, not 12",
            "Accumulator::<f32, 64, 8>",
        ),
        ("Accumulator::<f32, 64, 264>", "not 264", "Accumulator::<f32, 64, 256>"),
        ("Accumulator::<f32, 128, 256>", "needs 256", "Accumulator::<f16, 128, 256>"),
    ] {
        let zero = |ty| format!("let sum = {ty}::zero();");
        flipped(&zero(broken), "TMA0251", message, &zero(kept));
    }
    let rows = |rows| format!("let rows = Rows::<f32, {rows}>::filled(0.0);");
    flipped(&rows(96), "TMA0251", "has 96 rows", &rows(192));
}

/// Returns a matmul of operands with these types.
pub(super) fn product(sum: &str, left: &str, right: &str) -> String {
    format!(
        "let left: Tile<{left}> = shared(); let right: Tile<{right}> = shared(); \
         let mut sum = Accumulator::<{sum}>::zero(); sum.mma(left, right, ()).wait();"
    )
}

#[test]
fn tma0251_extents_of_operands() {
    let kept = product("f32, 64, 32", "f16, Shape2<64, 64>, Swizzle128", "f16, Shape2<32, 64>, Swizzle128");
    for (left, right, message) in [
        (
            "Shape2<128, 64>, Swizzle128",
            "Shape2<32, 64>, Swizzle128",
            "left operand has 128 rows, but the accumulator has 64",
        ),
        (
            "Shape2<64, 64>, Swizzle128",
            "Shape2<64, 64>, Swizzle128",
            "right operand has 64 rows, but the accumulator has 32",
        ),
        (
            "Shape2<64, 32>, Swizzle64",
            "Shape2<32, 64>, Swizzle128",
            "the operands differ in K: 32 on the left, but 64 on the right",
        ),
        (
            "Shape2<64, 24>, Swizzle64",
            "Shape2<32, 24>, Swizzle64",
            "K must be a multiple of 16 elements, but `Tile<f16, Shape2<64, 24>, Swizzle64>` has 24",
        ),
        (
            "Shape2<64, 64>",
            "Shape2<32, 64>, Swizzle128",
            "tensor cores cannot read `Tile<f16, Shape2<64, 64>>`",
        ),
        ("Shape3<2, 64, 64>, Swizzle128", "Shape2<32, 64>, Swizzle128", "tensor cores cannot read"),
        ("Shape1<64>", "Shape2<32, 64>, Swizzle128", "tensor cores cannot read"),
    ] {
        let text =
            refused(&kernel("", &product("f32, 64, 32", &format!("f16, {left}"), &format!("f16, {right}"))));
        assert!(text.starts_with("TMA0251") && text.contains(message), "{text}");
    }
    accepted("", &kept);
    accepted(
        "",
        &product("f32, 64, 32", "f16, Shape3<1, 64, 64>, Swizzle128", "f16, Shape2<32, 64>, Swizzle128"),
    );
    // Panels that each span every row.
    accepted(
        "",
        &product("f32, 64, 32", "f16, Shape2<64, 128>, Swizzle128", "f16, Shape2<32, 128>, Swizzle64"),
    );
}

#[test]
fn one_wrong_k_is_one_error() {
    let multiplied = |element: &str| {
        format!(
            "let left: Tile<{element}, Shape2<64, 40>, Swizzle128> = shared(); \
             let right: Tile<{element}, Shape2<32, 40>, Swizzle128> = shared(); \
             let mut sum = Accumulator::<f32, 64, 32>::zero(); \
             sum.mma(left, right, ()).wait(); sum.mma(left, right, ()).wait();"
        )
    };
    let text = error(&multiplied("f16"));
    let wanted = "K must be a multiple of 16 elements, but `Tile<f16, Shape2<64, 40>, Swizzle128>` has 40";
    assert!(text.contains(wanted), "{text}");

    // The maps break a rule by the same K.
    let text = refused(&format!(
        "#[tma_kernel(threads = 128)]\n\
         fn k(a: TensorMap<Tile<tf32, Shape2<64, 40>, Swizzle128>>,\n\
         b: TensorMap<Tile<tf32, Shape2<32, 40>, Swizzle128>>) {{ {} }}",
        multiplied("tf32")
    ));
    assert_eq!(text.matches("TMA0").count(), 1, "{text}");
    assert!(text.starts_with("TMA0203") && text.contains("note: `b` breaks the same rule: line 3"), "{text}");
}

#[test]
fn tma0251_rows_of_whole_groups() {
    let of = |rows: u32| {
        product(
            "f32, 64, 64",
            &format!("f16, Shape2<{rows}, 64>, Swizzle128"),
            "f16, Shape2<64, 64>, Swizzle128",
        )
    };
    flipped(&of(60), "TMA0251", "other than K must be a multiple of 8, but it is 60", &of(64));
    // For a transposed operand, a part of a panel is enough.
    for columns in [8, 32, 64, 128] {
        accepted(
            "",
            &format!(
                "let t: Tile<f16, Shape2<64, {columns}>, Swizzle128> = shared(); \
                 let mut sum = Accumulator::<f32, 64, {columns}>::zero(); sum.mma(a, t.t(), ()).wait();"
            ),
        );
    }
}

#[test]
fn tma0251_columns_of_integers() {
    let of = |columns: u32| {
        product(
            &format!("i32, 64, {columns}"),
            "i8, Shape2<64, 128>, Swizzle128",
            &format!("u8, Shape2<{columns}, 128>, Swizzle128"),
        )
    };
    flipped(&of(40), "TMA0251", "no instruction for i8 has 40 columns", &of(48));
    accepted("", &of(24));
}

#[test]
fn tma0252_elements_of_accumulators() {
    flipped(
        "let sum = Accumulator::<bf16, 64, 64>::zero();",
        "TMA0252",
        "an accumulator must hold f32, f16 or i32, not bf16",
        "let sum = Accumulator::<f16, 64, 64>::zero();",
    );
}

#[test]
fn tma0252_elements_that_are_multiplied() {
    let of = |sum: &str, left: &str, right: &str| {
        let bytes = |element: &str| match element {
            "f16" | "bf16" => 2,
            "e4m3" | "e5m2" | "i8" | "u8" => 1,
            _ => 4,
        };
        let tile =
            |element: &str, rows| format!("{element}, Shape2<{rows}, 32>, Swizzle{}", 32 * bytes(element));
        product(&format!("{sum}, 64, 64"), &tile(left, 64), &tile(right, 64))
    };
    let all = ["f16", "bf16", "tf32", "e4m3", "e5m2", "i8", "u8"];
    // Source: PTX ISA, "wgmma.mma_async", the table of types.
    let goes = |sum, left, right| {
        let small = |element| element == "e4m3" || element == "e5m2";
        let integer = |element| element == "i8" || element == "u8";
        match sum {
            "f32" => left == right && !integer(left) || small(left) && small(right),
            "f16" => left == "f16" && right == "f16" || small(left) && small(right),
            _ => integer(left) && integer(right),
        }
    };
    let mut broken = 0;
    for sum in ["f32", "f16", "i32"] {
        for left in all {
            for right in all {
                let source = of(sum, left, right);
                if goes(sum, left, right) {
                    accepted("", &source);
                } else {
                    let text = refused(&kernel("", &source));
                    assert!(text.contains("TMA0252"), "{sum} {left} {right}: {text}");
                    broken += 1;
                }
            }
        }
    }
    assert_eq!(broken, 3 * 49 - (7 + 2 + 5 + 4 - 2));
    let text = refused(&kernel("", &of("f32", "f32", "tf32")));
    assert!(text.contains("tensor cores cannot multiply `f32` elements"), "{text}");
}

#[test]
fn tma0252_what_is_negated_and_transposed() {
    let of = |element: &str, operand: &str| {
        format!(
            "let x: Tile<{element}, Shape2<64, 64>, Swizzle128> = shared(); \
             let mut sum = Accumulator::<{}, 64, 64>::zero(); sum.mma(x, {operand}, ()).wait();",
            if element == "i8" { "i32" } else { "f32" }
        )
    };
    flipped(&of("i8", "-x"), "TMA0252", "tensor cores cannot negate `i8`", &of("e4m3", "-x"));
    flipped(
        &of("e4m3", "x.t()"),
        "TMA0252",
        "can transpose only elements of 16 bits, not `e4m3`",
        &of("bf16", "x.t()"),
    );
}

#[test]
fn tma0252_stores_convert_from_f32() {
    let of = |sum: &str, tile: &str| {
        format!(
            "let sum = Accumulator::<{sum}, 64, 64>::zero(); \
             let to: Tile<{tile}, Shape2<64, 64>> = shared(); sum.store(to);"
        )
    };
    flipped(
        &of("f32", "i32"),
        "TMA0252",
        "accumulator of f32 cannot be stored to a tile of i32",
        &of("i32", "i32"),
    );
    flipped(
        &of("f16", "f32"),
        "TMA0252",
        "accumulator of f16 cannot be stored to a tile of f32",
        &of("f16", "f16"),
    );
    for tile in ["f32", "f16", "bf16", "e4m3", "e5m2"] {
        accepted("", &of("f32", tile));
    }
}

#[test]
fn tma0251_stores_to_tiles_that_fit() {
    let of = |shape: &str| format!("{SUM} let to: Tile<f32, {shape}> = shared(); sum.store(to);");
    flipped(
        &of("Shape2<128, 128>"),
        "TMA0251",
        "cannot be stored to a `Tile<f32, Shape2<128, 128>>`",
        &of("Shape2<64, 128>"),
    );
    flipped(&of("Shape1<64>"), "TMA0251", "cannot be stored to a", &of("Shape3<1, 64, 128>"));
    flipped(
        &of("Shape2<64, 32>, Interleave32"),
        "TMA0251",
        "cannot be stored to a",
        &of("Shape2<64, 32>, Swizzle128").replace("sum.store", "sum.columns::<32>(3).store"),
    );
}

#[test]
fn columns_that_are_not_there() {
    let of = |j: u32| format!("{SUM} sum.columns::<64>({j}).store(a);");
    let text = error(&of(2));
    assert!(text.contains("columns 128 to 191 are out of bounds: `Accumulator<f32, 64, 128>`"), "{text}");
    accepted("", &of(1));
}

#[test]
fn tma0252_packs_to_16_bits() {
    let of = |element: &str| format!("{SUM} let w = sum.pack::<{element}>();");
    flipped(&of("e4m3"), "TMA0252", "cannot be packed into an operand of e4m3", &of("bf16"));
    flipped(
        "let sum = Accumulator::<f32, 64, 24>::zero(); let w = sum.pack::<f16>();",
        "TMA0251",
        "a packed operand needs a multiple of 16 columns",
        "let sum = Accumulator::<f32, 64, 32>::zero(); let w = sum.pack::<f16>();",
    );
}

#[test]
fn tma0252_unpacks_16_bits() {
    let of = |element: &str| {
        format!(
            "let from: Tile<{element}, Shape2<64, 64>> = shared(); \
             let w = Fragment::<{element}, 64, 64>::load(from, [0, 0]); let sum = w.unpack();"
        )
    };
    flipped(&of("e4m3"), "TMA0252", "`Fragment<e4m3, 64, 64>` cannot be unpacked", &of("bf16"));
}

#[test]
fn tma0252_rows_of_f32_are_reduced() {
    let of = |element: &str| {
        format!("let sum = Accumulator::<{element}, 64, 64>::zero(); let top = sum.row_max();")
    };
    flipped(&of("i32"), "TMA0252", "only rows of f32 can be reduced", &of("f32"));
}

#[test]
fn tma0253_each_flight_is_waited_for() {
    flipped(
        &format!("{SUM} let flight = sum.mma(a, b, ());"),
        "TMA0253",
        "this multiplication of `sum` is never waited for",
        &format!("{SUM} let flight = sum.mma(a, b, ()); flight.wait();"),
    );
    flipped(
        &format!("{SUM} let flight = sum.mma(a, b, ()); if n == 0 {{ return; }} flight.wait();"),
        "TMA0253",
        "this multiplication of `sum` is never waited for",
        &format!("{SUM} let flight = sum.mma(a, b, ()); flight.wait(); if n == 0 {{ return; }}"),
    );
}

#[test]
fn tma0253_on_every_path() {
    for (broken, kept) in [
        ("if n > 3 { sum.mma(a, b, ()); }", "if n > 3 { sum.mma(a, b, ()).wait(); }"),
        ("for _ in 0..n { sum.mma(a, b, ()); }", "for _ in 0..n { sum.mma(a, b, ()).wait(); }"),
        (
            "match n { 0 => { sum.mma(a, b, ()); } _ => {} }",
            "match n { 0 => { sum.mma(a, b, ()).wait(); } _ => {} }",
        ),
        (
            "loop { let f = sum.mma(a, b, ()); if n > 3 { f.wait(); break; } if n > 2 { break; } f.wait(); }",
            "loop { let f = sum.mma(a, b, ()); if n > 3 { f.wait(); break; } f.wait(); if n > 2 { break; } }",
        ),
        (
            "let mut i = n; while i > 0 { i -= 1; let f = sum.mma(a, b, ()); if i == 7 { continue; } f.wait(); }",
            "let mut i = n; while i > 0 { i -= 1; let f = sum.mma(a, b, ()); f.wait(); if i == 7 { continue; } }",
        ),
    ] {
        let text = refused(&kernel("", &format!("{SUM} {broken}")));
        assert!(text.starts_with("TMA0253") && text.contains("on one path"), "{broken}: {text}");
        accepted("", &format!("{SUM} {kept}"));
    }
}

/// A wait for a later matmul completes the earlier ones, but does not replace their own waits.
#[test]
fn flights_of_several_accumulators() {
    let two = format!("{SUM} let mut other = Accumulator::<f32, 64, 128>::zero();");
    for (broken, kept) in [
        (
            "let f = sum.mma(a, b, ()); other.mma(a, b, ()).wait();",
            "let f = sum.mma(a, b, ()); other.mma(a, b, ()).wait(); f.wait();",
        ),
        (
            "let f = sum.mma(a, b, ()); for _ in 0..n { let g = other.mma(a, b, ()); } f.wait();",
            "let f = sum.mma(a, b, ()); for _ in 0..n { other.mma(a, b, ()).wait(); } f.wait();",
        ),
    ] {
        let text = refused(&kernel("", &format!("{two} {broken}")));
        assert!(text.starts_with("TMA0253"), "{text}");
        accepted("", &format!("{two} {kept}"));
    }
}

#[test]
fn tma0254_registers_are_picked_when_the_kernel_is_compiled() {
    let loops = |head: &str| format!("{SUM} for i in {head} {{ sum[i] = sum[i] + 1.0; }}");
    let text = refused(&kernel("", &loops("0..4")));
    assert!(text.starts_with("TMA0254") && text.contains("this index must be a constant"), "{text}");
    accepted("", &loops("unroll(0..4)"));
    for (broken, kept) in [
        ("out.set(0, sum[cast::<usize>(n)]);", "out.set(n, sum[5]);"),
        (
            "let mut i = 3; i += cast::<usize>(n); out.set(0, sum[i]);",
            "let mut i = 3; i += 4; out.set(0, sum[i]);",
        ),
        ("out.set(0, sum.row_max()[cast::<usize>(n)]);", "out.set(0, sum.row_max()[1]);"),
        ("sum.columns::<64>(n).store(a);", "sum.columns::<64>(1).store(a);"),
        (
            "let mut i = 0; if n > 3 { i = 1; } out.set(0, sum[i]);",
            "for j in unroll(0..4u32) { let i = if j > 1 { 0 } else { 1 }; out.set(0, sum[i]); }",
        ),
        (
            "let mut i = 0; for _ in 0..n { out.set(0, sum[i]); i = 1; }",
            "for _ in 0..n { let mut i = 0; for _ in unroll(0..3) { out.set(0, sum[i]); i += 1; } }",
        ),
        (
            "let mut i = 0; loop { if n == 7 { break; } i = 1; if n == 8 { break; } i = 2; } out.set(0, sum[i]);",
            "loop { let mut i = 0; i += 1; out.set(0, sum[i]); if n == 7 { break; } }",
        ),
        (
            "let i = if n == 3 { 0 } else { 1 }; out.set(0, sum[i]);",
            "let i = if 3 == 4 { 0 } else { 1 }; out.set(0, sum[i]);",
        ),
        (
            "let i = match n { 0 => 5, _ => 6 }; out.set(0, sum[i]);",
            "for j in unroll(0..3) { let i = match j { 0 => 5, _ => 6 }; out.set(0, sum[i]); }",
        ),
        (
            "for i in unroll(0..sum.len()) { out.set(0, sum.row_max()[sum.row(i + cast::<usize>(n))]); }",
            "for i in unroll(0..sum.len()) { out.set(0, sum.row_max()[sum.row(i)]); }",
        ),
    ] {
        let text = refused(&kernel("", &format!("{SUM} {broken}")));
        assert!(text.starts_with("TMA0254"), "{broken}: {text}");
        accepted("", &format!("{SUM} {kept}"));
    }
}

#[test]
fn kernels_that_multiply_may_print_and_stop() {
    accepted("", &format!("{SUM} sum.mma(a, b, ()).wait(); printf!(\"{{}}\\n\", sum[0]); print_tile(a);"));
    accepted("", &format!("{SUM} sum.mma(a, b, ()).wait(); assert!(n > 0); trap();"));
}

#[test]
fn tma0256_registers_of_a_warpgroup() {
    for (broken, kept) in [(16, 24), (25, 32), (264, 248)] {
        for word in ["inc", "dec"] {
            let of = |registers: u32| format!("setmaxnreg_{word}::<{registers}>();");
            flipped(&of(broken), "TMA0256", &format!("not {broken}"), &of(kept));
        }
    }
}

#[test]
fn tma0257_whole_warpgroups() {
    let of =
        |threads: &str, body: &str| format!("#[tma_kernel(threads = {threads})]\nfn k(n: u32) {{ {body} }}");
    for words in [
        "sync_warpgroup();",
        "setmaxnreg_dec::<40>();",
        "let s = Accumulator::<f32, 64, 8>::zero(); let t: Tile<f32, Shape2<64, 8>> = shared(); s.store(t);",
    ] {
        let text = refused(&of("96", words));
        assert!(
            text.starts_with("TMA0257") && text.contains("the block has only 96 threads"),
            "{words}: {text}"
        );
        ir(&of("[64, 4]", words));
    }
}

#[test]
fn what_a_multiplication_does_not_take() {
    let text = error(&format!("{SUM} sum.mma(n, b, ()).wait();"));
    assert!(text.contains("tensor cores multiply tiles, not `u32`"), "{text}");
    let text = error(&format!("{SUM} sum.mma(a, sum.pack::<f16>(), ()).wait();"));
    assert!(text.contains("tensor cores multiply tiles, not `Fragment<"), "{text}");
    let text = error("Accumulator::<f32, 64, 64>::zero().store(a);");
    assert!(text.contains("cannot accumulate into a temporary"), "{text}");
    let text = error(&format!("{SUM} sum.columns(0).store(a);"));
    assert!(text.contains("`columns` needs the number of columns"), "{text}");
    let text = error(&format!("{SUM} let w = sum.pack();"));
    assert!(text.contains("needs the element type"), "{text}");
    let text = error("setmaxnreg_inc();");
    assert!(text.contains("`setmaxnreg_inc` needs the number of registers"), "{text}");
}

#[test]
fn what_a_flight_keeps_has_one_type() {
    let text = error(&format!("{SUM} let mut f = sum.mma(a, b, 1u32); f.mma(a, b, true); f.wait();"));
    assert!(text.contains("TMA01"), "{text}");
    let rings = "let one: Pipeline<(A, B), 2> = shared(); let two: Pipeline<(A, B), 2> = shared(); \
                 let mut c = one.consumer(); let mut d = two.consumer(); let x = c.wait();";
    let text = error(&format!(
        "{SUM} {rings} let mut f = sum.mma(x.0, x.1, x); let y = d.wait(); f.mma(y.0, y.1, y).release(); f.wait().release();"
    ));
    assert!(text.contains("the flight already keeps a value of another pipeline"), "{text}");
}

#[test]
fn functions_that_these_types_do_not_have() {
    let text = error("let s = Accumulator::<f32, 64, 64>::one();");
    assert!(text.contains("`Accumulator` has no function `one`"), "{text}");
    let text = error("let s = Rows::<f32, 64>::zero();");
    assert!(text.contains("`Rows` has no function `zero`"), "{text}");
}

#[test]
fn bands_of_whole_repetitions() {
    let of = |rows: u32| {
        format!(
            "let mut s = Accumulator::<f32, 64, {rows}>::zero(); s.mma(a, b.band::<{rows}>(n), ()).wait();"
        )
    };
    flipped(&of(48), "TMA0259", "cannot be divided into bands of 48 rows", &of(32));
}
