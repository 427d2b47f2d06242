//! Tests of captures and graphs on the simulator, with a kernel of a few instructions.

use super::*;
use crate::TensorView;
use crate::launch::doubling::{PARTS, SPEC, code, double, numbers, spec};
use crate::launch::{Grid, launch};
use crate::spec::{KernelParts, KernelSpec};

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
fn tma0625_cooperative_blocks_are_resident_together() -> Result<(), Error> {
    static COOPERATIVE: KernelSpec = spec(KernelParts { cooperative: true, ..PARTS });
    let device = Device::simulator();
    let (src, mut out) = (numbers(&device, 1)?, device.zeros::<u32, 1>([32])?);
    let args = [Arg::global(src.slice()), Arg::global_mut(out.slice_mut())];
    let most = device.resident_blocks(&COOPERATIVE)?;
    assert_eq!(most, 128);
    assert_eq!(code(launch(&device, &COOPERATIVE, Grid::x(most), &args)), None);
    assert_eq!(code(launch(&device, &COOPERATIVE, Grid::x(most + 1), &args)), Some("TMA0625"));
    let prepared = device.prepare(|on| launch(on, &COOPERATIVE, Grid::x(most + 1), &args));
    assert_eq!(code(prepared), Some("TMA0625"));
    assert_eq!(code(launch(&device, &SPEC, Grid::x(most + 1), &args)), None);
    Ok(())
}
