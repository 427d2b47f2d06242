//! Common parts of all decoders: taking modifiers one by one, and operands by type.

use crate::code::names::{Binding, Builder};
use crate::isa::float::{FloatType, float_bits};
use crate::isa::{Address, Constant, Guard, Label, Reg, Special, Type};
use crate::parse::LoadError;
use crate::parse::syntax::{Instruction, Operand};

/// An instruction that is being decoded.
pub(crate) struct Decoder<'b, 'm, 's> {
    pub(crate) builder: &'b mut Builder<'m, 's>,
    pub(crate) instruction: &'b Instruction<'s>,
    modifiers: Vec<&'s str>,
}

/// How far the width of a register may differ from the type of its use.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Width {
    Exact,
    /// `ld`, `st`, `cvt`: the register may be wider.
    Wider,
}

impl<'b, 'm, 's> Decoder<'b, 'm, 's> {
    pub(crate) fn new(builder: &'b mut Builder<'m, 's>, instruction: &'b Instruction<'s>) -> Self {
        Decoder { builder, instruction, modifiers: instruction.modifiers.clone() }
    }

    pub(crate) fn error(&self, message: impl std::fmt::Display) -> LoadError {
        LoadError::new(self.instruction.line, format!("`{}`: {message}", self.instruction.full_name()))
    }

    pub(crate) fn unsupported(&self) -> LoadError {
        self.error("this instruction is not supported")
    }

    /// Takes a modifier if it is present.
    pub(crate) fn take(&mut self, modifier: &str) -> bool {
        match self.modifiers.iter().position(|have| *have == modifier) {
            Some(index) => {
                self.modifiers.remove(index);
                true
            }
            None => false,
        }
    }

    /// Takes the first of these modifiers that is present.
    pub(crate) fn take_of<T: Copy>(&mut self, choices: &[(&str, T)]) -> Option<T> {
        choices.iter().find(|(name, _)| self.take(name)).map(|(_, value)| *value)
    }

    /// Takes the next type among the modifiers.
    pub(crate) fn take_type(&mut self) -> Result<Type, LoadError> {
        self.try_type().ok_or_else(|| self.error("its type is not supported"))
    }

    pub(crate) fn try_type(&mut self) -> Option<Type> {
        let index = self.modifiers.iter().position(|name| Type::named(name).is_some())?;
        Type::named(self.modifiers.remove(index))
    }

    /// Takes the next modifier, whatever it is.
    pub(crate) fn take_first(&mut self) -> Option<&'s str> {
        if self.modifiers.is_empty() { None } else { Some(self.modifiers.remove(0)) }
    }

    /// Checks that all modifiers have been taken.
    pub(crate) fn finish(&self) -> Result<(), LoadError> {
        match self.modifiers.first() {
            Some(rest) => Err(self.error(format!("`.{rest}` is not supported here"))),
            None => Ok(()),
        }
    }

    pub(crate) fn count(&self) -> usize {
        self.instruction.operands.len()
    }

    /// Checks that the number of operands is in this range.
    pub(crate) fn expect_count(&self, least: usize, most: usize) -> Result<(), LoadError> {
        if (least..=most).contains(&self.count()) {
            return Ok(());
        }
        Err(self.error(format!("expected {least} to {most} operands, found {}", self.count())))
    }

    pub(crate) fn operand(&self, index: usize) -> Result<&'b Operand<'s>, LoadError> {
        self.instruction.operands.get(index).ok_or_else(|| self.error("an operand is missing"))
    }

    /// Returns a register to write.
    pub(crate) fn dest(&mut self, index: usize, ty: Type) -> Result<Reg, LoadError> {
        let operand = self.operand(index)?;
        self.written(operand, ty.bits(), Width::Exact).map(|(row, _)| row)
    }

    /// Returns a register to write that may be wider than the type, and its width in bits.
    pub(crate) fn wide_dest(&mut self, operand: &Operand<'s>, bits: u32) -> Result<(Reg, u32), LoadError> {
        self.written(operand, bits, Width::Wider)
    }

    fn written(&mut self, operand: &Operand<'s>, bits: u32, width: Width) -> Result<(Reg, u32), LoadError> {
        if let Operand::Nothing = operand {
            return Ok((Reg::SINK, bits));
        }
        let Operand::Name(name) = operand else {
            return Err(self.error("expected a register as the destination"));
        };
        let (row, have) = self.register(name)?;
        if self.builder.specials.iter().any(|(special, _)| *special == row) {
            return Err(self.error(format!("`{name}` cannot be written")));
        }
        self.check_width(name, have, bits, width)?;
        Ok((row, have))
    }

    fn check_width(&self, name: &str, have: u32, want: u32, width: Width) -> Result<(), LoadError> {
        let fits = match width {
            Width::Exact => have == want || want == 8 && have <= 64 && have > 1,
            Width::Wider => have >= want && [1, 128].iter().all(|bits| (have == *bits) == (want == *bits)),
        };
        if fits {
            return Ok(());
        }
        Err(self.error(format!("expected {want} bits, but `{name}` has {have}")))
    }

    pub(crate) fn register(&mut self, name: &str) -> Result<(Reg, u32), LoadError> {
        match self.builder.find(name, self.instruction.line)? {
            Some(Binding::Register { reg, bits }) => Ok((reg, bits)),
            Some(_) => Err(self.error(format!("`{name}` is not a register"))),
            None => Err(self.error(format!("`{name}` is not declared"))),
        }
    }

    pub(crate) fn predicate(&mut self, name: &str) -> Result<Reg, LoadError> {
        let (row, bits) = self.register(name)?;
        if bits == 1 { Ok(row) } else { Err(self.error(format!("`{name}` is not a predicate"))) }
    }

    /// Returns a predicate to read, which may be negated.
    pub(crate) fn guard(&mut self, index: usize) -> Result<Guard, LoadError> {
        match self.operand(index)? {
            Operand::Name(name) => Ok(Guard { reg: self.predicate(name)?, negated: false }),
            Operand::Not(name) => Ok(Guard { reg: self.predicate(name)?, negated: true }),
            Operand::Integer(value) => {
                Ok(Guard { reg: self.builder.bits(u64::from(*value != 0)), negated: false })
            }
            Operand::Offset(..)
            | Operand::Single(_)
            | Operand::Double(_)
            | Operand::Nothing
            | Operand::Vector(_)
            | Operand::List(_)
            | Operand::Pair(..)
            | Operand::Address { .. } => Err(self.error("expected a predicate")),
        }
    }

    /// Returns a value to read.
    pub(crate) fn source(&mut self, index: usize, ty: Type) -> Result<Reg, LoadError> {
        let operand = self.operand(index)?;
        self.value(operand, ty, Width::Exact)
    }

    /// Returns a value to read, whose register may be wider than the type.
    pub(crate) fn wide_source(&mut self, operand: &Operand<'s>, ty: Type) -> Result<Reg, LoadError> {
        self.value(operand, ty, Width::Wider)
    }

    /// Returns a value like [`source`](Self::source), for an operand inside another one.
    pub(crate) fn inner(&mut self, operand: &Operand<'s>, ty: Type) -> Result<Reg, LoadError> {
        self.value(operand, ty, Width::Exact)
    }

    fn value(&mut self, operand: &Operand<'s>, ty: Type, width: Width) -> Result<Reg, LoadError> {
        let bits = ty.bits();
        let all = if bits >= 64 { u64::MAX } else { (1 << bits) - 1 };
        let bfloat = matches!(ty, Type::Float(FloatType::Bf16) | Type::FloatPair(FloatType::Bf16));
        match operand {
            // A constant that PTX defines. Source: PTX ISA, "Predefined Constants".
            Operand::Name("WARP_SZ") => Ok(self.builder.bits(32)),
            Operand::Name(name) => self.named(name, 0, bits, width),
            Operand::Offset(name, offset) => self.named(name, *offset, bits, width),
            Operand::Integer(value) if bits == 1 => Ok(self.builder.bits(u64::from(*value != 0))),
            Operand::Integer(value) => Ok(self.builder.bits(value & all)),
            Operand::Single(value) if bits == 32 => Ok(self.builder.bits(u64::from(*value))),
            Operand::Single(value) => {
                let double = f64::from(f32::from_bits(*value)).to_bits();
                Ok(self.builder.bits(float_bits(double, bits, bfloat)))
            }
            Operand::Double(value) => Ok(self.builder.bits(float_bits(*value, bits, bfloat))),
            Operand::Not(_)
            | Operand::Nothing
            | Operand::Vector(_)
            | Operand::List(_)
            | Operand::Pair(..)
            | Operand::Address { .. } => Err(self.error("an operand of this kind is not supported here")),
        }
    }

    fn named(&mut self, name: &str, offset: i64, bits: u32, width: Width) -> Result<Reg, LoadError> {
        let value = match self.builder.find(name, self.instruction.line)? {
            Some(Binding::Register { reg, bits: have }) if offset == 0 => {
                self.check_width(name, have, bits, width)?;
                return Ok(reg);
            }
            Some(Binding::Register { .. }) => {
                return Err(self.error("a register plus a number is only supported as an address"));
            }
            Some(Binding::Local(slot) | Binding::Param(slot)) => {
                self.builder.bits((i64::from(slot.offset) + offset) as u64)
            }
            Some(Binding::Shared(start)) => {
                self.builder.special(Special::Shared((i64::from(start) + offset) as u32))
            }
            Some(Binding::DynamicShared) => self.builder.special(Special::DynamicShared(offset)),
            Some(Binding::Variable(index)) => self.builder.constant(Constant::Variable(index, offset)),
            Some(Binding::Label(_) | Binding::Targets(_)) => {
                return Err(self.error(format!("`{name}` is a label, not a value")));
            }
            None => return Err(self.error(format!("`{name}` is not declared"))),
        };
        if bits < 32 {
            return Err(self.error(format!("the address of `{name}` does not fit {bits} bits")));
        }
        Ok(value)
    }

    /// Returns the address `[base + offset]`.
    pub(crate) fn address(&mut self, index: usize) -> Result<Address, LoadError> {
        let operand = self.operand(index)?;
        self.address_of(operand)
    }

    pub(crate) fn address_of(&mut self, operand: &Operand<'s>) -> Result<Address, LoadError> {
        let Operand::Address { base, offset, .. } = operand else {
            return Err(self.error("expected an address in brackets"));
        };
        let base = match base.as_ref() {
            Operand::Name(name) => match self.builder.find(name, self.instruction.line)? {
                Some(Binding::Register { reg, bits: 32 | 64 }) => reg,
                Some(Binding::Register { .. }) => {
                    return Err(self.error(format!("`{name}` is too narrow for an address")));
                }
                Some(
                    Binding::Local(_)
                    | Binding::Param(_)
                    | Binding::Shared(_)
                    | Binding::DynamicShared
                    | Binding::Variable(_)
                    | Binding::Label(_)
                    | Binding::Targets(_),
                )
                | None => self.named(name, 0, 64, Width::Exact)?,
            },
            Operand::Integer(value) => self.builder.bits(*value),
            Operand::Offset(..)
            | Operand::Not(_)
            | Operand::Single(_)
            | Operand::Double(_)
            | Operand::Nothing
            | Operand::Vector(_)
            | Operand::List(_)
            | Operand::Pair(..)
            | Operand::Address { .. } => {
                return Err(self.error("an address of this kind is not supported"));
            }
        };
        Ok(Address { base, offset: *offset })
    }

    /// Returns the label that an operand names.
    pub(crate) fn label(&mut self, index: usize) -> Result<Label, LoadError> {
        let Operand::Name(name) = self.operand(index)? else { return Err(self.error("expected a label")) };
        let Some(Binding::Label(label)) = self.builder.find(name, self.instruction.line)? else {
            return Err(self.error(format!("`{name}` is not a label")));
        };
        Ok(label)
    }

    /// Returns an integer that must be a literal.
    pub(crate) fn immediate(&self, index: usize) -> Result<u64, LoadError> {
        let Operand::Integer(value) = self.operand(index)? else {
            return Err(self.error("expected a number"));
        };
        Ok(*value)
    }

    /// Returns the elements of a vector operand, which must have `count` of them. `noun` names them
    /// in an error.
    pub(crate) fn parts(
        &self,
        operand: &'b Operand<'s>,
        count: usize,
        noun: &str,
    ) -> Result<&'b [Operand<'s>], LoadError> {
        let vector = if let Operand::Vector(parts) = operand { Some(parts.as_slice()) } else { None };
        let parts = vector.filter(|parts| parts.len() == count);
        parts.ok_or_else(|| self.error(format!("expected {count} {noun} in braces")))
    }

    /// Returns whether the base of a `.param` address names local memory, as parameters of
    /// functions do.
    pub(crate) fn is_local(&mut self, operand: &Operand<'s>) -> Result<bool, LoadError> {
        let Operand::Address { base, .. } = operand else { return Ok(false) };
        let Operand::Name(name) = base.as_ref() else { return Ok(false) };
        Ok(matches!(self.builder.find(name, self.instruction.line)?, Some(Binding::Local(_))))
    }
}
