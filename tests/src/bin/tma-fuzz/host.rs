//! The target `host`: launches through the runtime, with the kernels' own specifications, and
//! tensors that do not fit them.

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
use crate::rng::Rng;

/// Kernels with all kinds of parameters.
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

/// The number of boxes to choose from. They live for ever, like those of kernels.
const BOXES: usize = 256;
/// The number of elements of the tensor that views are made of.
const TENSOR: usize = 1 << 14;
/// Extents below the first are allocated, and those from the second on are rejected. Extents in
/// between would only fill the host's memory.
const SMALL: usize = 64;
const LARGE: usize = 1 << 36;
/// The limit of thread instructions per block.
const INSTRUCTIONS: u64 = 20_000;

/// An endless source of launches, tensor maps and tensors.
pub(crate) struct Host {
    rng: Rng,
    memory: DeviceTensor<u8, 1>,
    boxes: Vec<&'static [u32]>,
    maps: Vec<MapSpec>,
}

impl Host {
    pub(crate) fn new(seed: u64) -> anyhow::Result<Self> {
        let rng = Rng::new(seed);
        let extents = || (0..1 + rng.below(MAX_RANK)).map(|_| rng.mostly(8 << rng.below(4)) as u32).collect();
        let boxes = (0..BOXES).map(|_| &*Box::leak::<'static>(extents())).collect();
        let params = SPECS.iter().flat_map(|spec| spec.params);
        let maps = params.filter_map(|param| match param.kind {
            ParamKind::Map(map) => Some(map),
            ParamKind::Global { .. }
            | ParamKind::PeerMaps(_)
            | ParamKind::PeerGlobals { .. }
            | ParamKind::Scalar { .. } => None,
        });
        let maps = maps.collect();
        let device = Device::simulator().instruction_limit(INSTRUCTIONS);
        Ok(Self { rng, memory: device.filled_bytes([TENSOR], 1)?, boxes, maps })
    }

    /// Returns the next launch, map or tensor.
    pub(crate) fn next(&self) -> Input<'_> {
        let rng = &self.rng;
        match rng.below(4) {
            0 => {
                let shape = [extent(rng), extent(rng), extent(rng)];
                Input {
                    text: format!("a tensor of {shape:?}"),
                    run: Box::new(move || self.is_allocated(shape)),
                }
            }
            1 => {
                let &box_extents = rng.one_of(&self.boxes);
                let map = MapSpec {
                    element: *rng.one_of(&ELEMENTS),
                    box_extents,
                    swizzle: *rng.one_of(&[
                        TileSwizzle::None,
                        TileSwizzle::B32,
                        TileSwizzle::B64,
                        TileSwizzle::B128,
                        TileSwizzle::Interleave16,
                        TileSwizzle::Interleave32,
                    ]),
                    ..*rng.one_of(&self.maps)
                };
                let in_columns = rng.once_in(3);
                let mode = if in_columns {
                    MapMode::Im2col { rank: rng.mostly(4) as usize }
                } else {
                    MapMode::Tiled
                };
                let map = MapSpec { mode, ..map };
                let rank = match mode {
                    MapMode::Tiled => rng.mostly(map.box_extents.len() as u64) as usize,
                    MapMode::Im2col { rank } => rng.mostly(rank as u64) as usize,
                };
                let corner = |_| (rng.below(7) as i32 - 3).wrapping_mul(rng.mostly(1) as i32);
                let corners =
                    Corners { lower: std::array::from_fn(corner), upper: std::array::from_fn(corner) };
                let element = if rng.once_in(8) { *rng.one_of(&ELEMENTS) } else { map.element };
                let options = MapOptions {
                    fill: if rng.once_in(4) { Fill::Nan } else { Fill::Zeros },
                    element_strides: std::array::from_fn(|_| rng.mostly(1) as u32),
                    corners: in_columns.then_some(corners),
                    ..MapOptions::default()
                };
                let source = MapSource { layout: self.layout(element, rank, rng), options };
                Input {
                    text: format!("{map:#?}\n{source:#?}"),
                    run: Box::new(move || is_a_map(&source, &map)),
                }
            }
            _ => {
                let spec = *rng.one_of(&SPECS);
                let mut args: Vec<_> = spec.params.iter().map(|param| self.arg(&param.kind, rng)).collect();
                if rng.once_in(8) {
                    args.truncate(rng.below(args.len()));
                }
                let grid = grid(rng);
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

    /// Returns an argument that often matches the parameter.
    fn arg(&self, kind: &ParamKind, rng: &Rng) -> Arg<'_> {
        let any = *rng.one_of(&ELEMENTS);
        match kind {
            _ if rng.once_in(6) => Arg::scalar(rng.number()),
            ParamKind::Map(map) => {
                let element = if rng.once_in(12) { any } else { map.element };
                let rank = if rng.once_in(12) { 1 + rng.below(MAX_RANK) } else { map.box_extents.len() };
                self.tensor(element, rank, true, rng)
            }
            ParamKind::Global { element, .. } => {
                self.tensor(if rng.once_in(12) { any } else { *element }, 1, rng.once_in(6), rng)
            }
            // No specification here is of a team.
            ParamKind::PeerMaps(_) | ParamKind::PeerGlobals { .. } => Arg::scalar(rng.number()),
            ParamKind::Scalar { bytes: 4 } => Arg::scalar(rng.mostly(3) as u32),
            ParamKind::Scalar { .. } => Arg::scalar(rng.mostly(3)),
        }
    }

    fn tensor(&self, element: spec::Scalar, rank: usize, is_map: bool, rng: &Rng) -> Arg<'_> {
        macro_rules! of {
            ($($Element:ident: $ty:ty,)+) => {
                match element {
                    $(spec::Scalar::$Element => match rank {
                        1 => self.view::<$ty, 1>(is_map, rng),
                        2 => self.view::<$ty, 2>(is_map, rng),
                        3 => self.view::<$ty, 3>(is_map, rng),
                        4 => self.view::<$ty, 4>(is_map, rng),
                        _ => self.view::<$ty, 5>(is_map, rng),
                    },)+
                }
            };
        }
        of! {
            Bool: bool, I8: i8, U8: u8, I16: i16, U16: u16, I32: i32, U32: u32, I64: i64, U64: u64, Usize: usize, F16: f16,
            Bf16: bf16, F32: f32, F64: f64, E4m3: e4m3, E5m2: e5m2, Tf32: tf32,
        }
    }

    fn view<T: Scalar, const N: usize>(&self, is_map: bool, rng: &Rng) -> Arg<'_> {
        let (shape, strides) = extents::<N>(size_of::<T>(), rng);
        let (address, device) = (self.address(rng), self.memory.device());
        if rng.once_in(6) {
            // SAFETY: as below.
            let view = unsafe { TensorView::<T, N>::from_raw(device, address, shape, strides) };
            let view = part(view, rng);
            return if is_map { Arg::map(view) } else { Arg::global(GlobalSlice::new(view)) };
        }
        // SAFETY: the device is a simulated one, which rejects each access to memory that is not
        // allocated, and nothing but this launch uses the memory.
        let view = unsafe { TensorViewMut::<T, N>::from_raw(device, address, shape, strides) };
        if is_map { Arg::map_mut(view) } else { Arg::global_mut(GlobalSliceMut::new(view)) }
    }

    fn address(&self, rng: &Rng) -> u64 {
        match rng.below(8) {
            0 => rng.number(),
            1 => self.memory.as_ptr().wrapping_add(rng.number()),
            _ => self.memory.as_ptr(),
        }
    }

    fn layout(&self, element: spec::Scalar, rank: usize, rng: &Rng) -> Layout {
        fn of<const N: usize>(host: &Host, element: spec::Scalar, rng: &Rng) -> Layout {
            let (shape, strides) = extents::<N>(element.bytes() as usize, rng);
            Layout::new(host.memory.device().id(), element, host.address(rng), shape, strides)
        }
        match rank {
            1 => of::<1>(self, element, rng),
            2 => of::<2>(self, element, rng),
            3 => of::<3>(self, element, rng),
            4 => of::<4>(self, element, rng),
            _ => of::<5>(self, element, rng),
        }
    }
}

/// Returns the view, a part of it, or its memory in another form, where possible.
fn part<'a, T: Scalar, const N: usize>(view: TensorView<'a, T, N>, rng: &Rng) -> TensorView<'a, T, N> {
    let made = match rng.below(8) {
        0 => {
            let ends = view.shape().map(|extent| rng.mostly(extent as u64) as usize);
            view.slice(ends.map(|end| rng.below(end.saturating_add(1))..end))
        }
        1 => view.permute(std::array::from_fn(|_| rng.below(N))),
        2 => {
            let (shape, strides) = extents::<N>(size_of::<T>(), rng);
            view.with_strides(shape, strides)
        }
        _ => Ok(view),
    };
    made.unwrap_or(view)
}

/// Returns shape and strides of a tensor of elements of `bytes` bytes, usually dense and aligned.
fn extents<const N: usize>(bytes: usize, rng: &Rng) -> ([usize; N], [usize; N]) {
    let unit = (16 / bytes).max(1);
    let (mut shape, mut strides) = ([1; N], [1; N]);
    let mut stride = 1_usize;
    for dimension in (0..N).rev() {
        let usual = if dimension == N - 1 { unit * (1 + rng.below(8)) } else { 1 + rng.below(6) };
        shape[dimension] = rng.mostly(usual as u64) as usize;
        strides[dimension] = if rng.once_in(8) { rng.number() as usize } else { stride };
        stride = stride.wrapping_mul(shape[dimension]);
    }
    (shape, strides)
}

/// Returns an extent that is small or far too large.
fn extent(rng: &Rng) -> usize {
    match rng.number() as usize {
        large if large >= LARGE => large,
        small => small % SMALL,
    }
}

/// Returns a grid of few blocks, of none, or of more than are possible.
fn grid(rng: &Rng) -> Grid {
    match rng.below(8) {
        0 => Grid::new(0, rng.number() as u32, 1),
        1 => Grid::new(u32::MAX, 1, rng.number() as u32),
        2 => Grid::tiles([usize::MAX, rng.number() as usize, usize::MAX], [rng.below(2) as u32, 1, 1]),
        _ => Grid::tiles([rng.below(40), 1 + rng.below(40)], [16, 16]),
    }
}

/// Returns whether a tensor map can be made. If not, the broken rule must be one for users.
fn is_a_map(source: &MapSource, spec: &MapSpec) -> bool {
    let made = map_params("tensor", source, spec);
    assert!(!matches!(made, Err(Error::Map(MapError::Internal { .. }))), "{made:?}");
    made.is_ok()
}
