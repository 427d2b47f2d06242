//! The shapes of arguments that the [table](super::table) gives to parameters.

use super::receiver::{Dimensions, Elements, MapType};
use crate::diag::mistake::{self, Mismatch, Numbers};
use crate::infer::Typing;
use crate::infer::rule::Rule;
use crate::infer::scalar::bits;
use crate::ir::{self, Choice, ChoiceType, Const, Expr, ExprKind, Span, Type};

/// A constraint on an argument of a word whose arguments depend on an `On`.
pub(crate) trait Shape<On> {
    /// The checked argument.
    type Operand;
    /// A note on the argument for messages, as the end of a sentence.
    const NOTE: &'static str = "";
    /// Whether the argument is a `&mut`.
    const BY_MUT: bool = false;

    /// Converts `value` to the operand. Reports a value that does not fit.
    fn read(typing: &mut Typing<'_>, on: &On, value: Expr) -> Option<Self::Operand>;
}

/// Generates shapes that accept a single type.
macro_rules! of_one_type {
    ($($(#[$doc:meta])* $Name:ident: $ty:expr $(, $note:literal)?;)+) => { $(
        $(#[$doc])*
        pub(crate) struct $Name;

        impl<On> Shape<On> for $Name {
            type Operand = Expr;
            $(const NOTE: &'static str = $note;)?

            fn read(typing: &mut Typing<'_>, _: &On, value: Expr) -> Option<Expr> {
                typing.expect(&value, &Type::from($ty)).then_some(value)
            }
        }
    )+ };
}

of_one_type! {
    /// A `bool`.
    Bool: ir::Scalar::Bool;
    /// A `u16`.
    U16: ir::Scalar::U16;
    /// A `u32`.
    U32: ir::Scalar::U32;
    /// An `i32`.
    I32: ir::Scalar::I32;
    /// A `u64`.
    U64: ir::Scalar::U64;
    /// A `usize`.
    Usize: ir::Scalar::Usize;
    /// An `f32`.
    F32: ir::Scalar::F32;
    /// An `f64`.
    F64: ir::Scalar::F64;
    /// The number of arrivals that complete a phase.
    Arrivals: ir::Scalar::U32, ", with the arrivals that complete a phase";
    /// The number of bytes of copies.
    Bytes: ir::Scalar::U32, ", with the bytes that copies will write: `tile.bytes()`";
    /// The parity of a phase.
    Parity: ir::Scalar::U32, ": 0 for the first phase, then 1, then 0 again";
    /// The state of a phase, returned by an arrival.
    Token: Type::Token, ", with the token that `arrive_token()` returned";
    /// A barrier of this block.
    Barrier: Type::Barrier;
    /// A barrier of another block.
    RemoteBarrier: Type::Remote(Box::new(Type::Barrier));
    /// A policy for the L2 cache.
    CachePolicy: Type::CachePolicy;
    /// A slice of global memory that begins with a counter.
    Counter: Type::Global(ir::Scalar::U32);
}

/// Any value. The word itself checks it, together with other arguments or its receiver.
pub(crate) struct Any;

impl<On> Shape<On> for Any {
    type Operand = Expr;

    fn read(_: &mut Typing<'_>, _: &On, value: Expr) -> Option<Expr> {
        Some(value)
    }
}

/// A value of the receiver's element type.
pub(crate) struct Element;

impl<On: Elements> Shape<On> for Element {
    type Operand = Expr;

    fn read(typing: &mut Typing<'_>, on: &On, value: Expr) -> Option<Expr> {
        typing.expect(&value, &on.element().into()).then_some(value)
    }
}

/// The bits of a scalar, as an integer.
pub(crate) struct Bits;

impl Shape<ir::Scalar> for Bits {
    type Operand = Expr;

    fn read(typing: &mut Typing<'_>, of: &ir::Scalar, value: Expr) -> Option<Expr> {
        typing.expect(&value, &bits(*of)?.into()).then_some(value)
    }
}

/// An index into global memory.
pub(crate) struct GlobalIndex;

impl<On> Shape<On> for GlobalIndex {
    type Operand = Expr;

    fn read(typing: &mut Typing<'_>, _: &On, value: Expr) -> Option<Expr> {
        typing.require(&value.ty, Rule::GlobalIndex, value.span).then_some(value)
    }
}

/// The blocks that share a sliced load.
pub(crate) struct ClusterAxis;

impl<On> Shape<On> for ClusterAxis {
    type Operand = ir::ClusterAxis;

    fn read(typing: &mut Typing<'_>, _: &On, value: Expr) -> Option<ir::ClusterAxis> {
        let choice = choice_of(typing, ChoiceType::ClusterAxis, value)?;
        if let Choice::ClusterAxis(axis) = choice { Some(axis) } else { None }
    }
}

/// The memory order of an access.
pub(crate) struct Order;

impl<On> Shape<On> for Order {
    type Operand = Chosen<ir::Order>;

    fn read(typing: &mut Typing<'_>, _: &On, value: Expr) -> Option<Chosen<ir::Order>> {
        let span = value.span;
        let choice = choice_of(typing, ChoiceType::Order, value)?;
        if let Choice::Order(value) = choice { Some(Chosen { value, span }) } else { None }
    }
}

/// The scope of an access.
pub(crate) struct Scope;

impl<On> Shape<On> for Scope {
    type Operand = Chosen<ir::MemoryScope>;

    fn read(typing: &mut Typing<'_>, _: &On, value: Expr) -> Option<Chosen<ir::MemoryScope>> {
        let span = value.span;
        let choice = choice_of(typing, ChoiceType::Scope, value)?;
        if let Choice::Scope(value) = choice { Some(Chosen { value, span }) } else { None }
    }
}

/// A choice and its span.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Chosen<T> {
    pub(crate) value: T,
    pub(crate) span: Span,
}

/// A phase to modify, split into its parts.
pub(crate) struct Phase;

impl<On> Shape<On> for Phase {
    type Operand = Vec<Expr>;
    const BY_MUT: bool = true;

    fn read(_: &mut Typing<'_>, _: &On, value: Expr) -> Option<Vec<Expr>> {
        if let ExprKind::Compound(parts) = value.kind { Some(parts) } else { None }
    }
}

/// Coordinates: an array of one `u32` or `i32` per dimension, outermost first.
pub(crate) struct Coordinates;

impl<On: Dimensions> Shape<On> for Coordinates {
    type Operand = Vec<Expr>;

    fn read(typing: &mut Typing<'_>, on: &On, at: Expr) -> Option<Vec<Expr>> {
        let element = numbers_of(typing, &at, Numbers::Coordinates, on.rank())?;
        typing.require(&element, Rule::Coordinate, at.span).then(|| elements_of(at, &element, on.rank()))
    }
}

/// The destination tile of an accumulator's store.
pub(crate) struct StoredTile;

impl<On> Shape<On> for StoredTile {
    type Operand = Expr;

    fn read(typing: &mut Typing<'_>, _: &On, tile: Expr) -> Option<Expr> {
        let ty = typing.infer.resolve(&tile.ty);
        let is_tile = matches!(ty, Type::Tile(_));
        if !is_tile && ty != Type::Error {
            typing.error(Mismatch::StoredTo(typing.infer.partial(&ty)), tile.span);
        }
        is_tile.then_some(tile)
    }
}

/// The source tile of an operand in registers, as it is or transposed.
pub(crate) struct LoadedTile;

impl<On> Shape<On> for LoadedTile {
    type Operand = ir::SharedOperand;

    fn read(typing: &mut Typing<'_>, _: &On, value: Expr) -> Option<ir::SharedOperand> {
        match (typing.infer.resolve(&value.ty), value) {
            (Type::Tile(ty), tile) => Some(ir::SharedOperand { tile, ty: ty.into() }),
            (Type::Compound(ir::Compound::Operand(ty)), Expr { kind: ExprKind::Compound(parts), .. })
                if !ty.negated && !ty.sparse =>
            {
                Some(ir::SharedOperand { tile: parts.into_iter().next()?, ty })
            }
            (Type::Error, _) => None,
            (other, value) => {
                typing.error(Mismatch::NotLoaded(typing.infer.partial(&other)), value.span);
                None
            }
        }
    }
}

/// The destination matrix of an accumulator's store, split into its parts.
pub(crate) struct StoredMatrix;

impl<On> Shape<On> for StoredMatrix {
    type Operand = Vec<Expr>;

    fn read(typing: &mut Typing<'_>, _: &On, matrix: Expr) -> Option<Vec<Expr>> {
        match (typing.infer.resolve(&matrix.ty), matrix.kind) {
            (Type::Compound(ir::Compound::Matrix(_)), ExprKind::Compound(parts)) => Some(parts),
            (Type::Error, _) => None,
            (other, _) => {
                typing.error(Mismatch::StoredToRows(typing.infer.partial(&other)), matrix.span);
                None
            }
        }
    }
}

/// A row and a column, or numbers of both: an array of two `u32`.
pub(crate) struct RowAndColumn;

impl<On> Shape<On> for RowAndColumn {
    type Operand = [Expr; 2];

    fn read(typing: &mut Typing<'_>, _: &On, value: Expr) -> Option<[Expr; 2]> {
        let ty = Type::Array(Box::new(ir::Scalar::U32.into()), 2);
        let fits = typing.expect(&value, &ty);
        let numbers = fits.then(|| elements_of(value, &ir::Scalar::U32.into(), 2))?;
        <[Expr; 2]>::try_from(numbers).ok()
    }
}

/// A tile to print.
pub(crate) struct PrintedTile;

impl<On> Shape<On> for PrintedTile {
    type Operand = Expr;

    fn read(typing: &mut Typing<'_>, _: &On, tile: Expr) -> Option<Expr> {
        let ty = typing.infer.resolve(&tile.ty);
        let is_tile = matches!(ty, Type::Tile(_));
        if !is_tile && ty != Type::Error {
            typing.error(Mismatch::Printed(typing.infer.partial(&ty)), tile.span);
        }
        is_tile.then_some(tile)
    }
}

/// Like [`Coordinates`], counted in tiles.
pub(crate) struct TileCoordinates;

/// Coordinates counted in tiles.
#[derive(Debug)]
pub(crate) struct TileIndices {
    pub(crate) indices: Vec<Expr>,
    /// Their type, which may still be an inference variable.
    pub(crate) ty: Type,
}

impl<On: Dimensions> Shape<On> for TileCoordinates {
    type Operand = TileIndices;

    fn read(typing: &mut Typing<'_>, on: &On, at: Expr) -> Option<TileIndices> {
        let ty = numbers_of(typing, &at, Numbers::TileCoordinates, on.rank())?;
        let fits = typing.require(&ty, Rule::Coordinate, at.span);
        fits.then(|| TileIndices { indices: elements_of(at, &ty, on.rank()), ty })
    }
}

/// Im2col offsets: an array of one `u16` per dimension of pixels, outermost first.
pub(crate) struct Offsets;

impl Shape<MapType> for Offsets {
    type Operand = Vec<Expr>;

    fn read(typing: &mut Typing<'_>, map: &MapType, offsets: Expr) -> Option<Vec<Expr>> {
        // The dimensions of images and of channels have no offsets.
        let count = map.rank - 2;
        let element = numbers_of(typing, &offsets, Numbers::Offsets, count)?;
        if !typing.infer.unify(&element, &ir::Scalar::U16.into(), offsets.span) {
            typing.error(Mismatch::Offsets(typing.infer.partial(&element)), offsets.span);
            return None;
        }
        Some(elements_of(offsets, &element, count))
    }
}

/// A tile of exactly the map's type: box, element type and swizzle must be equal.
pub(crate) struct MovedTile;

impl Shape<MapType> for MovedTile {
    type Operand = Expr;

    fn read(typing: &mut Typing<'_>, of: &MapType, tile: Expr) -> Option<Expr> {
        let ty = typing.infer.resolve(&tile.ty);
        if let Type::Tile(found) = &ty
            && *found != of.tile
        {
            let (map, ty) = (of.name.clone(), of.ty_span);
            let mistake = mistake::Tile::NotMoved { map, moved: of.tile.clone(), found: found.clone(), ty };
            typing.error(mistake, tile.span);
            return None;
        }
        if let Type::Remote(_) = ty {
            typing.error(Mismatch::RemoteTile, tile.span);
            return None;
        }
        typing.expect(&tile, &Type::Tile(of.tile.clone())).then_some(tile)
    }
}

/// The tile of which a map copies a slice. Its type depends on the cluster, which `check` verifies.
pub(crate) struct WholeTile;

impl Shape<MapType> for WholeTile {
    type Operand = Expr;

    fn read(typing: &mut Typing<'_>, map: &MapType, tile: Expr) -> Option<Expr> {
        let is_tile = matches!(typing.infer.resolve(&tile.ty), Type::Tile(_));
        if is_tile { Some(tile) } else { MovedTile::read(typing, map, tile) }
    }
}

/// Contiguous elements in shared memory, of the receiver's element type.
pub(crate) struct Sequence;

impl<On: Elements> Shape<On> for Sequence {
    type Operand = Expr;

    fn read(typing: &mut Typing<'_>, on: &On, array: Expr) -> Option<Expr> {
        expect_sequence(typing, &array, on.element()).then_some(array)
    }
}

/// The same as [`Sequence`], in another block.
pub(crate) struct RemoteSequence;

impl<On: Elements> Shape<On> for RemoteSequence {
    type Operand = Expr;

    fn read(typing: &mut Typing<'_>, on: &On, to: Expr) -> Option<Expr> {
        let ty = typing.infer.resolve(&to.ty);
        let thing = if let Type::Remote(thing) = ty {
            Expr { ty: *thing, ..to.clone() }
        } else if ty == Type::Error {
            return Some(to);
        } else {
            typing.error(Mismatch::NotRemote(typing.infer.partial(&ty)), to.span);
            return None;
        };
        expect_sequence(typing, &thing, on.element()).then_some(to)
    }
}

/// A map of the same tile type.
pub(crate) struct SameMap;

impl Shape<ir::TileType> for SameMap {
    type Operand = Expr;

    fn read(typing: &mut Typing<'_>, tile: &ir::TileType, map: Expr) -> Option<Expr> {
        typing.expect(&map, &Type::TensorMap(tile.clone())).then_some(map)
    }
}

/// Storage for maps of the same tile type.
pub(crate) struct SameMaps;

impl Shape<ir::TileType> for SameMaps {
    type Operand = Expr;

    fn read(typing: &mut Typing<'_>, tile: &ir::TileType, maps: Expr) -> Option<Expr> {
        typing.expect(&maps, &Type::Maps(tile.clone())).then_some(maps)
    }
}

/// A slice of global memory with the tile's element type.
pub(crate) struct SameElements;

impl Shape<ir::TileType> for SameElements {
    type Operand = Expr;

    fn read(typing: &mut Typing<'_>, tile: &ir::TileType, global: Expr) -> Option<Expr> {
        typing.expect(&global, &Type::Global(tile.element)).then_some(global)
    }
}

/// Returns the variant of the enum `of` that `value` is.
fn choice_of(typing: &mut Typing<'_>, of: ChoiceType, value: Expr) -> Option<Choice> {
    let fits = typing.expect(&value, &Type::Choice(of));
    if let ExprKind::Choice(choice) = value.kind { fits.then_some(choice) } else { None }
}

/// Checks the length of an array and returns its element type.
fn numbers_of(typing: &mut Typing<'_>, array: &Expr, numbers: Numbers, wanted: usize) -> Option<Type> {
    let Type::Array(element, len) = typing.infer.resolve(&array.ty) else {
        if array.ty != Type::Error {
            let found = typing.infer.partial(&array.ty);
            typing.error(Mismatch::NoArray { numbers, found }, array.span);
        }
        return None;
    };
    if len as usize != wanted {
        let found = len as usize;
        typing.error(mistake::Argument::Dimensions { numbers, wanted, found }, array.span);
        return None;
    }
    Some(*element)
}

/// Returns whether `array` has contiguous elements in shared memory, and reports it if not.
pub(crate) fn expect_sequence(typing: &mut Typing<'_>, array: &Expr, element: ir::Scalar) -> bool {
    let ty = typing.infer.resolve(&array.ty);
    if ty == Type::Error || ty.sequence().is_some_and(|(found, _)| found == element) {
        return true;
    }
    let found = typing.infer.partial(&ty);
    typing.error(Mismatch::NoSequence { found, element }, array.span);
    false
}

/// Returns the `count` elements of an array.
fn elements_of(array: Expr, element: &Type, count: usize) -> Vec<Expr> {
    if let ExprKind::Array(elements) = array.kind {
        return elements;
    }
    let at = |i: usize| {
        let index = Expr::constant(Const::Int(i as i128), ir::Scalar::Usize, array.span);
        let kind = ExprKind::Index(Box::new(array.clone()), Box::new(index));
        Expr { kind, ty: element.clone(), span: array.span }
    };
    (0..count).map(at).collect()
}
