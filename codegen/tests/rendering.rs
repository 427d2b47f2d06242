//! How errors read: with the source they are about, all at once, each once, in the words of the language.

use std::fs;
use std::path::Path;

use tma_codegen::{Failure, Target};

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

#[test]
fn a_second_place_is_shown_with_its_own_words() {
    expect(
        "#[tma_kernel(threads = 32, min_blocks = 2,\n    threads = 64)]\nfn k() {}\n",
        r"
error[TMA0006]: `threads` is given twice
 --> src/kernels.rs:2:5
  |
1 | #[tma_kernel(threads = 32, min_blocks = 2,
  |              ------- first given here
2 |     threads = 64)]
  |     ^^^^^^^
  |
  = help: keep one of them",
    );
    expect(
        "#[tma_kernel(threads = 32)]\nfn k(src: TensorMap<Tile<f32, Shape2<8, 8>>>) {\n    \
         let tile: Tile<f32, Shape2<8, 16>> = shared();\n    let full: Barrier = shared();\n    \
         src.load(tile, [0, 0], full);\n}\n",
        r"
error[TMA0205]: `src` moves a `Tile<f32, Shape2<8, 8>>`, but this is a `Tile<f32, Shape2<8, 16>>`
 --> src/kernels.rs:5:14
  |
2 | fn k(src: TensorMap<Tile<f32, Shape2<8, 8>>>) {
  |           ---------------------------------- the type of `src` says what it moves
...
5 |     src.load(tile, [0, 0], full);
  |              ^^^^
  |
  = help: make both one type: a `type` alias in a `#[tma_module]` keeps `src` and the tile alike",
    );
}

/// As in a macro's error, which has one place.
#[test]
fn in_a_text_the_second_place_is_a_line() {
    let source = "#[tma_kernel(threads = 32,\n    threads = 64)]\nfn k() {}\n";
    let Err(Failure::Rules { errors, .. }) = tma_codegen::check("k.rs", source) else { panic!("accepted") };
    assert_eq!(
        errors[0].text(),
        "TMA0006: `threads` is given twice\nnote: first given here: line 1\nhelp: keep one of them"
    );
}

#[test]
fn what_the_target_lacks_is_shown_where_it_is_needed() {
    let source = "\
#[tma_kernel(threads = 32)]
fn k(maps: Maps<Tile<f32, Shape2<8, 8>>>, model: TensorMap<Tile<f32, Shape2<8, 8>>>) {
    let map: SharedMap<Tile<f32, Shape2<8, 8>>> = shared();
    map.copy_from(model);
    map.set_extent::<0>(4);
    map.publish(maps, 0);
}
";
    let found =
        |target| tma_codegen::check_for("src/kernels.rs", source, target).map_err(|error| error.to_string());
    assert_eq!(
        found(Target::Sm90).expect_err("sm_90 lacks it").trim(),
        r"
error[TMA0227]: sm_90 has no `tensormap.replace`, which `set_extent` needs
 --> src/kernels.rs:5:5
  |
5 |     map.set_extent::<0>(4);
  |     ^^^^^^^^^^^^^^^^^^^^^^
  |
  = note: the target is sm_90; sm_90a, sm_100a, sm_120a have it
  = help: name another target in `build.rs`: `Build::new().target(Target::Sm90a)`"
            .trim()
    );
    for target in [Target::Sm90a, Target::Sm100a, Target::Sm120a] {
        assert_eq!(found(target).expect("it has it").kernels.len(), 1);
    }
    assert!(tma_codegen::check("src/kernels.rs", source).is_ok(), "the macro knows no target");
}

#[track_caller]
fn warned(source: &str, want: &str) {
    let accepted = tma_codegen::check("src/kernels.rs", source).unwrap_or_else(|failure| panic!("{failure}"));
    assert_eq!(accepted.rendered.trim(), want.trim(), "found:\n{}", accepted.rendered);
    assert_eq!(accepted.warnings.is_empty(), want.is_empty());
}

#[test]
fn a_warning_is_returned_beside_the_kernels() {
    warned(
        "\
#[tma_kernel(threads = 32)]
fn k() {
    let full: Barrier = shared();
    full.init(1);
}
",
        r"
warning[TMA0015]: nothing accesses `full`, which takes 8 bytes of every block's shared memory
 --> src/kernels.rs:3:25
  |
3 |     let full: Barrier = shared();
  |                         ^^^^^^^^
4 |     full.init(1);
  |     ------------ all that is done with it is to initialise it
  |
  = help: remove it, or give it a name that begins with `_`",
    );
}

#[test]
fn what_one_instance_uses_is_used() {
    let kernel = |condition: &str| {
        format!(
            "#[tma_kernel(threads = 32, instances(a = <1>, b = <2>))]\nfn k<const N: u32>(out: Global<u32>) {{\n    \
             let words: SharedArray<u32, 4> = shared();\n    if {condition} {{\n        words.set(0, 1);\n    }}\n    \
             out.set(0, N);\n}}\n"
        )
    };
    warned(&kernel("N > 1"), "");
    warned(
        &kernel("N > 2"),
        r"
warning[TMA0015]: nothing accesses `words`, which takes 16 bytes of every block's shared memory
 --> src/kernels.rs:3:38
  |
3 |     let words: SharedArray<u32, 4> = shared();
  |                                      ^^^^^^^^
  |
  = help: remove it, or give it a name that begins with `_`",
    );
}

#[test]
fn a_pipeline_is_unused_as_a_whole_or_in_parts() {
    let kernel = |name: &str, body: &str| {
        format!(
            "#[tma_kernel(threads = 32)]\nfn k() {{\n    let {name} = shared::<Pipeline<(Tile<f32, Shape1<32>>,), 2>>();\n    \
             {body}\n}}\n"
        )
    };
    let warnings = |source: String| {
        let accepted = tma_codegen::check("k.rs", &source).unwrap_or_else(|failure| panic!("{failure}"));
        accepted.warnings.into_iter().map(|warning| warning.message).collect::<Vec<_>>()
    };
    assert_eq!(
        warnings(kernel("ring", "ring.init(1);")),
        ["nothing accesses `ring`, which takes 288 bytes of every block's shared memory"]
    );
    assert_eq!(
        warnings(kernel("ring", "let mut p = ring.producer(); let slot = p.wait();")),
        [
            "nothing accesses `ring.0`, which takes 256 bytes of every block's shared memory",
            "nothing accesses `ring.full`, which takes 16 bytes of every block's shared memory"
        ]
    );
    assert_eq!(warnings(kernel("_ring", "_ring.init(1);")), [""; 0]);
}
