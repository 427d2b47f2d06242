//! Kinds of launch arguments, as passed or as a parameter takes them.

use crate::spec::{MapMode, ParamKind, Scalar};

/// The kind of an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ArgumentKind {
    /// A tensor for a `TensorMap`.
    TensorMap {
        /// The element's type.
        element: Scalar,
    },
    /// A tensor and the selection of its pixels that form columns, for an `Im2colMap`.
    Im2colMap {
        /// The element's type.
        element: Scalar,
    },
    /// A tensor for a `Global`.
    Global {
        /// The element's type.
        element: Scalar,
    },
    /// The tensors of all ranks for a `Peers<TensorMap>`.
    PeerMaps {
        /// The element's type.
        element: Scalar,
    },
    /// The tensors of all ranks for a `Peers<Global>`.
    PeerGlobals {
        /// The element's type.
        element: Scalar,
    },
    /// A scalar.
    Scalar {
        /// The scalar's size in bytes.
        bytes: u32,
    },
}

impl From<&ParamKind> for ArgumentKind {
    fn from(kind: &ParamKind) -> Self {
        match *kind {
            ParamKind::Map(map) => match map.mode {
                MapMode::Tiled => Self::TensorMap { element: map.element },
                MapMode::Im2col { .. } => Self::Im2colMap { element: map.element },
            },
            ParamKind::Global { element, .. } => Self::Global { element },
            ParamKind::PeerMaps(map) => Self::PeerMaps { element: map.element },
            ParamKind::PeerGlobals { element, .. } => Self::PeerGlobals { element },
            ParamKind::Scalar { bytes } => Self::Scalar { bytes },
        }
    }
}
