//! The typed launcher of a kernel instance.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{format_ident, quote};
use tma_front::ir::{Kernel, Param, ParamKind, Presence, Scalar, Type};

use super::spec::kernel_spec;
use super::team;

/// Generates `SPEC`, `launch` and the functions for grids of its maps, for the kernel's module.
pub(crate) fn launcher(kernel: &Kernel, shared_bytes: u32, ptx: &TokenStream) -> TokenStream {
    let spec = kernel_spec(kernel, shared_bytes, ptx);
    // The hygiene of this span makes them distinct from any name of the user.
    let [on, grid] = ["on", "grid"].map(|name| Ident::new(name, Span::mixed_site()));
    let names = host_names(&kernel.params);
    let target = Target::of(kernel);
    let params = kernel.declared_params().zip(&names).map(|(param, name)| {
        let element = element(param).map(host_type).unwrap_or_default();
        target.param(param, name, &element)
    });
    let flags = flags(&kernel.params, &names);
    let passed = kernel.params.iter().zip(&names).filter(|(param, _)| is_argument(param));
    let args = passed.map(|(param, name)| target.arg(param, name));
    let on_trait = target.on();
    let call = target.launch(&on, &quote!(&SPEC), &grid, &quote!(#(#args),*));
    let path = kernel.path();
    let spec_doc = format!("What a launch of `{path}` must know.");
    let launch_doc = launch_doc(&path);
    let tiles = kernel.params.iter().filter(|param| is_tiled(param)).map(|param| tiles(&path, param));
    quote! {
        #[doc = #spec_doc]
        pub const SPEC: ::tma_runtime::launch::KernelSpec = #spec;

        #[doc = #launch_doc]
        #[allow(clippy::too_many_arguments)]
        pub fn launch(
            #on: impl #on_trait,
            #grid: impl ::core::convert::Into<::tma_runtime::launch::Grid>,
            #(#params),*
        ) -> ::core::result::Result<(), ::tma_runtime::Error> {
            #flags
            #call
        }

        #(#tiles)*
    }
}

/// The targets of a kernel's launches, which decide the types of its arguments.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Target {
    /// A device, a stream or a capture.
    Device,
    /// The ranks of a team.
    Team,
}

impl Target {
    pub(super) fn of(kernel: &Kernel) -> Self {
        if kernel.is_of_team() { Self::Team } else { Self::Device }
    }

    /// Returns the trait of the targets.
    pub(super) fn on(self) -> TokenStream {
        match self {
            Self::Device => quote!(::tma_runtime::launch::LaunchOn),
            Self::Team => quote!(::tma_runtime::launch::LaunchOnTeam),
        }
    }

    /// Generates the launch of the kernel with this specification.
    pub(super) fn launch(
        self,
        on: &Ident,
        spec: &TokenStream,
        grid: &Ident,
        args: &TokenStream,
    ) -> TokenStream {
        match self {
            Self::Device => quote!(::tma_runtime::launch::launch(&#on, #spec, #grid.into(), &[#args])),
            Self::Team => quote!(
                ::tma_runtime::launch::LaunchOnTeam::launch_on_team(&#on, #spec, #grid.into(), &[#args])
            ),
        }
    }

    /// Returns the method of a table's instance that launches it.
    pub(super) fn launch_instance(self) -> Ident {
        match self {
            Self::Device => format_ident!("launch"),
            Self::Team => format_ident!("launch_on_team"),
        }
    }

    /// Generates a parameter of `launch`.
    pub(super) fn param(self, param: &Param, name: &Ident, element: &TokenStream) -> TokenStream {
        match self {
            Self::Device => host_param(param, name, element),
            Self::Team => team::host_param(param, name, element),
        }
    }

    /// Generates the argument for a parameter.
    pub(super) fn arg(self, param: &Param, name: &Ident) -> TokenStream {
        match self {
            Self::Device => host_arg(param, name),
            Self::Team => team::host_arg(param, name),
        }
    }
}

/// Whether the launcher passes an argument for a parameter. Those of a team's launch are passed for
/// each rank by [`LaunchOnTeam`](../../../../tma-runtime/src/launch/on_team.rs).
pub(super) fn is_argument(param: &Param) -> bool {
    match param.presence {
        Presence::Required | Presence::Optional(_) | Presence::FlagOf(_) => true,
        Presence::OwnOf(_) | Presence::Team(_) => false,
    }
}

/// Returns the parameters' names. In a pattern, `SPEC` would refer to the constant next to the
/// launcher, so this one name is changed.
pub(super) fn host_names(params: &[Param]) -> Vec<Ident> {
    let taken = |name: &str| params.iter().any(|param| param.name == name);
    let mut instead = "spec".to_owned();
    while taken(&instead) {
        instead.push('_');
    }
    let name = |param: &Param| if param.name == "SPEC" { instead.clone() } else { param.name.clone() };
    // The hygiene of this span makes a flag distinct from any parameter.
    let of = |(index, param): (usize, &Param)| match param.presence {
        Presence::FlagOf(_) => Ident::new(&format!("is_some_{index}"), Span::mixed_site()),
        Presence::OwnOf(_) | Presence::Team(_) => Ident::new(&format!("hidden_{index}"), Span::mixed_site()),
        Presence::Required | Presence::Optional(_) => format_ident!("{}", name(param)),
    };
    params.iter().enumerate().map(of).collect()
}

/// Generates the variables that say whether optional arguments are there. The arguments themselves
/// are borrowed afterwards.
pub(super) fn flags(params: &[Param], names: &[Ident]) -> TokenStream {
    let flags = params.iter().zip(names).filter_map(|(param, flag)| {
        let Presence::FlagOf(of) = param.presence else { return None };
        let slice = names.get(of.0 as usize)?;
        Some(quote!(let #flag = ::core::option::Option::is_some(&#slice);))
    });
    flags.collect()
}

/// Returns the documentation of a kernel's `launch`.
pub(super) fn launch_doc(path: &str) -> String {
    format!(
        "Queues `{path}` on a device's default stream or on a stream, over a grid of blocks.\n\n\
         # Errors\n\n\
         Arguments that the kernel's tensor maps cannot describe, a grid that the device cannot launch, and \
         whatever the device reports; see `tma_runtime::Error`. What goes wrong while the kernel runs is \
         reported by the next call that waits for it."
    )
}

/// Generates the function for the grid with one block per tile of a map's tensor.
fn tiles(path: &str, param: &Param) -> TokenStream {
    let (name, doc) = (tiles_of(param), tiles_doc(path, param));
    let extents = param.ty.moved().map(|tile| &tile.extents[..]).unwrap_or_default();
    let rank = extents.len();
    quote! {
        #[doc = #doc]
        pub fn #name(shape: [::core::primitive::usize; #rank]) -> ::tma_runtime::launch::Grid {
            ::tma_runtime::launch::Grid::tiles(shape, [#(#extents),*])
        }
    }
}

/// Whether a parameter is a map whose tensor is covered by a grid of tiles.
pub(super) fn is_tiled(param: &Param) -> bool {
    matches!(param.ty, Type::TensorMap(_))
}

/// Returns the name of the function for a map's grid.
pub(super) fn tiles_of(param: &Param) -> Ident {
    format_ident!("tiles_of_{}", param.name.trim_start_matches("r#"))
}

/// Returns the documentation of that function.
pub(super) fn tiles_doc(path: &str, param: &Param) -> String {
    let name = &param.name;
    format!(
        "The grid of `{path}` with one block for each tile of `{name}`, whose tensor is of this shape, outermost extent \
         first: that of `Grid::tiles`, in which `{name}.block_tile()` of up to three dimensions is the block's tile."
    )
}

/// Returns the element type of a parameter, or the type of a scalar.
pub(super) fn element(param: &Param) -> Option<Scalar> {
    match param.kind() {
        Some(ParamKind::Tiles(tile) | ParamKind::Columns(tile, _) | ParamKind::PeerMaps(tile)) => {
            Some(tile.element)
        }
        Some(ParamKind::Global(scalar) | ParamKind::PeerGlobals(scalar) | ParamKind::Scalar(scalar)) => {
            Some(scalar)
        }
        Some(ParamKind::Maps(_)) => None,
        None => Some(Scalar::U32),
    }
}

/// Generates a parameter of `launch` with the element type `element`. A tensor that the kernel
/// writes is borrowed mutably from its argument, so the parameter is `mut`.
fn host_param(param: &Param, name: &Ident, element: &TokenStream) -> TokenStream {
    let pattern = if param.written { quote!(mut #name) } else { quote!(#name) };
    let map = |rank: usize| {
        let kind = map_trait(param);
        quote!(#pattern: impl ::tma_runtime::launch::#kind<#element, #rank>)
    };
    match param.kind() {
        Some(ParamKind::Tiles(tile)) => map(tile.rank()),
        Some(ParamKind::Columns(_, rank)) => map(rank as usize),
        Some(ParamKind::Maps(_)) => quote!(#name: &mut ::tma_runtime::launch::MapWorkspace),
        Some(ParamKind::Global(_)) => {
            let kind = global_trait(param);
            let argument = quote!(impl ::tma_runtime::launch::#kind<#element>);
            match param.presence {
                Presence::Optional(_) => quote!(#pattern: ::core::option::Option<#argument>),
                Presence::Required | Presence::FlagOf(_) | Presence::OwnOf(_) | Presence::Team(_) => {
                    quote!(#pattern: #argument)
                }
            }
        }
        // A kernel with peers is launched on a team.
        Some(ParamKind::PeerMaps(_) | ParamKind::PeerGlobals(_) | ParamKind::Scalar(_)) | None => {
            quote!(#name: #element)
        }
    }
}

/// Generates the argument for a parameter.
fn host_arg(param: &Param, name: &Ident) -> TokenStream {
    let launch = quote!(::tma_runtime::launch);
    match param.kind() {
        Some(ParamKind::Tiles(_) | ParamKind::Columns(..)) => {
            let kind = map_trait(param);
            if !param.written {
                return quote!(
                    #launch::Arg::map(#launch::#kind::view(&#name)).with(#launch::#kind::options(&#name))
                );
            }
            // The hygiene of this span makes it distinct from any parameter.
            let options = Ident::new("options", Span::mixed_site());
            quote!({
                let #options = #launch::#kind::options(&#name);
                #launch::Arg::map_mut(#launch::#kind::view_mut(&mut #name)).with(#options)
            })
        }
        Some(ParamKind::Maps(_)) => quote!(#launch::Arg::global_mut(#name.slice_mut())),
        Some(ParamKind::Global(_)) if matches!(param.presence, Presence::Optional(_)) => {
            match param.written {
                true => quote!(#launch::Arg::optional_mut(
                    #name.as_mut().map(|slice| #launch::GlobalArgMut::slice_mut(slice))
                )),
                false => quote!(#launch::Arg::optional(
                    #name.as_ref().map(|slice| #launch::GlobalArg::slice(slice))
                )),
            }
        }
        Some(ParamKind::Global(_)) if param.written => {
            quote!(#launch::Arg::global_mut(#launch::GlobalArgMut::slice_mut(&mut #name)))
        }
        Some(ParamKind::Global(_)) => quote!(#launch::Arg::global(#launch::GlobalArg::slice(&#name))),
        // A kernel with peers is launched on a team.
        Some(ParamKind::PeerMaps(_) | ParamKind::PeerGlobals(_) | ParamKind::Scalar(_)) | None => {
            quote!(#launch::Arg::scalar(#name))
        }
    }
}

/// Requires `&mut` exactly for tensors that the kernel writes.
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

pub(super) fn host_type(scalar: Scalar) -> TokenStream {
    let name = format_ident!("{}", scalar.name());
    match scalar {
        Scalar::F16 | Scalar::Bf16 | Scalar::Tf32 | Scalar::E4m3 | Scalar::E5m2 => {
            quote!(::tma_runtime::lang::#name)
        }
        Scalar::Bool
        | Scalar::I8
        | Scalar::U8
        | Scalar::I16
        | Scalar::U16
        | Scalar::I32
        | Scalar::U32
        | Scalar::I64
        | Scalar::U64
        | Scalar::Usize
        | Scalar::F32
        | Scalar::F64 => quote!(::core::primitive::#name),
    }
}
