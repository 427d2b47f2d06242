//! The tables of instances that kernels expand to.

use proc_macro2::TokenStream;
use quote::quote;
use tma_codegen::expand;

/// Returns the module with the launchers, as text.
fn launchers(attr: TokenStream, item: TokenStream) -> String {
    let file: syn::File = syn::parse2(expand::kernel(attr, item)).unwrap();
    let module = file.items.iter().find(|item| matches!(item, syn::Item::Mod(_)));
    let module = module.expect("a kernel becomes a module");
    quote!(#module).to_string()
}

/// The key has the constants that a list binds, whatever their names.
#[test]
fn a_key_has_the_constants_of_lists() {
    let text = launchers(
        quote!(threads = 32, instances(T in [f32], (TYPE, N) in [a = (1, -2), b = (3, 4)], n in [true], let M = TYPE)),
        quote!(
            pub fn k<T: TileElement, const TYPE: u32, const M: u32, const N: i32, const n: bool>(
                out: Global<T>,
                key: u32,
                more: Option<Global<f32>>,
            ) {
                out.set(key, out.get(TYPE));
            }
        ),
    );
    let key = "pub struct Key { # [doc = \"The generic `TYPE`.\"] pub r#type : :: core :: primitive :: u32 , \
               # [doc = \"The generic `N`.\"] pub n : :: core :: primitive :: i32 , \
               # [doc = \"The generic `n`.\"] pub n_ : :: core :: primitive :: bool , }";
    assert!(text.contains(key), "{text}");
    let entry = "InstanceEntry :: new (TypeId :: of :: < (:: core :: primitive :: f32 ,) > , \
                 self :: Key { r#type : 1 , n : - 2 , n_ : true })";
    assert!(text.contains(entry), "{text}");
    assert!(
        text.contains("pub fn table () -> :: tma_runtime :: launch :: Instances < 'static , self :: Key >")
    );
}

/// A kernel without generics, or one whose generics the host has no types for, has no table.
#[test]
fn only_kernels_with_types_of_the_host_have_tables() {
    let plain = launchers(
        quote!(threads = 32),
        quote!(
            pub fn k(out: Global<u32>) {
                out.set(0, 1);
            }
        ),
    );
    assert!(!plain.contains("struct Key") && !plain.contains("Launcher"), "{plain}");
    let shapes = launchers(
        quote!(threads = 32, instances(small = <Shape1<32>, 4>)),
        quote!(
            pub fn k<S: Shape, const N: u32>(src: TensorMap<Tile<f32, S>>) {
                src.prefetch_descriptor();
            }
        ),
    );
    assert!(shapes.contains("struct Key") && !shapes.contains("Launcher"), "{shapes}");
}
