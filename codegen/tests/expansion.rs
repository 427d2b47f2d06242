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

/// The module with the launchers, as text.
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

/// What a launch must know of a kernel with this body.
fn spec(body: TokenStream) -> String {
    let all = items(quote!(threads = 32), quote!(pub fn k(counter: Global<u32>, n: u32) { #body }));
    launchers(&all)
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

/// All that stands before `marker` in the expansion of an item.
fn before(expanded: TokenStream) -> String {
    let text = expanded.to_string();
    let at = text.find("marker").unwrap_or_else(|| panic!("the body is gone from {text}"));
    text[..at].to_owned()
}

/// Bodies that differ from the marker on: in tokens, in shared memory, in what is wrong with them.
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
