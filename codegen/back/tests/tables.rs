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
                 self :: Key { r#type : 1 , n : - 2 , n_ : true } , & self :: f32_a_true :: SPEC)";
    assert!(text.contains(entry), "{text}");
    assert!(
        text.contains("pub fn table () -> :: tma_runtime :: launch :: Instances < 'static , self :: Key >")
    );
}

/// Instances are in groups by their element types, of which a launch with some types refers to one.
#[test]
fn instances_are_in_groups_by_element_type() {
    let text = launchers(
        quote!(threads = 32, instances(T in [f32, u64, usize], N in [1, 2])),
        quote!(
            pub fn k<T: TileElement, const N: u32>(out: Global<T>) {
                out.set(N, out.get(0));
            }
        ),
    );
    assert_eq!(text.matches("InstanceEntry < self :: Key > ; 2usize]").count(), 3, "{text}");
    // On a GPU, `usize` is `u64`.
    let chosen = "match (< T as :: tma_runtime :: Scalar > :: ELEMENT ,) { \
                  (:: tma_runtime :: spec :: Scalar :: F32 ,) => & [& self :: GROUP_0] , \
                  (:: tma_runtime :: spec :: Scalar :: U64 ,) => & [& self :: GROUP_1 , & self :: GROUP_2] , \
                  _ => & [] , }";
    assert!(text.contains(chosen), "{text}");
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

/// Launchers of a team kernel take teams. What functions that replace others add to it can be passed
/// by a table if it is the same on every rank.
#[test]
fn launchers_of_team_kernels_take_teams() {
    let text = launchers(
        quote!(threads = 32, instances(T in [f32, u32], N in [1, 2])),
        quote!(
            pub fn k<T: TileElement, const N: u32>(all: Peers<Global<T>>, own: Option<Global<T>>) {
                all.of(N).set(rank(), all.own().get(0));
            }
        ),
    );
    let launch = "on : impl :: tma_runtime :: launch :: LaunchOnTeam , \
                  grid : impl :: core :: convert :: Into < :: tma_runtime :: launch :: Grid > , \
                  mut all : impl :: tma_runtime :: launch :: PeerGlobalArgMut < T > , \
                  own : :: core :: option :: Option < impl :: tma_runtime :: launch :: PeerGlobalArg < T > >)";
    assert!(text.contains(launch), "{text}");
    assert!(text.contains("self . 0 . launch_on_team (& on , grid . into () , & ["), "{text}");
    assert!(text.contains("pub fn table ()") && text.contains("TypedLauncher"), "{text}");
}
