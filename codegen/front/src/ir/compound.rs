//! Values of several parts. `parse` splits them: a finished kernel contains none.

use std::fmt;

use super::{AccumulatorType, FragmentType, OperandType, Scalar, TileSwizzle, TileType, Type};

/// The type of a compound value. Its parts are the operands of an
/// [`ExprKind::Compound`](super::ExprKind::Compound).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Compound {
    /// A phase of a barrier. Parts: the parity.
    Phase,
    /// A pipeline. Parts: the `Stages` of each tile, of the full barriers and of the empty
    /// barriers.
    Pipeline(Ring),
    /// The next stage to fill. Parts: those of the pipeline, the stage index, and the parity of its
    /// empty barrier.
    Producer(Ring),
    /// The next stage to read. Parts: those of the pipeline, the stage index, and the parity of its
    /// full barrier.
    Consumer(Ring),
    /// A stage that is empty. Parts: those of the pipeline, and the stage index.
    EmptySlot(Vec<TileType>),
    /// A stage whose bytes have been announced. Parts: those of the pipeline, and the stage index.
    LoadingSlot(Vec<TileType>),
    /// A stage that may be read. Parts: those of the pipeline, and the stage index.
    FullSlot(Vec<TileType>),
    /// A tile as a transposed or negated operand of a multiplication. Parts: the tile.
    Operand(OperandType),
    /// A fragment as a sparse left operand, with twice as many columns of which half are stored.
    /// Parts: the fragment, and the metadata that selects the columns.
    SparseFragment(FragmentType),
    /// Some columns of an accumulator, as an accumulator of that many columns. Parts: the
    /// accumulator, and the first column.
    Columns(AccumulatorType),
    /// A matrix in a slice of such elements. Parts: the slice, the first element, rows, columns,
    /// and the distance between rows in elements.
    Matrix(Scalar),
    /// A slice that a launch may leave out: `Option<Global<T>>`. Parts: the slice, and whether it
    /// is there.
    Option(Scalar),
    /// A multiplication in flight. Parts: the accumulator, and the parts of the value that is kept
    /// until the multiplication completes.
    Flight(AccumulatorType, Box<Type>),
    /// A struct of the module. Parts: its fields, in the order of their declaration.
    Struct(StructType),
    /// A tuple. Parts: its elements.
    Tuple(Vec<Type>),
    /// An array of structs or tuples. Parts: its elements.
    Array(Box<Type>, u32),
}

/// A struct that a module declares.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct StructType {
    /// The module that declares it: 0 for the kernel's own, otherwise one that it imports from.
    pub module: u32,
    /// The name of the struct. No two structs of a module have the same.
    pub name: String,
    /// The arguments of its generics.
    pub arguments: Vec<GenericValue>,
    /// The fields, in the order of their declaration.
    pub fields: Vec<Field>,
}

/// The argument of a generic of a struct or a device function.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum GenericValue {
    /// A type of values, which may not be known yet.
    Type(Type),
    /// The shape of a tile.
    Shape(Vec<u32>),
    /// The swizzle of a tile.
    Swizzle(TileSwizzle),
    /// An integer.
    Integer(i128),
    /// A `bool`.
    Bool(bool),
}

/// A field of a struct.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Field {
    /// The name, or the position in a tuple struct.
    pub name: String,
    /// The type.
    pub ty: Type,
}

/// The shape of a pipeline's ring of stages.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Ring {
    /// The tiles of each stage.
    pub tiles: Vec<TileType>,
    /// The number of stages.
    pub stages: u32,
}

impl Compound {
    /// Returns the tiles that a slot has as fields: `slot.0`.
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
            | Self::Option(_)
            | Self::Flight(..)
            | Self::Struct(_)
            | Self::Tuple(_)
            | Self::Array(..) => &[],
        }
    }

    /// Returns the types of the parts of a struct or tuple, or of an array of these; `None` for
    /// other types.
    pub fn members(&self) -> Option<Vec<&Type>> {
        match self {
            Self::Struct(of) => Some(of.fields.iter().map(|field| &field.ty).collect()),
            Self::Tuple(elements) => Some(elements.iter().collect()),
            Self::Array(element, len) => Some(vec![&**element; *len as usize]),
            Self::Phase | Self::Pipeline(_) | Self::Producer(_) | Self::Consumer(_) => None,
            Self::EmptySlot(_) | Self::LoadingSlot(_) | Self::FullSlot(_) => None,
            Self::Operand(_)
            | Self::SparseFragment(_)
            | Self::Columns(_)
            | Self::Matrix(_)
            | Self::Option(_)
            | Self::Flight(..) => None,
        }
    }

    /// Returns the names of the parts of a struct or tuple.
    pub fn member_names(&self) -> Vec<String> {
        if let Self::Struct(of) = self {
            return of.fields.iter().map(|field| field.name.clone()).collect();
        }
        (0..self.members().map_or(0, |members| members.len())).map(|i| i.to_string()).collect()
    }

    /// Returns the position of a field of a struct or tuple.
    pub fn position_of(&self, name: &str) -> Option<usize> {
        match self {
            Self::Struct(of) => of.fields.iter().position(|field| field.name == name),
            Self::Tuple(elements) => {
                // `t.01` is not a field.
                let index = name.parse::<usize>().ok().filter(|index| index.to_string() == name);
                index.filter(|&index| index < elements.len())
            }
            Self::Phase | Self::Pipeline(_) | Self::Producer(_) | Self::Consumer(_) => None,
            Self::EmptySlot(_) | Self::LoadingSlot(_) | Self::FullSlot(_) => None,
            Self::Operand(_)
            | Self::SparseFragment(_)
            | Self::Columns(_)
            | Self::Matrix(_)
            | Self::Option(_)
            | Self::Flight(..)
            | Self::Array(..) => None,
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
            Self::EmptySlot(tiles) => write!(f, "EmptySlot<{}>", TupleOf(tiles)),
            Self::LoadingSlot(tiles) => write!(f, "LoadingSlot<{}>", TupleOf(tiles)),
            Self::FullSlot(tiles) => write!(f, "FullSlot<{}>", TupleOf(tiles)),
            Self::Operand(operand) => operand.fmt(f),
            Self::SparseFragment(fragment) => {
                write!(f, "Sparse<{fragment}, {}>", fragment.columns.saturating_mul(2))
            }
            Self::Columns(part) => {
                write!(f, "Columns<{}, {}, {}>", part.element, part.rows, part.columns)
            }
            Self::Matrix(element) => write!(f, "GlobalMatrix<{element}>"),
            Self::Option(element) => write!(f, "Option<Global<{element}>>"),
            Self::Flight(of, keep) => {
                write!(f, "Flight<{}, {}, {}, {keep}>", of.element, of.rows, of.columns)
            }
            Self::Struct(of) => of.fmt(f),
            Self::Tuple(elements) => TupleOf(elements).fmt(f),
            Self::Array(element, len) => write!(f, "[{element}; {len}]"),
        }
    }
}

impl fmt::Display for StructType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        if self.arguments.is_empty() {
            return Ok(());
        }
        let arguments: Vec<_> = self.arguments.iter().map(GenericValue::to_string).collect();
        write!(f, "<{}>", arguments.join(", "))
    }
}

impl fmt::Display for GenericValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Type(ty) => ty.fmt(f),
            Self::Shape(extents) => {
                let shown: Vec<_> = extents.iter().map(u32::to_string).collect();
                write!(f, "Shape{}<{}>", extents.len(), shown.join(", "))
            }
            Self::Swizzle(swizzle) => f.write_str(swizzle.name()),
            Self::Integer(value) => value.fmt(f),
            Self::Bool(value) => value.fmt(f),
        }
    }
}

impl fmt::Display for Ring {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {}", TupleOf(&self.tiles), self.stages)
    }
}

/// Types in the syntax of a tuple, with a trailing comma for a single one.
struct TupleOf<'a, T>(&'a [T]);

impl<T: fmt::Display> fmt::Display for TupleOf<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.0.iter().map(T::to_string).collect();
        write!(f, "({}{})", names.join(", "), if names.len() == 1 { "," } else { "" })
    }
}
