//! The behaviour of the copy engine, case by case: operation × rank × element × layout × edge, each
//! compared with plain Rust.
//!
//! [`cases`] is the list, [`Case::run`] runs one on a device, and [`table`] is their page in the
//! book.

mod column_cases;
mod columns;
mod columns_reduced;
mod multicast;
mod page;
mod reduce;
mod reductions;
mod run;
mod tile_positions;
mod tiles;

use std::fmt;

use tma_model::limits::ELEMENT_STRIDE;
use tma_model::{ReduceFamily, ReduceOp};
use tma_runtime::launch::{KernelSpec, ParamKind};
use tma_runtime::spec::{MapMode, MapSpec, Scalar};

pub use column_cases::Columns;
pub use page::table;
pub(crate) use reduce::Reduce;

/// An operation of the engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Operation {
    /// `map.load`.
    Load,
    /// `map.prefetch` of the same box, then `map.load`.
    Prefetch,
    /// `map.hint(..).load`.
    HintedLoad,
    /// `map.load` of elements that are this far apart.
    SteppedLoad(u32),
    /// `map.load`, with NaN for out-of-bounds elements.
    NanLoad,
    /// `map.load_multicast` to both blocks of a cluster.
    Multicast,
    /// `map.store`.
    Store,
    /// `map.hint(..).store`.
    HintedStore,
    /// `map.store` of elements that are this far apart.
    SteppedStore(u32),
    /// `map.reduce_add` and the other reductions.
    Reduce(ReduceOp),
    /// An operation on columns of pixels, by an `Im2colMap`.
    Columns(Columns),
}

/// The position of the box in the tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Edge {
    /// Inside.
    Inside,
    /// Over the end of every dimension.
    Over,
    /// Entirely past the end of the outermost dimension.
    Past,
    /// Over the beginning of every dimension, for loads only.
    Before,
}

/// One cell of the table.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    /// The operation.
    pub operation: Operation,
    /// The position of the box.
    pub edge: Edge,
    spec: &'static KernelSpec,
    map: MapSpec,
    /// The kernel's number of the operation.
    how: u32,
}

impl Operation {
    /// Returns the operations of the kernels of [`tiles`], with their numbers in the kernels.
    fn of_tiles() -> Vec<(Self, u32)> {
        let steps = || 2..=ELEMENT_STRIDE;
        let loads = [(Self::Load, 0), (Self::Prefetch, 1), (Self::HintedLoad, 2), (Self::NanLoad, 0)];
        let stores = [(Self::Store, 0), (Self::HintedStore, 2)];
        let all = loads.into_iter().chain(steps().map(|step| (Self::SteppedLoad(step), 0)));
        all.chain(stores).chain(steps().map(|step| (Self::SteppedStore(step), 0))).collect()
    }

    /// Returns whether a tile is tested with this operation. If types differ only in their size,
    /// one of each size is tested, and all seven steps only with two types.
    fn fits(self, map: &MapSpec) -> bool {
        match self {
            Self::SteppedLoad(_) | Self::SteppedStore(_) => {
                map.box_extents.len() > 1 && matches!(map.element, Scalar::U8 | Scalar::U32)
            }
            Self::Prefetch | Self::HintedLoad | Self::HintedStore => {
                matches!(map.element, Scalar::U8 | Scalar::U16 | Scalar::U32 | Scalar::U64)
            }
            Self::NanLoad => {
                matches!(map.element, Scalar::F16 | Scalar::Bf16 | Scalar::F32 | Scalar::F64 | Scalar::Tf32)
            }
            Self::Load | Self::Multicast | Self::Store | Self::Reduce(_) | Self::Columns(_) => true,
        }
    }

    /// Returns the edges to test: the engine refuses to write at negative coordinates.
    const fn edges(self) -> &'static [Edge] {
        match self {
            Self::Load | Self::Prefetch | Self::HintedLoad | Self::SteppedLoad(_) | Self::Multicast => {
                &[Edge::Inside, Edge::Over, Edge::Past, Edge::Before]
            }
            Self::NanLoad => &[Edge::Over, Edge::Past, Edge::Before],
            Self::Store | Self::HintedStore | Self::SteppedStore(_) | Self::Reduce(_) => {
                &[Edge::Inside, Edge::Over, Edge::Past]
            }
            Self::Columns(form) => form.edges(),
        }
    }

    /// Returns the distance between the elements that the operation moves.
    const fn step(self) -> u32 {
        match self {
            Self::SteppedLoad(step) | Self::SteppedStore(step) => step,
            Self::Load
            | Self::Prefetch
            | Self::HintedLoad
            | Self::NanLoad
            | Self::Multicast
            | Self::Store
            | Self::HintedStore
            | Self::Reduce(_)
            | Self::Columns(_) => 1,
        }
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Load => f.write_str("load"),
            Self::Prefetch => f.write_str("prefetch, load"),
            Self::HintedLoad => f.write_str("load with a hint"),
            Self::SteppedLoad(step) => write!(f, "load, step {step}"),
            Self::NanLoad => f.write_str("load, NaN outside"),
            Self::Multicast => f.write_str("multicast load"),
            Self::Store => f.write_str("store"),
            Self::HintedStore => f.write_str("store with a hint"),
            Self::SteppedStore(step) => write!(f, "store, step {step}"),
            Self::Reduce(op) => write!(f, "reduce {}", op.name()),
            Self::Columns(form) => write!(f, "columns: {form}"),
        }
    }
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (operation, edge, map) = (self.operation, self.edge, self.map);
        write!(f, "{operation} of rank {}, `{}`, {}, {edge:?}", self.rank(), map.element, map.swizzle.name())
    }
}

/// Returns every case, in the order of the table.
pub fn cases() -> Vec<Case> {
    let mut cases = vec![];
    let tiles: [&[KernelSpec]; 5] = [
        &tiles::rank_1::INSTANCES,
        &tiles::rank_2::INSTANCES,
        &tiles::rank_3::INSTANCES,
        &tiles::rank_4::INSTANCES,
        &tiles::rank_5::INSTANCES,
    ];
    for (operation, how) in Operation::of_tiles() {
        tiles.iter().for_each(|kernels| add(&mut cases, kernels, operation, how));
    }
    let multicast: [&[KernelSpec]; 5] = [
        &multicast::multicast_rank_1::INSTANCES,
        &multicast::multicast_rank_2::INSTANCES,
        &multicast::multicast_rank_3::INSTANCES,
        &multicast::multicast_rank_4::INSTANCES,
        &multicast::multicast_rank_5::INSTANCES,
    ];
    multicast.iter().for_each(|kernels| add(&mut cases, kernels, Operation::Multicast, 0));
    for (operations, kernels) in reductions() {
        for (how, op) in operations.into_iter().enumerate() {
            add(&mut cases, kernels, Operation::Reduce(op), how as u32);
        }
    }
    for (forms, kernels) in column_cases::forms() {
        for (how, form) in forms.into_iter().enumerate() {
            let form = Operation::Columns(form);
            kernels.iter().for_each(|kernels| add(&mut cases, kernels, form, how as u32));
        }
    }
    cases
}

/// Returns the kernels that reduce, with the operations of each in the order of their numbers.
fn reductions() -> [(Vec<ReduceOp>, &'static [KernelSpec]); 8] {
    let all = || ReduceOp::ALL.to_vec();
    let of = |family| ReduceOp::ALL.into_iter().filter(|op| op.family() == family).collect();
    [
        (all(), &reductions::reduce_rank_1::INSTANCES),
        (all(), &reductions::reduce_rank_2::INSTANCES),
        (all(), &reductions::reduce_rank_3::INSTANCES),
        (all(), &reductions::reduce_rank_4::INSTANCES),
        (all(), &reductions::reduce_rank_5::INSTANCES),
        (of(ReduceFamily::Arithmetic), &reductions::reduce_arithmetic::INSTANCES),
        (of(ReduceFamily::Order), &reductions::reduce_orders::INSTANCES),
        (of(ReduceFamily::Bits), &reductions::reduce_bits::INSTANCES),
    ]
}

fn add(cases: &mut Vec<Case>, kernels: &'static [KernelSpec], operation: Operation, how: u32) {
    for spec in kernels {
        let Some(map) = map_of(spec).filter(|map| operation.fits(map)) else { continue };
        let edges = operation.edges().iter();
        cases.extend(edges.map(|&edge| Case { operation, edge, spec, map, how }));
    }
}

/// Returns the box that a kernel moves.
fn map_of(spec: &KernelSpec) -> Option<MapSpec> {
    spec.params.iter().find_map(|param| match param.kind {
        ParamKind::Map(map) => Some(map),
        _ => None,
    })
}

impl Case {
    /// Returns the element type.
    pub const fn element(&self) -> Scalar {
        self.map.element
    }

    /// Returns the number of dimensions.
    pub fn rank(&self) -> usize {
        match self.map.mode {
            MapMode::Tiled => self.map.box_extents.len(),
            MapMode::Im2col { rank } => rank,
        }
    }

    /// Returns the name of the kernel that runs the case.
    pub const fn kernel(&self) -> &'static str {
        self.spec.parts().name
    }
}
