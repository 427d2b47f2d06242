//! Types and values: inference, constants, blocks, functions.

use super::{body, ir, means, module, refused};

#[test]
fn literals_take_their_type_from_their_use() {
    means("let a = 1; let b: u64 = a; out.set(a, 2);", "global.set p1 1u64 2u32");
    means("let mut a = 1; a += n;", "v0 = 1u32\nv0 = (v0 + p0)");
    means("let mut a = 1; let mut b = 1.0;", "v0 = 1i32\nv1 = 1.0f64");
    means(
        "let mut a = [0.0; 2]; let mut i = 0; a[i] = x;",
        "v0 = repeat(0.0f32, [f32; 2])\nv1 = 0usize\nv0[v1] = p3",
    );
    means(
        "let mut a = -5 as i64; let mut b = 300 as u16; let mut c = 0.5 as f32;",
        "v0 = -5i64\nv1 = 300u16\nv2 = 0.5f32",
    );
    means("let mut a = n << 3u64;", "v0 = (p0 << 3u64)");
}

#[test]
fn a_mutable_parameter_begins_with_the_argument() {
    let text =
        ir("#[tma_kernel(threads = 32)] fn k(mut n: u32, out: Global<u32>) { n += 1; out.set(0, n); }");
    let statements: Vec<_> = text.lines().filter(|line| line.contains('=') || line.contains("set")).collect();
    assert!(statements.iter().any(|line| line.trim() == "v0 = p0"), "{text}");
}

#[test]
fn a_literal_takes_the_type_it_is_cast_to_and_what_is_computed_from_it_does_not() {
    means("let mut a = (-(5)) as i64; let mut b = !0 as u64;", "v0 = -5i64\nv1 = 18446744073709551615u64");
    means("let mut a = (1 << n) as u64;", "v0 = ((1i32 << p0) as u64)");
    means("let mut a = 1; a *= 3; let b = a as u64;", "v0 = 1i32\nv0 = (v0 * 3i32)\nv1 = (v0 as u64)");
    means("let mut a = 1.5; let b = a as f32; a = 2.5;", "v0 = 1.5f64\nv1 = (v0 as f32)\nv0 = 2.5f64");
    means("let mut a = 1; let b = a as u64; a += n;", "v0 = 1u32\nv1 = (v0 as u64)\nv0 = (v0 + p0)");
}

#[test]
fn the_ends_of_the_integers_are_values() {
    means(
        "let mut a = -2147483648; let mut b = i64::MIN; let mut c = u64::MAX; let mut d = -128i8; let mut e = -9223372036854775808i64;",
        "v0 = -2147483648i32\nv1 = -9223372036854775808i64\nv2 = 18446744073709551615u64\nv3 = -128i8\nv4 = -9223372036854775808i64",
    );
}

#[test]
fn known_arithmetic_wraps_and_rounds_as_it_does_at_run_time() {
    means(
        "let mut a = u32::MAX.wrapping_add(2); let mut b = i32::MIN.wrapping_sub(1);",
        "v0 = 1u32\nv1 = 2147483647i32",
    );
    means("let mut a = u64::MAX.wrapping_mul(u64::MAX); let mut b = 1u8 << 7;", "v0 = 1u64\nv1 = 128u8");
    means(
        "let mut a = -7 / 2; let mut b = -7 % 2; let mut c = !0u16;",
        "v0 = -3i32\nv1 = -1i32\nv2 = 65535u16",
    );
    means(
        "let mut a = 0.1f32 + 0.2; let mut b = 0.1 + 0.2;",
        "v0 = 0.30000001192092896f32\nv1 = 0.30000000000000004f64",
    );
    means(
        "let mut a = -1.5f32 as u32; let mut b = 3e9f32 as i32; let mut c = f32::NAN as u8;",
        "v0 = 0u32\nv1 = 2147483647i32\nv2 = 0u8",
    );
    means(
        "let a = 0.1f32; let mut b = a as f64; let mut c = 16777217.0f32 as i32;",
        "v0 = 0.10000000149011612f64\nv1 = 16777216i32",
    );
}

/// A little above the tie of two `f32`, 1 and 1 + 2^-23. The nearest `f64` is the tie itself, which
/// would be rounded to even: to 1.
const ABOVE_TIE: &str = "1.00000005960464477539062500000001";

#[test]
fn a_float_is_rounded_once_from_its_digits() {
    let means = |body: &str, want: &str| {
        let up = |text: &str| text.replace("ABOVE", ABOVE_TIE).replace("UP", "1.0000001192092896f32");
        means(&up(body), &up(want));
    };
    means("let mut a = ABOVEf32; let mut b: f32 = ABOVE;", "v0 = UP\nv1 = UP");
    means(
        "let mut a = ABOVE; let mut b = ABOVEf64;",
        "v0 = 1.0000000596046448f64\nv1 = 1.0000000596046448f64",
    );
    means("let a = ABOVE; let mut b = a; b = x;", "v0 = UP\nv0 = p3");
    means(
        "let mut a: f32 = -ABOVE; let mut b: f32 = (ABOVE); let mut c: f32 = -(-(ABOVE));",
        "v0 = -UP\nv1 = UP\nv2 = UP",
    );
    means("let mut a = ABOVE as f32; let mut b = cast::<f32>(ABOVE);", "v0 = UP\nv1 = 1.0f32");
    means(
        "let mut a: [f32; 2] = [0.0, ABOVE]; a = [ABOVE; 2];",
        "v0 = [0.0f32, UP]\nv0 = repeat(UP, [f32; 2])",
    );
    means(
        "let mut a: f32 = [0.0, ABOVE][1]; a = x + ABOVE; a = max(ABOVE, x);",
        "v0 = UP\nv0 = (p3 + UP)\nv0 = max(UP, p3)",
    );
    means("let mut a = f16::from_f32(ABOVE); let mut b = x > ABOVE;", "v0 = (UP as f16)\nv1 = (p3 > UP)");
    means(
        "let mut a: f32 = if n > 0 { ABOVE } else { 0.0 };",
        "if (p0 > 0u32)\n  v0 = UP\nelse\n  v0 = 0.0f32\nv1 = v0",
    );
    means(
        "let mut a: f32 = match n { 0 => -ABOVE, _ => x };",
        "match p0\ncase 0..=0\n  v0 = -UP\nelse\n  v0 = p3\nv1 = v0",
    );
}

#[test]
fn constants_and_device_functions_round_a_float_once() {
    let text = module(
        &"const A: f32 = ABOVE; const B: f32 = -(A); const C: [f32; 2] = [B, ABOVE]; const D: f32 = A + ABOVE;
          const E: f64 = ABOVE;
          #[tma_device] fn f(y: f32) -> f32 { y + ABOVE }"
            .replace("ABOVE", ABOVE_TIE),
        &"let mut a = A; a = B; a = C[1]; a = D; a = E as f32; a = f(ABOVE);".replace("ABOVE", ABOVE_TIE),
    );
    let values: Vec<_> =
        text.lines().filter_map(|line| line.split_once(" = ")).map(|(_, value)| value).collect();
    let wanted = [
        "1.0000001192092896f32",
        "-1.0000001192092896f32",
        "1.0000001192092896f32",
        "2.000000238418579f32",
        "1.0f32",
        "2.000000238418579f32",
        "v1",
    ];
    assert_eq!(values, wanted, "{text}");
}

#[test]
fn arithmetic_of_known_singles_is_rounded_at_each_step() {
    // In `f64`, 16777216 + 1 - 16777216 would be 1.
    means("let mut a: f32 = 16777216.0 + 1.0 - 16777216.0;", "v0 = 0.0f32");
    means("let mut a = x + 0.1 * 3.0 / 0.7;", "v0 = (p3 + 0.4285714626312256f32)");
    means("let mut a = (0.1f32 + 0.2) as f64;", "v0 = 0.30000001192092896f64");
}

#[test]
fn floats_are_written_in_every_form_of_rust() {
    means(
        "let mut a: f32 = 1_000.5_0; let mut b = 1e3; let mut c = 1_2.5E-0_1; let mut d = 2e+2_f32; let mut e = 3_f64; let mut f = 1.;",
        "v0 = 1000.5f32\nv1 = 1000.0f64\nv2 = 1.25f64\nv3 = 200.0f32\nv4 = 3.0f64\nv5 = 1.0f64",
    );
    means(
        "let mut a = 1000000000000000000000000000000000000000000f64; let mut b = 340282346638528859811704183484516925440f32;",
        "v0 = 1e42f64\nv1 = 3.4028234663852886e38f32",
    );
    means(
        "let mut a = 0x1f_u32; let mut b = 0b1_01; let mut c = 0o17i64;",
        "v0 = 31u32\nv1 = 5i32\nv2 = 15i64",
    );
}

#[test]
fn blocks_branches_and_matches_are_values() {
    means("let a = if n > 3 { n } else { 4 };", "if (p0 > 3u32)\n  v0 = p0\nelse\n  v0 = 4u32\nv1 = v0");
    means(
        "let a = match n { 0 | 2 => 1, 3..=5 => 2, 6.. => 3, _ => return };",
        "match p0\ncase 0..=0 | 2..=2\n  v0 = 1i32\ncase 3..=5\n  v0 = 2i32\ncase 6..=4294967295\n  v0 = 3i32\nelse\n  return\nv1 = v0",
    );
    means("let a = { let b = n; b + 1 }; let a = a * 2;", "v0 = (p0 + 1u32)\nv1 = (v0 * 2u32)");
    means(
        "let u = {}; let _ = n; let a = if n > 0 { return } else { 5 };",
        "if (p0 > 0u32)\n  return\nelse\n  v0 = 5i32\nv1 = v0",
    );
    means(
        "match n as i32 { -5..=-1 => trap(), i32::MIN..=-6 | 0.. => {} }",
        "match (p0 as i32)\ncase -5..=-1\n  trap\nelse",
    );
}

#[test]
fn loops_are_left_and_gone_on_with_by_label() {
    means(
        "'a: loop { for i in 0..4 { match i { 0 => continue, 1 => continue 'a, 2 => break, _ => break 'a } } }",
        "l0: loop\n  l1: for v0 in 0i32..4i32 step 1usize\n    match v0\n    case 0..=0\n      continue l1\n    case 1..=1\n      continue l0\n    case 2..=2\n      break l1\n    else\n      break l0",
    );
    means("for i in unroll((0..=6).step_by(2)) {}", "l0: for v0 in 0i32..=6i32 step 2usize unrolled");
}

#[test]
fn a_branch_that_a_constant_rules_out_is_not_judged() {
    let kernel = |stages: u32| {
        format!(
            "#[tma_kernel(threads = 32, instances(a = <{stages}>))]\nfn k<const S: u32>() {{\n\
             let full: Stages<Barrier, S> = shared();\nif S > 1 {{ full[1].init(1); }}\n}}"
        )
    };
    assert!(ir(&kernel(2)).contains("barrier.init s0[1u32] 1u32"));
    assert!(!ir(&kernel(1)).contains("barrier.init"));
}

#[test]
fn constants_stand_in_any_order() {
    let text = module(
        "const A: u32 = B * 2 + TABLE[1]; const B: u32 = { 3 + 1 }; const TABLE: [u32; 3] = [1, 2, 3];
         const SCALE: f32 = 1.0 / 8.0; const ON: bool = A > B && !(SCALE > 1.0);
         type T = Tile<f32, Shape2<{ B * 2 }, 8>>;",
        "let t: T = shared(); out.set(0, A); out.set(t.bytes(), ON as u32); let mut s = SCALE; for i in 0..3 { out.set(1, TABLE[i]); }",
    );
    for line in [
        "shared s0 t: Tile<f32, Shape2<8, 8>>",
        "global.set p1 0i32 10u32",
        "global.set p1 256u32 1u32",
        "v0 = 0.125f32",
        "[1u32, 2u32, 3u32][v1]",
    ] {
        assert!(text.contains(line), "{line}\n{text}");
    }
}

#[test]
fn each_instance_has_its_constants() {
    let text = ir("#[tma_kernel(threads = [N, 2], min_blocks = 1, max_registers = 64, instances(a = <32, -1>, b = <{ 32 * 2 }, 1>,),)]
        fn k<const N: u32, const M: i32>(out: Global<i32>) { out.set(block_dim().x, M); }");
    assert!(text.contains("kernel k::a threads [32, 2, 1] min_blocks 1 max_registers 64\n"), "{text}");
    assert!(text.contains("global.set p0 32u32 -1i32"), "{text}");
    assert!(text.contains("global.set p0 64u32 1i32"), "{text}");
}

#[test]
fn device_functions_are_inlined() {
    let text = module(
        "#[tma_device] fn first(x: &[u32; 2], n: u32) -> u32 { for i in 0..2 { if x[i] == n { return n; } } 9 }
         #[tma_device] fn bump<const BY: u32>(x: &mut u32) { let n = BY; *x += n; }
         #[tma_device] fn twice(x: &mut u32) { bump::<3>(x); bump::<{ 2 + 2 }>(&mut *x); }",
        "let mut n = n; twice(&mut n); let pair = [n, 1]; out.set(0, first(&pair, n));",
    );
    let want = "  v0 = p0
  l0:
    l1:
      v0 = (v0 + 3u32)
    l2:
      v0 = (v0 + 4u32)
  v1 = [v0, 1u32]
  v2 = v0
  l3:
    l4: for v4 in 0usize..2usize step 1usize
      if (v1[v4] == v2)
        v3 = v2
        leave l3
    v3 = 9u32
  global.set p1 0i32 v3
";
    assert!(text.contains(want), "{text}");
}

#[test]
fn a_known_variable_can_be_referred_to() {
    let text = module(
        "#[tma_device] fn get(x: &u32) -> u32 { *x }",
        "let five = 5; out.set(0, get(&five)); out.set(1, get(&n));",
    );
    assert!(text.contains("v0 = 5u32") && text.contains("v2 = p0"), "{text}");
}

#[test]
fn each_call_has_its_own_shared_memory() {
    let text = module(
        "#[tma_device] fn make() -> Barrier { let inner: Barrier = shared(); inner }",
        "let a = make(); let b = make(); a.init(1); b.init(2);",
    );
    assert!(text.contains("shared s0 inner") && text.contains("shared s1 inner"), "{text}");
}

#[test]
fn names_are_those_of_the_innermost_scope() {
    means(
        "let a = n; { let a = a + 1; out.set(0, a); } out.set(0, a);",
        "v0 = (p0 + 1u32)\nglobal.set p1 0i32 v0\nglobal.set p1 0i32 p0",
    );
    assert_eq!(body("let n = 3u64; out.set(n, 1);"), "global.set p1 3u64 1u32\n");
}

#[test]
fn what_rustc_settles_otherwise_is_refused() {
    let kernel = |body: &str| format!("#[tma_kernel(threads = 32)]\nfn k(n: u32) {{ {body} }}");
    for (body, message) in [
        ("let a = 5; let b: u32 = a; let c: u64 = a;", "expected `u64`, found `u32`"),
        ("let a = 5; let b = abs(a); let c: u32 = a;", "`abs` does not support `u32`"),
        ("let a = 1.0; let b: f16 = a;", "expected `f16`, found a float"),
        ("printf!(\"{a}\", a = n);", "does not support named arguments"),
        ("printf!(\"{:08}\", n);", "unknown format `{:08}`"),
        ("printf!(\"{:+8}\", n);", "unknown format `{:+8}`"),
        ("assert!(n > 1, \"{n}\");", "plain text"),
    ] {
        let found = refused(&kernel(body));
        assert!(found.contains(message), "{body}\n{found}");
    }
}

#[test]
fn a_type_generic_stands_for_what_the_instance_names() {
    let text = ir("#[tma_kernel(threads = 32, instances(halves = <f16, Swizzle128, 8>, words = <u32, NoSwizzle, 4>))]
         fn k<T: TileElement, W: Swizzle, const ROWS: u32>(src: TensorMap<Tile<T, Shape2<ROWS, 32>, W>>, out: Global<T>) {
             let tile: Tile<T, Shape2<ROWS, 32>, W> = shared();
             out.set(0, tile.get([ROWS - 1, 0]));
         }");
    assert!(text.contains("Tile<f16, Shape2<8, 32>, Swizzle128>"), "{text}");
    assert!(text.contains("Tile<u32, Shape2<4, 32>>"), "{text}");
    assert!(text.contains("Global<f16>") && text.contains("Global<u32>"), "{text}");
}

#[test]
fn a_type_generic_is_no_name_in_what_the_kernel_uses() {
    let errors = refused(
        "#[tma_module] mod m {
         type Row = Tile<T, Shape1<32>>;
         #[tma_kernel(threads = 32, instances(halves = <f16>))]
         fn k<T: TileElement>(src: TensorMap<Row>) { src.prefetch_descriptor(); } }",
    );
    assert!(errors.contains("`T` is not a type of the kernel language"), "{errors}");
}

/// Kernels that run every cast of numbers may therefore use either of the two.
#[test]
fn as_is_the_cast_of_numbers_that_rustc_has() {
    let numbers = ["i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64", "usize", "f32", "f64"];
    for from in numbers {
        for to in numbers.into_iter().filter(|&to| to != from) {
            let cast = |written: &str| {
                ir(&format!(
                    "#[tma_kernel(threads = 32)] fn k(x: {from}, out: Global<{to}>) {{ out.set(0, {written}); }}"
                ))
            };
            assert_eq!(cast(&format!("x as {to}")), cast(&format!("cast::<{to}>(x)")), "{from} as {to}");
        }
    }
}
