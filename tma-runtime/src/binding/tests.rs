//! Tests of matching arguments to parameters, in flipped pairs.

use super::*;
use crate::launch::{Arg, GlobalSlice, GlobalSliceMut};
use crate::spec::{KernelParts, ParamSpec, Scalar, TileSwizzle};
use crate::{TensorView, TensorViewMut};

const HERE: DeviceId = DeviceId::Cuda(0);
const ELSEWHERE: DeviceId = DeviceId::Cuda(1);

const PARTS: KernelParts = KernelParts {
    name: "scale",
    params: &[
        ParamSpec {
            name: "src",
            kind: ParamKind::Map(MapSpec {
                element: Scalar::F32,
                mode: MapMode::Tiled,
                box_extents: &[8, 8],
                swizzle: TileSwizzle::None,
                written: false,
            }),
        },
        ParamSpec {
            name: "out",
            kind: ParamKind::Global { element: Scalar::F32, written: true, alignment: 16 },
        },
        ParamSpec { name: "n", kind: ParamKind::Scalar { bytes: 4 } },
    ],
    ..KernelParts::NOTHING
};

// SAFETY: never launched.
static SPEC: KernelSpec = unsafe { KernelSpec::from_parts(PARTS) };

fn map(device: DeviceId) -> Arg<'static> {
    Arg::map(TensorView::<f32, 2>::new(device, 0x100, [16, 16], [16, 1]))
}

fn global<T: crate::Scalar>(device: DeviceId, strides: [usize; 2]) -> Arg<'static> {
    Arg::global_mut(GlobalSliceMut::new(TensorViewMut::<T, 2>::new(device, 0x200, [4, 8], strides)))
}

fn good() -> [Arg<'static>; 3] {
    [map(HERE), global::<f32>(HERE, [8, 1]), Arg::scalar(7u32)]
}

/// Returns the PTX parameters in order, or the error.
fn bound(args: &[Arg<'_>]) -> Result<Vec<u64>, Error> {
    bound_to(&SPEC, args)
}

fn bound_to(spec: &'static KernelSpec, args: &[Arg<'_>]) -> Result<Vec<u64>, Error> {
    let mut params = Vec::new();
    bind(HERE, spec, args, |bound| {
        match bound {
            Bound::Map { tensor, source, .. } => {
                assert_eq!(tensor, "src");
                params.push(source.layout.address());
            }
            Bound::Global { address, len } => params.extend([*address, *len]),
            Bound::PeerMaps { sources, .. } => {
                params.extend(sources.each().map(|source| source.layout.address()));
            }
            Bound::PeerGlobals { addresses, len } => params.extend(addresses.iter().chain([len])),
            Bound::Scalar { bits } => params.push(*bits),
        }
        Ok(())
    })?;
    Ok(params)
}

#[track_caller]
fn refused(args: &[Arg<'_>], code: &str, words: &str) {
    let error = bound(args).expect_err("the arguments fit");
    let message = error.to_string();
    assert_eq!(error.code(), code, "{message}");
    assert!(message.starts_with(&format!("{code}: ")) && message.contains(words), "{message}");
}

#[test]
fn arguments_become_ptx_parameters_in_order() {
    assert_eq!(bound(&good()).expect("they fit"), [0x100, 0x200, 32, 7]);
}

#[test]
fn an_optional_slice_that_is_left_out_has_no_elements() {
    let mut args = good();
    args[1] = Arg::optional_mut::<f32>(None);
    assert_eq!(bound(&args).expect("they fit"), [0x100, 0, 0, 7]);
    args[1] = Arg::optional::<f32>(None);
    assert_eq!(bound(&args).expect("there is nothing to write"), [0x100, 0, 0, 7]);
    let there = TensorViewMut::<f32, 2>::new(HERE, 0x200, [4, 8], [8, 1]);
    args[1] = Arg::optional_mut(Some(GlobalSliceMut::new(there)));
    assert_eq!(bound(&args).expect("they fit"), [0x100, 0x200, 32, 7]);
    args[1] = Arg::optional_mut::<u32>(None);
    refused(&args, "TMA0510", "out");
}

#[test]
fn tma0510_global_elements_are_those_of_the_kernel() {
    let mut args = good();
    args[1] = global::<i32>(HERE, [8, 1]);
    refused(&args, "TMA0510", "`out` takes a tensor of `f32`, but got one of `i32`");
}

#[test]
fn tma0511_global_elements_are_contiguous() {
    let mut args = good();
    args[1] = global::<f32>(HERE, [16, 1]);
    refused(&args, "TMA0511", "`out`");
}

#[test]
fn tma0526_written_arguments_are_borrowed_mutably() {
    let view = || TensorView::<f32, 2>::new(HERE, 0x200, [4, 8], [8, 1]);
    let mut args = good();
    args[1] = Arg::global(GlobalSlice::new(view()));
    refused(&args, "TMA0526", "`scale` writes `out`, but the argument is read-only");
    // A tensor that the kernel only reads may be borrowed either way.
    let mut args = good();
    args[0] = Arg::map_mut(TensorViewMut::<f32, 2>::new(HERE, 0x100, [16, 16], [16, 1]));
    assert!(bound(&args).is_ok());
}

#[test]
fn tma0526_so_are_tensors_that_a_map_writes() {
    const MAP: MapSpec = MapSpec {
        element: Scalar::F32,
        mode: MapMode::Tiled,
        box_extents: &[8, 8],
        swizzle: TileSwizzle::None,
        written: true,
    };
    const STORED: KernelParts =
        KernelParts { params: &[ParamSpec { name: "dst", kind: ParamKind::Map(MAP) }], ..PARTS };
    // SAFETY: never launched.
    static STORES: KernelSpec = unsafe { KernelSpec::from_parts(STORED) };
    let code = |arg| bind(HERE, &STORES, &[arg], |_| Ok(())).err().map(|error| error.code());
    assert_eq!(code(map(HERE)), Some("TMA0526"));
    assert_eq!(code(Arg::map_mut(TensorViewMut::<f32, 2>::new(HERE, 0x100, [16, 16], [16, 1]))), None);
}

#[test]
fn tma0531_bulk_copies_are_aligned() {
    let at = |address| {
        let view = TensorViewMut::<f32, 1>::new(HERE, address, [8], [1]);
        [map(HERE), Arg::global_mut(GlobalSliceMut::new(view)), Arg::scalar(7u32)]
    };
    refused(
        &at(0x204),
        "TMA0531",
        "`out` must start at a multiple of 16 bytes: the kernel moves 16 bytes at once, but the address is 0x204 (4",
    );
    assert!(bound(&at(0x210)).is_ok());
}

#[test]
fn tma0514_tensors_are_on_the_device_of_the_launch() {
    let mut args = good();
    args[0] = map(ELSEWHERE);
    refused(&args, "TMA0514", "`src` belongs to GPU 1");
    let mut args = good();
    args[1] = global::<f32>(ELSEWHERE, [8, 1]);
    refused(&args, "TMA0514", "`out` belongs to GPU 1");
}

#[test]
fn tma0516_arguments_are_those_of_the_kernel() {
    let [src, out, _] = good();
    refused(&[src, out], "TMA0516", "takes 3 arguments, but got 2");
    let [src, out, n] = good();
    refused(
        &[src, n, out],
        "TMA0516",
        "a tensor of `f32` for the `Global` `out`, but got a scalar of 4 bytes",
    );
    let [src, out, _] = good();
    refused(&[src, out, Arg::scalar(7u64)], "TMA0516", "a scalar of 4 bytes for `n`, but got a scalar of 8");
}

#[test]
fn tma0514_everything_belongs_to_one_device() {
    let (first, second) = (DeviceId::Cuda(0), DeviceId::Cuda(1));
    assert!(same_device("src", first, first).is_ok());
    let error = same_device("src", second, first).expect_err("two devices");
    assert_eq!(error.code(), "TMA0514");
    assert!(error.to_string().starts_with("TMA0514: "), "{error}");
    assert!(error.to_string().contains("`src` belongs to GPU 1, but this runs on GPU 0"), "{error}");
}

/// A slice and a map of each rank.
const TEAM: KernelParts = KernelParts {
    name: "team",
    params: &[
        ParamSpec {
            name: "x",
            kind: ParamKind::PeerGlobals { element: Scalar::F32, written: false, alignment: 16 },
        },
        ParamSpec {
            name: "m",
            kind: ParamKind::PeerMaps(MapSpec {
                element: Scalar::F32,
                mode: MapMode::Tiled,
                box_extents: &[8, 8],
                swizzle: TileSwizzle::None,
                written: false,
            }),
        },
        ParamSpec { name: "rank()", kind: ParamKind::Scalar { bytes: 4 } },
        ParamSpec { name: "ranks()", kind: ParamKind::Scalar { bytes: 4 } },
    ],
    team: true,
    ..KernelParts::NOTHING
};

// SAFETY: never launched.
static TEAM_SPEC: KernelSpec = unsafe { KernelSpec::from_parts(TEAM) };

fn view(device: DeviceId, address: u64, rows: usize) -> TensorView<'static, f32, 2> {
    TensorView::new(device, address, [rows, 16], [16, 1])
}

/// The tensors are on several devices. The last one repeats.
#[test]
fn tensors_of_ranks_become_tables() {
    let views = [view(HERE, 0x100, 16), view(ELSEWHERE, 0x200, 16)];
    let slices: Vec<Argument> = views.iter().map(|one| Argument::global(one.layout(), false)).collect();
    let maps: Vec<Argument> = views.iter().map(|one| Argument::map(one.layout(), false)).collect();
    let joined = |parts: &[Argument]| match Argument::of_ranks(parts) {
        Ok(Some(joined)) => Arg::of_ranks(joined),
        Ok(None) | Err(_) => panic!("they are alike"),
    };
    let args = [joined(&slices), joined(&maps), Arg::scalar(1u32), Arg::scalar(2u32)];
    let table = [0x100, 0x200, 0x200, 0x200, 0x200, 0x200, 0x200, 0x200];
    let wanted = [&table[..], &[256], &table[..], &[1, 2]].concat();
    assert_eq!(bound_to(&TEAM_SPEC, &args).expect("they fit"), wanted);
    assert_eq!(TEAM_SPEC.ptx_params(), [Some(64), Some(8), Some(1024), Some(4), Some(4)]);

    let swapped = [joined(&maps), joined(&slices), Arg::scalar(1u32), Arg::scalar(2u32)];
    let error = bound_to(&TEAM_SPEC, &swapped).expect_err("a map is no slice");
    assert_eq!(error.code(), "TMA0516");
    assert!(error.to_string().contains("tensors of `f32` of all ranks for the `Global`s `x`"), "{error}");
}

#[test]
fn tensors_of_ranks_are_alike() {
    let slice = |address, rows| Argument::global(view(HERE, address, rows).layout(), false);
    let unlike = |parts: &[Argument]| Argument::of_ranks(parts).err().map(|peers::Unlike(rank)| rank);
    assert_eq!(unlike(&[slice(0x100, 8), slice(0x200, 8), slice(0x300, 9)]), Some(2));
    assert_eq!(unlike(&[slice(0x100, 8), slice(0x200, 8)]), None);
    assert!(matches!(Argument::of_ranks(&[]), Ok(None)));
    assert!(matches!(Argument::of_ranks(&[Argument::scalar(1u32)]), Ok(None)));
}
