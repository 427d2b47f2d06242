//! Types as they are spelled in the source, and values of structs and tuples.

use crate::diag::lists::{PARAMETERS, SHARED, VALUES};
use crate::diag::suggest::Suggestion;
use crate::diag::text::Text;
use crate::diag::wording::{counted, listed};
use crate::diag::{Code, PartialType};
use crate::ir::{Compound, Scalar, Type};
use crate::limits::REGISTER_ARRAY_ELEMENTS;

/// A type that kernels do not support, or not in this position.
#[derive(Clone, Debug)]
pub enum Types {
    /// A type without a more specific message.
    Unknown,
    /// A form of type that kernels do not have.
    Form,
    /// An `Option` of anything but a slice.
    Option,
    /// An unknown name of a type.
    Name { name: String, suggestion: Option<Suggestion> },
    /// Elements that a register array cannot have.
    ArrayElement(PartialType),
    /// A length of a register array that exceeds the range of indices.
    ArrayLength(i128),
    /// A register array with too many elements.
    LargeArray(u64),
    /// A type that `Stages` cannot contain.
    Stages(PartialType),
    /// A type that blocks cannot share.
    Remote(PartialType),
    /// Peers of something that no rank has memory of.
    Peers(PartialType),
    /// A peer's something other than a slice.
    Peer(PartialType),
    /// Not a tile's shape.
    Shape,
    /// A tile without a shape, which may have extents.
    NoShape { element: String, extents: Vec<String>, swizzle: Option<String> },
    /// Not a layout of a tile's rows.
    Swizzle,
    /// Not a type, where one is expected.
    NoType,
    /// Not a scalar, where one is expected. As an element, one of so many.
    NoScalar { found: PartialType, count: Option<u32> },
    /// Not a scalar, as the argument of a generic in the instances of a kernel.
    Listed(String),
    /// Not a constant, as a generic argument of a type.
    NoConstant,
    /// A constant in a type that is computed from a generic.
    ComputedFromGeneric { expr: String, generic: String, ty: String, owner: GenericOwner },
    /// The suffix of a literal.
    Literal { suffix: String },
    /// A target of `cast` that is not a type.
    Cast,
    /// `size_of` without a type, or of something other than a scalar.
    SizeOf(Option<PartialType>),
    /// A type that a map of this name cannot move.
    Moved { map: String, found: PartialType },
    /// An im2col map with an unsupported rank.
    Im2colRank(i128),
    /// A type that an im2col map cannot move.
    Im2colTile { found: PartialType, rank: i128 },
    /// A type that cannot be a transposed, sparse or negated operand.
    Operand { word: &'static str, found: PartialType },
    /// A sparse operand whose columns do not match those of its tile or fragment.
    SparseDepth { of: Type, columns: u32 },
}

/// The item that has a generic.
#[derive(Clone, Debug)]
pub enum GenericOwner {
    /// The kernel.
    Kernel,
    /// The device function or type alias of this name.
    Other(String),
}

impl Types {
    pub(super) fn text(&self) -> Text {
        match self {
            Self::Unknown => Text::new(Code::UnsupportedType, "this type is not supported in kernels"),
            Self::Option => Text::new(Code::UnsupportedType, "only a `Global` can be optional in kernels")
                .help("write `Option<Global<T>>`, or use a `bool` beside the value"),
            Self::Form => Text::new(Code::UnsupportedType, "this type is not supported in kernels")
                .help(format!("use {VALUES}; in shared memory {SHARED}; as parameters {PARAMETERS}")),
            Self::Name { name, suggestion } => {
                Text::new(Code::UnsupportedType, format!("`{name}` is not a type of the kernel language"))
                    .help(match suggestion {
                        Some(suggestion) => suggestion.to_string(),
                        None => "use a type of the kernel language, or a struct or an alias in the same \
                         `#[tma_module]`"
                            .to_owned(),
                    })
            }
            Self::ArrayElement(found) => Text::new(
                Code::UnsupportedType,
                format!("register arrays must hold scalars or structs, not {found}"),
            )
            .help("use `Stages<_, N>` for objects in shared memory"),
            Self::ArrayLength(len) => {
                Text::new(Code::LiteralRange, format!("a register array cannot have {len} elements"))
            }
            Self::LargeArray(elements) => {
                let message = format!(
                    "a register array has at most {REGISTER_ARRAY_ELEMENTS} elements, not {elements}"
                );
                Text::new(Code::UnsupportedType, message)
                    .help("use shared memory, `SharedArray<T, N>`, or a `Global<T>`")
            }
            Self::Stages(found) => Text::new(
                Code::UnsupportedType,
                format!("`Stages` must hold objects in shared memory, not {found}"),
            )
            .help("use `Stages<Tile<..>, N>`, `Stages<Barrier, N>` or `Stages<SharedArray<..>, N>`"),
            Self::Remote(found) => Text::new(
                Code::UnsupportedType,
                format!("`Remote` must hold an object in shared memory, not {found}"),
            )
            .help(
                "use `Remote<Tile<..>>`, `Remote<Barrier>`, `Remote<SharedArray<..>>`, or `Remote` of \
                 `Stages` of these",
            ),
            Self::Peers(found) => Text::new(
                Code::UnsupportedType,
                format!("`Peers` must be of a slice or a tensor map, not {found}"),
            )
            .help("use `Peers<Global<T>>` or `Peers<TensorMap<Tile<..>>>`"),
            Self::Peer(found) => {
                Text::new(Code::UnsupportedType, format!("`Peer` must be of a slice, not {found}"))
                    .help("use `Peer<Global<T>>`; the map of a rank is a `TensorMap<Tile<..>>`")
            }
            Self::Shape => Text::new(Code::UnsupportedType, "expected the shape of a tile")
                .help("use `Shape1<A>` to `Shape5<A, B, C, D, E>`, with the outermost extent first"),
            Self::NoShape { element, extents, swizzle } => {
                let (message, shape) = match extents[..] {
                    [] => ("a tile must have a shape", EXTENTS.to_owned()),
                    [..] => (
                        "the extents of a tile must be in a shape",
                        format!("Shape{}<{}>", extents.len(), extents.join(", ")),
                    ),
                };
                let swizzle = swizzle.as_ref().map_or(String::new(), |swizzle| format!(", {swizzle}"));
                Text::new(Code::UnsupportedType, message)
                    .help(format!("write `Tile<{element}, {shape}{swizzle}>`"))
            }
            Self::Swizzle => Text::new(Code::UnsupportedType, "expected a swizzle").help(
                "use `NoSwizzle`, `Swizzle32`, `Swizzle64`, `Swizzle128`, `Panels16`, `Interleave16` or \
                 `Interleave32`",
            ),
            Self::NoType => Text::new(Code::UnsupportedType, "expected a type"),
            Self::NoScalar { found, count } => {
                Text::new(Code::UnsupportedType, format!("expected a scalar type, found {found}"))
                    .help_if(instead_of_elements(found, *count))
            }
            Self::Listed(found) => {
                Text::new(Code::UnsupportedType, format!("expected a scalar type, found `{found}`"))
                    .help("list a scalar, such as `f32`, and convert in the kernel: elements are scalars")
            }
            Self::NoConstant => Text::new(Code::NotConstant, "expected a constant")
                .help("use a literal, a `const`, or an expression of these in braces"),
            Self::ComputedFromGeneric { expr, generic, ty, owner } => {
                let message = format!(
                    "`{expr}` cannot be computed from the generic `{generic}` here: in types and lengths, \
                     Rust accepts a generic only by itself"
                );
                Text::new(Code::NotConstant, message).help(match owner {
                    GenericOwner::Kernel => format!(
                        "declare a generic for it, `const LEN: {ty}`, compute that in the attribute with \
                         `instances(.., let LEN = {expr})`, and use `LEN` here"
                    ),
                    GenericOwner::Other(name) => format!(
                        "declare a generic of `{name}` for it, `const LEN: {ty}`, pass it where `{name}` is \
                         used, and use `LEN` here"
                    ),
                })
            }
            Self::Literal { suffix } => {
                Text::new(Code::UnsupportedType, format!("invalid literal suffix `{suffix}`"))
                    .help("write `f16::from_f32(1.5)` for floats of 16 and 8 bits")
            }
            Self::SizeOf(found) => {
                let message = match found {
                    Some(found) => format!("`size_of` needs a scalar type, not {found}"),
                    None => "`size_of` needs a scalar type".to_owned(),
                };
                Text::new(Code::UnsupportedType, message)
                    .help("write `size_of::<f32>()`, times the number of elements")
            }
            Self::Cast => Text::new(Code::UnsupportedType, "`cast` needs a type to convert to")
                .help("write `cast::<f32>(x)`"),
            Self::Moved { map, found } => {
                Text::new(Code::UnsupportedType, format!("a tensor map must move a `Tile<..>`, not {found}"))
                    .help(format!("write `{map}<{}>`", tile_of(found)))
            }
            Self::Im2colRank(rank) => {
                let message = format!("an im2col map must have 3 to 5 dimensions, not {rank}");
                Text::new(Code::UnsupportedType, message)
                    .help("use the dimensions images, one to three of pixels, and channels")
            }
            Self::Im2colTile { found, rank } => {
                let message = format!("an im2col map must move a tile of pixels by channels, not {found}");
                let usage = format!("Im2colMap<{}, {rank}>", pixels_of(found));
                Text::new(Code::UnsupportedType, message).help(format!("write `{usage}`"))
            }
            Self::Operand { word, found } => {
                Text::new(Code::UnsupportedType, format!("`{word}` requires a tile, not {found}")).help(
                    "use `Transposed<Tile<..>>`, `Sparse<Tile<..>, K>`, `Negated<Tile<..>>`, or `Negated` of \
                     one of the other two",
                )
            }
            Self::SparseDepth { of, columns } => {
                Text::new(Code::TypeMismatch, format!("a sparse `{of}` must have {columns} columns")).help(
                    format!("write `Sparse<.., {columns}>`: of every four elements of a row, two are stored"),
                )
            }
        }
    }
}

/// The shape of a tile whose extents the user has yet to choose.
const EXTENTS: &str = "Shape2<ROWS, COLUMNS>";

/// Returns a tile that has the elements of a type, and its extents where it has any.
fn tile_of(found: &PartialType) -> String {
    if let Some((element, len)) = array_of_scalars(found) {
        return format!("Tile<{element}, Shape1<{len}>>");
    }
    match found {
        PartialType::Known(Type::Scalar(element) | Type::Global(element)) => {
            format!("Tile<{element}, {EXTENTS}>")
        }
        PartialType::Known(Type::SharedArray(element, len)) => format!("Tile<{element}, Shape1<{len}>>"),
        PartialType::Known(Type::Stages(object, _)) => {
            let object = &**object;
            if matches!(object, Type::Tile(_)) { object.to_string() } else { tile_of(&object.into()) }
        }
        PartialType::Known(Type::TensorMap(tile) | Type::Maps(tile) | Type::SharedMap(tile)) => {
            Type::Tile(tile.clone()).to_string()
        }
        PartialType::Known(_)
        | PartialType::Integer
        | PartialType::Float
        | PartialType::Unknown
        | PartialType::Array(..)
        | PartialType::Tuple(_) => format!("Tile<T, {EXTENTS}>"),
    }
}

/// Returns a tile of pixels by channels that has as many elements as one of another rank.
fn pixels_of(found: &PartialType) -> String {
    let PartialType::Known(Type::Tile(tile)) = found else {
        return tile_of(found).replace("ROWS, COLUMNS", "PIXELS, CHANNELS");
    };
    let shape = match tile.extents[..] {
        [ref pixels @ .., channels] if !pixels.is_empty() => {
            format!("Shape2<{}, {channels}>", pixels.iter().map(|&extent| u64::from(extent)).product::<u64>())
        }
        [channels] => format!("Shape2<PIXELS, {channels}>"),
        _ => "Shape2<PIXELS, CHANNELS>".to_owned(),
    };
    format!("Tile<{}, {shape}>", tile.element)
}

/// Returns the element and the length of an array of scalars.
fn array_of_scalars(found: &PartialType) -> Option<(Scalar, u32)> {
    match found {
        PartialType::Known(Type::Array(element, len)) => Some((element.as_scalar()?, *len)),
        PartialType::Array(element, len) => match &**element {
            PartialType::Known(element) => Some((element.as_scalar()?, *len)),
            PartialType::Integer
            | PartialType::Float
            | PartialType::Unknown
            | PartialType::Array(..)
            | PartialType::Tuple(_) => None,
        },
        PartialType::Known(_)
        | PartialType::Integer
        | PartialType::Float
        | PartialType::Unknown
        | PartialType::Tuple(_) => None,
    }
}

/// Suggests how to keep elements that are not scalars, of which there are `count`.
fn instead_of_elements(found: &PartialType, count: Option<u32>) -> Option<String> {
    if let PartialType::Known(Type::Compound(Compound::Struct(_) | Compound::Tuple(_)))
    | PartialType::Tuple(_) = found
    {
        Some("use one array for each field".to_owned())
    } else if let Some((element, columns)) = array_of_scalars(found) {
        Some(match count {
            Some(rows) => {
                format!(
                    "use a tile with one row for each array: `Tile<{element}, Shape2<{rows}, {columns}>>`"
                )
            }
            None => format!("write `{element}`, and compute the index: `row * {columns} + column`"),
        })
    } else if let PartialType::Known(Type::Array(..)) | PartialType::Array(..) = found {
        Some("use a tile with one row for each array".to_owned())
    } else {
        None
    }
}

/// A mistake about a struct, a tuple, or a pattern of one.
#[derive(Clone, Debug)]
pub enum Aggregate {
    /// A struct with generics.
    Generic { name: String },
    /// A struct or tuple of too many values.
    Size { found: usize, most: usize },
    /// An element of an array of structs whose index is not a constant.
    Index,
    /// A field that a literal names twice.
    Repeated { name: String },
    /// `..` without a struct after it.
    NoBase,
    /// Fields that a literal lacks.
    Missing { name: String, missing: Vec<String> },
    /// Fields that a pattern lacks.
    NotInPattern { name: String, missing: Vec<String> },
    /// A pattern with another number of elements than the value has.
    PatternLength { wanted: usize, found: usize },
    /// `#[tma_device] impl` of something that is no struct of the module.
    ImplOfOther,
    /// `#[tma_device] impl` of a trait.
    ImplOfTrait,
    /// An item other than a function in a `#[tma_device] impl`.
    ImplItem,
}

impl Aggregate {
    pub(super) fn text(&self) -> Text {
        match self {
            Self::Generic { name } => {
                Text::new(Code::UnsupportedType, format!("the struct `{name}` is generic"))
                    .help("write one struct for each type: structs in kernels have no generics")
            }
            Self::Size { found, most } => {
                let message =
                    format!("a struct, tuple or array of these has at most {most} values, not {found}");
                Text::new(Code::UnsupportedType, message).help("use register arrays for equal fields")
            }
            Self::Index => Text::new(
                Code::NotConstant,
                "this index must be a constant: structs are in registers, which cannot be indexed",
            )
            .help("use a constant, or an array for each field"),
            Self::Repeated { name } => {
                Text::new(Code::ArgumentCount, format!("the field `{name}` is specified twice"))
                    .help("remove one of the two")
            }
            Self::NoBase => Text::new(Code::UnsupportedExpression, "expected a struct after `..`")
                .help("write `..base`, or all fields"),
            Self::Missing { name, missing } => {
                Text::new(Code::ArgumentCount, format!("`{name}` lacks {}", fields(missing)))
                    .help("write all fields, or `..base` for the remaining ones")
            }
            Self::NotInPattern { name, missing } => Text::new(
                Code::UnsupportedPattern,
                format!("the pattern of `{name}` does not mention {}", fields(missing)),
            )
            .help("end the pattern with `..`"),
            Self::PatternLength { wanted, found } => Text::new(
                Code::TypeMismatch,
                format!("the pattern has {}, and the value has {wanted}", counted(*found, "element")),
            )
            .help("write `_` for an element that is not needed, or `..` for several"),
            Self::ImplOfOther => Text::new(
                Code::UnsupportedStatement,
                "`#[tma_device] impl` is supported only for structs of the same `#[tma_module]`",
            )
            .help("write a `#[tma_device]` function that takes the value"),
            Self::ImplOfTrait => {
                Text::new(Code::UnsupportedStatement, "traits are not supported in device code")
                    .help("write the functions in an `impl` without a trait")
            }
            Self::ImplItem => {
                Text::new(Code::UnsupportedStatement, "a `#[tma_device] impl` supports only functions")
                    .help("move it into the `#[tma_module]` around the `impl`")
            }
        }
    }
}

fn fields(names: &[String]) -> String {
    let noun = if names.len() == 1 { "field" } else { "fields" };
    format!("the {noun} {}", listed(names))
}
