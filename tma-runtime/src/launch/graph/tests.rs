//! Tests of captures and graphs on the simulator, with a kernel of a few instructions.

use super::*;
use crate::launch::{Grid, launch, prepare};
use crate::spec::{KernelParts, ParamKind, ParamSpec, Scalar};
use crate::{DeviceTensor, TensorView};

/// Computes `out[i] = 2 * src[i] + 1` for 32 numbers.
const PARTS: KernelParts = KernelParts {
    name: "double",
    entry: "double",
    ptx: ".version 8.0\n.target sm_90a\n.address_size 64\n\
        .visible .entry double(.param .u64 src, .param .u64 src_len, .param .u64 out, .param .u64 out_len) {\n\
        .reg .b32 %r<3>; .reg .b64 %d<4>;\n\
        ld.param.b64 %d1, [src]; ld.param.b64 %d2, [out]; mov.u32 %r1, %tid.x;\n\
        mad.wide.u32 %d1, %r1, 4, %d1; mad.wide.u32 %d2, %r1, 4, %d2;\n\
        ld.global.b32 %r2, [%d1]; mad.lo.u32 %r2, %r2, 2, 1; st.global.b32 [%d2], %r2; ret; }",
    params: &[
        ParamSpec {
            name: "src",
            kind: ParamKind::Global { element: Scalar::U32, written: false, alignment: 4 },
        },
        ParamSpec {
            name: "out",
            kind: ParamKind::Global { element: Scalar::U32, written: true, alignment: 4 },
        },
    ],
    ..KernelParts::NOTHING
};

const fn spec(parts: KernelParts) -> KernelSpec {
    // SAFETY: the entry reads and writes 32 numbers, and every tensor passed to it here has as
    // many.
    unsafe { KernelSpec::from_parts(parts) }
}

static SPEC: KernelSpec = spec(PARTS);

type Numbers = DeviceTensor<u32, 1>;

fn double(on: &impl crate::launch::LaunchOn, src: &Numbers, out: &mut Numbers) -> Result<(), Error> {
    launch(on, &SPEC, Grid::x(1), &[Arg::global(src.slice()), Arg::global_mut(out.slice_mut())])
}

fn numbers(device: &Device, first: u32) -> Result<Numbers, Error> {
    device.tensor(&(first..first + 32).collect::<Vec<_>>(), [32])
}

#[test]
fn nothing_runs_before_the_graph_is_launched() -> Result<(), Error> {
    let device = Device::simulator();
    let stream = device.stream()?;
    let (mut src, mut out) = (numbers(&device, 5)?, device.zeros([32])?);
    let graph = stream.capture(|capture| double(capture, &src, &mut out))?;
    assert_eq!(out.to_vec()?, [0; 32]);
    graph.launch(&stream)?;
    assert_eq!(out.to_vec()?[..3], [11, 13, 15]);
    // The graph reads the tensor's contents at launch, not those at capture.
    src.copy_from(&[50; 32])?;
    graph.launch(&stream)?;
    assert_eq!(out.to_vec()?, [101; 32]);
    Ok(())
}

#[test]
fn tensors_of_a_graph_outlive_their_owners() -> Result<(), Error> {
    let device = Device::simulator();
    let stream = device.stream()?;
    let mut out = device.zeros([32])?;
    let graph = {
        let (src, mut between) = (numbers(&device, 0)?, device.zeros([32])?);
        stream.capture(|capture| {
            double(capture, &src, &mut between)?;
            double(&capture.with(), &between, &mut out)
        })?
    };
    // These allocations would reuse the memory if it had been freed.
    let _others = [numbers(&device, 900)?, numbers(&device, 800)?];
    graph.launch(&stream)?;
    assert_eq!(out.to_vec()?[..3], [3, 7, 11]);
    Ok(())
}

#[test]
fn other_streams_and_captures_are_no_part_of_a_capture() -> Result<(), Error> {
    let device = Device::simulator();
    let stream = device.stream()?;
    let (src, mut at_once, mut inner, mut outer) =
        (numbers(&device, 1)?, device.zeros([32])?, device.zeros([32])?, device.zeros([32])?);
    let mut of_inner = None;
    let of_outer = stream.capture(|capture| {
        double(&stream, &src, &mut at_once)?;
        of_inner = Some(stream.capture(|capture| double(capture, &src, &mut inner))?);
        double(capture, &src, &mut outer)
    })?;
    assert_eq!((at_once.to_vec()?[0], inner.to_vec()?[0], outer.to_vec()?[0]), (3, 0, 0));
    of_outer.launch(&stream)?;
    assert_eq!((inner.to_vec()?[0], outer.to_vec()?[0]), (0, 3));
    of_inner.iter().try_for_each(|graph| graph.launch(&stream))?;
    assert_eq!(inner.to_vec()?[0], 3);
    Ok(())
}

fn code<T>(result: Result<T, Error>) -> Option<&'static str> {
    result.err().map(|error| error.code())
}

#[test]
fn an_error_while_capturing_is_returned() -> Result<(), Error> {
    let device = Device::simulator();
    let stream = device.stream()?;
    let (src, mut out) = (numbers(&device, 1)?, device.zeros([32])?);
    let failed = stream.capture(|capture| {
        double(capture, &src, &mut out)?;
        launch(capture, &SPEC, Grid::x(1), &[])
    });
    assert_eq!(code(failed), Some("TMA0516"));
    // A failed capture leaves the stream usable for another one.
    stream.capture(|capture| double(capture, &src, &mut out))?.launch(&stream)?;
    assert_eq!(out.to_vec()?[0], 3);
    Ok(())
}

#[test]
fn tma0514_a_graph_runs_on_its_device() -> Result<(), Error> {
    let (device, other) = (Device::simulator(), Device::simulator());
    let (src, mut out) = (numbers(&device, 1)?, device.zeros([32])?);
    let graph = device.stream()?.capture(|capture| double(capture, &src, &mut out))?;
    assert_eq!(code(graph.launch(&other.stream()?)), Some("TMA0514"));
    assert_eq!(code(graph.launch(&device.stream()?)), None);
    let elsewhere = other.stream()?.capture(|capture| double(capture, &src, &mut out));
    assert_eq!(code(elsewhere), Some("TMA0514"));
    Ok(())
}

#[test]
fn tma0627_a_graph_keeps_its_arguments_alive() -> Result<(), Error> {
    let device = Device::simulator();
    let stream = device.stream()?;
    let (src, mut out) = (numbers(&device, 1)?, device.zeros::<u32, 1>([32])?);
    // SAFETY: the view covers exactly `src`, which outlives it.
    let view = unsafe { TensorView::<u32, 1>::from_raw(&device, src.as_ptr(), [32], [1]) };
    for (src, wanted) in [(view, Some("TMA0627")), (src.view(), None)] {
        let args = [Arg::global(crate::launch::GlobalSlice::new(src)), Arg::global_mut(out.slice_mut())];
        assert_eq!(code(stream.capture(|capture| launch(capture, &SPEC, Grid::x(1), &args))), wanted);
        // A launch that is not captured needs no owner.
        launch(&stream, &SPEC, Grid::x(1), &args)?;
    }
    Ok(())
}

#[test]
fn tma0628_prepared_launches_are_no_part_of_a_graph() -> Result<(), Error> {
    let device = Device::simulator();
    let stream = device.stream()?;
    let (src, mut out) = (numbers(&device, 1)?, device.zeros::<u32, 1>([32])?);
    let args = [Arg::global(src.slice()), Arg::global_mut(out.slice_mut())];
    let captured = stream.capture(|capture| prepare(capture, &SPEC, Grid::x(1), &args).map(drop));
    assert_eq!(code(captured), Some("TMA0628"));
    prepare(&stream, &SPEC, Grid::x(1), &args)?.run()?;
    assert_eq!(out.to_vec()?[0], 3);
    Ok(())
}

#[test]
fn tma0625_cooperative_blocks_are_resident_together() -> Result<(), Error> {
    static COOPERATIVE: KernelSpec = spec(KernelParts { cooperative: true, ..PARTS });
    let device = Device::simulator();
    let (src, mut out) = (numbers(&device, 1)?, device.zeros::<u32, 1>([32])?);
    let args = [Arg::global(src.slice()), Arg::global_mut(out.slice_mut())];
    let most = device.resident_blocks(&COOPERATIVE)?;
    assert_eq!(most, 128);
    assert_eq!(code(launch(&device, &COOPERATIVE, Grid::x(most), &args)), None);
    assert_eq!(code(launch(&device, &COOPERATIVE, Grid::x(most + 1), &args)), Some("TMA0625"));
    assert_eq!(code(prepare(&device, &COOPERATIVE, Grid::x(most + 1), &args)), Some("TMA0625"));
    assert_eq!(code(launch(&device, &SPEC, Grid::x(most + 1), &args)), None);
    Ok(())
}
