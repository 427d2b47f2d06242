//! Optional slices: what takes them apart, and what they are in the IR.

use super::{ir, refused};

fn kernel(body: &str) -> String {
    format!(
        "#[tma_module]\nmod m {{\n\
         #[tma_device]\nfn of(bias: Option<Global<f32>>, i: u32) -> f32 {{\n\
         match bias {{ Some(bias) => bias.get(i), None => 0.0 }}\n}}\n\
         #[tma_kernel(threads = 128)]\n\
         fn k(bias: Option<Global<f32>>, n: u32, out: Option<Global<f32>>) {{\n{body}\n}}\n}}"
    )
}

/// Returns the lines of the IR for this body.
#[track_caller]
fn lines(body: &str) -> Vec<String> {
    ir(&kernel(body)).lines().map(|line| line.trim().to_owned()).collect()
}

#[test]
fn an_option_is_a_slice_and_a_bool() {
    let found = lines("if let Some(b) = bias { let x = b.get(n); }");
    let params: Vec<_> = found.iter().filter(|line| line.starts_with("param ")).collect();
    assert_eq!(
        params,
        [
            "param p0 bias: Global<f32>",
            "param p1 n: u32",
            "param p2 out: Global<f32>",
            "param p3 bias.is_some(): bool",
            "param p4 out.is_some(): bool",
        ]
    );
    assert!(found.iter().any(|line| line.starts_with("if p3")), "{found:?}");
}

#[test]
fn what_takes_an_option_apart() {
    for body in [
        "if let Some(bias) = bias { out_of(bias.len()); }",
        "if let Some(_) = bias { sync_threads(); } else { sync_warp(); }",
        "if let None = bias { return; }",
        "let x = if let Some(b) = bias { b.get(n) } else { 0.0 };",
        "let x = match bias { Some(b) => b.get(n), None => 1.0 };",
        "match bias { None => sync_threads(), Some(b) => { let x = b.get(n); } }",
        "match bias { Some(b) => { let x = b.get(n); } _ => {} }",
        "match bias { None => {} _ => sync_threads() }",
        "let Some(b) = bias else { return; }; let x = b.get(n);",
        "let Some(b) = bias else { return }; let Some(o) = out else { return }; o.set(n, b.get(n));",
        "for i in 0..n { let Some(b) = bias else { break }; let x = b.get(i); }",
        "let x = bias.is_some() && out.is_none();",
        "let mut x = 0.0; if bias.is_some() { x = 1.0; }",
        "let x = of(bias, n);",
        "let same = bias; let x = of(same, n);",
        "if let Some(b) = bias { if let Some(o) = out { o.set(n, b.get(n)); } }",
        "if let Some(b) = bias { let mut s = Accumulator::<f32, 64, 8>::zero(); sync_warpgroup(); }",
    ] {
        lines(&body.replace("out_of(bias.len());", "let len = bias.len();"));
    }
}

#[test]
fn what_does_not() {
    for (body, code) in [
        ("if let Some(b) = n { }", "TMA0003"),
        ("if let Some(3) = bias { }", "TMA0003"),
        ("if let Some(mut b) = bias { }", "TMA0003"),
        ("if let Some(b) = bias && n > 3 { }", "TMA0002"),
        ("while let Some(b) = bias { }", "TMA0002"),
        ("match bias { Some(b) if n > 3 => {} _ => {} }", "TMA0003"),
        ("match bias { Some(b) => {} }", "TMA0003"),
        ("match n { Some(b) => {} _ => {} }", "TMA0003"),
        ("let Some(b) = n else { return };", "TMA0003"),
        ("let b = n else { return };", "TMA0001"),
        ("let x = bias.get(n);", "TMA0103"),
        ("let x = bias.unwrap();", "TMA0103"),
        ("let x: Option<u32> = n;", "TMA0004"),
        ("let mut b = bias; b = out;", "TMA0102"),
        ("let x = if n > 3 { bias } else { out };", "TMA0002"),
        (
            "let mut s = Accumulator::<f32, 64, 8>::zero(); if bias.is_some() == (lane_idx() > 3) { sync_warpgroup(); }",
            "TMA0264",
        ),
    ] {
        let text = refused(&kernel(body));
        assert!(text.starts_with(code), "{body}: {text}");
    }
    let text =
        refused("#[tma_kernel(threads = 32)]\nfn k(map: Option<TensorMap<Tile<f32, Shape2<8, 8>>>>) {}");
    assert!(text.starts_with("TMA0004") && text.contains("only a `Global` can be optional"), "{text}");
}

/// A slice written through an option is borrowed mutably.
#[test]
fn writes_are_known() {
    let found = lines("if let Some(o) = out { o.set(n, 1.0); }");
    assert!(found.contains(&"param p2 out: Global<f32> written".to_owned()), "{found:?}");
}
