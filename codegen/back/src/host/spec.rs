//! `KernelSpec`: the description of a kernel for the runtime.

use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use tma_front::abi;
use tma_front::ir::{
    Cluster, GridDependency, Kernel, LaunchBounds, Param, ParamKind, Scalar, StmtKind, TileSwizzle, TileType,
    visit,
};
use tma_front::limits;

/// Generates a `KernelSpec`. `ptx` is an expression of type `&'static str`: the PTX of this kernel,
/// or an empty string.
///
/// The safety contract of `from_parts` is upheld by the compiler. Kernels have no pointers. An
/// access to a `Global` traps out of bounds, copies by a tensor map stay within the tensor, and
/// `written` is set by every write, in `parse/method`. If a kernel modifies a map itself, the
/// kernel is responsible for its extents (`SharedMap`).
pub(crate) fn kernel_spec(kernel: &Kernel, shared_bytes: u32, ptx: &TokenStream) -> TokenStream {
    let name = kernel.path();
    let entry = abi::entry(kernel);
    let [x, y, z] = kernel.launch.threads;
    let cluster = cluster_spec(&kernel.launch);
    let has = |wanted: fn(&StmtKind) -> bool| {
        let mut found = false;
        visit::for_each_stmt(&kernel.body, &mut |stmt| found |= wanted(&stmt.kind));
        found
    };
    let cooperative = has(|kind| matches!(kind, StmtKind::SyncGrid { .. }));
    let dependency_wait = has(|kind| matches!(kind, StmtKind::GridDependency(GridDependency::Wait)));
    let team = kernel.is_of_team();
    let params = kernel.passed_params().map(param_spec);
    // `unsafe` has no span of the user, so a crate with kernels may `forbid(unsafe_code)`.
    quote! {
        unsafe {
            ::tma_runtime::launch::KernelSpec::from_parts(::tma_runtime::launch::KernelParts {
                name: #name,
                entry: #entry,
                ptx: #ptx,
                threads: [#x, #y, #z],
                cluster: #cluster,
                cooperative: #cooperative,
                dependency_wait: #dependency_wait,
                team: #team,
                shared_bytes: #shared_bytes,
                params: &[#(#params),*],
            })
        }
    }
}

fn cluster_spec(launch: &LaunchBounds) -> TokenStream {
    let cluster = match launch.cluster {
        Cluster::None => quote!(None),
        Cluster::Fixed([x, y, z]) => quote!(Fixed([#x, #y, #z])),
        Cluster::AtLaunch => {
            let most = limits::cluster_blocks(launch.nonportable_cluster);
            quote!(AtLaunch { most: #most })
        }
    };
    quote!(::tma_runtime::spec::Cluster::#cluster)
}

fn param_spec(param: &Param) -> TokenStream {
    let name = &param.name;
    let kind = match param.kind() {
        Some(ParamKind::Tiles(tile)) => {
            let map = map_spec(tile, &quote!(Tiled), param.written);
            quote!(::tma_runtime::spec::ParamKind::Map(#map))
        }
        Some(ParamKind::Columns(tile, rank)) => {
            let rank = rank as usize;
            let map = map_spec(tile, &quote!(Im2col { rank: #rank }), param.written);
            quote!(::tma_runtime::spec::ParamKind::Map(#map))
        }
        // The 64-bit words of the maps, 16 for each map.
        Some(ParamKind::Maps(_)) => {
            let (element, alignment) = (element(Scalar::U64), abi::alignment(param));
            quote! {
                ::tma_runtime::spec::ParamKind::Global {
                    element: #element, written: true, alignment: #alignment
                }
            }
        }
        Some(ParamKind::Global(scalar)) => {
            let (element, written, alignment) = (element(scalar), param.written, abi::alignment(param));
            quote! {
                ::tma_runtime::spec::ParamKind::Global {
                    element: #element, written: #written, alignment: #alignment
                }
            }
        }
        Some(ParamKind::PeerMaps(tile)) => {
            let map = map_spec(tile, &quote!(Tiled), param.written);
            quote!(::tma_runtime::spec::ParamKind::PeerMaps(#map))
        }
        Some(ParamKind::PeerGlobals(scalar)) => {
            let (element, written, alignment) = (element(scalar), param.written, abi::alignment(param));
            quote! {
                ::tma_runtime::spec::ParamKind::PeerGlobals {
                    element: #element, written: #written, alignment: #alignment
                }
            }
        }
        Some(ParamKind::Scalar(scalar)) => scalar_spec(scalar.bytes()),
        None => scalar_spec(0),
    };
    quote!(::tma_runtime::spec::ParamSpec { name: #name, kind: #kind })
}

fn scalar_spec(bytes: u32) -> TokenStream {
    quote!(::tma_runtime::spec::ParamKind::Scalar { bytes: #bytes })
}

fn map_spec(tile: &TileType, mode: &TokenStream, written: bool) -> TokenStream {
    let element = element(tile.element);
    let extents = &tile.extents;
    let swizzle = match tile.swizzle {
        TileSwizzle::None => format_ident!("None"),
        TileSwizzle::Panels16 => format_ident!("Panels16"),
        TileSwizzle::B32 => format_ident!("B32"),
        TileSwizzle::B64 => format_ident!("B64"),
        TileSwizzle::B128 => format_ident!("B128"),
        TileSwizzle::Interleave16 => format_ident!("Interleave16"),
        TileSwizzle::Interleave32 => format_ident!("Interleave32"),
    };
    quote! {
        ::tma_runtime::spec::MapSpec {
            element: #element,
            mode: ::tma_runtime::spec::MapMode::#mode,
            box_extents: &[#(#extents),*],
            swizzle: ::tma_runtime::spec::TileSwizzle::#swizzle,
            written: #written,
        }
    }
}

/// Returns the element type of the runtime.
pub(super) fn element(scalar: Scalar) -> TokenStream {
    let variant = match scalar {
        Scalar::Bool => "Bool",
        Scalar::I8 => "I8",
        Scalar::U8 => "U8",
        Scalar::I16 => "I16",
        Scalar::U16 => "U16",
        Scalar::I32 => "I32",
        Scalar::U32 => "U32",
        Scalar::I64 => "I64",
        Scalar::U64 | Scalar::Usize => "U64",
        Scalar::F16 => "F16",
        Scalar::Bf16 => "Bf16",
        Scalar::F32 => "F32",
        Scalar::F64 => "F64",
        Scalar::Tf32 => "Tf32",
        Scalar::E4m3 => "E4m3",
        Scalar::E5m2 => "E5m2",
    };
    let variant = format_ident!("{variant}");
    quote!(::tma_runtime::spec::Scalar::#variant)
}
