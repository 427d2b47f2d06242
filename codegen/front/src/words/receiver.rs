//! Receivers: how methods take them, and their properties that the shapes of arguments depend on.

use super::*;
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

/// Returns the types that have a method of this name, with how it takes its receiver.
pub fn receivers(name: &str) -> Vec<(TypeWord, ReceiverKind)> {
    fn of<W: Word>(name: &str) -> Option<ReceiverKind> {
        W::named(name).map(|word| word.signature().taken())
    }
    let scalars = TypeWord::all().into_iter().filter(|of| matches!(of, TypeWord::Scalar(_)));
    let on_remote =
        [TileWord::named(name).map(Word::signature), BarrierWord::named(name).map(Word::signature)];
    let on_remote = on_remote.into_iter().flatten().find(|signature| signature.has(Mark::Remote));
    let on_peer = GlobalWord::named(name).map(Word::signature).filter(|signature| signature.has(Mark::Peer));
    let types = [
        (TypeWord::Tile, of::<TileWord>(name)),
        (TypeWord::SharedArray, of::<ArrayWord>(name)),
        (TypeWord::Stages, of::<StagesWord>(name)),
        (TypeWord::Barrier, of::<BarrierWord>(name)),
        (TypeWord::Remote, on_remote.map(Signature::taken)),
        (TypeWord::TensorMap, of::<MapWord>(name)),
        (TypeWord::Im2colMap, of::<ColumnWord>(name)),
        (TypeWord::Maps, of::<MapsWord>(name)),
        (TypeWord::SharedMap, of::<SharedMapWord>(name)),
        (TypeWord::Global, of::<GlobalWord>(name)),
        (TypeWord::Peers, of::<PeersWord>(name)),
        (TypeWord::Peer, on_peer.map(Signature::taken)),
        (TypeWord::Phase, of::<PhaseWord>(name)),
        (TypeWord::Pipeline, of::<PipelineWord>(name)),
        (TypeWord::Producer, of::<ProducerWord>(name)),
        (TypeWord::Consumer, of::<ConsumerWord>(name)),
        (TypeWord::EmptySlot, of::<EmptySlotWord>(name)),
        (TypeWord::LoadingSlot, of::<LoadingSlotWord>(name)),
        (TypeWord::FullSlot, of::<FullSlotWord>(name)),
        (TypeWord::Columns, of::<ColumnsWord>(name)),
        (TypeWord::Flight, of::<FlightWord>(name)),
        (TypeWord::Accumulator, of::<AccumulatorWord>(name)),
        (TypeWord::WarpAccumulator, of::<WarpAccumulatorWord>(name)),
        (TypeWord::Rows, of::<RowsWord>(name)),
        (TypeWord::WarpRows, of::<WarpRowsWord>(name)),
        (TypeWord::Fragment, of::<FragmentWord>(name)),
    ];
    let scalars = scalars.map(|scalar| (scalar, of::<NumberWord>(name)));
    types.into_iter().chain(scalars).filter_map(|(of, taken)| Some((of, taken?))).collect()
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
