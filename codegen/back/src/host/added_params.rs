//! The arguments of a kernel beyond those of its template, for a launch by a function that knows
//! only the template's.

use proc_macro2::{Ident, TokenStream};
use quote::{format_ident, quote};
use tma_front::ir::{Kernel, Param, ParamKind, Presence};

use super::launcher::{element, host_type};

/// Generates a function that creates the arguments for the parameters in `names`, in the kernel's
/// order. Generates nothing if the kernel has none of them, or if one can only be created by the
/// kernel's own launcher.
pub(crate) fn arguments(kernel: &Kernel, names: &[String]) -> Option<TokenStream> {
    // The flags of optional slices follow all other arguments, and are known to the launcher alone.
    if kernel.params.iter().any(|param| param.presence != Presence::Required) {
        return None;
    }
    let (inputs, args) = inputs(kernel, names)?;
    if args.is_empty() {
        return None;
    }
    let count = args.len();
    let doc = format!(
        "The last arguments of `{}`: what functions take that replace others of its template.",
        kernel.name
    );
    Some(quote! {
        #[doc = #doc]
        #[allow(clippy::too_many_arguments)]
        pub fn further<'a>(#(#inputs),*) -> [::tma_runtime::launch::Arg<'a>; #count] {
            [#(#args),*]
        }
    })
}

/// Returns the parameters of a function that creates the arguments for the parameters in `names`,
/// and these arguments. Returns `None` if one can only be created by the kernel's own launcher. On a
/// team, that is the case of all but numbers, which are the same on every rank.
pub(super) fn inputs(kernel: &Kernel, names: &[String]) -> Option<(Vec<TokenStream>, Vec<TokenStream>)> {
    let params = || kernel.params.iter().filter(|param| names.contains(&param.name));
    let is_number = |param: &Param| matches!(param.kind(), Some(ParamKind::Scalar(_)));
    if kernel.is_of_team() && !params().all(is_number) {
        return None;
    }
    params().map(argument).collect::<Option<Vec<_>>>().map(|made| made.into_iter().unzip())
}

/// Returns a parameter of the function, and the argument created from it.
fn argument(param: &Param) -> Option<(TokenStream, TokenStream)> {
    if param.presence != Presence::Required {
        return None;
    }
    let launch = quote!(::tma_runtime::launch);
    let name: Ident = format_ident!("{}", param.name);
    let element = element(param).map(host_type)?;
    let made = match param.kind() {
        Some(ParamKind::Tiles(tile)) => {
            let rank = tile.rank();
            match param.written {
                false => (
                    quote!(#name: ::tma_runtime::TensorView<'a, #element, #rank>),
                    quote!(#launch::Arg::map(#name)),
                ),
                true => (
                    quote!(#name: ::tma_runtime::TensorViewMut<'a, #element, #rank>),
                    quote!(#launch::Arg::map_mut(#name)),
                ),
            }
        }
        Some(ParamKind::Global(_)) if param.written => {
            (quote!(#name: #launch::GlobalSliceMut<'a, #element>), quote!(#launch::Arg::global_mut(#name)))
        }
        Some(ParamKind::Global(_)) => {
            (quote!(#name: #launch::GlobalSlice<'a, #element>), quote!(#launch::Arg::global(#name)))
        }
        Some(ParamKind::Scalar(_)) => (quote!(#name: #element), quote!(#launch::Arg::scalar(#name))),
        Some(
            ParamKind::Columns(..) | ParamKind::Maps(_) | ParamKind::PeerMaps(_) | ParamKind::PeerGlobals(_),
        )
        | None => return None,
    };
    Some(made)
}
