//! How errors read: with the source they are about, all at once, each once, in the words of the language.

use std::fs;
use std::path::Path;

use tma_codegen::Failure;

#[track_caller]
fn rendered(source: &str) -> String {
    match tma_codegen::check("src/kernels.rs", source) {
        Ok(_) => panic!("accepted:\n{source}"),
        Err(failure) => failure.to_string(),
    }
}

#[track_caller]
fn expect(source: &str, want: &str) {
    let found = rendered(source);
    assert_eq!(found.trim(), want.trim(), "found:\n{found}");
}

#[test]
fn the_line_the_message_and_the_help() {
    expect(
        "#[tma_kernel(threads = 32)]\nfn k(src: TensorMap<Tile<f16, Shape2<8, 4>>>) {\n    src.prefetch_descriptor();\n}\n",
        r"
error[TMA0202]: the innermost extent of `src` is 4 × 2 bytes = 8 bytes; it must be a multiple of 16
 --> src/kernels.rs:2:11
  |
2 | fn k(src: TensorMap<Tile<f16, Shape2<8, 4>>>) {
  |           ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
  |
  = help: make the innermost extent a multiple of 8",
    );
}

#[test]
fn columns_count_characters() {
    expect(
        "#[tma_kernel(threads = 32)]\nfn k() {\n    assert!(true, \"größer\"); nope();\n}\n",
        r#"
error[TMA0101]: kernels have no function `nope`
 --> src/kernels.rs:3:30
  |
3 |     assert!(true, "größer"); nope();
  |                              ^^^^
  |
  = help: a kernel calls the vocabulary's functions and, in a `#[tma_module]`, the module's `#[tma_device]` functions"#,
    );
}

const FIVE_MISTAKES: &str = "\
#[tma_kernel(threads = 32)]
fn k(out: Global<f32>, n: u32) {
    let full: Barrier = shared();
    full.wiat(0);
    let x: f32 = n;
    out.set(0, x + totl);
    n = 4;
    if n > 1 {
        let late: Barrier = shared();
        late.init(1);
    }
}
";

#[test]
fn all_mistakes_of_a_kernel_are_told_at_once() {
    expect(
        FIVE_MISTAKES,
        r"
error[TMA0103]: `Barrier` has no method `wiat`
 --> src/kernels.rs:4:10
  |
4 |     full.wiat(0);
  |          ^^^^
  |
  = help: did you mean `wait`?

error[TMA0102]: this is `u32`, but `f32` is wanted
 --> src/kernels.rs:5:18
  |
5 |     let x: f32 = n;
  |                  ^

error[TMA0101]: nothing in this kernel is called `totl`
 --> src/kernels.rs:6:20
  |
6 |     out.set(0, x + totl);
  |                    ^^^^
  |
  = help: a kernel sees its own variables and parameters and, in a `#[tma_module]`, the module's constants and `#[tma_device]` functions

error[TMA0108]: `n` cannot be changed
 --> src/kernels.rs:7:5
  |
7 |     n = 4;
  |     ^
  |
  = help: declare it with `let mut n = ..;`

error[TMA0008]: `shared()` stands in a loop or a branch
 --> src/kernels.rs:9:29
  |
9 |         let late: Barrier = shared();
  |                             ^^^^^^^^
  |
  = help: shared memory is laid out at compile time: declare it at the top of the kernel, and pick one of several with `Stages<_, N>`",
    );
}

#[test]
fn a_mistake_in_each_instance_and_each_call_is_told_once() {
    let source = "\
#[tma_module]
mod m {
    #[tma_device]
    fn helper(x: u32) -> u32 {
        x + nope
    }
    #[tma_kernel(threads = 32, instances(a = <1>, b = <2>, c = <3>))]
    fn k<const N: u32>(out: Global<u32>) {
        out.set(0, helper(N));
        out.set(1, helper(N));
    }
}
";
    assert_eq!(rendered(source).matches("error[").count(), 1);
}

#[test]
fn what_is_no_rust_says_where() {
    expect("fn k( {\n", "1:7: cannot parse string into token stream");
}

/// Every message that the pages show, in the words of the language and not of the compiler.
#[test]
fn no_message_names_a_type_of_the_compiler() {
    let inner = [
        "Kind::", "ExprKind", "StmtKind", "Infer(", "Some(", "None", "TileType", "Scalar", "Type::",
        "LocalId", "Error)",
    ];
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/errors");
    let mut seen = 0;
    for entry in fs::read_dir(folder).expect("docs/errors is a folder").flatten() {
        let page = fs::read_to_string(entry.path()).unwrap_or_default();
        for block in page.split("```rust,refused\n").skip(1) {
            let source = block.split("\n```").next().unwrap_or_default();
            let Err(Failure::Rules { errors, .. }) = tma_codegen::check("page.rs", source) else { continue };
            for error in errors {
                seen += 1;
                let text = error.text();
                assert!(inner.iter().all(|name| !text.contains(name)), "{text}");
            }
        }
    }
    assert!(seen > 60, "only {seen} messages were looked at");
}
