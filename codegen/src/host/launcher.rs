//! The typed launcher of a kernel instance.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{format_ident, quote};

use super::spec::kernel_spec;
use crate::ir::{Kernel, Param, Scalar, Type};

/// `SPEC` and `launch`, to be put into the kernel's module.
pub(crate) fn launcher(kernel: &Kernel, shared_bytes: u32, ptx: &TokenStream) -> TokenStream {
    let spec = kernel_spec(kernel, shared_bytes, ptx);
    // Of this span they are other names than the user's, whatever those are.
    let [on, grid] = ["on", "grid"].map(|name| Ident::new(name, Span::mixed_site()));
    let params = kernel.params.iter().map(host_param);
    let args = kernel.params.iter().map(host_arg);
    let path = kernel.path();
    let spec_doc = format!("What a launch of `{path}` must know.");
    let launch_doc = format!(
        "Queues `{path}` on a device's default stream or on a stream, over a grid of blocks.\n\n\
         # Errors\n\n\
         Arguments that the kernel's tensor maps cannot describe, a grid that the device cannot launch, and \
         whatever the device reports; see `tma_runtime::Error`. What goes wrong while the kernel runs is \
         reported by the next call that waits for it."
    );
    quote! {
        #[doc = #spec_doc]
        pub const SPEC: ::tma_runtime::launch::KernelSpec = #spec;

        #[doc = #launch_doc]
        #[allow(clippy::too_many_arguments)]
        pub fn launch(
            #on: impl ::tma_runtime::launch::LaunchOn,
            #grid: impl ::core::convert::Into<::tma_runtime::launch::Grid>,
            #(#params),*
        ) -> ::core::result::Result<(), ::tma_runtime::Error> {
            ::tma_runtime::launch::launch(&#on, &SPEC, #grid.into(), &[#(#args),*])
        }
    }
}

/// A tensor that is written is lent by its argument, which has to be mutable for that.
fn host_param(param: &Param) -> TokenStream {
    let name = format_ident!("{}", param.name);
    let lends = matches!(param.ty, Type::TensorMap(_) | Type::Im2colMap(..) | Type::Global(_));
    let name = if param.written && lends { quote!(mut #name) } else { quote!(#name) };
    match &param.ty {
        Type::TensorMap(tile) => {
            let (kind, element, rank) = (map_trait(param), host_type(tile.element), tile.rank());
            quote!(#name: impl ::tma_runtime::launch::#kind<#element, #rank>)
        }
        Type::Im2colMap(tile, rank) => {
            let (kind, element, rank) = (map_trait(param), host_type(tile.element), *rank as usize);
            quote!(#name: impl ::tma_runtime::launch::#kind<#element, #rank>)
        }
        Type::Maps(_) => quote!(#name: &mut ::tma_runtime::launch::MapWorkspace),
        Type::Global(scalar) => {
            let (kind, element) = (global_trait(param), host_type(*scalar));
            quote!(#name: impl ::tma_runtime::launch::#kind<#element>)
        }
        ty => {
            let ty = host_type(ty.as_scalar().unwrap_or(Scalar::U32));
            quote!(#name: #ty)
        }
    }
}

fn host_arg(param: &Param) -> TokenStream {
    let name = format_ident!("{}", param.name);
    let launch = quote!(::tma_runtime::launch);
    match (&param.ty, param.written) {
        (Type::TensorMap(_) | Type::Im2colMap(..), false) => {
            let kind = map_trait(param);
            quote!(#launch::Arg::map(#launch::#kind::view(&#name)).with(#launch::#kind::options(&#name)))
        }
        (Type::TensorMap(_) | Type::Im2colMap(..), true) => {
            let kind = map_trait(param);
            // Of this span it is another name than that of any parameter.
            let options = Ident::new("options", Span::mixed_site());
            quote!({
                let #options = #launch::#kind::options(&#name);
                #launch::Arg::map_mut(#launch::#kind::view_mut(&mut #name)).with(#options)
            })
        }
        (Type::Maps(_), _) => quote!(#launch::Arg::global_mut(#name.slice_mut())),
        (Type::Global(_), false) => quote!(#launch::Arg::global(#launch::GlobalArg::slice(&#name))),
        (Type::Global(_), true) => {
            quote!(#launch::Arg::global_mut(#launch::GlobalArgMut::slice_mut(&mut #name)))
        }
        _ => quote!(#launch::Arg::scalar(#name)),
    }
}

/// `&mut` is asked for exactly what the kernel writes.
fn map_trait(param: &Param) -> Ident {
    let columns = matches!(param.ty, Type::Im2colMap(..));
    format_ident!(
        "{}",
        match (columns, param.written) {
            (false, false) => "MapArg",
            (false, true) => "MapArgMut",
            (true, false) => "Im2colArg",
            (true, true) => "Im2colArgMut",
        }
    )
}

fn global_trait(param: &Param) -> Ident {
    if param.written { format_ident!("GlobalArgMut") } else { format_ident!("GlobalArg") }
}

fn host_type(scalar: Scalar) -> TokenStream {
    let name = format_ident!("{}", scalar.name());
    match scalar {
        Scalar::F16 | Scalar::Bf16 | Scalar::Tf32 | Scalar::E4m3 | Scalar::E5m2 => {
            quote!(::tma_runtime::lang::#name)
        }
        _ => quote!(::core::primitive::#name),
    }
}
