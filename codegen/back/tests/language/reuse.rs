//! Shared variables in the memory of others: where they lie, and what is refused.

use tma_codegen::ir::SharedId;

use super::{ir, refused};

/// Returns a kernel with these declarations.
fn kernel(declarations: &str) -> String {
    format!("#[tma_kernel(threads = 32)]\nfn k(out: Global<u32>) {{\n{declarations}\n}}")
}

/// Returns the offset of each shared variable, and the bytes in total.
#[track_caller]
fn layout(declarations: &str) -> (Vec<u32>, u32) {
    let accepted = tma_codegen::check("language.rs", &kernel(declarations));
    let accepted = accepted.unwrap_or_else(|failure| panic!("refused:\n{failure}"));
    let checked = &accepted.kernels[0].kernel;
    let ids = (0..).map(SharedId).take(checked.kernel().shared.len());
    (ids.map(|id| checked.layout().offset(id)).collect(), checked.layout().bytes())
}

#[test]
fn both_begin_at_the_same_byte() {
    let declared = "let first: SharedArray<u32, 8> = shared(); let a: SharedArray<u32, 32> = shared(); \
                    let b: SharedArray<u16, 10> = reuse(a);";
    assert_eq!(layout(declared), (vec![0, 32, 32], 160));
}

#[test]
fn memory_is_aligned_for_both() {
    let declared = "let small: Tile<f32, Shape2<8, 32>, Swizzle32> = shared(); \
                    let a: SharedArray<u32, 512> = shared(); \
                    let b: Tile<bf16, Shape2<8, 64>, Swizzle128> = reuse(a);";
    let declared = declared.replace("f32, Shape2<8, 32>, Swizzle32", "f32, Shape2<8, 8>, Swizzle32");
    assert_eq!(layout(&declared), (vec![2048, 0, 0], 2048 + 256));
}

#[test]
fn reused_memory_can_be_reused_again() {
    let declared = "let a: SharedArray<u32, 32> = shared(); let b: SharedArray<u8, 4> = reuse(a); \
                    let c: SharedArray<u64, 16> = reuse(b);";
    assert_eq!(layout(declared), (vec![0, 0, 0], 128));
    let text = ir(&kernel(declared));
    assert!(text.contains("shared s2 c: SharedArray<u64, 16> in s0\n"), "{text}");
}

#[test]
fn of_a_pipeline_it_is_the_memory_of_all_tiles() {
    // Without `all`, the second tile of the pipeline would come after `other`.
    let declared = "let ring: Pipeline<(Tile<f16, Shape2<8, 64>, Swizzle128>, Tile<f16, Shape2<8, 8>>), 2> = shared(); \
                    let other: Tile<f16, Shape2<8, 64>, Swizzle128> = shared(); \
                    let all: SharedArray<u32, 576> = reuse(ring);";
    assert_eq!(layout(declared), (vec![0, 2048, 4096, 4112, 3072, 0], 4128));
}

#[test]
fn the_type_may_be_in_the_call() {
    let text =
        ir(&kernel("let a: SharedArray<u32, 32> = shared(); let b = reuse::<SharedArray<f32, 8>>(a);"));
    assert!(text.contains("shared s1 b: SharedArray<f32, 8> in s0\n"), "{text}");
}

#[test]
fn misuse_is_refused() {
    let a = "let a: Stages<SharedArray<u32, 32>, 2> = shared();";
    for (call, message) in [
        ("let b: SharedArray<u32, 65> = reuse(a);", "`b` needs 260 bytes, but `a` has 256"),
        ("let b: SharedArray<u32, 8> = reuse(a[0]);", "only the memory of a whole variable can be reused"),
        ("let b: Barrier = reuse(a);", "`Barrier` cannot be in reused memory"),
        ("let b: SharedArray<u32, 8> = reuse(out);", "the memory of `Global<u32>` cannot be reused"),
        ("let b = reuse(a);", "`reuse()` needs a type"),
        ("let b: SharedArray<u32, 8> = reuse();", "`reuse` takes 1 argument"),
        ("if n > 0 { let b: SharedArray<u32, 8> = reuse(a); }", "`reuse()` cannot be in a loop or a branch"),
    ] {
        let source = kernel(&format!("{a}\n{call}")).replace("out: ", "n: u32, out: ");
        let found = refused(&source);
        assert!(found.contains(message) && found.matches("TMA").count() == 1, "{call}\n{found}");
    }
}
