//! The shapes of arguments that the [table](super::table) gives to parameters.

use crate::diag::mistake::{self, Mismatch, Numbers};
use crate::ir::{self, Choice, ChoiceType, Const, Expr, ExprKind, Span, Type};
use crate::parse::cx::Cx;
use crate::parse::infer::rule::{Rule, bits};
use crate::parse::method::map::Map;

/// A constraint on an argument of a word whose arguments depend on an `On`.
pub(in crate::parse) trait Shape<On> {
    /// The checked argument.
    type Operand;
    /// A note on the argument for messages, as the end of a sentence.
    const NOTE: &'static str = "";
    /// Whether the argument is a `&mut`.
    const BY_MUT: bool = false;

    /// Converts `value` to the operand. Reports a value that does not fit.
    fn read(cx: &mut Cx<'_>, on: &On, value: Expr) -> Option<Self::Operand>;
}

/// A type with elements of one type.
pub(in crate::parse) trait Elements {
    fn element(&self) -> ir::Scalar;
}

/// A type with dimensions.
pub(in crate::parse) trait Dimensions {
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

impl Dimensions for Map {
    fn rank(&self) -> usize {
        self.rank
    }
}

/// Generates shapes that accept a single type.
macro_rules! of_one_type {
    ($($(#[$doc:meta])* $Name:ident: $ty:expr $(, $note:literal)?;)+) => { $(
        $(#[$doc])*
        pub(in crate::parse) struct $Name;

        impl<On> Shape<On> for $Name {
            type Operand = Expr;
            $(const NOTE: &'static str = $note;)?

            fn read(cx: &mut Cx<'_>, _: &On, value: Expr) -> Option<Expr> {
                cx.expect(&value, &Type::from($ty)).then_some(value)
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
pub(in crate::parse) struct Any;

impl<On> Shape<On> for Any {
    type Operand = Expr;

    fn read(_: &mut Cx<'_>, _: &On, value: Expr) -> Option<Expr> {
        Some(value)
    }
}

/// A value of the receiver's element type.
pub(in crate::parse) struct Element;

impl<On: Elements> Shape<On> for Element {
    type Operand = Expr;

    fn read(cx: &mut Cx<'_>, on: &On, value: Expr) -> Option<Expr> {
        cx.expect(&value, &on.element().into()).then_some(value)
    }
}

/// The bits of a scalar, as an integer.
pub(in crate::parse) struct Bits;

impl Shape<ir::Scalar> for Bits {
    type Operand = Expr;

    fn read(cx: &mut Cx<'_>, of: &ir::Scalar, value: Expr) -> Option<Expr> {
        cx.expect(&value, &bits(*of)?.into()).then_some(value)
    }
}

/// An index into global memory.
pub(in crate::parse) struct GlobalIndex;

impl<On> Shape<On> for GlobalIndex {
    type Operand = Expr;

    fn read(cx: &mut Cx<'_>, _: &On, value: Expr) -> Option<Expr> {
        cx.require(&value.ty, Rule::GlobalIndex, value.span).then_some(value)
    }
}

/// The blocks that share a sliced load.
pub(in crate::parse) struct ClusterAxis;

impl<On> Shape<On> for ClusterAxis {
    type Operand = ir::ClusterAxis;

    fn read(cx: &mut Cx<'_>, _: &On, value: Expr) -> Option<ir::ClusterAxis> {
        let choice = cx.choice_of(ChoiceType::ClusterAxis, value)?;
        if let Choice::ClusterAxis(axis) = choice { Some(axis) } else { None }
    }
}

/// The memory order of an access.
pub(in crate::parse) struct Order;

impl<On> Shape<On> for Order {
    type Operand = Chosen<ir::Order>;

    fn read(cx: &mut Cx<'_>, _: &On, value: Expr) -> Option<Chosen<ir::Order>> {
        let span = value.span;
        let choice = cx.choice_of(ChoiceType::Order, value)?;
        if let Choice::Order(value) = choice { Some(Chosen { value, span }) } else { None }
    }
}

/// The scope of an access.
pub(in crate::parse) struct Scope;

impl<On> Shape<On> for Scope {
    type Operand = Chosen<ir::MemoryScope>;

    fn read(cx: &mut Cx<'_>, _: &On, value: Expr) -> Option<Chosen<ir::MemoryScope>> {
        let span = value.span;
        let choice = cx.choice_of(ChoiceType::Scope, value)?;
        if let Choice::Scope(value) = choice { Some(Chosen { value, span }) } else { None }
    }
}

/// A choice and its span.
#[derive(Clone, Copy, Debug)]
pub(in crate::parse) struct Chosen<T> {
    pub(in crate::parse) value: T,
    pub(in crate::parse) span: Span,
}

/// A phase to modify, split into its parts.
pub(in crate::parse) struct Phase;

impl<On> Shape<On> for Phase {
    type Operand = Vec<Expr>;
    const BY_MUT: bool = true;

    fn read(_: &mut Cx<'_>, _: &On, value: Expr) -> Option<Vec<Expr>> {
        if let ExprKind::Compound(parts) = value.kind { Some(parts) } else { None }
    }
}

/// Coordinates: an array of one `u32` or `i32` per dimension, outermost first.
pub(in crate::parse) struct Coordinates;

impl<On: Dimensions> Shape<On> for Coordinates {
    type Operand = Vec<Expr>;

    fn read(cx: &mut Cx<'_>, on: &On, at: Expr) -> Option<Vec<Expr>> {
        let element = cx.numbers_of(&at, Numbers::Coordinates, on.rank())?;
        cx.require(&element, Rule::Coordinate, at.span).then(|| elements_of(at, &element, on.rank()))
    }
}

/// The destination tile of an accumulator's store.
pub(in crate::parse) struct StoredTile;

impl<On> Shape<On> for StoredTile {
    type Operand = Expr;

    fn read(cx: &mut Cx<'_>, _: &On, tile: Expr) -> Option<Expr> {
        let ty = cx.resolve(&tile.ty);
        let is_tile = matches!(ty, Type::Tile(_));
        if !is_tile && ty != Type::Error {
            cx.error(Mismatch::StoredTo(cx.infer.partial(&ty)), tile.span);
        }
        is_tile.then_some(tile)
    }
}

/// The source tile of an operand in registers, as it is or transposed.
pub(in crate::parse) struct LoadedTile;

impl<On> Shape<On> for LoadedTile {
    type Operand = ir::SharedOperand;

    fn read(cx: &mut Cx<'_>, _: &On, value: Expr) -> Option<ir::SharedOperand> {
        match (cx.resolve(&value.ty), value) {
            (Type::Tile(ty), tile) => Some(ir::SharedOperand { tile, ty: ty.into() }),
            (Type::Compound(ir::Compound::Operand(ty)), Expr { kind: ExprKind::Compound(parts), .. })
                if !ty.negated && !ty.sparse =>
            {
                Some(ir::SharedOperand { tile: parts.into_iter().next()?, ty })
            }
            (Type::Error, _) => None,
            (other, value) => {
                cx.error(Mismatch::NotLoaded(cx.infer.partial(&other)), value.span);
                None
            }
        }
    }
}

/// The destination matrix of an accumulator's store, split into its parts.
pub(in crate::parse) struct StoredMatrix;

impl<On> Shape<On> for StoredMatrix {
    type Operand = Vec<Expr>;

    fn read(cx: &mut Cx<'_>, _: &On, matrix: Expr) -> Option<Vec<Expr>> {
        match (cx.resolve(&matrix.ty), matrix.kind) {
            (Type::Compound(ir::Compound::Matrix(_)), ExprKind::Compound(parts)) => Some(parts),
            (Type::Error, _) => None,
            (other, _) => {
                cx.error(Mismatch::StoredToRows(cx.infer.partial(&other)), matrix.span);
                None
            }
        }
    }
}

/// A row and a column, or numbers of both: an array of two `u32`.
pub(in crate::parse) struct RowAndColumn;

impl<On> Shape<On> for RowAndColumn {
    type Operand = [Expr; 2];

    fn read(cx: &mut Cx<'_>, _: &On, value: Expr) -> Option<[Expr; 2]> {
        let ty = Type::Array(Box::new(ir::Scalar::U32.into()), 2);
        let fits = cx.expect(&value, &ty);
        let numbers = fits.then(|| elements_of(value, &ir::Scalar::U32.into(), 2))?;
        <[Expr; 2]>::try_from(numbers).ok()
    }
}

/// A tile to print.
pub(in crate::parse) struct PrintedTile;

impl<On> Shape<On> for PrintedTile {
    type Operand = Expr;

    fn read(cx: &mut Cx<'_>, _: &On, tile: Expr) -> Option<Expr> {
        let ty = cx.resolve(&tile.ty);
        let is_tile = matches!(ty, Type::Tile(_));
        if !is_tile && ty != Type::Error {
            cx.error(Mismatch::Printed(cx.infer.partial(&ty)), tile.span);
        }
        is_tile.then_some(tile)
    }
}

/// Like [`Coordinates`], counted in tiles.
pub(in crate::parse) struct TileCoordinates;

/// Coordinates counted in tiles.
#[derive(Debug)]
pub(in crate::parse) struct TileIndices {
    pub(in crate::parse) indices: Vec<Expr>,
    /// Their type, which may still be an inference variable.
    pub(in crate::parse) ty: Type,
}

impl<On: Dimensions> Shape<On> for TileCoordinates {
    type Operand = TileIndices;

    fn read(cx: &mut Cx<'_>, on: &On, at: Expr) -> Option<TileIndices> {
        let ty = cx.numbers_of(&at, Numbers::TileCoordinates, on.rank())?;
        let fits = cx.require(&ty, Rule::Coordinate, at.span);
        fits.then(|| TileIndices { indices: elements_of(at, &ty, on.rank()), ty })
    }
}

/// Im2col offsets: an array of one `u16` per dimension of pixels, outermost first.
pub(in crate::parse) struct Offsets;

impl Shape<Map> for Offsets {
    type Operand = Vec<Expr>;

    fn read(cx: &mut Cx<'_>, map: &Map, offsets: Expr) -> Option<Vec<Expr>> {
        // The dimensions of images and of channels have no offsets.
        let count = map.rank - 2;
        let element = cx.numbers_of(&offsets, Numbers::Offsets, count)?;
        if !cx.infer.unify(&element, &ir::Scalar::U16.into(), offsets.span) {
            cx.error(Mismatch::Offsets(cx.infer.partial(&element)), offsets.span);
            return None;
        }
        Some(elements_of(offsets, &element, count))
    }
}

/// A tile of exactly the map's type: box, element type and swizzle must be equal.
pub(in crate::parse) struct MovedTile;

impl Shape<Map> for MovedTile {
    type Operand = Expr;

    fn read(cx: &mut Cx<'_>, of: &Map, tile: Expr) -> Option<Expr> {
        let ty = cx.resolve(&tile.ty);
        if let Type::Tile(found) = &ty
            && *found != of.tile
        {
            let param = &cx.params[of.map.param.0 as usize];
            let (map, ty) = (param.name.clone(), param.ty_span);
            let mistake = mistake::Tile::NotMoved { map, moved: of.tile.clone(), found: found.clone(), ty };
            cx.error(mistake, tile.span);
            return None;
        }
        if let Type::Remote(_) = ty {
            cx.error(Mismatch::RemoteTile, tile.span);
            return None;
        }
        cx.expect(&tile, &Type::Tile(of.tile.clone())).then_some(tile)
    }
}

/// The tile of which a map copies a slice. Its type depends on the cluster, which `check` verifies.
pub(in crate::parse) struct WholeTile;

impl Shape<Map> for WholeTile {
    type Operand = Expr;

    fn read(cx: &mut Cx<'_>, map: &Map, tile: Expr) -> Option<Expr> {
        let is_tile = matches!(cx.resolve(&tile.ty), Type::Tile(_));
        if is_tile { Some(tile) } else { MovedTile::read(cx, map, tile) }
    }
}

/// Contiguous elements in shared memory, of the receiver's element type.
pub(in crate::parse) struct Sequence;

impl<On: Elements> Shape<On> for Sequence {
    type Operand = Expr;

    fn read(cx: &mut Cx<'_>, on: &On, array: Expr) -> Option<Expr> {
        cx.expect_sequence(&array, on.element()).then_some(array)
    }
}

/// The same as [`Sequence`], in another block.
pub(in crate::parse) struct RemoteSequence;

impl<On: Elements> Shape<On> for RemoteSequence {
    type Operand = Expr;

    fn read(cx: &mut Cx<'_>, on: &On, to: Expr) -> Option<Expr> {
        let ty = cx.resolve(&to.ty);
        let thing = if let Type::Remote(thing) = ty {
            Expr { ty: *thing, ..to.clone() }
        } else if ty == Type::Error {
            return Some(to);
        } else {
            cx.error(Mismatch::NotRemote(cx.infer.partial(&ty)), to.span);
            return None;
        };
        cx.expect_sequence(&thing, on.element()).then_some(to)
    }
}

/// A map of the same tile type.
pub(in crate::parse) struct SameMap;

impl Shape<ir::TileType> for SameMap {
    type Operand = Expr;

    fn read(cx: &mut Cx<'_>, tile: &ir::TileType, map: Expr) -> Option<Expr> {
        cx.expect(&map, &Type::TensorMap(tile.clone())).then_some(map)
    }
}

/// Storage for maps of the same tile type.
pub(in crate::parse) struct SameMaps;

impl Shape<ir::TileType> for SameMaps {
    type Operand = Expr;

    fn read(cx: &mut Cx<'_>, tile: &ir::TileType, maps: Expr) -> Option<Expr> {
        cx.expect(&maps, &Type::Maps(tile.clone())).then_some(maps)
    }
}

/// A slice of global memory with the tile's element type.
pub(in crate::parse) struct SameElements;

impl Shape<ir::TileType> for SameElements {
    type Operand = Expr;

    fn read(cx: &mut Cx<'_>, tile: &ir::TileType, global: Expr) -> Option<Expr> {
        cx.expect(&global, &Type::Global(tile.element)).then_some(global)
    }
}

impl Cx<'_> {
    /// Returns the variant of the enum `of` that `value` is.
    fn choice_of(&mut self, of: ChoiceType, value: Expr) -> Option<Choice> {
        let fits = self.expect(&value, &Type::Choice(of));
        if let ExprKind::Choice(choice) = value.kind { fits.then_some(choice) } else { None }
    }

    /// Checks the length of an array and returns its element type.
    fn numbers_of(&mut self, array: &Expr, numbers: Numbers, wanted: usize) -> Option<Type> {
        let Type::Array(element, len) = self.resolve(&array.ty) else {
            if array.ty != Type::Error {
                let found = self.infer.partial(&array.ty);
                self.error(Mismatch::NoArray { numbers, found }, array.span);
            }
            return None;
        };
        if len as usize != wanted {
            let found = len as usize;
            self.error(mistake::Argument::Dimensions { numbers, wanted, found }, array.span);
            return None;
        }
        Some(*element)
    }

    /// Returns whether `array` has contiguous elements in shared memory, and reports it if not.
    pub(in crate::parse) fn expect_sequence(&mut self, array: &Expr, element: ir::Scalar) -> bool {
        let ty = self.resolve(&array.ty);
        if ty == Type::Error || ty.sequence().is_some_and(|(found, _)| found == element) {
            return true;
        }
        let found = self.infer.partial(&ty);
        self.error(Mismatch::NoSequence { found, element }, array.span);
        false
    }
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
