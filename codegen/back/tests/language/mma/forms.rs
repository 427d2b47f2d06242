//! Layouts and parts of operands, saturating sums and bits, and rows of global memory: the meaning
//! of their words, and each rule with a kernel that satisfies it.

use super::rules::product;
use super::*;

#[test]
fn operands_without_a_swizzle_lie_in_panels() {
    let of = |layout: &str| {
        let tile = format!("f16, Shape2<64, 64>, {layout}");
        product("f32, 64, 64", &tile, &tile)
    };
    let text = refused(&kernel("", &of("NoSwizzle")));
    assert!(text.starts_with("TMA0251") && text.contains("`Panels16`, which permutes nothing"), "{text}");
    accepted("", &of("Panels16"));
    // A panel of 16 bytes fits one instruction's K in a row, but not two.
    let narrow = |layout: &str, columns: u32| {
        format!(
            "let t: Tile<f16, Shape2<64, {columns}>, {layout}> = shared(); \
             let mut sum = Accumulator::<f32, 64, {columns}>::zero(); sum.mma(a, t.t(), ()).wait();"
        )
    };
    flipped(&narrow("NoSwizzle", 16), "TMA0251", "tensor cores cannot read", &narrow("NoSwizzle", 8));
    accepted("", &narrow("Panels16", 16));
    let row = "f16, Shape2<64, 8>, NoSwizzle";
    let text = refused(&kernel("", &product("f32, 64, 64", row, row)));
    assert!(text.contains("K must be a multiple of 16 elements, but "), "{text}");
}

#[test]
fn tma0258_panels_begin_where_tiles_may() {
    let of = |rows: u32, layout: &str| {
        format!(
            "#[tma_kernel(threads = 32)]\nfn k(m: TensorMap<Tile<f16, Shape2<{rows}, 128>, {layout}>>) {{ \
             m.prefetch_descriptor(); }}"
        )
    };
    for layout in ["Panels16", "Swizzle32", "Swizzle64", "Swizzle128"] {
        let text = refused(&of(12, layout));
        assert!(text.starts_with("TMA0258") && text.contains("panels of 12 rows"), "{text}");
        ir(&of(16, layout));
    }
    ir(&of(12, "NoSwizzle"));
}

#[test]
fn tma0259_parts_are_tiles() {
    let wide = "let wide: Tile<f16, Shape2<64, 192>, Swizzle128> = shared();";
    let of = |columns: u32| {
        format!(
            "{wide} let mut s = Accumulator::<f32, 64, 64>::zero(); \
             let w = wide.columns::<{columns}>(0); s.mma(w, w, ()).wait();"
        )
    };
    flipped(&of(96), "TMA0259", "panels, which have 64 columns each", &of(64));
    accepted("", &of(192));
    let plain = |columns: u32| {
        format!(
            "let t: Tile<f32, Shape2<64, 64>> = shared(); let s = Accumulator::<f32, 64, {columns}>::zero(); \
             s.store(t.columns::<{columns}>(0));"
        )
    };
    flipped(&plain(32), "TMA0259", "a panel has 32 columns", &plain(64));
    let low = |rows: u32, columns: u32| {
        format!(
            "let t: Tile<f16, Shape2<{rows}, 128>, Swizzle128> = shared(); \
             t.columns::<{columns}>(0).set([0, 0], f16::ZERO);"
        )
    };
    flipped(&low(12, 64), "TMA0259", "start at a multiple of 1024 bytes", &low(16, 64));
    accepted("", &low(12, 128));
    let batch = |shape: &str| {
        format!("let t: Tile<f16, {shape}, Swizzle128> = shared(); t.batch(0).set([0, 0], f16::ZERO);")
    };
    flipped(&batch("Shape3<2, 8, 128>"), "TMA0259", "use a batch of 1", &batch("Shape3<1, 8, 128>"));
    flipped(&batch("Shape2<8, 64>"), "TMA0259", "of three dimensions", &batch("Shape3<4, 8, 64>"));
    let text = error("let t: Tile<f16, Shape3<1, 8, 64>, Swizzle128> = shared(); t.columns::<64>(0).rows();");
    assert!(text.contains("`tile.batch(i)` selects a matrix of a batch"), "{text}");
}

#[test]
fn parts_are_where_panels_are() {
    means(
        "let wide: Tile<f16, Shape2<64, 256>, Swizzle128> = shared(); \
         let two: Tile<f16, Shape3<2, 64, 64>, Swizzle128> = shared(); \
         let mut sum = Accumulator::<f32, 64, 64>::zero(); \
         sum.mma(wide.columns::<128>(1).columns::<64>(0), two.batch(n), ()).wait();",
        "v0 = zero(Accumulator<f32, 64, 64>)\nmma v0 s2[1u32][0u32] s3[p0]\nmma.wait v0",
    );
}

/// Its panels are too far apart for a tile, but not for an operand.
#[test]
fn a_band_of_several_panels_is_an_operand() {
    let tile = "let wide: Tile<f16, Shape2<128, 128>, Swizzle128> = shared(); \
                let right: Tile<f16, Shape2<64, 128>, Swizzle128> = shared(); \
                let mut sum = Accumulator::<f32, 64, 64>::zero();";
    means(
        &format!("{tile} let band = wide.band::<64>(n); sum.mma(-band, right, ()).wait();"),
        "v0 = zero(Accumulator<f32, 64, 64>)\nv1 = s2[p0]\nmma v0 -v1 s3\nmma.wait v0",
    );
    let text = error(&format!("{tile} sum.mma(wide.band::<128>(0), right, ()).wait();"));
    assert!(text.contains("left operand has 128 rows"), "{text}");
    let text = error(&format!("{tile} sum.store(wide.band::<64>(0));"));
    assert!(text.starts_with("TMA0102") && text.contains("64 rows of Tile<f16, Shape2<128, 128>"), "{text}");
    let text = error(&format!("{tile} sum.mma(wide.band::<48>(0), right, ()).wait();"));
    assert!(text.starts_with("TMA0259"), "{text}");
}

#[test]
fn words_of_multiplications() {
    let bytes = "let x: Tile<u8, Shape2<64, 64>, Swizzle64> = shared(); \
                 let mut sum = Accumulator::<i32, 64, 64>::zero();";
    means(
        &format!(
            "{bytes} let mut f = sum.mma_saturating(x, x, ()); f.mma_and_popc(x, x, ()); \
             f.mma_saturating(x, x, ()); f.wait();"
        ),
        "v0 = zero(Accumulator<i32, 64, 64>)\nmma_saturating v0 s2 s2\nmma_and_popc v0 s2 s2\nmma.wait v0 older\n\
         mma_saturating v0 s2 s2\nmma.wait v0 older\nmma.wait v0",
    );
    accepted(
        "",
        &format!("{bytes} sum.mma_and_popc(Fragment::<u8, 64, 64>::load(x, [0, 0]), x, ()).wait();"),
    );
}

#[test]
fn tma0252_what_saturates_and_what_has_bits() {
    let of = |sum: &str, element: &str, word: &str| {
        format!(
            "let x: Tile<{element}, Shape2<64, 64>, Swizzle128> = shared(); \
             let mut sum = Accumulator::<{sum}, 64, 64>::zero(); sum.{word}(x, x, ()).wait();"
        )
    };
    flipped(
        &of("f32", "e4m3", "mma_saturating"),
        "TMA0252",
        "sums of products of e4m3 cannot saturate",
        &of("i32", "i8", "mma_saturating"),
    );
    for element in ["u8", "u16", "u32", "u64"] {
        accepted("", &of("i32", element, "mma_and_popc"));
    }
    for element in ["i8", "i32", "f16", "e4m3"] {
        let text = refused(&kernel("", &of("i32", element, "mma_and_popc")));
        let wanted = format!("the bits of `{element}` elements");
        assert!(text.starts_with("TMA0252") && text.contains(&wanted), "{text}");
    }
    let text = error(&of("f32", "u32", "mma_and_popc"));
    assert!(
        text.starts_with("TMA0252") && text.contains("b1 cannot be added to an accumulator of f32"),
        "{text}"
    );
    let bits = "let x: Tile<u32, Shape2<64, 4>, Panels16> = shared(); \
                let mut sum = Accumulator::<i32, 64, 64>::zero();";
    let text = refused(&kernel("", &format!("{bits} sum.mma_and_popc(x, x, ()).wait();")));
    assert!(text.contains("K must be a multiple of 256 bits, but "), "{text}");
    let loaded = "(Fragment::<i8, 64, 64>::load(x, [0, 0]), x,";
    let text = refused(&kernel("", &of("i32", "i8", "mma_and_popc").replace("(x, x,", loaded)));
    assert!(text.contains("the bits of `i8` elements"), "{text}");
    let text = refused(&kernel("", &of("i32", "u32", "mma_and_popc").replace("(x, x,", "(x, x.t(),")));
    assert!(text.contains("can transpose only elements of 16 bits, not single bits"), "{text}");
}

#[test]
fn sums_are_stored_to_rows_of_a_slice() {
    means(
        "let sum = Accumulator::<f32, 64, 128>::zero(); let c = out.matrix(n, [n, 80], 96); \
         sum.columns::<64>(1).store_to(c, [8, n]);",
        "v0 = zero(Accumulator<f32, 64, 128>)\nv1 = (p0 as u64)\nv2 = p0\n\
         matrix.check p1[v1; v2 x 80u32, 96u32]\n\
         v3 = v1\nv4 = v2\nv5 = 80u32\nv6 = 96u32\n\
         accumulator.store_to v0[64u32; 64] p1[v3; v4 x v5, v6] [8u32, p0]",
    );
    let function = "#[tma_device]\nfn f(sum: &Accumulator<f32, 64, 128>, to: GlobalMatrix<f32>) { \
                    sum.store_to(to, [0, 0]); }";
    accepted(
        function,
        "let sum = Accumulator::<f32, 64, 128>::zero(); f(&sum, out.matrix(0u64, [64, 128], 128));",
    );
}

#[test]
fn what_is_stored_to_rows() {
    let of = |sum: &str, element: &str| {
        format!(
            "#[tma_kernel(threads = 128)]\nfn k(out: Global<{element}>) {{ \
             let sum = Accumulator::<{sum}, 64, 64>::zero(); \
             sum.store_to(out.matrix(0, [9, 9], 9), [0, 0]); }}"
        )
    };
    for (sum, element) in [("f32", "f32"), ("f32", "bf16"), ("f32", "e4m3"), ("f16", "f16"), ("i32", "i32")] {
        ir(&of(sum, element));
    }
    for (sum, element) in [("f32", "f64"), ("f32", "i32"), ("f16", "f32"), ("i32", "u32")] {
        let text = refused(&of(sum, element));
        let wanted = format!("an accumulator of {sum} cannot be stored to a matrix of {element}");
        assert!(text.starts_with("TMA0252") && text.contains(&wanted), "{text}");
    }
    let sum = "let sum = Accumulator::<f32, 64, 64>::zero();";
    let text = error(&format!("{sum} sum.store_to(a, [0, 0]);"));
    assert!(text.starts_with("TMA0102") && text.contains("write `sum.store_to(slice.matrix("), "{text}");
    let store = |columns: u32, j: &str| {
        format!("{sum} sum.columns::<{columns}>({j}).store_to(out.matrix(0, [9, 9], 9), [0, 0]);")
    };
    flipped(&store(12, "0"), "TMA0251", "columns are stored in multiples of 8, not 12", &store(16, "0"));
    flipped(&store(32, "n"), "TMA0254", "the first column must be a constant", &store(32, "1"));
    flipped(&store(32, "2"), "TMA0208", "columns 64 to 95", &store(32, "1"));
    let other = "let mut to = out.matrix(0, [9, 9], 9); to = other.matrix(0, [9, 9], 9);";
    let text = refused(&format!(
        "#[tma_kernel(threads = 128)]\nfn k(out: Global<f32>, other: Global<f32>) {{ {other} }}"
    ));
    assert!(text.contains("`to` belongs to a different slice"), "{text}");
}

/// Returns a sparse operand and its matmul with another operand.
fn sparse(left: &str, metadata: u32, right: &str) -> String {
    format!(
        "let left: Tile<{left}> = shared(); let right: Tile<{right}> = shared(); let places = [n; {metadata}]; \
         let mut sum = Accumulator::<f32, 64, 64>::zero(); sum.mma(left.sparse(places), right, ()).wait();"
    )
}

#[test]
fn a_sparse_operand_keeps_its_metadata() {
    means(
        "let right: Tile<f16, Shape2<64, 128>, Swizzle128> = shared(); \
         let mut sum = Accumulator::<f32, 64, 64>::zero(); let s = a.sparse([n, 7]); \
         sum.mma(-s, right, ()).wait();",
        "v0 = zero(Accumulator<f32, 64, 64>)\nv1 = [p0, 7u32]\nv2 = v1\nmma v0 -s0.sparse(v2) s2\nmma.wait v0",
    );
    let function = "#[tma_device]\nfn f(sum: &mut Accumulator<f32, 64, 64>, s: Sparse<A, 128>, b: Tile<f16, Shape2<64, 128>, Swizzle128>) \
                    { sum.mma(s, b, ()).wait(); }";
    accepted(
        function,
        "let b: Tile<f16, Shape2<64, 128>, Swizzle128> = shared(); \
         let mut sum = Accumulator::<f32, 64, 64>::zero(); f(&mut sum, a.sparse([n; 2]), b);",
    );
}

#[test]
fn a_sparse_fragment_keeps_its_registers_and_its_metadata() {
    let product = "let right: Tile<f16, Shape2<64, 128>, Swizzle128> = shared(); \
                   let mut p = Accumulator::<f32, 64, 64>::zero(); let mut sum = Accumulator::<f32, 64, 64>::zero();";
    means(
        &format!("{product} sum.mma(p.pack::<f16>().sparse([n, 7]), right, ()).wait();"),
        "v0 = zero(Accumulator<f32, 64, 64>)\nv1 = zero(Accumulator<f32, 64, 64>)\nv2 = pack v0\n\
         v3 = [p0, 7u32]\nv4 = v2\nmma v1 v4.sparse(v3) s2\nmma.wait v1",
    );
    let function = "#[tma_device]\nfn f(sum: &mut Accumulator<f32, 64, 64>, s: Sparse<Fragment<f16, 64, 64>, 128>, \
                    b: Tile<f16, Shape2<64, 128>, Swizzle128>) { sum.mma(s, b, ()).wait(); }";
    accepted(function, &format!("{product} f(&mut sum, p.pack::<f16>().sparse([n; 2]), right);"));
    let of = |registers: u32| {
        format!("{product} sum.mma(p.pack::<f16>().sparse([n; {registers}]), right, ()).wait();")
    };
    flipped(&of(1), "TMA0260", "64 rows of 128 elements needs 2 registers", &of(2));
    let typed = |columns: u32| {
        format!(
            "{product} let s: Sparse<Fragment<f16, 64, 64>, {columns}> = p.pack::<f16>().sparse([n; 2]); \
                 sum.mma(s, right, ()).wait();"
        )
    };
    flipped(&typed(64), "TMA0102", "a sparse `Fragment<f16, 64, 64>` must have 128 columns", &typed(128));
    let text =
        error(&format!("{product} sum.mma(p.pack::<f16>(), p.pack::<f16>().sparse([n; 2]), ()).wait();"));
    assert!(text.contains("tensor cores multiply tiles, not `Sparse<Fragment<f16, 64, 64>, 128>`"), "{text}");
    let text = error(&format!("{product} sum.mma(p.pack::<f16>().sparse(n), right, ()).wait();"));
    assert!(text.contains("metadata must be an array of `u32`, not `u32`"), "{text}");
}

#[test]
fn tma0260_metadata_is_of_all_rows() {
    let f16 =
        |registers| sparse("f16, Shape2<64, 64>, Swizzle128", registers, "f16, Shape2<64, 128>, Swizzle128");
    flipped(&f16(1), "TMA0260", "64 rows of 128 elements needs 2 registers", &f16(2));
    flipped(&f16(4), "TMA0260", "needs 2 registers, not 4", &f16(2));
    // Half of the last register is used.
    accepted("", &sparse("f16, Shape2<64, 48>, Swizzle128", 2, "f16, Shape2<64, 96>, Swizzle64"));
    let e4m3 =
        |registers| sparse("e4m3, Shape2<64, 64>, Swizzle64", registers, "e4m3, Shape2<64, 128>, Swizzle128");
    flipped(&e4m3(1), "TMA0260", "64 rows of 128 elements needs 2 registers", &e4m3(2));
    let tf32 =
        |registers| sparse("tf32, Shape2<64, 16>, Swizzle64", registers, "tf32, Shape2<64, 32>, Swizzle128");
    flipped(&tf32(2), "TMA0260", "64 rows of 32 elements needs 1 registers", &tf32(1));
}

#[test]
fn what_a_sparse_operand_is_multiplied_by() {
    let right = |right| sparse("f16, Shape2<64, 64>, Swizzle128", 2, right);
    flipped(
        &right("f16, Shape2<64, 64>, Swizzle128"),
        "TMA0251",
        "the operands differ in K: 128 on the left, but 64 on the right",
        &right("f16, Shape2<64, 128>, Panels16"),
    );
    flipped(
        &right("f16, Shape2<64, 128>, Swizzle32"),
        "TMA0251",
        "one instruction reads 64 bytes of its rows",
        &right("f16, Shape2<64, 128>, Swizzle64"),
    );
    let sum = "let mut sum = Accumulator::<f32, 64, 64>::zero();";
    let text = error(&format!("{sum} sum.mma(a, a.sparse([n; 2]), ()).wait();"));
    assert!(text.starts_with("TMA0252") && text.contains("only the left operand"), "{text}");
    let text = error(&format!("{sum} sum.mma(a.sparse(n), a, ()).wait();"));
    assert!(
        text.starts_with("TMA0102") && text.contains("metadata must be an array of `u32`, not `u32`"),
        "{text}"
    );
    let bits = "let x: Tile<u32, Shape2<64, 16>, Swizzle64> = shared(); \
                let mut sum = Accumulator::<i32, 64, 64>::zero(); \
                let y: Tile<u32, Shape2<64, 32>, Swizzle128> = shared();";
    let text = error(&format!("{bits} sum.mma_and_popc(x.sparse([n]), y, ()).wait();"));
    assert!(text.contains("an operand of b1 cannot be sparse"), "{text}");
}

/// The next multiplication replaces the value, so the flight has a copy of a parameter.
#[test]
fn a_flight_keeps_a_copy_of_a_parameter() {
    let source = "
        #[tma_kernel(threads = 128)]
        fn k(n: u32, out: Global<u32>) {
            let a: Tile<f16, Shape2<64, 64>, Swizzle128> = shared();
            let mut sum = Accumulator::<f32, 64, 64>::zero();
            let mut flight = sum.mma(a, a, n);
            let first = flight.mma(a, a, n + 1);
            let second = flight.wait();
            out.set(thread_idx().x, first + second);
        }";
    let checked = tma_codegen::check("src/kernel.rs", source);
    assert!(checked.is_ok(), "{}", checked.err().map_or_else(String::new, |error| error.to_string()));
}
