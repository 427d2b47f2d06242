//! Left operands that a warpgroup loads into registers: the meaning of the word, and each of its
//! rules with a kernel that satisfies it.

use super::*;

/// Returns the load of a fragment of this type from `tile` at `at`.
fn load(tile: &str, fragment: &str, at: &str) -> String {
    format!("let t: Tile<{tile}> = shared(); let x = Fragment::<{fragment}>::load(t, {at});")
}

#[test]
fn a_fragment_is_loaded_and_multiplied() {
    means(
        "let mut sum = Accumulator::<f32, 64, 64>::zero(); \
         let x = Fragment::<f16, 64, 32>::load(b, [n, 32]); let c: Tile<f16, Shape2<64, 32>, Swizzle64> = shared(); \
         sum.mma(x, c, ()).wait();",
        "v0 = zero(Accumulator<f32, 64, 64>)\nv1 = fragment.load s1 [p0, 32u32]\nv2 = v1\nv3 = v2\n\
         mma v0 v3 s2\nmma.wait v0",
    );
    let function = "#[tma_device]\nfn f(sum: &mut Accumulator<f32, 64, 64>, x: Fragment<f16, 64, 64>, b: A) \
                    { sum.mma(x, b, ()).wait(); }";
    accepted(
        function,
        "let mut sum = Accumulator::<f32, 64, 64>::zero(); f(&mut sum, Fragment::<f16, 64, 64>::load(a.t(), [0, 0]), a);",
    );
}

/// Only fragments of 16-bit elements are packed from accumulators.
#[test]
fn a_sparse_fragment_has_elements_of_any_size() {
    for (left, right, sum, half, registers) in [
        ("tf32", "tf32", "f32", 32, 2),
        ("e4m3", "e5m2", "f16", 128, 4),
        ("i8", "u8", "i32", 128, 4),
        ("bf16", "bf16", "f32", 64, 2),
    ] {
        let of = |registers: u32| {
            format!(
                "let t: Tile<{left}, Shape2<64, {half}>> = shared(); \
                 let right: Tile<{right}, Shape2<64, {}>, Swizzle128> = shared(); \
                 let mut sum = Accumulator::<{sum}, 64, 64>::zero(); \
                 let x = Fragment::<{left}, 64, {half}>::load(t, [0, 0]); \
                 sum.mma(x.sparse([n; {registers}]), right, ()).wait();",
                2 * half
            )
        };
        flipped(&of(registers + 1), "TMA0260", &format!("needs {registers} register"), &of(registers));
    }
}

#[test]
fn what_a_fragment_is_loaded_from() {
    let kept = load("e4m3, Shape2<64, 128>", "e4m3, 64, 64", "[0, 16]");
    for (broken, code, message) in [
        (load("e4m3, Shape2<96, 128>", "e4m3, 96, 64", "[0, 0]"), "TMA0251", "has 96 rows"),
        (load("e4m3, Shape2<64, 128>", "e4m3, 64, 48", "[0, 0]"), "TMA0251", "a multiple of 32"),
        (load("e4m3, Shape3<2, 64, 128>", "e4m3, 64, 64", "[0, 0]"), "TMA0251", "parts of"),
        (
            load("e5m2, Shape2<64, 128>", "e4m3, 64, 64", "[0, 0]"),
            "TMA0252",
            "cannot be loaded from a tile of e5m2",
        ),
        (load("f64, Shape2<64, 128>", "f64, 64, 64", "[0, 0]"), "TMA0252", "f64"),
        (load("tf32, Shape2<256, 128>", "tf32, 256, 128", "[0, 0]"), "TMA0251", "needs 256"),
        (load("e4m3, Shape2<64, 128>", "e4m3, 64, 64", "[0, 8]"), "TMA0261", "must be a multiple of 16"),
        (load("e4m3, Shape2<64, 128>", "e4m3, 64, 64", "[0, 80]"), "TMA0208", "columns 80 to 143"),
        (load("e4m3, Shape2<64, 128>", "e4m3, 64, 64", "[8, 0]"), "TMA0208", "rows 8 to 71"),
    ] {
        flipped(&broken, code, message, &kept);
    }
    let transposed = |element: &str| {
        load(&format!("{element}, Shape2<64, 64>, Swizzle128"), &format!("{element}, 64, 64"), "[0, 0]")
            .replace("load(t,", "load(t.t(),")
    };
    flipped(&transposed("tf32"), "TMA0252", "can transpose only elements of 16 bits", &transposed("bf16"));
    let text = error("let x = Fragment::<f16, 64, 64>::store(a, [0, 0]);");
    assert!(text.contains("`Fragment`") && text.contains("load"), "{text}");
}

/// A warp would be enough for `WarpLeft`, which each warp loads for itself.
#[test]
fn a_whole_warpgroup_loads() {
    let of =
        |condition: &str| format!("if {condition} {{ let x = Fragment::<f16, 64, 64>::load(a, [0, 0]); }}");
    flipped(&of("warp_idx() == 0"), "TMA0264", "load", &of("warpgroup_idx() == 0"));
    let warps = of("warp_idx() == 0").replace("Fragment::<f16, 64, 64>", "WarpLeft::<f16, 16, 64>");
    accepted("", &warps);
    let at = |row: &str| format!("let x = Fragment::<f16, 64, 64>::load(b, [{row}, 0]);");
    flipped(&at("warp_idx() * 16"), "TMA0264", "load", &at("warpgroup_idx() * 64"));
    let text = refused(
        "#[tma_kernel(threads = 96)]\nfn k() { let a: Tile<f16, Shape2<64, 64>, Swizzle128> = shared(); \
         let x = Fragment::<f16, 64, 64>::load(a, [0, 0]); }",
    );
    assert!(text.starts_with("TMA0257"), "{text}");
}
