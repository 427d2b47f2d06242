//! Errors in the expansion: in place of the expressions that they reject, so that rustc does not
//! report the same mistake again.

use proc_macro2::TokenStream;
use tma_codegen::expand;

/// Parses tokens with positions, as the compiler's are.
fn tokens(source: &str) -> TokenStream {
    source.parse().expect("it is Rust")
}

/// Returns the expansion of a kernel with this body.
fn kernel(body: &str) -> String {
    let source = format!("fn k(values: Global<u32>, n: u32) {{\n{body}\n}}");
    expand::kernel(tokens("threads = 32"), tokens(&source)).to_string()
}

fn module(items: &str) -> String {
    let source = format!("mod m {{\nuse tma_runtime::prelude::*;\n{items}\n}}");
    expand::module(TokenStream::new(), tokens(&source)).to_string()
}

/// Asserts that an expansion contains an error with this code once, between these tokens.
#[track_caller]
fn assert_placed(expansion: &str, before: &str, code: &str, after: &str) {
    let beginning = format!("{before} :: core :: compile_error ! (\"{code}: ");
    let Some((_, rest)) = expansion.split_once(&beginning) else { panic!("no `{beginning}` in {expansion}") };
    let (_, rest) = rest.split_once("\")").expect("the text ends");
    assert!(rest.trim_start().starts_with(after), "no `{after}` in {rest}");
    assert_eq!(expansion.matches(code).count(), 1, "{expansion}");
}

#[test]
fn the_smallest_expression_is_replaced() {
    let text = kernel("values.set(n, 1.5);\nvalues.set(n, 2);");
    assert_placed(&text, "values . set (n ,", "TMA0102", ") ; values . set (n , 2) ;");
    let text = kernel("values.set(n + nope, n.nope() + 1);");
    assert_placed(&text, "values . set (n +", "TMA0101", ",");
    assert_placed(&text, ",", "TMA0103", "+ 1) ;");
}

#[test]
fn an_assignment_is_replaced_as_a_whole() {
    assert_placed(&kernel("let x = 1u32;\nx = 2;"), "let x = 1u32 ;", "TMA0108", "; }");
    assert_placed(&kernel("let x = 1u32;\nx += 2;"), "let x = 1u32 ;", "TMA0108", "; }");
}

#[test]
fn an_expression_or_variable_is_replaced_with_its_type() {
    assert_placed(&kernel("let tile: Tile<f99, Shape2<8, 8>> = shared();"), "let tile =", "TMA0004", "; }");
    assert_placed(&kernel("values.set(0, n as f99);"), "values . set (0 ,", "TMA0004", ") ; }");
}

/// rustc would report the constant, too. Its error is a constant of any value.
#[test]
fn a_constant_in_a_type_is_replaced_alone() {
    let text = module(
        "#[tma_kernel(threads = 32, instances(N in [a = 64, b = 128]))]
        fn k<const N: u32>(src: TensorMap<Tile<f32, Shape2<{ N / 2 }, 64>>>) { src.prefetch([0, 0]); }",
    );
    assert_placed(&text, "Shape2 < {", "TMA0105", "} , 64 > > >");
    let text = module(
        "type Half<const N: u32> = Tile<f32, Shape2<{ N / 2 }, 64>>;
        #[tma_kernel(threads = 32)]
        fn k(src: TensorMap<Half<16>>) { src.prefetch([0, 0]); }",
    );
    assert_placed(&text, "Shape2 < {", "TMA0105", "} , 64 > >");
    let text = module(
        "#[tma_kernel(threads = 32, instances(N in [a = 64, b = 128]))]
        fn k<const N: u32>(out: Global<u32>) {
            let tile: Tile<u32, Shape2<{ N / 2 }, 64>> = shared();
            out.set(0, tile.get([0, 0]));
        }",
    );
    assert_placed(&text, "let tile =", "TMA0105", "; out . set");
}

#[test]
fn statements_stay_statements() {
    let text = kernel("if n > 0 { values.set(0, n); } else { loop { break 'nope; } }\nvalues.set(1, n);");
    assert_placed(&text, "loop {", "TMA0112", "; } } values . set (1 , n) ;");
    assert_placed(&kernel("println!(\"{}\", n);\nvalues.set(1, n);"), "{", "TMA0002", "; values");
    let text = kernel("match n { 0 => values.set(0, 1) }\nvalues.set(1, n);");
    assert_placed(&text, "{", "TMA0113", "; values");
}

/// rustc checks the order of borrows in a kernel whose protocol is wrong.
#[test]
fn errors_that_rustc_does_not_know_replace_nothing() {
    let text =
        kernel("let met: Barrier = shared();\nif n > 3 { values.set(0, n); }\nmet.init(1);\nmet.wait(0);");
    assert!(text.contains("met . wait (0) ;"), "{text}");
    assert!(text.contains("compile_error ! { \"TMA07"), "{text}");
}

#[test]
fn an_error_in_a_function_of_several_kernels_is_in_the_function_once() {
    let text = module(
        "#[tma_device]
        fn helper(x: u32) -> u32 { x + nope }
        #[tma_kernel(threads = 32, instances(N in [a = 1, b = 2]))]
        fn first<const N: u32>(out: Global<u32>) { out.set(0, helper(N)); }
        #[tma_kernel(threads = 32)]
        fn second(out: Global<u32>) { out.set(0, helper(1)); }",
    );
    assert_placed(&text, "x +", "TMA0101", "}");
}

/// rustc may not compile the kernel, but it compiles the function.
#[test]
fn an_error_of_a_kernel_with_a_condition_stays_under_the_condition() {
    let text = module(
        "#[tma_device]
        fn helper(x: u32) -> u32 { x + nope }
        #[cfg(test)]
        #[tma_kernel(threads = 32)]
        fn k(out: Global<u32>) { out.set(0, helper(1)); }",
    );
    assert!(text.contains("x + nope"), "{text}");
    assert!(text.contains("# [cfg (test)] :: core :: compile_error ! { \"TMA0101"), "{text}");
}
