//! The target `host`: launches through the runtime, of the kernels' own specifications, and tensors
//! that do not fit them.

use tma_runtime::launch::{
    Arg, Corners, Fill, GlobalSlice, GlobalSliceMut, Grid, KernelSpec, MapOptions, MapSource, ParamKind,
    launch,
};
use tma_runtime::layout::{Layout, MAX_RANK};
use tma_runtime::map::map_params;
use tma_runtime::prelude::*;
use tma_runtime::spec::{self, MapMode, MapSpec, TileSwizzle};
use tma_runtime::{Error, MapError, Scalar};
use tma_tests::examples::{tma_copy, tma_copy_pipelined, tma_scale, transpose};
use tma_tests::kernels::{barriers, places, tensors};

use crate::Input;
use crate::draw::Draw;

/// Kernels of all kinds of parameters.
const SPECS: [&KernelSpec; 10] = [
    &tma_copy::tma_copy::SPEC,
    &tma_copy_pipelined::tma_copy_pipelined::deep::SPEC,
    &tma_scale::tma_scale::SPEC,
    &transpose::transpose::SPEC,
    &barriers::barrier_phases::SPEC,
    &places::place_global_memory::SPEC,
    &tensors::tensor_copy_1::SPEC,
    &tensors::tensor_copy_3::SPEC,
    &tensors::tensor_copy_4::SPEC,
    &tensors::tensor_copy_5::SPEC,
];

const ELEMENTS: [spec::Scalar; 16] = [
    spec::Scalar::Bool,
    spec::Scalar::I8,
    spec::Scalar::U8,
    spec::Scalar::I16,
    spec::Scalar::U16,
    spec::Scalar::I32,
    spec::Scalar::U32,
    spec::Scalar::I64,
    spec::Scalar::U64,
    spec::Scalar::F16,
    spec::Scalar::Bf16,
    spec::Scalar::F32,
    spec::Scalar::F64,
    spec::Scalar::E4m3,
    spec::Scalar::E5m2,
    spec::Scalar::Tf32,
];

/// Boxes to choose from. They live for ever, as those of kernels do.
const BOXES: usize = 256;
/// Elements of the tensor that views lie in.
const TENSOR: usize = 1 << 14;
/// Extents below the first are allocated, those from the second are refused: what is between would
/// only fill the host's memory.
const SMALL: usize = 64;
const LARGE: usize = 1 << 36;
/// Thread-instructions that a block may run.
const INSTRUCTIONS: u64 = 20_000;

/// Launches, tensor maps and tensors without end.
pub(crate) struct Host {
    draw: Draw,
    memory: DeviceTensor<u8, 1>,
    boxes: Vec<&'static [u32]>,
    maps: Vec<MapSpec>,
}

impl Host {
    pub(crate) fn new(seed: u64) -> anyhow::Result<Self> {
        let draw = Draw::new(seed);
        let extents =
            || (0..1 + draw.below(MAX_RANK)).map(|_| draw.mostly(8 << draw.below(4)) as u32).collect();
        let boxes = (0..BOXES).map(|_| &*Box::leak::<'static>(extents())).collect();
        let params = SPECS.iter().flat_map(|spec| spec.params);
        let maps = params.filter_map(|param| match param.kind {
            ParamKind::Map(map) => Some(map),
            ParamKind::Global { .. } | ParamKind::Scalar { .. } => None,
        });
        let maps = maps.collect();
        let device = Device::simulator().instruction_limit(INSTRUCTIONS);
        Ok(Self { draw, memory: device.filled_bytes([TENSOR], 1)?, boxes, maps })
    }

    /// The next launch, map or tensor.
    pub(crate) fn next(&self) -> Input<'_> {
        let draw = &self.draw;
        match draw.below(4) {
            0 => {
                let shape = [extent(draw), extent(draw), extent(draw)];
                Input {
                    text: format!("a tensor of {shape:?}"),
                    run: Box::new(move || self.is_allocated(shape)),
                }
            }
            1 => {
                let &box_extents = draw.one_of(&self.boxes);
                let map = MapSpec {
                    element: *draw.one_of(&ELEMENTS),
                    box_extents,
                    swizzle: *draw.one_of(&[
                        TileSwizzle::None,
                        TileSwizzle::B32,
                        TileSwizzle::B64,
                        TileSwizzle::B128,
                        TileSwizzle::Interleave16,
                        TileSwizzle::Interleave32,
                    ]),
                    ..*draw.one_of(&self.maps)
                };
                let in_columns = draw.once_in(3);
                let mode = if in_columns {
                    MapMode::Im2col { rank: draw.mostly(4) as usize }
                } else {
                    MapMode::Tiled
                };
                let map = MapSpec { mode, ..map };
                let rank = match mode {
                    MapMode::Tiled => draw.mostly(map.box_extents.len() as u64) as usize,
                    MapMode::Im2col { rank } => draw.mostly(rank as u64) as usize,
                };
                let corner = |_| (draw.below(7) as i32 - 3).wrapping_mul(draw.mostly(1) as i32);
                let corners =
                    Corners { lower: std::array::from_fn(corner), upper: std::array::from_fn(corner) };
                let element = if draw.once_in(8) { *draw.one_of(&ELEMENTS) } else { map.element };
                let options = MapOptions {
                    fill: if draw.once_in(4) { Fill::Nan } else { Fill::Zeros },
                    element_strides: std::array::from_fn(|_| draw.mostly(1) as u32),
                    corners: in_columns.then_some(corners),
                    ..MapOptions::default()
                };
                let source = MapSource { layout: self.layout(element, rank, draw), options };
                Input {
                    text: format!("{map:#?}\n{source:#?}"),
                    run: Box::new(move || is_a_map(&source, &map)),
                }
            }
            _ => {
                let spec = *draw.one_of(&SPECS);
                let mut args: Vec<_> = spec.params.iter().map(|param| self.arg(&param.kind, draw)).collect();
                if draw.once_in(8) {
                    args.truncate(draw.below(args.len()));
                }
                let grid = grid(draw);
                let text = format!("{}\n{grid:?}\n{args:#?}", spec.name);
                let device = self.memory.device();
                Input { text, run: Box::new(move || launch(device, spec, grid, &args).is_ok()) }
            }
        }
    }

    fn is_allocated(&self, shape: [usize; 3]) -> bool {
        let device = self.memory.device();
        let Ok(mut tensor) = device.zeros::<u16, 3>(shape) else { return false };
        let host = tensor.to_vec().expect("a tensor can be read");
        assert_eq!(host.len(), shape.iter().product::<usize>());
        assert!(tensor.copy_from(&[7; 3]).is_ok() == (host.len() == 3));
        device.tensor(&host[host.len() / 2..], shape).is_ok() == host.is_empty()
    }

    /// An argument that is often what the parameter takes.
    fn arg(&self, kind: &ParamKind, draw: &Draw) -> Arg<'_> {
        let any = *draw.one_of(&ELEMENTS);
        match kind {
            _ if draw.once_in(6) => Arg::scalar(draw.number()),
            ParamKind::Map(map) => {
                let element = if draw.once_in(12) { any } else { map.element };
                let rank = if draw.once_in(12) { 1 + draw.below(MAX_RANK) } else { map.box_extents.len() };
                self.tensor(element, rank, true, draw)
            }
            ParamKind::Global { element, .. } => {
                self.tensor(if draw.once_in(12) { any } else { *element }, 1, draw.once_in(6), draw)
            }
            ParamKind::Scalar { bytes: 4 } => Arg::scalar(draw.mostly(3) as u32),
            ParamKind::Scalar { .. } => Arg::scalar(draw.mostly(3)),
        }
    }

    fn tensor(&self, element: spec::Scalar, rank: usize, is_map: bool, draw: &Draw) -> Arg<'_> {
        macro_rules! of {
            ($($Element:ident: $ty:ty,)+) => {
                match element {
                    $(spec::Scalar::$Element => match rank {
                        1 => self.view::<$ty, 1>(is_map, draw),
                        2 => self.view::<$ty, 2>(is_map, draw),
                        3 => self.view::<$ty, 3>(is_map, draw),
                        4 => self.view::<$ty, 4>(is_map, draw),
                        _ => self.view::<$ty, 5>(is_map, draw),
                    },)+
                }
            };
        }
        of! {
            Bool: bool, I8: i8, U8: u8, I16: i16, U16: u16, I32: i32, U32: u32, I64: i64, U64: u64, Usize: usize, F16: f16,
            Bf16: bf16, F32: f32, F64: f64, E4m3: e4m3, E5m2: e5m2, Tf32: tf32,
        }
    }

    fn view<T: Scalar, const N: usize>(&self, is_map: bool, draw: &Draw) -> Arg<'_> {
        let (shape, strides) = extents::<N>(size_of::<T>(), draw);
        let (address, device) = (self.address(draw), self.memory.device());
        if draw.once_in(6) {
            // SAFETY: as below.
            let view = unsafe { TensorView::<T, N>::from_raw(device, address, shape, strides) };
            let view = part(view, draw);
            return if is_map { Arg::map(view) } else { Arg::global(GlobalSlice::new(view)) };
        }
        // SAFETY: the device is a simulated one, which refuses each access to what is not
        // allocated, and nothing but this launch uses the memory.
        let view = unsafe { TensorViewMut::<T, N>::from_raw(device, address, shape, strides) };
        if is_map { Arg::map_mut(view) } else { Arg::global_mut(GlobalSliceMut::new(view)) }
    }

    fn address(&self, draw: &Draw) -> u64 {
        match draw.below(8) {
            0 => draw.number(),
            1 => self.memory.as_ptr().wrapping_add(draw.number()),
            _ => self.memory.as_ptr(),
        }
    }

    fn layout(&self, element: spec::Scalar, rank: usize, draw: &Draw) -> Layout {
        fn of<const N: usize>(host: &Host, element: spec::Scalar, draw: &Draw) -> Layout {
            let (shape, strides) = extents::<N>(element.bytes() as usize, draw);
            Layout::new(host.memory.device().id(), element, host.address(draw), shape, strides)
        }
        match rank {
            1 => of::<1>(self, element, draw),
            2 => of::<2>(self, element, draw),
            3 => of::<3>(self, element, draw),
            4 => of::<4>(self, element, draw),
            _ => of::<5>(self, element, draw),
        }
    }
}

/// The view, a part of it, or its memory in another form, where that may be.
fn part<'a, T: Scalar, const N: usize>(view: TensorView<'a, T, N>, draw: &Draw) -> TensorView<'a, T, N> {
    let made = match draw.below(8) {
        0 => {
            let ends = view.shape().map(|extent| draw.mostly(extent as u64) as usize);
            view.slice(ends.map(|end| draw.below(end.saturating_add(1))..end))
        }
        1 => view.permute(std::array::from_fn(|_| draw.below(N))),
        2 => {
            let (shape, strides) = extents::<N>(size_of::<T>(), draw);
            view.with_strides(shape, strides)
        }
        _ => Ok(view),
    };
    made.unwrap_or(view)
}

/// Shape and strides of a tensor of elements of so many bytes, dense and aligned for the most part.
fn extents<const N: usize>(bytes: usize, draw: &Draw) -> ([usize; N], [usize; N]) {
    let unit = (16 / bytes).max(1);
    let (mut shape, mut strides) = ([1; N], [1; N]);
    let mut stride = 1_usize;
    for dimension in (0..N).rev() {
        let usual = if dimension == N - 1 { unit * (1 + draw.below(8)) } else { 1 + draw.below(6) };
        shape[dimension] = draw.mostly(usual as u64) as usize;
        strides[dimension] = if draw.once_in(8) { draw.number() as usize } else { stride };
        stride = stride.wrapping_mul(shape[dimension]);
    }
    (shape, strides)
}

/// An extent that is small or hopeless.
fn extent(draw: &Draw) -> usize {
    match draw.number() as usize {
        large if large >= LARGE => large,
        small => small % SMALL,
    }
}

/// Few blocks, none, or more than there can be.
fn grid(draw: &Draw) -> Grid {
    match draw.below(8) {
        0 => Grid::new(0, draw.number() as u32, 1),
        1 => Grid::new(u32::MAX, 1, draw.number() as u32),
        2 => Grid::tiles([usize::MAX, draw.number() as usize, usize::MAX], [draw.below(2) as u32, 1, 1]),
        _ => Grid::tiles([draw.below(40), 1 + draw.below(40)], [16, 16]),
    }
}

/// Whether a tensor map can be made; if not, it is for a rule that users can keep.
fn is_a_map(source: &MapSource, spec: &MapSpec) -> bool {
    let made = map_params("tensor", source, spec);
    assert!(!matches!(made, Err(Error::Map(MapError::Internal { .. }))), "{made:?}");
    made.is_ok()
}
