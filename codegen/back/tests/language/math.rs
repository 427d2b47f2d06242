//! Functions of numbers, and methods of their bits.

use super::{means, refused};

#[track_caller]
fn refuses(body: &str, message: &str) {
    let found = refused(&format!(
        "#[tma_kernel(threads = 32)]\nfn k(n: u32, x: f32, wide: f64, out: Global<f32>) {{ {body} }}"
    ));
    assert!(found.contains(message), "{body}:\n{found}");
}

#[track_caller]
fn accepts(body: &str) {
    let source = format!(
        "#[tma_kernel(threads = 32)]\nfn k(n: u32, x: f32, wide: f64, out: Global<f32>) {{ {body} }}"
    );
    if let Err(failure) = tma_codegen::check("language.rs", &source) {
        panic!("{body}:\n{failure}");
    }
}

#[test]
fn approximations_are_of_f32() {
    means(
        "let a = exp(x) + log(x) + sin(x) + cos(x) + tanh(x) + pow(x, 0.5);",
        "v0 = (((((exp(p3) + log(p3)) + sin(p3)) + cos(p3)) + tanh(p3)) + pow(p3, 0.5f32))",
    );
    for word in ["exp", "log", "sin", "cos", "tanh", "exp2", "exp2_ftz", "log2", "rsqrt"] {
        accepts(&format!("let y = {word}(x) + {word}(2.0);"));
        refuses(&format!("let y = {word}(wide);"), &format!("`{word}` does not support `f64`"));
        refuses(&format!("let y = x.{word}();"), &format!("`f32` has no method `{word}`"));
    }
    refuses("let y = x.exp();", "call the function `exp(x)`");
    refuses("let y = pow(x, n);", "mismatched types");
}

#[test]
fn clamp_and_copysign() {
    means(
        "let a = clamp(n, 1, 9) + n.clamp(2, n); let b = x.clamp(0.0, 1.0).copysign(-1.0) + copysign::<f32>(x, 1.0);",
        "v0 = (clamp(p0, 1u32, 9u32) + clamp(p0, 2u32, p0))\n\
         v1 = (copysign(clamp(p3, 0.0f32, 1.0f32), -1.0f32) + copysign(p3, 1.0f32))",
    );
    accepts("let a = clamp(n, 5, 5) + n.clamp(0, n); let b = wide.clamp(-1.0, 1.0);");
    refuses("let a = clamp(n, 5, 4);", "the bounds of `clamp` must be in order, but they are 5 and 4");
    refuses("let a = x.clamp(1.0, -1.0);", "the bounds of `clamp` must be in order, but they are 1 and -1");
    refuses("let a = copysign(n, 1);", "`copysign` does not support `u32`");
    refuses("let a = n.copysign(n);", "`copysign` does not support `u32`");
    refuses("let a = clamp(n > 1, false, true);", "`clamp` does not support `bool`");
    refuses("let a = clamp(x, 0.0);", "`clamp` takes 3 arguments, but 2 were supplied");
}

#[test]
fn bits() {
    means(
        "let a = n.count_ones() + n.trailing_zeros() + n.rotate_left(n); let b: i16 = (n as i16).swap_bytes();",
        "v0 = ((count_ones(p0) + trailing_zeros(p0)) + rotate_left(p0, p0))\nv1 = swap_bytes((p0 as i16))",
    );
    // Functions of constants are constants.
    means(
        "for k in unroll(0..8u32.trailing_zeros()) { out.set(k, 0); } let a = 1u8.rotate_right(1) as u32 + (-1i16).count_ones();",
        "l0: for v0 in 0u32..3u32 step 1usize unrolled\n  global.set p1 v0 0u32\nv1 = 144u32",
    );
    means("let a: u64 = 0; let b = a.leading_zeros() + 5i8.reverse_bits() as u32;", "v0 = 4294967264u32");
}

#[test]
fn bits_are_those_of_integers() {
    for method in ["count_ones", "leading_zeros", "trailing_ones", "reverse_bits", "swap_bytes"] {
        accepts(&format!("let y = n.{method}();"));
        refuses(&format!("let y = x.{method}();"), &format!("`f32` has no method `{method}`"));
        refuses(
            &format!("let y = n.{method}(1);"),
            &format!("`{method}` takes no arguments, but 1 was supplied"),
        );
        refuses(
            &format!("let y = 1.{method}();"),
            &format!("cannot infer the type that `{method}` is called on"),
        );
    }
    accepts("let y = x.to_bits().rotate_left(3);");
    refuses("let y = n.rotate_left(x);", "mismatched types");
    refuses("let y = __popc(n);", "use `x.count_ones()` instead of `__popc`");
}

#[test]
fn methods_of_integers() {
    means(
        "let a = n.wrapping_add(1).wrapping_mul(n).wrapping_shl(3); let b: i32 = (n as i32).wrapping_neg();",
        "v0 = (((p0 + 1u32) * p0) << 3u32)\nv1 = (0i32 - (p0 as i32))",
    );
    means(
        "let a = n.saturating_sub(1) + mul_hi(n, 5) + (n as i32).abs_diff(-3); let b = n.is_power_of_two();",
        "v0 = ((saturating_sub(p0, 1u32) + mul_hi(p0, 5u32)) + abs_diff((p0 as i32), -3i32))\n\
         v1 = (count_ones(p0) == 1u32)",
    );
    // Methods of constants are constants.
    means(
        "let a: [u8; 8] = [250u8.saturating_add(9), 200u8.wrapping_add(100), 3u8.pow(4), 17u8.next_multiple_of(8), \
         100u8.abs_diff(101), 9u8.ilog2() as u8, (-100i8).saturating_mul(2) as u8, (-100i8).abs_diff(100)];",
        "v0 = [255u8, 44u8, 81u8, 24u8, 1u8, 3u8, 128u8, 200u8]",
    );
    means("let a = mul_hi(0xffff_ffff_ffff_ffffu64, 0xffff_ffff_ffff_ffff);", "v0 = 18446744073709551614u64");
    means("let a = mul_hi(-1i64, 5) as i32 + mul_hi(-0x4000_0000i32, 8);", "v0 = -3i32");
    for method in ["wrapping_add(1)", "saturating_mul(2)", "abs_diff(1)", "pow(2)"] {
        let name = method.split('(').next().expect("a name");
        accepts(&format!("let y = n.{method};"));
        refuses(
            &format!("let y = 1.{method};"),
            &format!("cannot infer the type that `{name}` is called on"),
        );
        refuses(&format!("let y = x.{method};"), &format!("`f32` has no method `{name}`"));
    }
    refuses("let y = (n as i32).next_multiple_of(2);", "`next_multiple_of` does not support `i32`");
    refuses("let y = (n as i32).is_power_of_two();", "`is_power_of_two` does not support `i32`");
    refuses("let y = mul_hi(n as u8, 3);", "`mul_hi` does not support `u8`");
    refuses("let y = n.wrapping_add(1u64);", "mismatched types");
    refuses("let y = __umulhi(n, 3);", "use `mul_hi(a, b)` instead of `__umulhi`");
}

/// The distance has the type that the receiver decides, also if a later use decides that.
#[test]
fn types_of_distances() {
    means(
        "let mut a = 5; let b = a.abs_diff(7); let c: i16 = a;",
        "v0 = 5i16\nv1 = abs_diff(v0, 7i16)\nv2 = v0",
    );
    refuses("let a: i32 = 5i32.abs_diff(7);", "mismatched types");
}

#[test]
fn powers() {
    means(
        "let a = n.pow(3); let b = x.powi(-2);",
        "v0 = (p0 * p0)\nv1 = (p0 * v0)\nv2 = (p3 * p3)\nv3 = (1.0f32 / v2)",
    );
}
