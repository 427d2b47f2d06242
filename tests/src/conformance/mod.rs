//! What the copy engine does, case by case: operation × rank × element × swizzle × edge, each against plain Rust.
//!
//! [`cases`] is the list, [`Case::run`] runs one on a device, and [`table`] is the page that the book has of them.

mod tiles;

use std::fmt;

use tma_runtime::launch::{Arg, KernelSpec, ParamKind, launch};
use tma_runtime::prelude::*;
use tma_runtime::spec::{Element, MapSpec};

use crate::compare::same;
use crate::random::{Sample, noise};

/// What is asked of the engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Operation {
    /// `map.load`.
    Load,
    /// `map.store`.
    Store,
}

/// Where the box lies in the tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Edge {
    /// Inside.
    Inside,
    /// Over the end of every dimension.
    Over,
    /// Wholly past the end of the outermost dimension.
    Past,
    /// Over the beginning of every dimension: for loads only.
    Before,
}

/// One cell of the table.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    /// What is asked for.
    pub operation: Operation,
    /// Where.
    pub edge: Edge,
    spec: &'static KernelSpec,
    map: MapSpec,
}

impl Operation {
    const ALL: [Self; 2] = [Self::Load, Self::Store];

    /// The edges that it is tried at: the engine refuses stores at negative coordinates.
    const fn edges(self) -> &'static [Edge] {
        match self {
            Self::Load => &[Edge::Inside, Edge::Over, Edge::Past, Edge::Before],
            Self::Store => &[Edge::Inside, Edge::Over, Edge::Past],
        }
    }
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (operation, edge) = (self.operation, self.edge);
        let swizzle = self.map.swizzle.span().unwrap_or_default();
        write!(
            f,
            "{operation:?} of rank {}, `{}`, swizzle {swizzle}, {edge:?}",
            self.rank(),
            self.map.element
        )
    }
}

/// Every case, in the order of the table.
pub fn cases() -> Vec<Case> {
    let kernels = [
        &tiles::rank_1::INSTANCES[..],
        &tiles::rank_2::INSTANCES,
        &tiles::rank_3::INSTANCES,
        &tiles::rank_4::INSTANCES,
        &tiles::rank_5::INSTANCES,
    ];
    let mut cases = vec![];
    for operation in Operation::ALL {
        for spec in kernels.into_iter().flatten() {
            let Some(map) = map_of(spec) else { continue };
            let edges = operation.edges().iter();
            cases.extend(edges.map(|&edge| Case { operation, edge, spec, map }));
        }
    }
    cases
}

/// The box that a kernel of [`tiles`] moves.
fn map_of(spec: &KernelSpec) -> Option<MapSpec> {
    spec.params.iter().find_map(|param| match param.kind {
        ParamKind::Map(map) => Some(map),
        _ => None,
    })
}

impl Case {
    /// The number of dimensions.
    pub fn rank(&self) -> usize {
        self.map.box_extents.len()
    }

    /// The kernel that runs it.
    pub const fn kernel(&self) -> &'static str {
        self.spec.name
    }

    /// Runs it.
    ///
    /// # Errors
    ///
    /// What the device reports, or the first element that differs from what plain Rust gives.
    pub fn run(&self, device: &Device) -> anyhow::Result<()> {
        macro_rules! by_rank {
            ($T:ty) => {
                match self.rank() {
                    1 => self.run_as::<$T, 1>(device),
                    2 => self.run_as::<$T, 2>(device),
                    3 => self.run_as::<$T, 3>(device),
                    4 => self.run_as::<$T, 4>(device),
                    _ => self.run_as::<$T, 5>(device),
                }
            };
        }
        match self.map.element {
            Element::U8 => by_rank!(u8),
            Element::U16 => by_rank!(u16),
            Element::U32 => by_rank!(u32),
            Element::I32 => by_rank!(i32),
            Element::U64 => by_rank!(u64),
            Element::I64 => by_rank!(i64),
            Element::F16 => by_rank!(f16),
            Element::Bf16 => by_rank!(bf16),
            Element::F32 => by_rank!(f32),
            Element::F64 => by_rank!(f64),
            Element::Tf32 => by_rank!(tf32),
            Element::E4m3 => by_rank!(e4m3),
            Element::E5m2 => by_rank!(e5m2),
            other => anyhow::bail!("tensor maps have no elements of type `{other}`"),
        }
    }

    fn run_as<T: Sample, const N: usize>(&self, device: &Device) -> anyhow::Result<()> {
        let places = Places::<N>::new(&self.map, self.edge);
        let (count, tile) = (places.tensor.iter().product(), places.tile_elements());
        let source = noise::<T>(401, count);
        let given = noise::<T>(402, tile);

        let memory = device.tensor(&source, places.tensor)?;
        let dst: DeviceTensor<T, N> = device.filled_bytes(places.tensor, 0xab)?;
        let untouched = dst.to_vec()?;
        let seen: DeviceTensor<T, 1> = device.filled_bytes([tile], 0xcd)?;
        let device_given = device.tensor(&given, [tile])?;
        // The loads' tensor ends an element before its rows do: loads are exact to the element.
        // SAFETY: a part of `memory`, which outlives the view and is only read.
        let src = unsafe {
            TensorView::<T, N>::from_raw(device, memory.as_ptr(), places.loaded(), memory.view().strides())
        };
        let mut args = vec![
            Arg::map(src),
            Arg::map(dst.view()),
            Arg::global(tma_runtime::launch::GlobalSlice::new(seen.view())),
            Arg::global(tma_runtime::launch::GlobalSlice::new(device_given.view())),
        ];
        args.extend(places.at.map(Arg::scalar));
        launch(device, self.spec, Grid::x(1), &args)?;

        match self.operation {
            Operation::Load => {
                let outside = T::default();
                let wanted: Vec<T> = (0..tile)
                    .map(|i| places.in_tensor(i, places.loaded()).map_or(outside, |at| source[at]))
                    .collect();
                same("the tile", &seen.to_vec()?, &wanted)
            }
            Operation::Store => {
                let mut wanted = untouched;
                for (i, &value) in given.iter().enumerate() {
                    if let Some(at) = places.in_tensor(i, places.tensor) {
                        wanted[at] = value;
                    }
                }
                same("the tensor", &dst.to_vec()?, &wanted)
            }
        }
    }
}

/// A tensor, and a tile's place in it; outermost dimension first.
struct Places<const N: usize> {
    tensor: [usize; N],
    tile: [usize; N],
    at: [i32; N],
}

impl<const N: usize> Places<N> {
    fn new(map: &MapSpec, edge: Edge) -> Self {
        let tile: [usize; N] = std::array::from_fn(|d| map.box_extents[d] as usize);
        // The copy engine's unit of 16 bytes.
        let unit = (16 / map.element.bytes()) as usize;
        let inner = N - 1;
        let tensor = std::array::from_fn(|d| if d == inner { 2 * tile[d] + unit } else { 2 * tile[d] + 1 });
        let at = std::array::from_fn(|d| {
            let step = if d == inner { unit } else { 1 };
            let place = match edge {
                Edge::Inside => step,
                Edge::Over => (tensor[d] - tile[d] / 2) / step * step,
                Edge::Past if d == 0 => tensor[d] + step,
                Edge::Past => 0,
                Edge::Before => return -(step as i32),
            };
            place as i32
        });
        Self { tensor, tile, at }
    }

    fn tile_elements(&self) -> usize {
        self.tile.iter().product()
    }

    /// The extents that loads see.
    fn loaded(&self) -> [usize; N] {
        let mut extents = self.tensor;
        extents[N - 1] -= 1;
        extents
    }

    /// Where the tile's `i`-th element lies in the memory of the tensor, if within `extents`.
    fn in_tensor(&self, i: usize, extents: [usize; N]) -> Option<usize> {
        let (mut rest, mut place, mut stride) = (i, 0, 1);
        for d in (0..N).rev() {
            let at = usize::try_from(self.at[d] + (rest % self.tile[d]) as i32).ok()?;
            if at >= extents[d] {
                return None;
            }
            place += at * stride;
            rest /= self.tile[d];
            stride *= self.tensor[d];
        }
        Some(place)
    }
}

/// The page of the book: for each operation, rank and element how many edges there are under each swizzle.
pub fn table(cases: &[Case]) -> String {
    let mut text = format!(
        "\n{} cases:\n\n| operation | rank | element | no swizzle | 32 bytes | 64 bytes | 128 bytes |\n{}\n",
        cases.len(),
        "| --- | --- | --- | --- | --- | --- | --- |"
    );
    let mut rows: Vec<(Operation, usize, Element)> = vec![];
    for case in cases {
        let row = (case.operation, case.rank(), case.map.element);
        if !rows.contains(&row) {
            rows.push(row);
        }
    }
    for row in rows {
        let cells: Vec<_> = [None, Some(32), Some(64), Some(128)]
            .map(|span| {
                let here = cases.iter().filter(|case| {
                    (case.operation, case.rank(), case.map.element) == row && case.map.swizzle.span() == span
                });
                here.count().to_string()
            })
            .into();
        let (operation, rank, element) = row;
        let name = format!("{operation:?}").to_lowercase();
        text += &format!("| {name} | {rank} | `{element}` | {} |\n", cells.join(" | "));
    }
    text
}
