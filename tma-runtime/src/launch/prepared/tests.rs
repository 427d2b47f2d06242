//! Tests of prepared launches on the simulator.

use super::*;
use crate::launch::doubling::{SPEC, code, double, numbers};
use crate::launch::{Arg, GlobalSlice, Grid, launch};
use crate::spec::{KernelParts, KernelSpec, MapMode, MapSpec, ParamKind, ParamSpec, Scalar, TileSwizzle};
use crate::{DeviceTensor, TensorView};
use std::thread;

#[test]
fn prepared_launches_run_in_order_each_time() -> Result<(), Error> {
    let device = Device::simulator();
    let (mut src, mut between, mut out) = (numbers(&device, 5)?, device.zeros([32])?, device.zeros([32])?);
    let prepared = device.prepare(|on| {
        double(on, &src, &mut between)?;
        double(&on.with(), &between, &mut out)
    })?;
    assert_eq!((prepared.launches(), out.to_vec()?[0]), (2, 0));
    prepared.launch(&device)?;
    assert_eq!(out.to_vec()?[..3], [23, 27, 31]);
    // The kernels read the tensor's contents at launch, not those at the recording.
    src.copy_from(&[50; 32])?;
    prepared.launch(&device.stream()?)?;
    assert_eq!(out.to_vec()?, [203; 32]);
    Ok(())
}

#[test]
fn tensors_of_prepared_launches_outlive_their_owners() -> Result<(), Error> {
    let device = Device::simulator();
    let mut out = device.zeros([32])?;
    let prepared = {
        let (src, mut between) = (numbers(&device, 0)?, device.zeros([32])?);
        device.prepare(|on| {
            double(on, &src, &mut between)?;
            double(on, &between, &mut out)
        })?
    };
    // Each of the three tensors has one owner more, however many launches use it.
    assert_eq!(prepared.memory.len(), 3);
    let stream = device.stream()?;
    let graph = stream.capture(|capture| prepared.launch(capture))?;
    // These allocations would reuse the memory if it had been freed.
    let _others = [numbers(&device, 900)?, numbers(&device, 800)?];
    prepared.launch(&stream)?;
    assert_eq!(out.to_vec()?[..3], [3, 7, 11]);
    // The graph keeps them, too.
    drop(prepared);
    let _more = [numbers(&device, 700)?, numbers(&device, 600)?];
    out.fill_bytes(0)?;
    graph.launch(&stream)?;
    assert_eq!(out.to_vec()?[..3], [3, 7, 11]);
    Ok(())
}

#[test]
fn prepared_launches_are_recorded_by_captures() -> Result<(), Error> {
    let device = Device::simulator();
    let stream = device.stream()?;
    let (src, mut between, mut out) = (numbers(&device, 1)?, device.zeros([32])?, device.zeros([32])?);
    let first = device.prepare(|on| double(on, &src, &mut between))?;
    let both = device.prepare(|on| {
        first.launch(on)?;
        double(on, &between, &mut out)
    })?;
    let graph = stream.capture(|capture| both.launch(capture))?;
    assert_eq!((both.launches(), out.to_vec()?[0], between.to_vec()?[0]), (2, 0, 0));
    graph.launch(&stream)?;
    assert_eq!((out.to_vec()?[0], between.to_vec()?[0]), (7, 3));
    Ok(())
}

#[test]
fn any_thread_queues_prepared_launches() -> Result<(), Error> {
    let device = Device::simulator();
    let (src, mut out) = (numbers(&device, 1)?, device.zeros([32])?);
    let prepared = device.prepare(|on| double(on, &src, &mut out))?;
    thread::scope(|scope| {
        let each = || prepared.launch(&prepared.device().stream()?);
        let threads = [scope.spawn(each), scope.spawn(each)];
        threads.into_iter().try_for_each(|thread| thread.join().expect("no panic"))
    })?;
    assert_eq!(out.to_vec()?[0], 3);
    out.fill_bytes(0)?;
    thread::spawn(move || prepared.launch(&prepared.device)).join().expect("no panic")?;
    assert_eq!(out.to_vec()?[0], 3);
    Ok(())
}

#[test]
fn a_prepared_launch_encodes_and_allocates_nothing() -> Result<(), Error> {
    const TILE: MapSpec = MapSpec {
        element: Scalar::U32,
        mode: MapMode::Tiled,
        box_extents: &[32],
        swizzle: TileSwizzle::None,
        written: false,
    };
    // SAFETY: the kernel does nothing.
    static MAPPED: KernelSpec = unsafe {
        KernelSpec::from_parts(KernelParts {
            name: "mapped",
            entry: "mapped",
            ptx: ".version 8.0\n.target sm_90a\n.address_size 64\n\
                .visible .entry mapped(.param .align 64 .b8 src[128]) { ret; }",
            params: &[ParamSpec { name: "src", kind: ParamKind::Map(TILE) }],
            ..KernelParts::NOTHING
        })
    };
    let device = Device::simulator();
    let src = numbers(&device, 1)?;
    let counts = || match device.backend() {
        Backend::Sim(context) => (context.allocations(), context.encoded_maps()),
        Backend::Cuda(_) => unreachable!("a simulator"),
    };
    let map = |on: &crate::Capture| launch(on, &MAPPED, Grid::x(1), &[Arg::map(src.view())]);
    assert_eq!(counts(), (1, 0));
    let prepared = device.prepare(map)?;
    assert_eq!(counts(), (1, 1));
    prepared.launch(&device)?;
    prepared.launch(&device.stream()?)?;
    device.stream()?.capture(|capture| prepared.launch(capture))?.launch(&device.stream()?)?;
    assert_eq!(counts(), (1, 1));
    // A usual launch encodes.
    launch(&device, &MAPPED, Grid::x(1), &[Arg::map(src.view())])?;
    assert_eq!(counts(), (1, 2));
    Ok(())
}

#[test]
fn an_error_while_preparing_is_returned() -> Result<(), Error> {
    #[derive(Debug)]
    struct Other(&'static str);
    impl From<Error> for Other {
        fn from(error: Error) -> Self {
            Self(error.code())
        }
    }
    let device = Device::simulator();
    let (src, mut out) = (numbers(&device, 1)?, device.zeros([32])?);
    let failed = device.prepare(|on| {
        double(on, &src, &mut out)?;
        launch(on, &SPEC, Grid::x(1), &[]).map_err(Other::from)
    });
    assert_eq!(failed.err().map(|error| error.0), Some("TMA0516"));
    let refused = device.prepare(|_| Err(Other("refused")));
    assert_eq!(refused.err().map(|error| error.0), Some("refused"));
    assert_eq!(out.to_vec()?[0], 0);
    Ok(())
}

#[test]
fn tma0514_prepared_launches_run_on_their_device() -> Result<(), Error> {
    let (device, other) = (Device::simulator(), Device::simulator());
    let (src, mut out) = (numbers(&device, 1)?, device.zeros([32])?);
    let prepared = device.prepare(|on| double(on, &src, &mut out))?;
    assert_eq!(code(prepared.launch(&other)), Some("TMA0514"));
    assert_eq!(code(prepared.launch(&other.stream()?)), Some("TMA0514"));
    assert_eq!(code(other.stream()?.capture(|capture| prepared.launch(capture))), Some("TMA0514"));
    assert_eq!(code(other.prepare(|on| double(on, &src, &mut out))), Some("TMA0514"));
    assert_eq!(out.to_vec()?[0], 0);
    Ok(())
}

#[test]
fn tma0627_prepared_launches_keep_their_arguments_alive() -> Result<(), Error> {
    let device = Device::simulator();
    let (src, mut out) = (numbers(&device, 1)?, device.zeros::<u32, 1>([32])?);
    // SAFETY: both cover exactly `src`, which outlives them.
    let (view, tensor) = unsafe {
        let view = TensorView::<u32, 1>::from_raw(&device, src.as_ptr(), [32], [1]);
        (view, DeviceTensor::<u32, 1>::from_raw(&device, src.as_ptr(), [32])?)
    };
    for (src, wanted) in [(view, Some("TMA0627")), (tensor.view(), None)] {
        let args = [Arg::global(GlobalSlice::new(src)), Arg::global_mut(out.slice_mut())];
        assert_eq!(code(device.prepare(|on| launch(on, &SPEC, Grid::x(1), &args))), wanted);
    }
    let prepared = device.prepare(|on| double(on, &tensor, &mut out))?;
    drop(tensor);
    prepared.launch(&device)?;
    assert_eq!(out.to_vec()?[0], 3);
    drop(prepared);
    assert_eq!(src.to_vec()?[0], 1, "the memory was freed");
    Ok(())
}

#[test]
fn tma0628_options_belong_to_the_recorded_launches() -> Result<(), Error> {
    let device = Device::simulator();
    let (src, mut out) = (numbers(&device, 1)?, device.zeros([32])?);
    let prepared = device.prepare(|on| double(on, &src, &mut out))?;
    assert_eq!(code(prepared.launch(&device.with().dependent())), Some("TMA0628"));
    assert_eq!(code(prepared.launch(&device.with().cluster([2, 1, 1]))), Some("TMA0628"));
    assert_eq!(out.to_vec()?[0], 0);
    prepared.launch(&device.with())?;
    assert_eq!(out.to_vec()?[0], 3);
    Ok(())
}
