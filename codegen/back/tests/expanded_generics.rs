//! The expansion of generic device functions.

use proc_macro2::TokenStream;
use quote::quote;
use tma_codegen::expand;

/// Methods on values of a device function's generics are looked up with the bounds of that
/// function.
#[test]
fn generics_of_device_functions_have_bounds_of_their_own() {
    let module = quote!(
        mod m {
            use tma_runtime::prelude::*;
            #[tma_device]
            fn root<T: Precise, const N: u32>(x: T) -> T
            where
                T: Mine,
            {
                x.sqrt()
            }
            #[tma_device]
            fn plain(x: f32) -> f32 {
                x.sqrt()
            }
            #[tma_kernel(threads = 32)]
            fn k(out: Global<f32>) {
                out.set(0, root::<_, 1>(out.get(0)) + plain(1.0));
            }
        }
    );
    let text = expand::module(TokenStream::new(), module).to_string();
    let proof = "fn methods_of_generics < T : Precise , const N : u32 > () where T : Mine";
    assert!(text.contains(proof), "{text}");
    assert_eq!(text.matches("fn methods_of_generics").count(), 1, "{text}");
    // rustc sees the function as it is.
    assert!(text.contains("fn root < T : Precise , const N : u32 > (x : T) -> T where T : Mine"), "{text}");
}
