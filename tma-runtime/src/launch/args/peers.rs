//! Arguments of team kernels: tensors of all ranks.

use super::erased::Arg;
use super::im2col::{Im2colArg, Im2colArgMut};
use super::{GlobalArg, GlobalArgMut, MapArg, MapArgMut};
use crate::binding::Argument;
use crate::binding::peers::Unlike;
use crate::error::{Error, TeamError};
use crate::layout::DeviceId;
use crate::map::options::MapOptions;
use crate::scalar::Scalar;
use crate::spec::ParamSpec;
use crate::tensor::slice::{GlobalSlice, GlobalSliceMut};
use crate::tensor::symmetric::SymmetricTensor;
use crate::tensor::view::{TensorView, TensorViewMut};

/// The tensors of a team's ranks, in order, whose elements are of `T`. A team kernel reads them as
/// `Peers<Global<T>>`, or each rank reads its own as `Global<T>`.
///
/// It is a [`SymmetricTensor`], or a slice of what a launch on one device takes, such as `&[&a, &b]`.
#[diagnostic::on_unimplemented(
    message = "this parameter takes the tensors of all ranks, with elements of `{T}`, not `{Self}`",
    label = "pass `&SymmetricTensor<{T}, _>`, or a slice with a `&DeviceTensor<{T}, _>` or `TensorView<{T}, _>` of each rank"
)]
pub trait PeerGlobalArg<T: Scalar> {
    /// Returns the elements of each rank's tensor.
    fn slices(&self) -> Vec<GlobalSlice<'_, T>>;
}

/// The tensors of a team's ranks, in order, whose elements of `T` a team kernel writes.
#[diagnostic::on_unimplemented(
    message = "TMA0301: the kernel writes these tensors with elements of `{T}`, so they cannot be passed as `{Self}`",
    label = "pass `&mut SymmetricTensor<{T}, _>`, or a `&mut` slice with a `&mut DeviceTensor<{T}, _>` or `TensorViewMut<{T}, _>` of each rank"
)]
pub trait PeerGlobalArgMut<T: Scalar> {
    /// Returns the elements of each rank's tensor, borrowed mutably.
    fn slices_mut(&mut self) -> Vec<GlobalSliceMut<'_, T>>;
}

/// The tensors of a team's ranks, in order, which a team kernel reads as
/// `Peers<TensorMap<Tile<..>>>`, or each rank its own as `TensorMap<Tile<..>>`. They have `N`
/// dimensions and elements of `T`.
#[diagnostic::on_unimplemented(
    message = "this parameter takes the tensors of all ranks, of {N} dimensions with elements of `{T}`, not `{Self}`",
    label = "pass `&SymmetricTensor<{T}, {N}>`, or a slice with a `&DeviceTensor<{T}, {N}>` or `TensorView<{T}, {N}>` of each rank"
)]
pub trait PeerMapArg<T: Scalar, const N: usize> {
    /// Returns each rank's tensor, with the options of its map.
    fn views(&self) -> Vec<(TensorView<'_, T, N>, MapOptions)>;
}

/// The tensors of a team's ranks, in order, which a team kernel writes through tensor maps.
#[diagnostic::on_unimplemented(
    message = "TMA0301: the kernel writes these tensors of {N} dimensions with elements of `{T}`, so they cannot be passed as `{Self}`",
    label = "pass `&mut SymmetricTensor<{T}, {N}>`, or a `&mut` slice with a `&mut DeviceTensor<{T}, {N}>` or `TensorViewMut<{T}, {N}>` of each rank"
)]
pub trait PeerMapArgMut<T: Scalar, const N: usize> {
    /// Returns each rank's tensor, borrowed mutably, with the options of its map.
    fn views_mut(&mut self) -> Vec<(TensorViewMut<'_, T, N>, MapOptions)>;
}

/// Implements the traits for slices and arrays of arguments of a single device.
macro_rules! of_each {
    ($([$($count:tt)*] $all:ty;)+) => { $(
        impl<T: Scalar, A: GlobalArg<T> $($count)*> PeerGlobalArg<T> for &$all {
            fn slices(&self) -> Vec<GlobalSlice<'_, T>> {
                self.iter().map(GlobalArg::slice).collect()
            }
        }

        impl<T: Scalar, A: GlobalArgMut<T> $($count)*> PeerGlobalArgMut<T> for &mut $all {
            fn slices_mut(&mut self) -> Vec<GlobalSliceMut<'_, T>> {
                self.iter_mut().map(GlobalArgMut::slice_mut).collect()
            }
        }

        impl<T: Scalar, const N: usize, A: MapArg<T, N> $($count)*> PeerMapArg<T, N> for &$all {
            fn views(&self) -> Vec<(TensorView<'_, T, N>, MapOptions)> {
                self.iter().map(|one| (one.view(), one.options())).collect()
            }
        }

        impl<T: Scalar, const N: usize, A: MapArgMut<T, N> $($count)*> PeerMapArgMut<T, N> for &mut $all {
            fn views_mut(&mut self) -> Vec<(TensorViewMut<'_, T, N>, MapOptions)> {
                let each = self.iter_mut().map(|one| {
                    let options = one.options();
                    (one.view_mut(), options)
                });
                each.collect()
            }
        }
    )+ };
}

of_each! {
    [] [A];
    [, const RANKS: usize] [A; RANKS];
}

impl<T: Scalar, const N: usize> PeerGlobalArg<T> for &SymmetricTensor<T, N> {
    fn slices(&self) -> Vec<GlobalSlice<'_, T>> {
        SymmetricTensor::views(self).map(GlobalSlice::new).collect()
    }
}

impl<T: Scalar, const N: usize> PeerGlobalArgMut<T> for &mut SymmetricTensor<T, N> {
    fn slices_mut(&mut self) -> Vec<GlobalSliceMut<'_, T>> {
        SymmetricTensor::views_mut(self).map(GlobalSliceMut::new).collect()
    }
}

impl<T: Scalar, const N: usize> PeerMapArg<T, N> for &SymmetricTensor<T, N> {
    fn views(&self) -> Vec<(TensorView<'_, T, N>, MapOptions)> {
        SymmetricTensor::views(self).map(|view| (view, MapOptions::default())).collect()
    }
}

impl<T: Scalar, const N: usize> PeerMapArgMut<T, N> for &mut SymmetricTensor<T, N> {
    fn views_mut(&mut self) -> Vec<(TensorViewMut<'_, T, N>, MapOptions)> {
        SymmetricTensor::views_mut(self).map(|view| (view, MapOptions::default())).collect()
    }
}

/// An argument of a launch on a team. The functions are named for the parameter that it is for.
#[derive(Debug)]
pub struct TeamArg<'a> {
    /// The arguments of the ranks, or the one of all.
    parts: Vec<Arg<'a>>,
    use_of_parts: UseOfParts,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum UseOfParts {
    /// Every rank takes the only one.
    Same,
    /// Each rank takes its own.
    Own,
    /// Every rank takes all of them.
    All,
}

impl<'a> TeamArg<'a> {
    /// Passes a number, the same to each rank.
    pub fn scalar<T: Scalar>(value: T) -> Self {
        Self { parts: vec![Arg::scalar(value)], use_of_parts: UseOfParts::Same }
    }

    /// Passes the tensors of all ranks to a `Peers<Global>` that the kernel only reads.
    pub fn peer_globals<T: Scalar>(tensors: &'a impl PeerGlobalArg<T>) -> Self {
        Self { use_of_parts: UseOfParts::All, ..Self::globals(tensors) }
    }

    /// Passes the tensors of all ranks to a `Peers<Global>` that the kernel writes.
    pub fn peer_globals_mut<T: Scalar>(tensors: &'a mut impl PeerGlobalArgMut<T>) -> Self {
        Self { use_of_parts: UseOfParts::All, ..Self::globals_mut(tensors) }
    }

    /// Passes the tensors of all ranks to a `Peers<TensorMap>` that the kernel only reads.
    pub fn peer_maps<T: Scalar, const N: usize>(tensors: &'a impl PeerMapArg<T, N>) -> Self {
        Self { use_of_parts: UseOfParts::All, ..Self::maps(tensors) }
    }

    /// Passes the tensors of all ranks to a `Peers<TensorMap>` that the kernel writes.
    pub fn peer_maps_mut<T: Scalar, const N: usize>(tensors: &'a mut impl PeerMapArgMut<T, N>) -> Self {
        Self { use_of_parts: UseOfParts::All, ..Self::maps_mut(tensors) }
    }

    /// Passes each rank its tensor, to a `Global` that the kernel only reads.
    pub fn globals<T: Scalar>(tensors: &'a impl PeerGlobalArg<T>) -> Self {
        Self::own(tensors.slices().into_iter().map(Arg::global))
    }

    /// Passes each rank its tensor, to a `Global` that the kernel writes.
    pub fn globals_mut<T: Scalar>(tensors: &'a mut impl PeerGlobalArgMut<T>) -> Self {
        Self::own(tensors.slices_mut().into_iter().map(Arg::global_mut))
    }

    /// Passes each rank its tensor, or nothing, to an `Option<Global>` that the kernel only reads.
    pub fn optional_globals<T: Scalar>(tensors: Option<&'a impl PeerGlobalArg<T>>) -> Self {
        tensors.map_or_else(Self::nothing::<T>, Self::globals)
    }

    /// Passes each rank its tensor, or nothing, to an `Option<Global>` that the kernel writes.
    pub fn optional_globals_mut<T: Scalar>(tensors: Option<&'a mut impl PeerGlobalArgMut<T>>) -> Self {
        tensors.map_or_else(Self::nothing::<T>, Self::globals_mut)
    }

    /// Passes each rank its tensor, to a `TensorMap` that the kernel only reads.
    pub fn maps<T: Scalar, const N: usize>(tensors: &'a impl PeerMapArg<T, N>) -> Self {
        Self::own(tensors.views().into_iter().map(|(view, options)| Arg::map(view).with(options)))
    }

    /// Passes each rank its tensor, to a `TensorMap` that the kernel writes.
    pub fn maps_mut<T: Scalar, const N: usize>(tensors: &'a mut impl PeerMapArgMut<T, N>) -> Self {
        Self::own(tensors.views_mut().into_iter().map(|(view, options)| Arg::map_mut(view).with(options)))
    }

    /// Passes each rank its tensor, to an `Im2colMap` that the kernel only reads.
    pub fn columns<T: Scalar, const N: usize>(tensors: &'a [impl Im2colArg<T, N>]) -> Self {
        Self::own(tensors.iter().map(|one| Arg::map(one.view()).with(one.options())))
    }

    /// Passes each rank its tensor, to an `Im2colMap` that the kernel writes.
    pub fn columns_mut<T: Scalar, const N: usize>(tensors: &'a mut [impl Im2colArgMut<T, N>]) -> Self {
        Self::own(tensors.iter_mut().map(|one| {
            let options = one.options();
            Arg::map_mut(one.view_mut()).with(options)
        }))
    }

    /// Passes each rank the memory for the maps that it makes, to a `Maps`.
    pub fn workspaces(workspaces: &'a mut [crate::launch::MapWorkspace]) -> Self {
        Self::own(workspaces.iter_mut().map(|workspace| Arg::global_mut(workspace.slice_mut())))
    }

    /// Passes the same argument to each rank.
    pub(crate) fn of_all(arg: &'a Arg<'_>) -> Self {
        Self { parts: vec![arg.again()], use_of_parts: UseOfParts::Same }
    }

    /// Returns the same argument, for the launch that this one is for.
    pub(crate) fn again(&self) -> TeamArg<'_> {
        let parts = self.parts.iter().map(Arg::again).collect();
        TeamArg { parts, use_of_parts: self.use_of_parts }
    }

    fn nothing<T: Scalar>() -> Self {
        Self { parts: vec![Arg::optional::<T>(None)], use_of_parts: UseOfParts::Same }
    }

    fn own(parts: impl Iterator<Item = Arg<'a>>) -> Self {
        Self { parts: parts.collect(), use_of_parts: UseOfParts::Own }
    }

    /// Returns the number of ranks with a tensor, or `None` for what all ranks share.
    pub(crate) fn ranks(&self) -> Option<usize> {
        match self.use_of_parts {
            UseOfParts::Same => None,
            UseOfParts::Own | UseOfParts::All => Some(self.parts.len()),
        }
    }

    /// Returns the arguments of the ranks, in order, or the one of all.
    pub(crate) fn parts(&self) -> &[Arg<'a>] {
        &self.parts
    }

    /// Returns the devices of the tensors, in order.
    pub(crate) fn devices(&self) -> impl Iterator<Item = Option<DeviceId>> {
        self.parts.iter().map(|part| part.as_ref().device())
    }

    /// Returns the device of the tensor that a rank takes.
    pub(crate) fn device_of_rank(&self, rank: usize) -> Option<DeviceId> {
        let index = match self.use_of_parts {
            UseOfParts::Same => 0,
            UseOfParts::Own | UseOfParts::All => rank,
        };
        self.parts.get(index).and_then(|part| part.as_ref().device())
    }

    /// Returns the argument of a rank for this parameter.
    ///
    /// # Errors
    ///
    /// [`TeamError::Tensors`] if there is no tensor of the rank, and [`TeamError::Unlike`].
    pub(crate) fn of_rank(
        &self,
        kernel: &'static str,
        param: &ParamSpec,
        rank: usize,
    ) -> Result<Arg<'_>, Error> {
        let tensor = param.name;
        let found = self.parts.len();
        let none = || TeamError::Tensors { kernel, tensor, found, ranks: rank + 1 };
        match self.use_of_parts {
            UseOfParts::Same => self.parts.first().map(Arg::again).ok_or_else(|| none().into()),
            UseOfParts::Own => self.parts.get(rank).map(Arg::again).ok_or_else(|| none().into()),
            UseOfParts::All => {
                let parts: Vec<Argument> = self.parts.iter().map(|part| *part.as_ref()).collect();
                match Argument::of_ranks(&parts) {
                    Ok(joined) => joined.map(Arg::of_ranks).ok_or_else(|| none().into()),
                    Err(Unlike(rank)) => Err(TeamError::Unlike { tensor, rank }.into()),
                }
            }
        }
    }
}
