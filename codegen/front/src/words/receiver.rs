//! Receivers: how methods take them, and their properties that the shapes of arguments depend on.

use super::{Mark, NumberWord, Signature};
use crate::ir::{self, Span};

/// A value or a reference to one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReceiverKind {
    /// `self`.
    Value,
    /// `&self`.
    Reference,
    /// `&mut self`.
    MutReference,
}

impl Signature {
    /// Returns how the method takes its receiver.
    pub(crate) fn taken(&self) -> ReceiverKind {
        match (self.has(Mark::ByRef), self.has(Mark::ByMut)) {
            (_, true) => ReceiverKind::MutReference,
            (true, false) => ReceiverKind::Reference,
            (false, false) => ReceiverKind::Value,
        }
    }
}

impl NumberWord {
    /// Whether [`Ord`] has a method of this name.
    pub fn is_of_ord(self) -> bool {
        match self {
            Self::Min | Self::Max | Self::Clamp => true,
            Self::Abs
            | Self::MulAdd
            | Self::Sqrt
            | Self::Recip
            | Self::CopySign
            | Self::Powi
            | Self::WrappingAdd
            | Self::WrappingSub
            | Self::WrappingMul
            | Self::WrappingNeg
            | Self::WrappingShl
            | Self::WrappingShr
            | Self::SaturatingAdd
            | Self::SaturatingSub
            | Self::SaturatingMul
            | Self::AbsDiff
            | Self::Pow
            | Self::Ilog2
            | Self::IsPowerOfTwo
            | Self::NextMultipleOf
            | Self::DivCeil
            | Self::CountOnes
            | Self::CountZeros
            | Self::LeadingZeros
            | Self::LeadingOnes
            | Self::TrailingZeros
            | Self::TrailingOnes
            | Self::ReverseBits
            | Self::SwapBytes
            | Self::RotateLeft
            | Self::RotateRight
            | Self::ToF32
            | Self::ToF64
            | Self::ToBits => false,
        }
    }
}

/// A type with elements of one type.
pub(crate) trait Elements {
    fn element(&self) -> ir::Scalar;
}

/// A type with dimensions.
pub(crate) trait Dimensions {
    fn rank(&self) -> usize;
}

impl Elements for ir::Scalar {
    fn element(&self) -> ir::Scalar {
        *self
    }
}

impl Elements for ir::TileType {
    fn element(&self) -> ir::Scalar {
        self.element
    }
}

impl Dimensions for ir::TileType {
    fn rank(&self) -> usize {
        self.rank()
    }
}

/// The type of a tensor map, and the parameter that has it.
pub struct MapType {
    /// The parameter's name.
    pub(crate) name: String,
    /// The span of the parameter's type.
    pub(crate) ty_span: Span,
    pub(crate) tile: ir::TileType,
    /// The number of dimensions of the tensor, and of its coordinates.
    pub(crate) rank: usize,
}

impl Dimensions for MapType {
    fn rank(&self) -> usize {
        self.rank
    }
}
