//! Operations of the engine on columns of pixels, and how such a case is run.

use std::fmt;

use tma_model::ReduceOp;
use tma_runtime::launch::{Arg, Corners, KernelSpec, MapOptions, launch};
use tma_runtime::prelude::*;
use tma_runtime::spec::Scalar;

use super::reduce::Reduce;
use super::{Case, Edge, columns, columns_reduced};
use crate::column::Column;
use crate::compare::same;
use crate::random::{Sample, noise};

/// An operation on a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Columns {
    /// `map.load`.
    Load,
    /// `map.prefetch` of the same column, then `map.load`.
    Prefetch,
    /// `map.hint(..)` of both.
    HintedLoad,
    /// `map.store`.
    Store,
    /// `map.hint(..).store`.
    HintedStore,
    /// `map.load_multicast` to both blocks of a cluster.
    Multicast,
    /// `map.hint(..).load_multicast`.
    HintedMulticast,
    /// `map.reduce_add` and the other reductions.
    Reduce(ReduceOp),
    /// `map.hint(..).reduce_add` and the other reductions.
    HintedReduce(ReduceOp),
}

/// Kernels of one signature, for each rank.
type Kernels = [&'static [KernelSpec]; 3];

/// Returns the forms in the order of their numbers in the kernels, and these kernels.
pub(super) fn forms() -> [(Vec<Columns>, Kernels); 3] {
    use self::Columns::{
        HintedLoad, HintedMulticast, HintedReduce, HintedStore, Load, Multicast, Prefetch, Reduce, Store,
    };
    let reductions = ReduceOp::ALL.map(Reduce).into_iter().chain(ReduceOp::ALL.map(HintedReduce));
    [
        (
            vec![Load, Prefetch, HintedLoad, Store, HintedStore],
            [&columns::columns_3::INSTANCES, &columns::columns_4::INSTANCES, &columns::columns_5::INSTANCES],
        ),
        (
            vec![Multicast, HintedMulticast],
            [
                &columns::columns_multicast_3::INSTANCES,
                &columns::columns_multicast_4::INSTANCES,
                &columns::columns_multicast_5::INSTANCES,
            ],
        ),
        (
            reductions.collect(),
            [
                &columns_reduced::columns_reduced_3::INSTANCES,
                &columns_reduced::columns_reduced_4::INSTANCES,
                &columns_reduced::columns_reduced_5::INSTANCES,
            ],
        ),
    ]
}

impl Columns {
    /// Returns the edges to test. Corners before the tensor are a load's padding.
    pub(super) const fn edges(self) -> &'static [Edge] {
        match self.writes() {
            true => &[Edge::Inside, Edge::Over, Edge::Past],
            false => &[Edge::Inside, Edge::Over, Edge::Past, Edge::Before],
        }
    }

    const fn writes(self) -> bool {
        match self {
            Self::Load | Self::Prefetch | Self::HintedLoad | Self::Multicast | Self::HintedMulticast => false,
            Self::Store | Self::HintedStore | Self::Reduce(_) | Self::HintedReduce(_) => true,
        }
    }
}

impl fmt::Display for Columns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Load => f.write_str("load"),
            Self::Prefetch => f.write_str("prefetch, load"),
            Self::HintedLoad => f.write_str("both with a hint"),
            Self::Store => f.write_str("store"),
            Self::HintedStore => f.write_str("store with a hint"),
            Self::Multicast => f.write_str("multicast load"),
            Self::HintedMulticast => f.write_str("multicast load with a hint"),
            Self::Reduce(op) => write!(f, "reduce {}", op.name()),
            Self::HintedReduce(op) => write!(f, "reduce {} with a hint", op.name()),
        }
    }
}

/// Calls a method for the case's rank.
macro_rules! by_rank {
    ($case:expr, $method:ident::<$T:ty>($($arg:expr),*)) => {
        match $case.rank() {
            3 => $case.$method::<$T, 1, 3>($($arg),*),
            4 => $case.$method::<$T, 2, 4>($($arg),*),
            _ => $case.$method::<$T, 3, 5>($($arg),*),
        }
    };
}

impl Case {
    /// Runs a case with columns.
    pub(super) fn run_columns(&self, device: &Device, form: Columns) -> anyhow::Result<()> {
        match (form, self.map.element) {
            (Columns::Reduce(op) | Columns::HintedReduce(op), Scalar::U32) => {
                by_rank!(self, column_reduced::<u32>(device, op))
            }
            (_, Scalar::U8) => by_rank!(self, column::<u8>(device, form)),
            (_, Scalar::U16) => by_rank!(self, column::<u16>(device, form)),
            (_, Scalar::U32) => by_rank!(self, column::<u32>(device, form)),
            (_, Scalar::U64) => by_rank!(self, column::<u64>(device, form)),
            (_, other) => anyhow::bail!("no case has columns of `{other}`"),
        }
    }

    /// Returns the tensor and the position of the column in it: three images, and two units of the
    /// copy engine more channels than in the tile.
    fn place<const N: usize, const RANK: usize>(&self, writes: bool) -> Column<N, RANK> {
        const PIXELS: [[usize; 3]; 3] = [[23, 0, 0], [5, 7, 0], [3, 4, 5]];
        let unit = 16 / self.map.element.bytes();
        let [_, channels] = self.tile();
        let all_channels = channels + 2 * unit;
        let (first, image) = match self.edge {
            Edge::Inside => (0, 0),
            Edge::Over => (0, 2),
            Edge::Past => (0, 3),
            Edge::Before => (-1, 0),
        };
        let channel = match self.edge {
            Edge::Over => (all_channels - channels / 2) / unit * unit,
            Edge::Inside | Edge::Past | Edge::Before => unit,
        };
        let dimension = |d: usize, of_images, of_pixels: [usize; 3], of_channels| match d {
            0 => of_images,
            d if d <= N => of_pixels[d - 1],
            _ => of_channels,
        };
        let offset = if writes || self.edge == Edge::Before { 0 } else { 1 };
        let columns = Im2col { lower: [first; N], upper: [-1; N], strides: [1; N] };
        Column {
            shape: std::array::from_fn(|d| dimension(d, 3, PIXELS[N - 1], all_channels as usize)),
            columns,
            at: std::array::from_fn(|d| match d {
                0 => image,
                d if d <= N => first,
                _ => channel as i32,
            }),
            offsets: [offset; N],
        }
    }

    /// Returns the numbers of pixels and channels.
    fn tile(&self) -> [u32; 2] {
        [self.map.box_extents[0], self.map.box_extents[1]]
    }

    fn column<T: Sample, const N: usize, const RANK: usize>(
        &self,
        device: &Device,
        form: Columns,
    ) -> anyhow::Result<()> {
        let place = self.place::<N, RANK>(form.writes());
        let [pixels, channels] = self.tile().map(|extent| extent as usize);
        let tile = pixels * channels;
        let (source, given) = (noise::<T>(411, place.elements()), noise::<T>(412, tile));
        let blocks = self.spec.cluster.most_blocks();

        let src = device.tensor(&source, place.shape)?;
        let mut dst: DeviceTensor<T, RANK> = device.filled_bytes(place.shape, 0xab)?;
        let untouched = dst.to_vec()?;
        let mut seen: DeviceTensor<T, 1> = device.filled_bytes([tile * blocks as usize], 0xcd)?;
        let device_given = device.tensor(&given, [tile])?;
        let mut args = vec![Arg::map(src.view()).with(options(&place.columns))];
        if matches!(form, Columns::Multicast | Columns::HintedMulticast) {
            args.push(Arg::global_mut(seen.slice_mut()));
        } else {
            // A map that the kernel writes has no padding, even if this launch only loads.
            let columns = if form.writes() { place.columns } else { Im2col::default() };
            args.push(Arg::map_mut(dst.view_mut()).with(options(&columns)));
            args.push(Arg::global_mut(seen.slice_mut()));
            args.push(Arg::global(device_given.slice()));
        }
        args.push(Arg::scalar(self.how));
        args.extend(place.at.map(Arg::scalar));
        args.extend(place.offsets.map(|offset| Arg::scalar(offset as u16)));
        launch(device, self.spec, Grid::x(blocks), &args)?;

        if form.writes() {
            let wanted = written(&place, untouched, &given, channels, |_, new| Some(new))?;
            return same("the tensor", &dst.to_vec()?, &wanted);
        }
        let wanted = place.loaded(&source, pixels, channels);
        same("the tile", &seen.to_vec()?, &wanted.repeat(blocks as usize))
    }

    fn column_reduced<T: Reduce, const N: usize, const RANK: usize>(
        &self,
        device: &Device,
        op: ReduceOp,
    ) -> anyhow::Result<()> {
        let place = self.place::<N, RANK>(true);
        let [pixels, channels] = self.tile().map(|extent| extent as usize);
        let before: Vec<T> = (0..place.elements()).map(|i| T::operand(op, 413, i)).collect();
        let given: Vec<T> = (0..pixels * channels).map(|i| T::operand(op, 414, i)).collect();

        let mut dst = device.tensor(&before, place.shape)?;
        let device_given = device.tensor(&given, [given.len()])?;
        let mut args = vec![
            Arg::map_mut(dst.view_mut()).with(options(&place.columns)),
            Arg::global(device_given.slice()),
            Arg::scalar(self.how),
        ];
        args.extend(place.at.map(Arg::scalar));
        launch(device, self.spec, Grid::x(1), &args)?;

        let wanted = written(&place, before, &given, channels, |old, new| old.reduced(op, new))?;
        same("the tensor", &dst.to_vec()?, &wanted)
    }
}

fn options<const N: usize>(columns: &Im2col<N>) -> MapOptions {
    let mut corners = Corners::default();
    corners.lower[..N].copy_from_slice(&columns.lower);
    corners.upper[..N].copy_from_slice(&columns.upper);
    MapOptions { corners: Some(corners), ..MapOptions::default() }
}

/// Returns the tensor with `element(old, new)` at the positions of the tile's elements, in rows of
/// `channels`.
fn written<T: Sample, const N: usize, const RANK: usize>(
    place: &Column<N, RANK>,
    mut tensor: Vec<T>,
    tile: &[T],
    channels: usize,
    element: impl Fn(T, T) -> Option<T>,
) -> anyhow::Result<Vec<T>> {
    for (at, &new) in place.indices(tile.len() / channels, channels).into_iter().zip(tile) {
        if let Some(at) = at {
            tensor[at] = element(tensor[at], new).ok_or_else(|| anyhow::anyhow!("no such reduction"))?;
        }
    }
    Ok(tensor)
}
