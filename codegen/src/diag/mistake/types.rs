//! Types as they are spelled in the source.

use crate::diag::lists::{PARAMETERS, SHARED, VALUES};
use crate::diag::suggest::Suggestion;
use crate::diag::text::Text;
use crate::diag::{Code, PartialType};
use crate::ir::Type;
use crate::limits::REGISTER_ARRAY_ELEMENTS;

/// A type that kernels do not support, or not in this position.
#[derive(Clone, Debug)]
pub(crate) enum Types {
    /// A type without a more specific message.
    Unknown,
    /// A form of type that kernels do not have.
    Form,
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
    /// Not a tile's shape.
    Shape,
    /// Not a layout of a tile's rows.
    Swizzle,
    /// Not a type, where one is expected.
    NoType,
    /// Not a scalar, where one is expected.
    NoScalar(PartialType),
    /// Not a constant, as a generic argument of a type.
    NoConstant,
    /// Not a constant, as a const generic of a device function.
    NoDeviceConstant,
    /// The suffix of a literal.
    Literal { suffix: String },
    /// A target of `cast` that is not a type.
    Cast,
    /// A type that a map of this name cannot move.
    Moved { map: String, found: PartialType },
    /// An im2col map with an unsupported rank.
    Im2colRank(i128),
    /// A type that an im2col map cannot move.
    Im2colTile(PartialType),
    /// A type that cannot be a transposed, sparse or negated operand.
    Operand { word: &'static str, found: PartialType },
    /// A sparse operand whose columns do not match those of its tile or fragment.
    SparseDepth { of: Type, columns: u32 },
}

impl Types {
    pub(super) fn text(&self) -> Text {
        match self {
            Self::Unknown => Text::new(Code::UnsupportedType, "kernels do not have this type"),
            Self::Form => Text::new(Code::UnsupportedType, "kernels have no such type").help(format!(
                "a kernel's types are {VALUES}; in shared memory {SHARED}; as parameters {PARAMETERS}"
            )),
            Self::Name { name, suggestion } => {
                Text::new(Code::UnsupportedType, format!("`{name}` is not a kernel's type"))
                    .help(match suggestion {
                    Some(suggestion) => suggestion.to_string(),
                    None => {
                        "an alias must stand in the same `#[tma_module]`: an attribute sees only its own item"
                            .to_owned()
                    }
                })
            }
            Self::ArrayElement(found) => {
                Text::new(Code::UnsupportedType, format!("register arrays hold scalars, not {found}"))
                    .help("things in shared memory go into `Stages<_, N>`")
            }
            Self::ArrayLength(len) => {
                Text::new(Code::LiteralRange, format!("no register array has {len} elements"))
            }
            Self::LargeArray(elements) => {
                let message = format!(
                    "a thread's own array has at most {REGISTER_ARRAY_ELEMENTS} elements, not {elements}"
                );
                Text::new(Code::UnsupportedType, message)
                    .help("put it into shared memory, `SharedArray<T, N>`, or into a `Global<T>`")
            }
            Self::Stages(found) => {
                Text::new(Code::UnsupportedType, format!("`Stages` hold what is shared, not {found}"))
                    .help("`Stages<Tile<..>, N>`, `Stages<Barrier, N>` or `Stages<SharedArray<..>, N>`")
            }
            Self::Remote(found) => Text::new(
                Code::UnsupportedType,
                format!("`Remote` is what another block shares, not {found}"),
            )
            .help(
                "`Remote<Tile<..>>`, `Remote<Barrier>`, `Remote<SharedArray<..>>`, and of `Stages` of these",
            ),
            Self::Shape => Text::new(Code::UnsupportedType, "this is not the shape of a tile")
                .help("shapes are `Shape1<A>` to `Shape5<A, B, C, D, E>`, outermost extent first"),
            Self::Swizzle => Text::new(Code::UnsupportedType, "this is not a swizzle").help(
                "swizzles are `NoSwizzle`, `Swizzle32`, `Swizzle64` and `Swizzle128`; `Panels16`, `Interleave16` and \
                 `Interleave32` stand in their place",
            ),
            Self::NoType => Text::new(Code::UnsupportedType, "a type is wanted here"),
            Self::NoScalar(found) => {
                Text::new(Code::UnsupportedType, format!("a scalar is wanted here, not {found}"))
            }
            Self::NoConstant => Text::new(Code::NotConstant, "a constant is wanted here")
                .help("a literal, a `const`, or an expression of these in braces"),
            Self::NoDeviceConstant => Text::new(Code::NotConstant, "a constant is wanted here")
                .help("write the number: `_` and types are not known here"),
            Self::Literal { suffix } => {
                Text::new(Code::UnsupportedType, format!("no literal is of the type `{suffix}`"))
                    .help("for 16- and 8-bit floats write `f16::from_f32(1.5)`")
            }
            Self::Cast => {
                Text::new(Code::UnsupportedType, "`cast` converts to a type").help("write `cast::<f32>(x)`")
            }
            Self::Moved { map, found } => {
                Text::new(Code::UnsupportedType, format!("a tensor map moves a `Tile<..>`, not {found}"))
                    .help(format!("write `{map}<Tile<f16, Shape2<128, 64>>>`"))
            }
            Self::Im2colRank(rank) => {
                let message = format!("im2col mode is for tensors of 3 to 5 dimensions, not of {rank}");
                Text::new(Code::UnsupportedType, message)
                    .help("they are images, one to three dimensions of pixels, and channels")
            }
            Self::Im2colTile(found) => {
                let message = format!("an im2col map moves a tile of pixels by channels, not {found}");
                Text::new(Code::UnsupportedType, message)
                    .help("write `Im2colMap<Tile<f16, Shape2<64, 32>>, 4>`")
            }
            Self::Operand { word, found } => {
                Text::new(Code::UnsupportedType, format!("`{word}` is of a tile, not of {found}"))
                    .help("`Transposed<Tile<..>>`, `Sparse<Tile<..>, K>`, `Negated<Tile<..>>` and `Negated` of the other two")
            }
            Self::SparseDepth { of, columns } => {
                Text::new(Code::TypeMismatch, format!("a sparse `{of}` has {columns} elements a row"))
                    .help("of each four elements of a row two are there")
            }
        }
    }
}
