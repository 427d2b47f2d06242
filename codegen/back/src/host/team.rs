//! The parameters and arguments of a team kernel's launcher: memory of every rank.

use proc_macro2::{Ident, TokenStream};
use quote::{format_ident, quote};
use tma_front::ir::{Param, ParamKind, Presence};

/// Generates a parameter of `launch` with the element type `element`. Tensors that the kernel
/// writes are borrowed mutably from their argument, so the parameter is `mut`.
pub(super) fn host_param(param: &Param, name: &Ident, element: &TokenStream) -> TokenStream {
    let pattern = if param.written { quote!(mut #name) } else { quote!(#name) };
    let launch = quote!(::tma_runtime::launch);
    match param.kind() {
        Some(ParamKind::Tiles(tile) | ParamKind::PeerMaps(tile)) => {
            let (kind, rank) = (mutable("PeerMapArg", param), tile.rank());
            quote!(#pattern: impl #launch::#kind<#element, #rank>)
        }
        Some(ParamKind::Columns(_, rank)) => {
            let (kind, rank) = (mutable("Im2colArg", param), rank as usize);
            let borrow = if param.written { quote!(&mut) } else { quote!(&) };
            quote!(#name: #borrow [impl #launch::#kind<#element, #rank>])
        }
        Some(ParamKind::Maps(_)) => quote!(#name: &mut [#launch::MapWorkspace]),
        Some(ParamKind::Global(_) | ParamKind::PeerGlobals(_)) => {
            let kind = mutable("PeerGlobalArg", param);
            let argument = quote!(impl #launch::#kind<#element>);
            match param.presence {
                Presence::Optional(_) => quote!(#pattern: ::core::option::Option<#argument>),
                Presence::Required | Presence::FlagOf(_) | Presence::OwnOf(_) | Presence::Team(_) => {
                    quote!(#pattern: #argument)
                }
            }
        }
        Some(ParamKind::Scalar(_)) | None => quote!(#name: #element),
    }
}

/// Generates the argument for a parameter.
pub(super) fn host_arg(param: &Param, name: &Ident) -> TokenStream {
    let launch = quote!(::tma_runtime::launch);
    match (param.kind(), param.written) {
        (Some(ParamKind::Tiles(_)), false) => quote!(#launch::TeamArg::maps(&#name)),
        (Some(ParamKind::Tiles(_)), true) => quote!(#launch::TeamArg::maps_mut(&mut #name)),
        (Some(ParamKind::PeerMaps(_)), false) => quote!(#launch::TeamArg::peer_maps(&#name)),
        (Some(ParamKind::PeerMaps(_)), true) => quote!(#launch::TeamArg::peer_maps_mut(&mut #name)),
        (Some(ParamKind::Columns(..)), false) => quote!(#launch::TeamArg::columns(#name)),
        (Some(ParamKind::Columns(..)), true) => quote!(#launch::TeamArg::columns_mut(#name)),
        (Some(ParamKind::Maps(_)), _) => quote!(#launch::TeamArg::workspaces(#name)),
        (Some(ParamKind::Global(_)), written) if matches!(param.presence, Presence::Optional(_)) => {
            match written {
                true => quote!(#launch::TeamArg::optional_globals_mut(#name.as_mut())),
                false => quote!(#launch::TeamArg::optional_globals(#name.as_ref())),
            }
        }
        (Some(ParamKind::Global(_)), false) => quote!(#launch::TeamArg::globals(&#name)),
        (Some(ParamKind::Global(_)), true) => quote!(#launch::TeamArg::globals_mut(&mut #name)),
        (Some(ParamKind::PeerGlobals(_)), false) => quote!(#launch::TeamArg::peer_globals(&#name)),
        (Some(ParamKind::PeerGlobals(_)), true) => quote!(#launch::TeamArg::peer_globals_mut(&mut #name)),
        (Some(ParamKind::Scalar(_)) | None, _) => quote!(#launch::TeamArg::scalar(#name)),
    }
}

/// Returns the trait of arguments, which requires `&mut` exactly for tensors that the kernel writes.
fn mutable(kind: &str, param: &Param) -> Ident {
    let suffix = if param.written { "Mut" } else { "" };
    format_ident!("{kind}{suffix}")
}
