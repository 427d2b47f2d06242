//! Register arrays that are indexed at run time: warnings.

use tma_codegen::diag::Diagnostic;

/// Returns the warnings about a kernel with this body, which is accepted.
#[track_caller]
fn warnings(options: &str, body: &str) -> Vec<String> {
    let source = format!(
        "#[tma_module]\nmod m {{\n\
         #[tma_device]\nfn add(to: &mut [f32; 8], i: u32, x: f32) {{ to[i as usize] += x; }}\n\
         #[tma_kernel(threads = 64{options})]\nfn k(n: u32, out: Global<f32>) {{\n\
         let mut acc = [0.0f32; 8];\n{body}\nout.set(0, acc[0]);\n}}\n}}"
    );
    match tma_codegen::check("language.rs", &source) {
        Ok(accepted) => accepted.warnings.iter().map(|warning| warning.text() + "\n").collect(),
        Err(failure) => panic!("refused:\n{failure}"),
    }
}

#[test]
fn indices_at_run_time() {
    for body in [
        "acc[n as usize] = 1.0;",
        "out.set(1, acc[(n % 8) as usize]);",
        "acc[lane_idx() as usize % 8] += 1.0;",
        "for i in 0..n { acc[(i % 8) as usize] += 1.0; }",
        "for i in 0..n as usize { acc[i] += 1.0; }",
        "let mut i = 0; while i < n { acc[i as usize] += 1.0; i += 1; }",
        "let mut i = 0; loop { if i == n { break; } acc[i as usize] += 1.0; i += 1; }",
        "let mut j = 0usize; for _ in 0..n { acc[j % 8] += 1.0; j += 1; }",
        "for i in unroll(0..2u32) { acc[(i + n) as usize] += 1.0; }",
        "add(&mut acc, n, 1.0);",
        "let i = cast::<u32>(out.get(0)); acc[(i & 7) as usize] = 2.0;",
        "for i in 0..512u32 { acc[(i % 8) as usize] += out.get(i); }",
        "let mut i = 3; if n > 3 { i = n; } acc[i as usize] = 2.0;",
        "let mut all = [[0.0f32; 4]; 2]; all[1][(n % 4) as usize] = 1.0; acc[1] = all[1][0];",
    ] {
        let found = warnings("", body);
        let [warning] = &found[..] else { panic!("{body}: {found:?}") };
        assert!(warning.starts_with("TMA0016: an array in local memory:"), "{body}: {warning}");
        assert!(warning.contains("takes 32 bytes"), "{body}: {warning}");
        assert!(warnings(", local_arrays", body).is_empty(), "{body}");
    }
}

#[test]
fn indices_that_are_known() {
    for body in [
        "for i in unroll(0..8) { acc[i] += n as f32; }",
        "for i in 0..8 { acc[i] += n as f32; }",
        "for _ in 0..n { for i in unroll(0..8u32) { add(&mut acc, i, 1.0); } }",
        "for _ in 0..n { for i in 0..4usize { acc[i] += 1.0; } }",
        "for _ in 0..n { let mut j = 0usize; while j < 4 { acc[j] += 1.0; j += 1; } }",
        "let mut i = 0usize; while i < 8 { acc[i] += 1.0; i += 2; }",
        "let k = if n > 3 { 1usize } else { 2 }; acc[k] = 1.0;",
        "acc[thread_idx().y as usize] = 1.0;",
        "add(&mut acc, 7, n as f32);",
        "if n > 3 { acc[1] = 2.0; }",
    ] {
        let found = warnings("", body);
        assert!(found.is_empty(), "{body}: {found:?}");
    }
}

/// An array is reported once, at its first index, whatever function or instance that is in.
#[test]
fn each_array_is_reported_once() {
    let found = warnings("", "acc[n as usize] = 1.0; add(&mut acc, n, 1.0); acc[(n + 1) as usize] = 1.0;");
    assert_eq!(found.len(), 1, "{found:?}");
    let source = "#[tma_kernel(threads = 32, instances(two = <2>, three = <3>))]
        fn k<const N: usize>(n: u32, out: Global<f32>) {
            let mut acc = [0.0f32; N];
            let mut other = [0u8; 16];
            acc[n as usize] = 1.0;
            other[(n & 15) as usize] = 1;
            out.set(0, acc[0] + other[0] as f32);
        }";
    let accepted = tma_codegen::check("language.rs", source).unwrap_or_else(|failure| panic!("{failure}"));
    let texts: Vec<_> = accepted.warnings.iter().map(Diagnostic::text).collect();
    assert_eq!(texts.len(), 2, "{texts:?}");
    assert!(texts[0].contains("`acc`") && texts[0].contains("takes 8 bytes"), "{texts:?}");
    assert!(texts[1].contains("`other`") && texts[1].contains("takes 16 bytes"), "{texts:?}");
}
