//! What the attributes become.

use proc_macro2::TokenStream;
use quote::quote;
use tma_codegen::expand;

/// The items that a kernel becomes, apart from the errors: that there is no PTX is one here.
fn items(attr: TokenStream, item: TokenStream) -> Vec<syn::Item> {
    let file: syn::File = syn::parse2(expand::kernel(attr, item)).unwrap();
    file.items.into_iter().filter(|item| !matches!(item, syn::Item::Macro(_))).collect()
}

fn text(item: &impl quote::ToTokens) -> String {
    quote!(#item).to_string()
}

#[test]
fn a_condition_on_a_kernel_is_one_on_all_that_it_becomes() {
    let tokens = expand::kernel(
        quote!(threads = 32),
        quote!(
            #[cfg(test)]
            pub fn k() {}
        ),
    );
    let file: syn::File = syn::parse2(tokens).unwrap();
    assert_eq!(file.items.len(), 3, "the error that there is no PTX, the launcher, the body");
    for item in &file.items {
        let text = text(item);
        assert!(text.starts_with("# [cfg (test)]"), "{text}");
    }
}

#[test]
fn parameters_may_have_any_name() {
    let all = items(
        quote!(threads = 32),
        quote!(
            pub fn k(r#type: u32, on: u32, grid: Global<f32>, mut n: u32) {}
        ),
    );
    let text = text(&all[0]);
    for wanted in ["r#type : :: core :: primitive :: u32", "scalar (r#type)", "scalar (on)", "slice (& grid)"]
    {
        assert!(text.contains(wanted), "no `{wanted}` in {text}");
    }
}

#[test]
fn instances_may_have_any_name() {
    let all = items(
        quote!(threads = 32, instances(r#loop = <1>, größer = <2>)),
        quote!(
            pub fn r#fn<const N: u32>() {
                let n = N;
            }
        ),
    );
    let text = text(&all[0]);
    for wanted in
        ["pub mod r#fn", "pub mod r#loop", "pub mod größer", "\"fn__loop\"", "\"fn__gr_uf6__udf_er\""]
    {
        assert!(text.contains(wanted), "no `{wanted}` in {text}");
    }
}

/// What a launch must know of a kernel with this body.
fn spec(body: TokenStream) -> String {
    let all = items(quote!(threads = 32), quote!(pub fn k(counter: Global<u32>, n: u32) { #body }));
    text(&all[0])
}

#[test]
fn the_launcher_learns_whether_a_kernel_meets_or_waits() {
    let has = |body: TokenStream, field: &str| {
        let text = spec(body);
        let [yes, no] = [true, false].map(|value| text.contains(&format!("{field} : {value}")));
        assert_ne!(yes, no, "{text}");
        yes
    };
    let meets = quote!(if n > 3 {
        sync_grid(counter);
    });
    assert!(has(meets.clone(), "cooperative"));
    assert!(!has(meets, "dependency_wait"));
    let waits = quote!(
        grid_dependency_launch();
        for _ in 0..n {
            grid_dependency_wait();
        }
    );
    assert!(has(waits.clone(), "dependency_wait"));
    assert!(!has(waits, "cooperative"));
    assert!(!has(quote!(grid_dependency_launch();), "dependency_wait"));
    // What a constant excludes is not in the kernel.
    let never = quote!(if false {
        sync_grid(counter);
    });
    assert!(!has(never, "cooperative"));
}

/// The constant beside the launcher would be meant by a pattern of its name.
#[test]
fn a_parameter_called_as_the_generated_constant_is_renamed() {
    let all = items(
        quote!(threads = 32),
        quote!(
            pub fn k(SPEC: u32, spec: u32) {}
        ),
    );
    let text = text(&all[0]);
    assert!(text.contains("spec_ : :: core :: primitive :: u32 , spec :"), "{text}");
    assert!(text.contains("scalar (spec_) , :: tma_runtime :: launch :: Arg :: scalar (spec)"), "{text}");
    assert!(text.contains("name : \"SPEC\""), "{text}");
}

/// The codes of the errors that a module becomes.
fn errors(module: TokenStream) -> Vec<String> {
    let text = expand::module(TokenStream::new(), module).to_string();
    text.split("compile_error")
        .skip(1)
        .map(|error| error.chars().skip_while(|c| *c != 'T').take(7).collect())
        .collect()
}

#[test]
fn a_module_that_imports_no_words_is_told_once() {
    let module = |import: TokenStream| {
        quote!(
            mod m {
                #import
                #[tma_kernel(threads = 32)]
                fn a(out: Global<u32>) {
                    out.set(thread_idx().x, 1);
                }
                #[tma_kernel(threads = 32)]
                fn b(out: Global<u32>) {
                    sync_threads();
                }
            }
        )
    };
    assert_eq!(errors(module(quote!())), ["TMA0122"]);
    assert_eq!(
        errors(module(quote!(
            use std::collections::HashMap;
        ))),
        ["TMA0122"]
    );
    // That there is no PTX is another error.
    for import in [
        quote!(
            use tma_runtime::prelude::*;
        ),
        quote!(
            use super::*;
        ),
        quote!(
            use a::{
                b,
                c::{Global, d},
            };
        ),
    ] {
        assert_eq!(errors(module(import)), ["TMA0901", "TMA0901"]);
    }
}
