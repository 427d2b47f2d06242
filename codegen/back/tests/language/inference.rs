//! Types are inferred as by rustc, whichever use determines them.

use super::refused;

/// Returns a kernel with these statements, and a slice or scalar of many types as parameters.
fn kernel(body: &str) -> String {
    format!(
        "#[tma_module]\nmod m {{\n\
         #[tma_device] fn twice(x: i64) -> i64 {{ let two = 2; x * two }}\n\
         #[tma_device] fn count() -> u8 {{ let mut n = 0; for i in 0..4 {{ n += i; }} n }}\n\
         #[tma_device] fn own(out: &mut u64) {{ let mut n = 3; n += 1; let wide = n as i64; *out = wide as u64; }}\n\
         #[tma_kernel(threads = 32)]\nfn k(out: Global<u32>, longs: Global<i64>, halves: Global<f16>, reals: Global<f64>, \
         map: TensorMap<Tile<f32, Shape2<8, 32>>>, h: f16, s: i16, f: f32) {{\n\
         let full: Barrier = shared(); let tile: Tile<f32, Shape2<8, 32>> = shared();\n{body}\n}}\n}}"
    )
}

/// Checks the types of the variables in `body`, in the order of the source.
#[track_caller]
fn infers(body: &str, want: &str) {
    let kernels = match tma_codegen::check("inference.rs", &kernel(body)) {
        Ok(accepted) => accepted.kernels,
        Err(failure) => panic!("refused: {body}\n{failure}"),
    };
    let known = ["out", "longs", "halves", "reals", "map", "h", "s", "f", "full", "tile"];
    let variables = &kernels[0].kernel.kernel().variables;
    let found: Vec<_> =
        variables.iter().filter(|variable| !known.contains(&variable.name.as_str())).collect();
    let found: Vec<_> = found.iter().map(|variable| format!("{}: {}", variable.name, variable.ty)).collect();
    assert_eq!(found.join(", "), want, "{body}");
}

#[track_caller]
fn says(body: &str, want: &str) {
    let found = refused(&kernel(body));
    assert_eq!(found.trim(), want, "{body}");
}

#[test]
fn an_index_into_global_memory_decides_nothing() {
    infers("for i in 0..8 { out.set(i, i); }", "i: u32");
    infers("for i in 0..8 { longs.set(i, i); }", "i: i64");
    infers("for i in 0..8 { out.set(i, 1); }", "i: i32");
    infers("let i = 1; out.get(i); let wide: u64 = i;", "i: u64, wide: u64");
    infers("let i = 2; longs.bulk_prefetch(i, 16); out.set(0, i);", "i: u32");
}

#[test]
fn coordinates_decide_nothing_but_that_they_are_of_one_type() {
    infers("for k in 0..4 { map.load(tile, [k, 0], full); full.wait(k & 1); }", "k: u32");
    infers("for k in 0..4 { map.load(tile, [k, 0], full); }", "k: i32");
    infers("let at = [0, 32]; tile.get(at); full.wait(at[0]);", "at: [u32; 2]");
    infers("let a = 1; let b = 2; tile.set([a, b], 0.5); out.set(0, b);", "a: u32, b: u32");
}

#[test]
fn an_open_match_is_judged_when_its_type_is_known() {
    infers("let x = 5; match x { 0 => {} 5_000_000_000 => {} _ => {} } longs.set(0, x);", "x: i64");
    infers("let x = 5; let y = match x { ..=9 => 1, 10.. => 2 }; longs.set(x, y);", "x: i32, y: i64");
    infers("let x = 5; match x { 0..=127 => {} 128..=255 => {} } let b: u8 = x;", "x: u8, b: u8");
    infers("let x = cast(f); match x { 3 => {} _ => {} } out.set(0, x);", "x: u32");
    says(
        "let x = 5; match x { 0..=127 => {} 128..=255 => {} } let b: u16 = x;",
        "TMA0113: this `match` does not cover all values\nhelp: add an arm `_ => ..`",
    );
    says(
        "let x = 5; match x { 300 => {} _ => {} } let b: u8 = x;",
        "TMA0109: literal out of range for `u8`: 300 is not in 0 to 255",
    );
}

#[test]
fn what_a_conversion_gives_may_be_decided_by_its_use() {
    infers("let x: f16 = cast(f); let y = cast(x); reals.set(0, y);", "x: f16, y: f64");
    infers("let x = cast::<_>(s); out.set(x, x);", "x: u32");
    infers("let x = s as _; longs.set(0, x);", "x: i64");
    infers("let x = cast(f); let y = 1 << x; let z: u8 = x;", "x: u8, y: i32, z: u8");
    infers("let x = exp2(cast(s)); for i in cast(f)..4u8 { }", "x: f32, i: u8");
    says(
        "let x = cast(f);",
        "TMA0110: cannot infer the type that `cast` converts to\nhelp: write `cast::<f32>(x)`",
    );
    says(
        "let x = 5 as _;",
        "TMA0110: cannot infer the type that `as _` converts to\nhelp: write the type: `x as f32`",
    );
    says(
        "let x: bool = cast(s);",
        "TMA0106: `i16` cannot be converted to `bool`\nhelp: convert a number: `cast` supports nothing else",
    );
}

#[test]
fn a_cast_is_a_hint_for_a_literal_only() {
    infers("let x = { 5_000_000_000 } as u64; let y = { 5 } as f32;", "x: u64, y: f32");
    infers("let a = 7; let b = a as f64; longs.set(0, a);", "a: i64, b: f64");
    infers("let a = { 7 } as u64; let b = { let c = 7; c } as u64;", "a: u64, c: i32, b: u64");
}

#[test]
fn a_device_function_has_types_of_its_own() {
    infers("let x = 1; longs.set(0, twice(x));", "x: i64, x: i64, two: i64");
    infers("let x = count();", "n: u8, i: u8, x: u8");
    infers("let mut x = 1; own(&mut x);", "x: u64, n: i32, wide: i64");
}

#[test]
fn operators_wait_for_their_operands() {
    infers("let a = 1; let b = 2; let c = (a << 3) + b; longs.set(0, c);", "a: i64, b: i64, c: i64");
    infers("let a = 1; let b = 2u8 << a; let c: i16 = a;", "a: i16, b: u8, c: i16");
    infers("let mut a = 1; a <<= 3u8; a += s;", "a: i16");
    infers("let a = 1.0; let b = -a * 2.0; let c = b < f;", "a: f32, b: f32, c: bool");
    infers("let mut a = [1; 3]; let k = 2; a[k] += s; let n = k;", "a: [i16; 3], k: usize, n: usize");
    infers("let a = cast(s); let b: f16 = a; let c = h == a;", "a: f16, b: f16, c: bool");
}

#[test]
fn words_take_the_type_of_any_of_their_arguments() {
    infers("let a = 1; let b = min(max(a, 2), s);", "a: i16, b: i16");
    infers("let a = 1.0; let b = fma(a, 2.0, sqrt(4.0)); let c: f32 = b;", "a: f32, b: f32, c: f32");
    infers("let a = 2.0; let b = rsqrt(a);", "a: f32, b: f32");
    infers("let a = 3; let b = a.max(4); longs.set(0, b);", "a: i64, b: i64");
    infers("let a = abs(-3);", "a: i32");
}

#[test]
fn a_method_needs_a_type() {
    let open = |name: &str| {
        format!(
            "TMA0110: cannot infer the type that `{name}` is called on\nhelp: annotate the value where it is created: `1.0f32`, or \
             `let x: f32 = ..`"
        )
    };
    says("let a = 1.5; let b = a.to_bits();", &open("to_bits"));
    says("let a = 7; let b = a.div_ceil(2);", &open("div_ceil"));
    says(
        "let a = 7; let b = a.to_f32();",
        "TMA0103: an integer has no method `to_f32`\nhelp: write `cast::<f32>(x)`, or `cast::<f64>(x)`: `cast` takes \
         every type of number",
    );
    infers("let a = 7; out.set(0, a); let b = a.div_ceil(2);", "a: u32, b: u32");
    says(
        "let a = 7; let b = a.div_ceil(2);\nlongs.set(0, a);",
        "TMA0107: `div_ceil` does not support `i64`\nnote: its type is `i64`, as inferred from line 10\nhelp: use an unsigned integer",
    );
}

/// rustc propagates the expected type of an array's elements, and of a call's arguments, from one
/// to the next.
#[test]
fn a_receiver_may_be_known_by_what_is_expected_of_it() {
    infers("let a = 7; let b: [u8; 2] = [a, a.div_ceil(2)];", "a: u8, b: [u8; 2]");
    infers("let a = 7; out.set(0, min(a, a.div_ceil(2)));", "a: u32");
    infers("let a = 1.5; let b: [f32; 2] = [a, f32::from_bits(a.to_bits() / 2)];", "a: f32, b: [f32; 2]");
    infers("let a = 7; let b: u64 = if f > 0.0 { a } else { a.div_ceil(3) };", "a: u64, b: u64");
    infers("let a = cast(f); let b = [h, a]; let c = a.to_f32();", "a: f16, b: [f16; 2], c: f32");
}

#[test]
fn an_error_names_the_use_that_decided() {
    says(
        "let i = 1;\nout.set(0, i);\nlongs.set(0, i);",
        "TMA0102: mismatched types: expected `i64`, found `u32`\nnote: its type is `u32`, as inferred from line 10\n\
         help: cast it: `x as i64`",
    );
    says(
        "let mut all = [0; 2];\nall[0] = s;\nall[1] = 2u8;",
        "TMA0102: mismatched types: expected `i16`, found `u8`\nnote: the expected type is `i16`, as inferred from line 10\n\
         help: cast it: `x as i16`",
    );
    says(
        "let i = 1;\nlet b: u8 = i;\nout.get(i);",
        "TMA0102: an index must be an integer of 32 or 64 bits, not `u8`\nnote: its type is `u8`, as inferred from line 10\nhelp: cast it: `i as u64`",
    );
    says(
        "let i = 1;\ntile.get([i, 0]);\nlongs.set(0, i);",
        "TMA0102: coordinates must be `u32` or `i32`, not `i64`\nnote: its type is `i64`, as inferred from line 11\nhelp: cast them: `x as u32`",
    );
}
