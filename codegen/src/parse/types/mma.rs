//! Types of what tensor cores work on.

use syn::GenericArgument;

use crate::ir::{AccumulatorType, FragmentType, Scalar, Type};
use crate::parse::cx::Cx;

impl Cx<'_> {
    /// `Accumulator<f32, 64, 256>`.
    pub(super) fn accumulator_type(&mut self, generics: &[&GenericArgument]) -> Option<Type> {
        let (element, rows, columns) = self.matrix(generics)?;
        Some(Type::Accumulator(AccumulatorType { element, rows, columns }))
    }

    /// `Fragment<bf16, 64, 128>`.
    pub(super) fn fragment_type(&mut self, generics: &[&GenericArgument]) -> Option<Type> {
        let (element, rows, columns) = self.matrix(generics)?;
        Some(Type::Fragment(FragmentType { element, rows, columns }))
    }

    /// `Rows<f32, 64>`.
    pub(super) fn rows_type(&mut self, generics: &[&GenericArgument]) -> Option<Type> {
        let [element, rows] = *generics else { return None };
        let (element, rows) = (self.scalar_argument(element), self.u32_argument(rows));
        Some(Type::Rows(element?, rows?))
    }

    fn matrix(&mut self, generics: &[&GenericArgument]) -> Option<(Scalar, u32, u32)> {
        let [element, rows, columns] = *generics else { return None };
        let element = self.scalar_argument(element);
        let (rows, columns) = (self.u32_argument(rows), self.u32_argument(columns));
        Some((element?, rows?, columns?))
    }
}
