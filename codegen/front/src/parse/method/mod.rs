//! Methods: dispatches a call by the type of its receiver.

#![warn(clippy::wildcard_enum_match_arm)]

pub(super) mod accumulator;
mod array;
mod atomic;
mod barrier;
mod bulk;
mod descriptor;
pub(super) mod flight;
mod global;
mod hint;
mod map;
mod matrix;
pub(super) mod mma_sync;
mod option;
pub(super) mod phase;
pub(super) mod pipeline;
pub(super) mod power;
mod receiver;
mod tile;
pub(super) mod tile_at;
mod vector;

use std::borrow::Cow;

use self::accumulator::usize_number;
use self::descriptor::maps_method;
use self::global::slice;
use self::map::no_tiles;
use self::option::option_method;
use self::pipeline::{empty_slot_method, loading_slot_method};
use self::tile::sparse;
use super::cx::Cx;
use super::names::callee::call_of_function;
use super::number::{finds_method, has_method, number_method};
use super::order::spill_if_changed;
use super::span;
use crate::diag::mistake::{Name, Value};
use crate::diag::suggest::{Kind, Suggestion, did_you_mean, elsewhere};
use crate::infer::Infer;
use crate::ir::{
    AccumulatorType, Callee, Cluster, Compound, Const, Expr, ExprKind, FragmentType, PeerMemory, Ring,
    RowsType, Scalar, Span, Team, TileType, Type,
};
use crate::words::*;

/// A built-in method, with the properties of its receiver's type that it depends on.
#[derive(Clone, Copy)]
enum Method<'t> {
    Tile(TileWord, &'t TileType),
    Array(ArrayWord, Scalar, u32),
    Stages(StagesWord, u32),
    Barrier(BarrierWord),
    Map(MapWord, &'t TileType),
    Column(ColumnWord, &'t TileType, u32),
    Maps(MapsWord, &'t TileType),
    SharedMap(SharedMapWord, &'t TileType),
    Global(GlobalWord, Scalar),
    Peers(PeersWord, &'t PeerMemory),
    Number(NumberWord),
    Phase(PhaseWord),
    Pipeline(PipelineWord, &'t Ring),
    Producer(ProducerWord, &'t Ring),
    Consumer(ConsumerWord, &'t Ring),
    EmptySlot(EmptySlotWord, &'t [TileType]),
    LoadingSlot(LoadingSlotWord, &'t [TileType]),
    FullSlot(FullSlotWord, &'t [TileType]),
    Accumulator(AccumulatorWord, AccumulatorType),
    Columns(ColumnsWord, AccumulatorType),
    Rows(RowsWord, RowsType),
    WarpAccumulator(WarpAccumulatorWord, AccumulatorType),
    WarpRows(WarpRowsWord, RowsType),
    Flight(FlightWord, &'t Type),
    Fragment(FragmentWord, FragmentType),
}

impl<'t> Method<'t> {
    /// Returns every method of a type.
    fn all(ty: &'t Type) -> Vec<Self> {
        fn of<'t, W: Word>(method: impl Fn(W) -> Method<'t>) -> Vec<Method<'t>> {
            W::all().into_iter().map(method).collect()
        }
        match ty {
            Type::Tile(tile) => of(|word| Self::Tile(word, tile)),
            Type::SharedArray(element, len) => of(|word| Self::Array(word, *element, *len)),
            Type::Stages(_, len) => of(|word| Self::Stages(word, *len)),
            Type::Barrier => of(Self::Barrier),
            Type::Remote(thing) => {
                let mut all = Self::all(thing);
                all.retain(|method| method.entry().signature.has(Mark::Remote));
                all
            }
            Type::TensorMap(tile) => of(|word| Self::Map(word, tile)),
            Type::Im2colMap(tile, rank) => of(|word| Self::Column(word, tile, *rank)),
            Type::Maps(tile) => of(|word| Self::Maps(word, tile)),
            Type::SharedMap(tile) => of(|word| Self::SharedMap(word, tile)),
            Type::Global(element) => of(|word| Self::Global(word, *element)),
            Type::Peers(memory) => of(|word| Self::Peers(word, memory)),
            Type::Peer(element) => {
                let mut all = of(|word| Self::Global(word, *element));
                all.retain(|method| method.entry().signature.has(Mark::Peer));
                all
            }
            Type::Scalar(scalar) => {
                let found = NumberWord::all().into_iter().filter(|&word| finds_method(*scalar, word));
                found.map(Self::Number).collect()
            }
            Type::Infer(_) => of(Self::Number),
            Type::Compound(compound) => match compound {
                Compound::Phase => of(Self::Phase),
                Compound::Pipeline(ring) => of(|word| Self::Pipeline(word, ring)),
                Compound::Producer(ring) => of(|word| Self::Producer(word, ring)),
                Compound::Consumer(ring) => of(|word| Self::Consumer(word, ring)),
                Compound::EmptySlot(tiles) => of(|word| Self::EmptySlot(word, tiles)),
                Compound::LoadingSlot(tiles) => of(|word| Self::LoadingSlot(word, tiles)),
                Compound::FullSlot(tiles) => of(|word| Self::FullSlot(word, tiles)),
                Compound::Columns(part) => of(|word| Self::Columns(word, *part)),
                Compound::Flight(_, keep) => of(|word| Self::Flight(word, keep)),
                Compound::Operand(_) | Compound::SparseFragment(_) | Compound::Matrix(_) => vec![],
                Compound::Option(_) | Compound::Struct(_) | Compound::Tuple(_) | Compound::Array(..) => {
                    vec![]
                }
            },
            Type::Accumulator(ty) => match ty.team {
                Team::Warpgroup => of(|word| Self::Accumulator(word, *ty)),
                Team::Warp => of(|word| Self::WarpAccumulator(word, *ty)),
            },
            Type::Rows(rows) => match rows.team {
                Team::Warpgroup => of(|word| Self::Rows(word, *rows)),
                Team::Warp => of(|word| Self::WarpRows(word, *rows)),
            },
            Type::Fragment(ty) => of(|word| Self::Fragment(word, *ty)),
            Type::WarpFragment(_) => vec![],
            Type::Unit
            | Type::Never
            | Type::Dim3
            | Type::CachePolicy
            | Type::Choice(_)
            | Type::Token
            | Type::Array(..)
            | Type::Error => vec![],
        }
    }

    /// Returns the method's entry in the table of built-ins.
    fn entry(self) -> Entry {
        match self {
            Self::Tile(word, _) => Entry::of(word),
            Self::Array(word, ..) => Entry::of(word),
            Self::Stages(word, _) => Entry::of(word),
            Self::Barrier(word) => Entry::of(word),
            Self::Map(word, _) => Entry::of(word),
            Self::Column(word, ..) => Entry::of(word),
            Self::Maps(word, _) => Entry::of(word),
            Self::SharedMap(word, _) => Entry::of(word),
            Self::Global(word, _) => Entry::of(word),
            Self::Peers(word, _) => Entry::of(word),
            Self::Number(word) => Entry::of(word),
            Self::Phase(word) => Entry::of(word),
            Self::Pipeline(word, _) => Entry::of(word),
            Self::Producer(word, _) => Entry::of(word),
            Self::Consumer(word, _) => Entry::of(word),
            Self::EmptySlot(word, _) => Entry::of(word),
            Self::LoadingSlot(word, _) => Entry::of(word),
            Self::FullSlot(word, _) => Entry::of(word),
            Self::Accumulator(word, _) => Entry::of(word),
            Self::Columns(word, _) => Entry::of(word),
            Self::Rows(word, _) => Entry::of(word),
            Self::WarpAccumulator(word, _) => Entry::of(word),
            Self::WarpRows(word, _) => Entry::of(word),
            Self::Flight(word, _) => Entry::of(word),
            Self::Fragment(word, _) => Entry::of(word),
        }
    }
}

impl Cx<'_> {
    pub(super) fn method_call(&mut self, call: &syn::ExprMethodCall, span: Span) -> Expr {
        let mut receiver = self.dereferenced(&call.receiver);
        let (name, ty) = (call.method.to_string(), self.infer.resolve(&receiver.ty));
        if let Type::Compound(Compound::Struct(of)) = &ty {
            return self.struct_method(of, receiver, call, span);
        }
        if call.args.is_empty()
            && let Some(value) = option_method(&self.infer, &receiver, &name, span)
        {
            return value;
        }
        let method = Method::all(&ty).into_iter().find(|method| method.entry().name == name);
        let entry = method.map(Method::entry);
        if let Some(entry) = &entry {
            self.takes_method(&ty, entry, call);
        }
        let (effects, values) = self.block(|cx| cx.argument_values(entry.as_ref(), &call.args));
        spill_if_changed(&mut self.builder, std::slice::from_mut(&mut receiver), &effects);
        self.builder.append(effects);
        match method {
            _ if ty == Type::Error => Expr::error(span),
            Some(method) => {
                // The kept value of a flight is not a receiver of the method.
                let of_flight = matches!(method, Method::Flight(..));
                let parts = parts_of(&receiver).filter(|_| !of_flight).unwrap_or_default();
                let value = match self.declared.pipeline_of(&parts) {
                    Some(pipeline) => {
                        let callee = Callee::Pipeline { pipeline, method: name };
                        self.within_call(callee, span, |cx| cx.method(method, receiver, call, values))
                    }
                    None => self.method(method, receiver, call, values),
                };
                value.unwrap_or(Expr::error(span))
            }
            None => self.unknown_method(&receiver, &name, call.method.span().into(), span),
        }
    }

    /// Emits a method call and returns its value, or `None` if an error was reported.
    fn method(
        &mut self,
        method: Method<'_>,
        receiver: Expr,
        call: &syn::ExprMethodCall,
        values: Vec<Expr>,
    ) -> Option<Expr> {
        let span = span::of_method_call(call);
        match method {
            Method::Tile(word, tile) => {
                let read = word.read(&mut self.typing(), tile, values, span)?;
                self.tile_method(receiver, tile, read, call)
            }
            Method::Array(word, element, len) => {
                let read = word.read(&mut self.typing(), &element, values, span)?;
                self.array_method(receiver, element, len, read, call)
            }
            Method::Stages(word, len) => match word.read(&mut self.typing(), &(), values, span)? {
                StagesCall::Len => Some(known_u32(&mut self.infer, u64::from(len), span)),
            },
            Method::Barrier(word) => {
                let call = word.read(&mut self.typing(), &(), values, span)?;
                self.barrier_method(receiver, call, span)
            }
            Method::Map(word, tile) => {
                let map = map::Map::of(&receiver, &self.declared, tile, tile.rank())?;
                let call = word.read(&mut self.typing(), &map.ty, values, span)?;
                self.map_method(receiver, map, call, span)
            }
            Method::Column(word, tile, rank) => {
                let map = map::Map::of(&receiver, &self.declared, tile, rank as usize)?;
                let call = word.read(&mut self.typing(), &map.ty, values, span)?;
                self.column_method(receiver, map, call, span)
            }
            Method::Maps(word, tile) => {
                let call = word.read(&mut self.typing(), &(), values, span)?;
                maps_method(&mut self.builder, &receiver, tile, call, span)
            }
            Method::SharedMap(word, tile) => {
                let edit = word.read(&mut self.typing(), tile, values, span)?;
                self.edit_method(receiver, tile, edit, call)
            }
            Method::Global(word, element) => {
                let slice = slice(self.sink, &receiver, element, word, span)?;
                let read = word.read(&mut self.typing(), &element, values, span)?;
                self.global_method(receiver, slice, read, call)
            }
            Method::Peers(word, memory) => {
                let call = word.read(&mut self.typing(), &(), values, span)?;
                self.peers_method(&receiver, memory, call, span)
            }
            Method::Number(word) => {
                let call = word.read(&mut self.typing(), &(), values, span)?;
                number_method(self, receiver, call, span)
            }
            Method::Phase(word) => {
                let call = word.read(&mut self.typing(), &(), values, span)?;
                self.phase_method(parts_of(&receiver)?, call, span)
            }
            Method::Pipeline(word, ring) => {
                let call = word.read(&mut self.typing(), &(), values, span)?;
                self.pipeline_method(ring, parts_of(&receiver)?, call, span)
            }
            Method::Producer(word, ring) => {
                let call = word.read(&mut self.typing(), &(), values, span)?;
                self.producer_method(ring, parts_of(&receiver)?, call, span)
            }
            Method::Consumer(word, ring) => {
                let call = word.read(&mut self.typing(), &(), values, span)?;
                self.consumer_method(ring, parts_of(&receiver)?, call, span)
            }
            Method::EmptySlot(word, tiles) => {
                let call = word.read(&mut self.typing(), &(), values, span)?;
                empty_slot_method(&mut self.builder, tiles, parts_of(&receiver)?, call, span)
            }
            Method::LoadingSlot(word, tiles) => {
                let call = word.read(&mut self.typing(), &(), values, span)?;
                loading_slot_method(tiles, parts_of(&receiver)?, call, span)
            }
            Method::FullSlot(word, tiles) => {
                let call = word.read(&mut self.typing(), &(), values, span)?;
                self.full_slot_method(tiles, parts_of(&receiver)?, call, span)
            }
            Method::Accumulator(word, ty) => {
                let read = word.read(&mut self.typing(), &(), values, span)?;
                self.accumulator_method(receiver, ty, read, call)
            }
            Method::Columns(word, part) => {
                let call = word.read(&mut self.typing(), &(), values, span)?;
                self.columns_method(parts_of(&receiver)?, part, call, span)
            }
            Method::Rows(word, rows) => {
                let RowsCall::Len = word.read(&mut self.typing(), &(), values, span)?;
                Some(usize_number(rows.elements(), span))
            }
            Method::WarpAccumulator(word, ty) => {
                let read = word.read(&mut self.typing(), &(), values, span)?;
                self.warp_accumulator_method(&receiver, ty, read, call)
            }
            Method::WarpRows(word, rows) => {
                let WarpRowsCall::Len = word.read(&mut self.typing(), &(), values, span)?;
                Some(usize_number(rows.elements(), span))
            }
            Method::Flight(word, keep) => {
                let call = word.read(&mut self.typing(), &(), values, span)?;
                self.flight_method(parts_of(&receiver)?, keep, call, span)
            }
            Method::Fragment(word, ty) => match word.read(&mut self.typing(), &(), values, span)? {
                FragmentCall::Sparse { metadata } => {
                    sparse(&mut self.typing(), Compound::SparseFragment(ty), receiver, metadata, span)
                }
                FragmentCall::Unpack => self.unpack(&receiver, ty, span),
            },
        }
    }

    fn unknown_method(&mut self, receiver: &Expr, name: &str, at: Span, span: Span) -> Expr {
        let ty = &self.infer.resolve(&receiver.ty);
        if let (Type::Im2colMap(..), Some(MapWord::TileAt | MapWord::BlockTile)) = (ty, MapWord::named(name))
        {
            return no_tiles(self.sink, name, span);
        }
        if self.refuse_open_accumulator(receiver) {
            return Expr::error(span);
        }
        let known = self.suggested_methods(ty);
        let others = |is_meant: bool, kind| is_meant.then(|| elsewhere(name, kind)).flatten();
        let is_scalar = matches!(ty, Type::Scalar(_) | Type::Infer(_));
        // `fetch_sub` is close to `fetch_add` in spelling, but is another operation, as is `rsqrt`,
        // a function, close to the method `sqrt`.
        let suggestion = others(
            matches!(ty.local(), Type::Global(_) | Type::Peer(_) | Type::SharedArray(..)),
            Kind::Access,
        )
        .or_else(|| is_scalar.then(|| function_only(name)).flatten())
        .or_else(|| others(is_scalar, Kind::Function))
        .or_else(|| self.foreign_bound().filter(|_| is_scalar).map(Suggestion::OfTrait))
        .or_else(|| did_you_mean(name, &known));
        let (of, name) = (self.infer.partial(ty), name.to_owned());
        self.error(Name::Method { of, name, suggestion, known }, at);
        Expr::error(span)
    }

    /// Reports the variable of an accumulator whose generics are neither written nor inferred.
    fn refuse_open_accumulator(&mut self, receiver: &Expr) -> bool {
        let accumulator = self.infer.accumulator(&receiver.ty);
        let (Some(_), ExprKind::Local(id)) = (accumulator, &receiver.kind) else { return false };
        let local = self.builder.declared(*id);
        let (name, span) = (local.name.clone(), local.span);
        self.error(Value::UnknownVariable { name, accumulator }, span);
        self.infer.give_up(&receiver.ty);
        true
    }

    /// Returns the names of the methods that a value of this type has in this kernel.
    fn suggested_methods(&self, ty: &Type) -> Vec<Cow<'static, str>> {
        let scalar = self.infer.settle(ty).as_ref().and_then(Type::as_scalar);
        let has = |method: &Method<'_>| match (method, scalar) {
            (Method::Number(word), Some(scalar)) => has_method(scalar, *word),
            (method, _) => {
                let is_sliced = method.entry().signature.has(Mark::Sliced);
                !is_sliced || matches!(self.instance.cluster, Cluster::Fixed(_))
            }
        };
        Method::all(ty).into_iter().filter(has).map(|method| method.entry().name).collect()
    }
}

/// Suggests the call of a function that no scalar has as a method.
fn function_only(name: &str) -> Option<Suggestion> {
    if NumberWord::named(name).is_some() { None } else { call_of_function(name) }
}

fn known_u32(infer: &mut Infer, value: u64, span: Span) -> Expr {
    infer.written(Expr::constant(Const::Int(i128::from(value)), Scalar::U32, span))
}

/// Returns the parts of a compound value.
fn parts_of(receiver: &Expr) -> Option<Vec<Expr>> {
    if let ExprKind::Compound(parts) = &receiver.kind { Some(parts.clone()) } else { None }
}
