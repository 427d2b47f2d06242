//! Arrays of which the compiler warns that they are in local memory are there in the PTX, and no
//! others are.
#![cfg(feature = "llvm")]

use tma_codegen::{Target, compile};

/// Returns whether the compiler warns about a kernel with this body, and whether its PTX has local
/// memory.
fn found(body: &str) -> [bool; 2] {
    let source = format!(
        "#[tma_kernel(threads = 64)]\nfn k(n: u32, src: Global<f32>, out: Global<f32>) {{\n\
         let mut acc = [0.0f32; 8];\n{body}\n\
         for i in unroll(0..8u32) {{ out.set(i, acc[i as usize]); }}\n}}"
    );
    match compile("src/kernel.rs", &source, Target::default()) {
        Ok(compiled) => {
            [!compiled.warnings.is_empty(), compiled.kernels.iter().any(|ptx| ptx.text.contains(".local"))]
        }
        Err(failure) => panic!("{body}:\n{failure}"),
    }
}

#[test]
fn warnings_agree_with_the_ptx() {
    let mut wrong = vec![];
    for (body, is_local) in [
        ("acc[n as usize] = 1.0;", true),
        ("for i in 0..n { acc[(i % 8) as usize] += src.get(i); }", true),
        ("let mut j = 0usize; for i in 0..n { acc[j % 8] += src.get(i); j += 3; }", true),
        ("let mut i = 0; loop { if i >= n { break; } acc[i as usize] += 1.0; i += 1; }", true),
        ("for i in 0..512u32 { acc[(i % 8) as usize] += src.get(i); }", true),
        ("let i = cast::<u32>(src.get(0)); acc[(i & 7) as usize] = 2.0;", true),
        ("let mut i = 3; if n > 3 { i = n; } acc[i as usize] = 2.0;", true),
        ("acc[2] = n as f32;", false),
        ("for i in unroll(0..8u32) { acc[i as usize] = src.get(i); }", false),
        ("for i in 0..8u32 { acc[i as usize] = src.get(i); }", false),
        ("for i in 0..8u32 { acc[i as usize] += src.get(i) * src.get(i + n); }", false),
        ("for k in 0..n { for i in 0..8u32 { acc[i as usize] += src.get(k * 8 + i); } }", false),
        (
            "for k in 0..n { let mut i = 0; while i < 8 { acc[i as usize] += src.get(k + i); i += 1; } }",
            false,
        ),
        ("let mut i = 0; while i < 8 { acc[i as usize] += src.get(i); i += 2; }", false),
        ("let k = if n > 3 { 1usize } else { 2 }; acc[k] = 1.0;", false),
        // Around the number of operations up to which LLVM unrolls a loop of its own accord.
        ("for i in 0..16u32 { acc[(i & 7) as usize] += src.get(i); }", false),
        ("for i in 0..28u32 { acc[(i & 7) as usize] += src.get(i); }", true),
        ("for i in 0..12u32 { acc[(i & 7) as usize] += src.get(i) * src.get(i + n); }", false),
        ("for i in 0..16u32 { acc[(i & 7) as usize] += src.get(i) * src.get(i + n); }", true),
    ] {
        let found = found(body);
        if found != [is_local; 2] {
            wrong.push(format!("{body}: warning {}, local memory {}", found[0], found[1]));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
