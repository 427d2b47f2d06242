//! The expansion of the attributes.

use proc_macro2::TokenStream;
use quote::quote;
use tma_codegen::expand;

/// Returns the items that a kernel expands to, except for errors: one is that there is no PTX.
fn items(attr: TokenStream, item: TokenStream) -> Vec<syn::Item> {
    let file: syn::File = syn::parse2(expand::kernel(attr, item)).unwrap();
    file.items.into_iter().filter(|item| !matches!(item, syn::Item::Macro(_))).collect()
}

fn text(item: &impl quote::ToTokens) -> String {
    quote!(#item).to_string()
}

/// Returns the module with the launchers, as text.
fn launchers(items: &[syn::Item]) -> String {
    let module = items.iter().find(|item| matches!(item, syn::Item::Mod(_)));
    text(module.expect("a kernel becomes a module"))
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
    assert_eq!(file.items.len(), 3, "the body, the error that there is no PTX, the launcher");
    for item in &file.items {
        let text = text(item);
        assert!(text.starts_with("# [cfg (test)]"), "{text}");
    }
}

/// rustc checks methods by the names of their types, but arrays have no name.
#[test]
fn methods_are_called_on_references_to_anything() {
    let tokens = expand::module(
        TokenStream::new(),
        quote!(
            mod m {
                use tma_runtime::prelude::*;
                #[tma_device]
                fn len(array: &[f32; 2], phase: &mut Phase, x: &f32) -> u32 {
                    phase.flip();
                    x.sqrt();
                    array.len()
                }
                #[tma_kernel(threads = 32)]
                fn k(out: Global<u32>) {
                    let mut phase = Phase::new();
                    let mut array = [1.0f32; 2];
                    let mut x = 1.0f32;
                    out.set(0, len(&array, &mut phase, &x));
                }
            }
        ),
    );
    let text = text(&tokens);
    assert!(text.contains("has no method `len`"), "{text}");
    assert_eq!(text.matches("any () . sqrt ()").count(), 3, "by value, by `&` and by `&mut`: {text}");
    assert_eq!(text.matches("any () . flip ()").count(), 2, "by value and by `&`: {text}");
}

/// rustc does not know `#[trusted]`: the expansion removes it from statements of every kind, at any
/// depth, and keeps other attributes.
#[test]
fn statements_that_are_trusted_are_statements_for_rustc() {
    let body = quote!({
        #[trusted = "a"]
        let x = row.get(0);
        #[trusted = "b"]
        out.set(0, x);
        #[allow(unused)]
        #[trusted = "c"]
        if x > 1 {
            for i in 0..2u32 {
                #[trusted = "d"]
                sync_warp();
                #[trusted = "e"]
                {
                    out.set(i, 1);
                }
            }
        }
    });
    let lone = text(&expand::kernel(quote!(threads = 32), quote!(fn k(out: Global<u32>) #body)));
    let module = quote!(
        mod m {
            use tma_runtime::prelude::*;
            #[tma_device]
            fn f(out: Global<u32>, row: SharedArray<u32, 1>) #body
            #[tma_kernel(threads = 32)]
            fn k(out: Global<u32>) {
                #[trusted = "f"]
                sync_warp();
            }
        }
    );
    for expanded in [lone, text(&expand::module(TokenStream::new(), module))] {
        assert!(!expanded.contains("trusted ="), "{expanded}");
        assert!(expanded.contains("sync_warp ()"), "{expanded}");
    }
}

/// The `impl` of a struct stays what it is, without what rustc does not know.
#[test]
fn functions_of_structs_are_functions_of_the_host() {
    let module = quote!(
        mod m {
            use tma_runtime::prelude::*;
            #[derive(Clone, Copy)]
            struct Point {
                row: u32,
            }
            #[tma_device]
            impl Point {
                fn step(&mut self) {
                    #[trusted = "reason"]
                    sync_threads();
                    self.row += 1;
                }
            }
            #[tma_kernel(threads = 32)]
            fn k(out: Global<u32>) {
                let mut point = Point { row: 1 };
                point.step();
                out.set(0, point.row);
            }
        }
    );
    let text = text(&expand::module(TokenStream::new(), module));
    assert!(!text.contains("tma_device") && !text.contains("trusted"), "{text}");
    // A `step(self)` and a `step(&self)` of a trait would take precedence.
    for receiver in ["self", "& self"] {
        assert!(text.contains(&format!("trait TheKernelLanguage {{ fn step ({receiver}) ; }}")), "{text}");
    }
    assert!(text.contains("fn () -> Point = any ; any () . step () ;"), "{text}");
}

#[test]
fn parameters_may_have_any_name() {
    let all = items(
        quote!(threads = 32),
        quote!(
            pub fn k(r#type: u32, on: u32, grid: Global<f32>, mut n: u32) {}
        ),
    );
    let text = launchers(&all);
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
    let text = launchers(&all);
    for wanted in
        ["pub mod r#fn", "pub mod r#loop", "pub mod größer", "\"fn__loop\"", "\"fn__gr_uf6__udf_er\""]
    {
        assert!(text.contains(wanted), "no `{wanted}` in {text}");
    }
}

#[test]
fn the_instances_of_a_kernel_are_chosen_by_its_generics() {
    let all = items(
        quote!(threads = 32, instances(f16 = <f16, 64>, again = <f16, 64>, f32 = <f32, 32>)),
        quote!(
            pub fn k<T: TileElement, const N: u32>(
                src: TensorMap<Tile<T, Shape2<8, N>>>,
                out: Global<f32>,
                spec: T,
                shape: u64,
            ) {
                out.set(0, 1.0);
            }
        ),
    );
    let text = launchers(&all);
    for wanted in [
        "impl Compiled for Instance < :: tma_runtime :: lang :: f16 , 64 > { \
         const SPEC : & 'static :: tma_runtime :: launch :: KernelSpec = & f16 :: SPEC ;",
        "impl Compiled for Instance < :: core :: primitive :: f32 , 32 >",
        "pub fn launch < T : :: tma_runtime :: Scalar , const N : :: core :: primitive :: u32 >",
        "src : impl :: tma_runtime :: launch :: MapArg < T , 2usize >",
        "out : impl :: tma_runtime :: launch :: GlobalArgMut < :: core :: primitive :: f32 >",
        "spec : T , shape : :: core :: primitive :: u64",
        "its instances are `f16` = `<f16, 64>`, `again` = `<f16, 64>`, `f32` = `<f32, 32>`",
        "pub fn tiles_of_src < T , const N : :: core :: primitive :: u32 >",
        "Grid :: tiles (shape , [8u32 , 64u32])",
    ] {
        assert!(text.contains(wanted), "no `{wanted}` in {text}");
    }
    assert_eq!(text.matches("impl Compiled for").count(), 2, "one for both of the same arguments");
}

/// An error of rustc lists only the first ones; the documentation has all.
#[test]
fn the_instances_of_a_product_are_chosen_by_their_generics() {
    let all = items(
        quote!(threads = 32, instances(T in [f16, f32], N in [8, 16, 24, 32, 40])),
        quote!(
            pub fn k<T: TileElement, const N: u32>(src: TensorMap<Tile<T, Shape2<8, N>>>) {
                src.prefetch_descriptor();
            }
        ),
    );
    let text = launchers(&all);
    for wanted in [
        "pub mod f32_40",
        "[:: tma_runtime :: launch :: KernelSpec ; 10usize] = [f16_8 :: SPEC , f16_16 :: SPEC",
        "impl Compiled for Instance < :: core :: primitive :: f32 , 40 >",
        "`f32_32` = `<f32, 32>`, `f32_40` = `<f32, 40>`.",
        "`f32_24` = `<f32, 24>` and 2 more; name another in the attribute",
    ] {
        assert!(text.contains(wanted), "no `{wanted}` in {text}");
    }
}

/// rustc checks each instance of any list. Methods of generics are looked up with all bounds, of
/// which a clause may have some.
#[test]
fn bounds_are_asked_of_every_instance() {
    let text = text(&expand::kernel(
        quote!(threads = 32, instances(one = <f32, 1>, T in [f32], N in [2, 3])),
        quote!(
            pub fn k<T: TileElement, const N: u32>(out: Global<T>)
            where
                T: Mine,
            {
                out.set(N, out.get(0).sqrt());
            }
        ),
    ));
    for wanted in [
        "let _ = k :: < f32 , 1 > ;",
        "let _ = k :: < f32 , 2 > ;",
        "let _ = k :: < f32 , 3 > ;",
        "fn methods_of_generics < T : TileElement , const N : u32 > () where T : Mine",
    ] {
        assert!(text.contains(wanted), "no `{wanted}` in {text}");
    }
}

#[test]
fn what_a_launch_writes_is_what_any_instance_writes() {
    let all = items(
        quote!(threads = 32, instances(reads = <false>, writes = <true>)),
        quote!(
            pub fn k<const WRITES: bool>(out: Global<f32>) {
                if WRITES {
                    out.set(0, 1.0);
                }
            }
        ),
    );
    let text = launchers(&all);
    assert!(text.contains("impl Compiled for Instance < true >"), "{text}");
    let (_, generic) = text.split_once("pub fn launch < const WRITES").unwrap();
    assert!(generic.contains("out : impl :: tma_runtime :: launch :: GlobalArgMut"), "{generic}");
}

#[test]
fn a_kernel_without_generics_has_no_instances_to_choose_from() {
    let all = items(
        quote!(threads = 32),
        quote!(
            pub fn k(dst: TensorMap<Tile<f32, Shape1<8>>>) {}
        ),
    );
    let text = launchers(&all);
    assert!(!text.contains("Instance") && text.contains("pub fn tiles_of_dst"), "{text}");
}

#[test]
fn tma0010_an_instance_is_not_called_as_a_type_of_the_module() {
    for name in ["Instance", "Compiled", "Sealed"] {
        let source = format!(
            "#[tma_kernel(threads = 32, instances({name} = <1>))] fn k<const N: u32>(out: Global<u32>) {{}}"
        );
        let error = tma_codegen::check("lib.rs", &source).err().map(|error| error.to_string());
        assert!(error.is_some_and(|error| error.contains("TMA0010") && error.contains(name)));
    }
}

/// Returns the properties that a launch must know of a kernel with this body.
fn spec(body: TokenStream) -> String {
    let all = items(quote!(threads = 32), quote!(pub fn k(counter: Global<u32>, n: u32) { #body }));
    launchers(&all)
}

#[test]
fn the_launcher_learns_whether_a_kernel_syncs_the_grid_or_waits() {
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
    // Statements that a constant excludes are not in the kernel.
    let never = quote!(if false {
        sync_grid(counter);
    });
    assert!(!has(never, "cooperative"));
}

/// Returns the part of an item's expansion before `marker`.
fn before(expanded: TokenStream) -> String {
    let text = expanded.to_string();
    let at = text.find("marker").unwrap_or_else(|| panic!("the body is gone from {text}"));
    text[..at].to_owned()
}

/// Returns bodies that differ after the marker: in tokens, in shared memory, and in their errors.
fn bodies() -> [TokenStream; 4] {
    [
        quote!(),
        quote!(
            let n = 1u32;
            n
        ),
        quote!(
            let full: Barrier = shared();
            full.init(1);
        ),
        quote!(
            1u32.nope();
            nope();
        ),
    ]
}

#[test]
fn nothing_before_a_body_depends_on_it() {
    let [first, others @ ..] = bodies().map(|body| {
        before(expand::kernel(
            quote!(threads = 32, instances(one = <1>, two = <2>)),
            quote!(pub fn k<const N: u32>(x: Global<u32>) { let marker = N; #body }),
        ))
    });
    for other in others {
        assert_eq!(other, first);
    }
}

#[test]
fn nothing_before_a_body_in_a_module_depends_on_it() {
    let module = |kernel: &TokenStream, device: &TokenStream| {
        quote!(
            mod kernels {
                const N: u32 = 3;
                #[tma_kernel(threads = 32)]
                fn first(x: Global<u32>) { help(x); }
                #[tma_kernel(threads = 32)]
                fn second(x: Global<u32>) { #kernel }
                #[tma_device]
                fn help(x: Global<u32>) { #device }
            }
        )
    };
    let marked = |body: TokenStream| quote!(let marker = N; #body);
    let [first, others @ ..] = bodies().map(|body| module(&marked(body), &quote!()));
    let expanded = |item: TokenStream| before(expand::module(quote!(), item));
    let wanted = expanded(first);
    for other in others {
        assert_eq!(expanded(other), wanted);
    }
    let [first, others @ ..] = bodies().map(|body| module(&quote!(), &marked(body)));
    let wanted = expanded(first);
    for other in others {
        assert_eq!(expanded(other), wanted);
    }
}

/// A pattern with the name of the generated constant would refer to it.
#[test]
fn a_parameter_called_as_the_generated_constant_is_renamed() {
    let all = items(
        quote!(threads = 32),
        quote!(
            pub fn k(SPEC: u32, spec: u32) {}
        ),
    );
    let text = launchers(&all);
    assert!(text.contains("spec_ : :: core :: primitive :: u32 , spec :"), "{text}");
    assert!(text.contains("scalar (spec_) , :: tma_runtime :: launch :: Arg :: scalar (spec)"), "{text}");
    assert!(text.contains("name : \"SPEC\""), "{text}");
}

/// Returns the codes of the errors in the expansion of a module.
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
    // The missing PTX is another error.
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

/// An `impl` is device code as a whole, or an error.
#[test]
fn an_impl_of_device_code_has_functions_of_a_struct() {
    let errors = errors(quote!(
        mod m {
            #[derive(Clone, Copy)]
            struct Point {
                row: u32,
            }
            #[tma_device]
            impl Point {
                const FIRST: u32 = 0;
            }
            #[tma_device]
            impl Default for Point {
                fn default() -> Self {
                    Point { row: 0 }
                }
            }
            #[tma_device]
            impl Elsewhere {}
            #[tma_device]
            impl<T> Point {}
        }
    ));
    assert_eq!(errors, ["TMA0001", "TMA0001", "TMA0001", "TMA0004"]);
}
