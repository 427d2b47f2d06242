//! Matches what a launch passes with the kernel's specification, in the same way for every backend:
//! arguments with parameters here, grid and options in [`shape`].
//!
//! An [`Argument`] is plain data. What it borrows is known above, to `launch::Arg`.

pub(crate) mod grid;
pub(crate) mod peers;
pub(crate) mod shape;

use crate::error::{ArgumentKind, Error};
use crate::layout::{DeviceId, Layout};
use crate::map::options::{MapOptions, MapSource};
use crate::scalar::Scalar;
use crate::spec::{KernelSpec, MapMode, MapSpec, ParamKind};
use tma_model::limits::TEAM_RANKS;

/// The value of an argument.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Argument {
    value: Value,
    /// Whether the tensor is borrowed mutably.
    mutable: bool,
}

#[derive(Clone, Copy, Debug)]
enum Value {
    Map(MapSource),
    /// `len` is `None` unless the elements are contiguous.
    Global {
        layout: Layout,
        address: u64,
        len: Option<u64>,
    },
    /// The tensors of all ranks. They differ from `source` in address and device.
    PeerMaps {
        source: MapSource,
        addresses: RankAddresses,
    },
    /// The elements of the tensors of all ranks. They differ from `layout` in address and device.
    PeerGlobals {
        layout: Layout,
        addresses: RankAddresses,
        len: Option<u64>,
    },
    /// No elements, of this type.
    Nothing(crate::spec::Scalar),
    Scalar {
        bits: u64,
        bytes: u32,
    },
}

/// The address of a tensor of each rank. The last one repeats for ranks that a team does not have.
pub(crate) type RankAddresses = [u64; TEAM_RANKS as usize];

/// The address and the length of no elements.
const NOTHING: u64 = 0;

impl Argument {
    /// Makes a tensor for a map with the default options.
    pub(crate) fn map(layout: Layout, mutable: bool) -> Self {
        Self { value: Value::Map(layout.into()), mutable }
    }

    /// Makes the elements of a tensor.
    pub(crate) fn global(layout: Layout, mutable: bool) -> Self {
        let (address, len) = (layout.address(), layout.contiguous_len());
        Self { value: Value::Global { layout, address, len }, mutable }
    }

    /// Makes an absent slice. Any kernel may get one: it has no elements to access.
    pub(crate) fn nothing<T: Scalar>() -> Self {
        Self { value: Value::Nothing(T::ELEMENT), mutable: true }
    }

    /// Makes a scalar.
    pub(crate) fn scalar<T: Scalar>(value: T) -> Self {
        Self { value: Value::Scalar { bits: value.raw_bits(), bytes: T::ELEMENT.bytes() }, mutable: false }
    }

    /// Sets the options of a tensor's map. It has no effect on other arguments.
    pub(crate) fn set_options(&mut self, options: MapOptions) {
        if let Value::Map(source) = &mut self.value {
            source.options = options;
        }
    }

    /// Returns whether the argument is a tensor or its elements.
    pub(crate) fn is_in_memory(&self) -> bool {
        match self.value {
            Value::Map(_) | Value::Global { .. } | Value::PeerMaps { .. } | Value::PeerGlobals { .. } => true,
            Value::Nothing(_) | Value::Scalar { .. } => false,
        }
    }

    /// Returns the kind of the argument.
    fn kind(&self) -> ArgumentKind {
        match &self.value {
            Value::Map(MapSource { layout, options }) if options.corners.is_some() => {
                ArgumentKind::Im2colMap { element: layout.element() }
            }
            Value::Map(source) => ArgumentKind::TensorMap { element: source.layout.element() },
            Value::Global { layout, .. } => ArgumentKind::Global { element: layout.element() },
            Value::PeerMaps { source, .. } => ArgumentKind::PeerMaps { element: source.layout.element() },
            Value::PeerGlobals { layout, .. } => ArgumentKind::PeerGlobals { element: layout.element() },
            &Value::Nothing(element) => ArgumentKind::Global { element },
            &Value::Scalar { bytes, .. } => ArgumentKind::Scalar { bytes },
        }
    }
}

/// An argument that fits its parameter.
#[derive(Debug)]
pub(crate) enum Bound<'a> {
    /// One PTX parameter: a tensor map. [`map_params`](crate::map::map_params) has not checked it
    /// yet.
    Map {
        /// The parameter's name.
        tensor: &'static str,
        /// The box.
        spec: &'static MapSpec,
        /// The tensor and the options of its map.
        source: &'a MapSource,
    },
    /// Two PTX parameters.
    Global {
        /// The address of the first element.
        address: &'a u64,
        /// The number of elements.
        len: &'a u64,
    },
    /// One PTX parameter: a tensor map of each rank.
    PeerMaps {
        /// The parameter's name.
        tensor: &'static str,
        /// The box.
        spec: &'static MapSpec,
        /// The tensors, and the options of their maps.
        sources: PeerSources<'a>,
    },
    /// Two PTX parameters.
    PeerGlobals {
        /// The addresses of the first elements of the ranks' slices.
        addresses: &'a RankAddresses,
        /// The number of elements of each.
        len: &'a u64,
    },
    /// One PTX parameter.
    Scalar {
        /// The value, zero-extended. The kernel declares its size in bytes.
        bits: &'a u64,
    },
}

/// Matches arguments with parameters, and calls `visit` once for each parameter, in order.
///
/// # Errors
///
/// [`Error::ArgumentCount`], [`Error::ArgumentMismatch`], [`Error::OtherDevice`],
/// [`Error::ElementMismatch`], [`Error::NotContiguous`], [`Error::MisalignedGlobal`],
/// [`Error::NotMutable`], and those of `visit`.
pub(crate) fn bind<'a>(
    device: DeviceId,
    spec: &'static KernelSpec,
    args: &'a [impl AsRef<Argument>],
    mut visit: impl FnMut(Bound<'a>) -> Result<(), Error>,
) -> Result<(), Error> {
    if args.len() != spec.params.len() {
        let (found, wanted) = (args.len(), spec.params.len());
        return Err(Error::ArgumentCount { kernel: spec.name, found, wanted });
    }
    for (param, arg) in spec.params.iter().zip(args) {
        let (tensor, arg) = (param.name, arg.as_ref());
        let bound = match (&param.kind, &arg.value) {
            (ParamKind::Map(spec), Value::Map(source))
                if matches!(spec.mode, MapMode::Im2col { .. }) == source.options.corners.is_some() =>
            {
                same_device(tensor, source.layout.device(), device)?;
                Bound::Map { tensor, spec, source }
            }
            (
                &ParamKind::Global { element: wanted, alignment, .. },
                Value::Global { layout, address, len },
            ) => {
                same_device(tensor, layout.device(), device)?;
                match (layout.element(), len) {
                    (found, _) if found != wanted => {
                        return Err(Error::ElementMismatch { tensor, found, wanted });
                    }
                    (_, None) => return Err(Error::NotContiguous { tensor }),
                    (_, Some(_)) if !address.is_multiple_of(u64::from(alignment)) => {
                        return Err(Error::MisalignedGlobal { tensor, address: *address, alignment });
                    }
                    (_, Some(len)) => Bound::Global { address, len },
                }
            }
            (&ParamKind::Global { element: wanted, .. }, &Value::Nothing(found)) if found == wanted => {
                Bound::Global { address: &NOTHING, len: &NOTHING }
            }
            (&ParamKind::Global { element: wanted, .. }, &Value::Nothing(found)) => {
                return Err(Error::ElementMismatch { tensor, found, wanted });
            }
            (ParamKind::PeerMaps(spec), Value::PeerMaps { source, addresses }) => {
                Bound::PeerMaps { tensor, spec, sources: PeerSources { source, addresses } }
            }
            (
                &ParamKind::PeerGlobals { element: wanted, alignment, .. },
                Value::PeerGlobals { layout, addresses, len },
            ) => {
                let misaligned = addresses.iter().find(|one| !one.is_multiple_of(u64::from(alignment)));
                match (layout.element(), len, misaligned) {
                    (found, ..) if found != wanted => {
                        return Err(Error::ElementMismatch { tensor, found, wanted });
                    }
                    (_, None, _) => return Err(Error::NotContiguous { tensor }),
                    (_, Some(_), Some(&address)) => {
                        return Err(Error::MisalignedGlobal { tensor, address, alignment });
                    }
                    (_, Some(len), None) => Bound::PeerGlobals { addresses, len },
                }
            }
            (ParamKind::Scalar { bytes: wanted }, Value::Scalar { bits, bytes }) if bytes == wanted => {
                Bound::Scalar { bits }
            }
            (kind, _) => {
                let (found, wanted) = (arg.kind(), kind.into());
                return Err(Error::ArgumentMismatch { kernel: spec.name, parameter: tensor, found, wanted });
            }
        };
        if param.kind.written() && !arg.mutable {
            return Err(Error::NotMutable { kernel: spec.name, tensor });
        }
        visit(bound)?;
    }
    Ok(())
}

/// The tensors of all ranks for a map of each.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PeerSources<'a> {
    source: &'a MapSource,
    addresses: &'a RankAddresses,
}

impl PeerSources<'_> {
    /// Returns the tensor of each rank with the options of its map.
    pub(crate) fn each(&self) -> [MapSource; TEAM_RANKS as usize] {
        self.addresses.map(|address| MapSource { layout: self.source.layout.at(address), ..*self.source })
    }
}

/// Checks that `found`, the device of `what`, is `wanted`.
pub(crate) fn same_device(what: &'static str, found: DeviceId, wanted: DeviceId) -> Result<(), Error> {
    if found == wanted { Ok(()) } else { Err(Error::OtherDevice { what, found, wanted }) }
}

#[cfg(test)]
mod tests;
