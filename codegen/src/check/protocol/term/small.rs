//! Small numbers, which most terms are: those that count and point.

use super::{Known, Node, Term, Terms};
use crate::ir::{BinaryOp, Scalar};

/// How many bits a small number has.
const BITS: u32 = 16;
/// Numbers below this are small.
const SMALL: u32 = 1 << BITS;
/// What is no small number, or not there.
const NONE: u32 = u32::MAX;
/// The types whose small numbers are kept, each on a shelf.
const SHELVES: usize = 4;

/// The small numbers of all terms, in as few bytes as will do: most of a check's time is spent here.
#[derive(Debug, Default)]
pub(super) struct Smalls {
    /// The terms of each type's numbers.
    terms: [Vec<u32>; SHELVES],
    /// Of each term its type's shelf, and below that its number.
    of: Vec<u32>,
}

impl Smalls {
    /// Notes the next term.
    pub(super) fn push(&mut self, node: &Node, scalar: Scalar) {
        let number =
            if let Node::Known(Known::Int(number)) = *node { u32::try_from(number).ok() } else { None };
        let shelf = shelf(scalar).unwrap_or(SHELVES) as u32;
        self.of.push(number.filter(|number| *number < SMALL).map_or(NONE, |number| shelf << BITS | number));
    }

    /// Where the numbers of a term's type are kept, if that is one of those, and the small number that
    /// the term is.
    pub(super) fn get(&self, term: Term) -> Option<(usize, u32)> {
        let of = self.of[term.0 as usize];
        (of != NONE).then_some(((of >> BITS) as usize, of & (SMALL - 1)))
    }
}

/// Where the small numbers of a type are kept, of those that count and point.
fn shelf(scalar: Scalar) -> Option<usize> {
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

/// The type of a shelf's numbers.
fn scalar(shelf: usize) -> Scalar {
    [Scalar::U32, Scalar::Usize, Scalar::I32, Scalar::U64][shelf]
}

/// What numbers below 2^31 come to, of types that hold them and more, where that is below 2^31 as
/// well: without the arithmetic of 128 bits.
pub(super) fn binary(op: BinaryOp, x: Known, y: Known, scalar: Scalar) -> Option<Known> {
    const END: u64 = 1 << 31;
    let (Known::Int(x), Known::Int(y)) = (x, y) else { return None };
    let (x, y) = (u64::try_from(x).ok()?, u64::try_from(y).ok()?);
    if x >= END || y >= END || shelf(scalar).is_none() {
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
    /// The term of a number that is small, of a type whose small numbers are kept.
    pub(super) fn add_small(&mut self, number: i128, scalar: Scalar) -> Option<Term> {
        let number = u32::try_from(number).ok().filter(|number| *number < SMALL)?;
        Some(self.small_number(number, shelf(scalar)?))
    }

    fn small_number(&mut self, number: u32, shelf: usize) -> Term {
        match self.small.terms[shelf].get(number as usize) {
            Some(&term) if term != NONE => Term(term),
            Some(_) | None => self.new_small_number(number as usize, shelf),
        }
    }

    #[cold]
    fn new_small_number(&mut self, number: usize, shelf: usize) -> Term {
        let term = self.push(Node::Known(Known::Int(number as i128)), scalar(shelf));
        let all = &mut self.small.terms[shelf];
        if all.len() <= number {
            all.resize(number + 1, NONE);
        }
        all[number] = term.0;
        term
    }

    /// A small number as one of another type.
    pub(super) fn cast_small(&mut self, a: Term, to: Scalar) -> Option<Term> {
        let (_, number) = self.small.get(a)?;
        Some(self.small_number(number, shelf(to)?))
    }

    /// What small numbers come to, of the operations that addresses and loops are made of: nothing
    /// wraps.
    pub(super) fn binary_of_small(&mut self, op: BinaryOp, a: Term, b: Term) -> Option<Term> {
        let ((shelf, a), (_, b)) = (self.small.get(a)?, self.small.get(b)?);
        if shelf == SHELVES {
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
            // Less than the bits of any of these types, of which the result has fewer than 32.
            BinaryOp::Shl if b < BITS => a << b,
            BinaryOp::Shr if b < BITS => a >> b,
            BinaryOp::Shl | BinaryOp::Shr => return None,
        };
        (number < SMALL).then(|| self.small_number(number, shelf))
    }
}
