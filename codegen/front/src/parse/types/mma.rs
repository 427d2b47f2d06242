//! Types of tensor core operands and accumulators.

use syn::GenericArgument;

use crate::diag::mistake::Types;
use crate::infer::Typing;
use crate::ir::{
    AccumulatorType, Compound, FragmentType, OperandType, RowsType, Scalar, Span, Team, Type,
    WarpFragmentType, WarpSide,
};
use crate::parse::cx::Cx;

impl Cx<'_> {
    /// Resolves `Accumulator<f32, 64, 256>` and `WarpAccumulator<f32, 16, 64>`.
    pub(super) fn accumulator_type(&mut self, team: Team, generics: &[&GenericArgument]) -> Option<Type> {
        let (element, rows, columns) = self.matrix(generics)?;
        Some(Type::Accumulator(AccumulatorType { team, element, rows, columns }))
    }

    /// Resolves `WarpLeft<f16, 16, 32>` and `WarpRight<f16, 64, 32>`.
    pub(super) fn warp_fragment_type(
        &mut self,
        side: WarpSide,
        generics: &[&GenericArgument],
    ) -> Option<Type> {
        let (element, rows, columns) = self.matrix(generics)?;
        Some(Type::WarpFragment(WarpFragmentType { side, element, rows, columns }))
    }

    /// Resolves `Fragment<bf16, 64, 128>`.
    pub(super) fn fragment_type(&mut self, generics: &[&GenericArgument]) -> Option<Type> {
        let (element, rows, columns) = self.matrix(generics)?;
        Some(Type::Fragment(FragmentType { element, rows, columns }))
    }

    /// Resolves `Rows<f32, 64>` and `WarpRows<f32, 16>`.
    pub(super) fn rows_type(&mut self, team: Team, generics: &[&GenericArgument]) -> Option<Type> {
        let [element, rows] = *generics else { return None };
        let (element, rows) = (self.scalar_argument(element), self.u32_argument(rows));
        Some(Type::Rows(RowsType { team, element: element?, rows: rows? }))
    }

    /// Resolves `Columns<'_, f32, 64, 32>`.
    pub(super) fn columns_type(&mut self, generics: &[&GenericArgument]) -> Option<Type> {
        let (element, rows, columns) = self.matrix(generics)?;
        let team = Team::Warpgroup;
        Some(Type::Compound(Compound::Columns(AccumulatorType { team, element, rows, columns })))
    }

    /// Resolves `Flight<'_, f32, 64, 256, FullSlot<(A, B)>>`.
    pub(super) fn flight_type(&mut self, generics: &[&GenericArgument]) -> Option<Type> {
        let (keep, matrix) = generics.split_last()?;
        let matrix = self.matrix(matrix);
        let keep = self.type_argument(keep).filter(|keep| *keep != Type::Error);
        let (element, rows, columns) = matrix?;
        let sum = AccumulatorType { team: Team::Warpgroup, element, rows, columns };
        Some(Type::Compound(Compound::Flight(sum, Box::new(keep?))))
    }

    /// Resolves `Transposed<Tile<..>>`, or `Transposed<Tile<..>, B>` of `t_if::<B>()`.
    pub(super) fn transposed_type(
        &mut self,
        generics: &[&GenericArgument],
        segment: &syn::PathSegment,
    ) -> Option<Type> {
        let (operand, flag) = generics.split_first()?;
        let transposed = flag.first().is_none_or(|flag| self.bool_argument(flag) == Some(true));
        match self.type_argument(operand)? {
            Type::Tile(tile) => {
                let operand = OperandType { transposed, ..OperandType::from(tile) };
                Some(Type::Compound(Compound::Operand(operand)))
            }
            other => no_operand(&mut self.typing(), "Transposed", &other, segment),
        }
    }

    /// Resolves `Sparse<Tile<..>, 128>` and `Sparse<Fragment<..>, 128>`. The number of columns must
    /// be twice that of the tile or fragment.
    pub(super) fn sparse_type(
        &mut self,
        generics: &[&GenericArgument],
        segment: &syn::PathSegment,
    ) -> Option<Type> {
        let [operand, depth] = *generics else { return None };
        let depth = self.u32_argument(depth);
        match self.type_argument(operand)? {
            Type::Tile(tile) => {
                let found = tile.inner_extent().saturating_mul(2);
                if depth? != found {
                    let of = Type::Tile(tile);
                    self.error(Types::SparseDepth { of, columns: found }, Span::of(segment));
                    return None;
                }
                let operand = OperandType { sparse: true, ..OperandType::from(tile) };
                Some(Type::Compound(Compound::Operand(operand)))
            }
            Type::Fragment(fragment) => {
                let found = fragment.columns.saturating_mul(2);
                if depth? != found {
                    let of = Type::Fragment(fragment);
                    self.error(Types::SparseDepth { of, columns: found }, Span::of(segment));
                    return None;
                }
                Some(Type::Compound(Compound::SparseFragment(fragment)))
            }
            other => no_operand(&mut self.typing(), "Sparse", &other, segment),
        }
    }

    /// Resolves `Negated<Tile<..>>` and `Negated<Transposed<Tile<..>>>`.
    pub(super) fn negated_type(
        &mut self,
        generics: &[&GenericArgument],
        segment: &syn::PathSegment,
    ) -> Option<Type> {
        let [operand] = *generics else { return None };
        let operand = match self.type_argument(operand)? {
            Type::Tile(tile) => OperandType { negated: true, ..OperandType::from(tile) },
            Type::Compound(Compound::Operand(operand)) if !operand.negated => {
                OperandType { negated: true, ..operand }
            }
            other => return no_operand(&mut self.typing(), "Negated", &other, segment),
        };
        Some(Type::Compound(Compound::Operand(operand)))
    }

    fn matrix(&mut self, generics: &[&GenericArgument]) -> Option<(Scalar, u32, u32)> {
        let [element, rows, columns] = *generics else { return None };
        let element = self.scalar_argument(element);
        let (rows, columns) = (self.u32_argument(rows), self.u32_argument(columns));
        Some((element?, rows?, columns?))
    }
}

fn no_operand(
    typing: &mut Typing<'_>,
    word: &'static str,
    found: &Type,
    segment: &syn::PathSegment,
) -> Option<Type> {
    if *found != Type::Error {
        typing.error(Types::Operand { word, found: typing.infer.partial(found) }, Span::of(segment));
    }
    None
}
