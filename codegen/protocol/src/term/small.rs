//! Small numbers. Most terms are small numbers, because they count or address.

use tma_front::ir::{BinaryOp, Scalar};

use super::{Known, Node, Term, Terms};

/// The number of bits of a small number.
const BITS: u32 = 16;
/// Numbers below this are small.
const SMALL: u32 = 1 << BITS;
/// Marks a term that is not a small number, and a number without a term.
const NONE: u32 = u32::MAX;
/// The number of types whose small numbers are stored.
const SMALL_TYPES: usize = 4;

/// The small numbers of all terms, in as few bytes as possible, since most of a check's time is
/// spent here.
#[derive(Debug, Default)]
pub(super) struct SmallNumbers {
    /// The terms of the numbers of each type.
    terms: [Vec<u32>; SMALL_TYPES],
    /// For each term, the index of its type in the high bits, and its number in the low bits.
    of: Vec<u32>,
}

impl SmallNumbers {
    /// Records the next term.
    pub(super) fn push(&mut self, node: &Node, scalar: Scalar) {
        let number =
            if let Node::Known(Known::Int(number)) = *node { u32::try_from(number).ok() } else { None };
        let type_index = type_index(scalar).unwrap_or(SMALL_TYPES) as u32;
        self.of
            .push(number.filter(|number| *number < SMALL).map_or(NONE, |number| type_index << BITS | number));
    }

    /// Returns the type index and the number of a small number. The type index is [`SMALL_TYPES`]
    /// if its type has none.
    pub(super) fn get(&self, term: Term) -> Option<(usize, u32)> {
        let of = self.of[term.0 as usize];
        (of != NONE).then_some(((of >> BITS) as usize, of & (SMALL - 1)))
    }
}

/// Returns the index of a type. Only types that count or address have one.
fn type_index(scalar: Scalar) -> Option<usize> {
    match scalar {
        Scalar::U32 => Some(0),
        Scalar::Usize => Some(1),
        Scalar::I32 => Some(2),
        Scalar::U64 => Some(3),
        Scalar::Bool
        | Scalar::I8
        | Scalar::U8
        | Scalar::I16
        | Scalar::U16
        | Scalar::I64
        | Scalar::F16
        | Scalar::Bf16
        | Scalar::F32
        | Scalar::F64
        | Scalar::Tf32
        | Scalar::E4m3
        | Scalar::E5m2 => None,
    }
}

/// Returns the type with an index.
fn scalar(type_index: usize) -> Scalar {
    [Scalar::U32, Scalar::Usize, Scalar::I32, Scalar::U64][type_index]
}

/// Computes an operation on numbers below 2^31 whose result is also below 2^31, without the
/// arithmetic of 128 bits. Types without an index have no result.
pub(super) fn binary(op: BinaryOp, x: Known, y: Known, scalar: Scalar) -> Option<Known> {
    const END: u64 = 1 << 31;
    let (Known::Int(x), Known::Int(y)) = (x, y) else { return None };
    let (x, y) = (u64::try_from(x).ok()?, u64::try_from(y).ok()?);
    if x >= END || y >= END || type_index(scalar).is_none() {
        return None;
    }
    let number = match op {
        BinaryOp::Add => x + y,
        BinaryOp::Mul => x * y,
        BinaryOp::Sub => x.checked_sub(y)?,
        BinaryOp::Div => x.checked_div(y)?,
        BinaryOp::Rem => x.checked_rem(y)?,
        BinaryOp::Lt => return Some(Known::Bool(x < y)),
        BinaryOp::Eq => return Some(Known::Bool(x == y)),
        BinaryOp::And
        | BinaryOp::Or
        | BinaryOp::Xor
        | BinaryOp::Shl
        | BinaryOp::Shr
        | BinaryOp::Ne
        | BinaryOp::Le
        | BinaryOp::Gt
        | BinaryOp::Ge => return None,
    };
    (number < END).then_some(Known::Int(number.into()))
}

impl Terms {
    /// Returns the term of a number, if it is small and its type has an index.
    pub(super) fn add_small(&mut self, number: i128, scalar: Scalar) -> Option<Term> {
        let number = u32::try_from(number).ok().filter(|number| *number < SMALL)?;
        Some(self.small_number(number, type_index(scalar)?))
    }

    fn small_number(&mut self, number: u32, type_index: usize) -> Term {
        match self.small.terms[type_index].get(number as usize) {
            Some(&term) if term != NONE => Term(term),
            Some(_) | None => self.new_small_number(number as usize, type_index),
        }
    }

    #[cold]
    fn new_small_number(&mut self, number: usize, type_index: usize) -> Term {
        let term = self.push(Node::Known(Known::Int(number as i128)), scalar(type_index));
        let all = &mut self.small.terms[type_index];
        if all.len() <= number {
            all.resize(number + 1, NONE);
        }
        all[number] = term.0;
        term
    }

    /// Returns a small number as one of another type.
    pub(super) fn cast_small(&mut self, a: Term, to: Scalar) -> Option<Term> {
        let (_, number) = self.small.get(a)?;
        Some(self.small_number(number, type_index(to)?))
    }

    /// Computes an operation on small numbers that addresses and loops use. The result is small, so
    /// nothing wraps.
    pub(super) fn binary_of_small(&mut self, op: BinaryOp, a: Term, b: Term) -> Option<Term> {
        let ((type_index, a), (_, b)) = (self.small.get(a)?, self.small.get(b)?);
        if type_index == SMALL_TYPES {
            return None;
        }
        let number = match op {
            BinaryOp::Add => a + b,
            BinaryOp::Mul => a.checked_mul(b)?,
            BinaryOp::Sub => a.checked_sub(b)?,
            BinaryOp::Div => a.checked_div(b)?,
            BinaryOp::Rem => a.checked_rem(b)?,
            BinaryOp::And => a & b,
            BinaryOp::Or => a | b,
            BinaryOp::Xor => a ^ b,
            BinaryOp::Lt => return Some(self.truth(a < b)),
            BinaryOp::Le => return Some(self.truth(a <= b)),
            BinaryOp::Gt => return Some(self.truth(a > b)),
            BinaryOp::Ge => return Some(self.truth(a >= b)),
            BinaryOp::Eq => return Some(self.truth(a == b)),
            BinaryOp::Ne => return Some(self.truth(a != b)),
            // The shift is less than the bits of any of these types, and the result has fewer than
            // 32 bits.
            BinaryOp::Shl if b < BITS => a << b,
            BinaryOp::Shr if b < BITS => a >> b,
            BinaryOp::Shl | BinaryOp::Shr => return None,
        };
        (number < SMALL).then(|| self.small_number(number, type_index))
    }
}
