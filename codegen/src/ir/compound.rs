//! Values of several parts, which `parse` takes apart: nothing of a finished kernel is one.

use std::fmt;

use super::{AccumulatorType, FragmentType, OperandType, Scalar, TileType, Type};

/// What a compound value is. Its parts are the operands of an
/// [`ExprKind::Compound`](super::ExprKind::Compound).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Compound {
    /// A phase of a barrier: its parity.
    Phase,
    /// The tiles and barriers of a pipeline: `Stages` of each tile, of the full and of the empty
    /// barriers.
    Pipeline(Ring),
    /// The next stage to fill: the pipeline's parts, the stage's number, and the parity of its
    /// empty barrier.
    Producer(Ring),
    /// The next stage to read: the pipeline's parts, the stage's number, and the parity of its full
    /// barrier.
    Consumer(Ring),
    /// A stage that is empty: the pipeline's parts, and its number.
    EmptySlot(Vec<TileType>),
    /// A stage whose bytes are announced: the pipeline's parts, and its number.
    LoadingSlot(Vec<TileType>),
    /// A stage that may be read: the pipeline's parts, and its number.
    FullSlot(Vec<TileType>),
    /// A tile as an operand of a multiplication, transposed or negated: the tile.
    Operand(OperandType),
    /// A fragment as a left operand of twice as many columns, half of which are there: the
    /// fragment, and the metadata that tells which.
    SparseFragment(FragmentType),
    /// Some columns of an accumulator, as one of so many columns: the accumulator, and the first
    /// column.
    Columns(AccumulatorType),
    /// Rows of a slice of such elements: the slice, the first element, rows, columns, and the
    /// elements from one row to the next.
    Matrix(Scalar),
    /// A multiplication under way: the accumulator, and the parts of what it keeps.
    Flight(AccumulatorType, Box<Type>),
}

/// The stages of a pipeline.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Ring {
    /// What each stage holds.
    pub tiles: Vec<TileType>,
    /// How many stages there are.
    pub stages: u32,
}

impl Compound {
    /// The tiles that a slot has as fields: `slot.0`.
    pub fn fields(&self) -> &[TileType] {
        match self {
            Self::LoadingSlot(tiles) | Self::FullSlot(tiles) => tiles,
            Self::Phase | Self::Pipeline(_) | Self::Producer(_) | Self::Consumer(_) | Self::EmptySlot(_) => {
                &[]
            }
            Self::Operand(_)
            | Self::SparseFragment(_)
            | Self::Columns(_)
            | Self::Matrix(_)
            | Self::Flight(..) => &[],
        }
    }
}

impl fmt::Display for Compound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Phase => f.write_str("Phase"),
            Self::Pipeline(ring) => write!(f, "Pipeline<{ring}>"),
            Self::Producer(ring) => write!(f, "Producer<{ring}>"),
            Self::Consumer(ring) => write!(f, "Consumer<{ring}>"),
            Self::EmptySlot(tiles) => write!(f, "EmptySlot<{}>", Tuple(tiles)),
            Self::LoadingSlot(tiles) => write!(f, "LoadingSlot<{}>", Tuple(tiles)),
            Self::FullSlot(tiles) => write!(f, "FullSlot<{}>", Tuple(tiles)),
            Self::Operand(operand) => operand.fmt(f),
            Self::SparseFragment(fragment) => {
                write!(f, "Sparse<{fragment}, {}>", fragment.columns.saturating_mul(2))
            }
            Self::Columns(part) => {
                write!(f, "Columns<{}, {}, {}>", part.element, part.rows, part.columns)
            }
            Self::Matrix(element) => write!(f, "GlobalMatrix<{element}>"),
            Self::Flight(of, keep) => {
                write!(f, "Flight<{}, {}, {}, {keep}>", of.element, of.rows, of.columns)
            }
        }
    }
}

impl fmt::Display for Ring {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {}", Tuple(&self.tiles), self.stages)
    }
}

/// Types as a tuple is written, with the comma that makes one of a single type.
struct Tuple<'a>(&'a [TileType]);

impl fmt::Display for Tuple<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.0.iter().map(TileType::to_string).collect();
        write!(f, "({}{})", names.join(", "), if names.len() == 1 { "," } else { "" })
    }
}
