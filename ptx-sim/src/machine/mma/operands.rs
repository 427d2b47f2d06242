//! Operands: the bytes of shared memory that an instruction reads, and their interpretation.

use std::fmt;

use tma_model::mma::{CHUNK_BYTES, Descriptor, Form, FragmentSlot, Major, Operand, ROWS, STEP_BYTES};

use super::Multiplication;
use super::multiply::{Factors, LINE_BYTES, Register};
use super::selection::Selection;

/// Bytes of a chunk, as an index.
const CHUNK: usize = CHUNK_BYTES as usize;

/// The location of A.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::machine) enum Left {
    Shared(Descriptor),
    Registers,
}

/// An operand, A or B.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::machine) enum Side {
    A,
    B,
}

/// The operands that an instruction reads.
#[derive(Clone, Copy, Debug)]
pub(in crate::machine) struct Plan {
    pub(in crate::machine) form: Form,
    pub(in crate::machine) left: Left,
    pub(in crate::machine) right: Descriptor,
    pub(in crate::machine) majors: [Major; 2],
}

/// An operand in shared memory.
#[derive(Clone, Copy, Debug)]
pub(in crate::machine) struct Matrix {
    pub(in crate::machine) side: Side,
    pub(in crate::machine) descriptor: Descriptor,
    major: Major,
    /// Rows of A or columns of B.
    extent: u32,
    /// Bytes along K.
    depth: u32,
    element: Operand,
}

/// The contents of the operands in shared memory.
#[derive(Debug)]
pub(super) struct Operands {
    left: Option<Vec<u8>>,
    right: Vec<u8>,
}

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::A => "A",
            Self::B => "B",
        })
    }
}

impl Plan {
    /// Returns whether another warp reads the same operands.
    pub(super) fn is_like(&self, other: &Self) -> bool {
        (self.left, self.right, self.majors) == (other.left, other.right, other.majors)
    }

    fn right(&self) -> Matrix {
        let Form { b, n, .. } = self.form;
        Matrix {
            side: Side::B,
            descriptor: self.right,
            major: self.majors[1],
            extent: n,
            depth: self.form.right_bytes(),
            element: b,
        }
    }

    fn left(&self) -> Option<Matrix> {
        match self.left {
            Left::Shared(descriptor) => Some(Matrix {
                side: Side::A,
                descriptor,
                major: self.majors[0],
                extent: ROWS,
                depth: STEP_BYTES,
                element: self.form.a,
            }),
            Left::Registers => None,
        }
    }

    /// Returns the operands in shared memory.
    pub(in crate::machine) fn matrices(&self) -> impl Iterator<Item = Matrix> {
        self.left().into_iter().chain([self.right()])
    }

    /// Reads the operands. All chunks must be in bounds.
    pub(super) fn read(&self, shared: &[u8]) -> Operands {
        Operands { left: self.left().map(|left| left.read(shared)), right: self.right().read(shared) }
    }
}

impl Matrix {
    /// Returns the number of lines, and of chunks in a line, as the descriptor counts them.
    const fn counts(&self) -> (u32, u32) {
        match self.major {
            Major::K => (self.extent, self.depth / CHUNK_BYTES),
            Major::Mn => (self.depth * 8 / self.element.bits(), self.extent / self.element.per_chunk()),
        }
    }

    /// Returns the number of chunks in a line.
    pub(in crate::machine) const fn width(&self) -> u32 {
        self.counts().1
    }

    /// Returns the strides in bytes between groups of 8 lines, and between panels.
    pub(in crate::machine) const fn steps(&self) -> [u32; 2] {
        self.descriptor.steps(self.major)
    }

    /// Returns a chunk that the descriptor addresses more than once.
    pub(in crate::machine) fn repeated(&self) -> Option<u32> {
        let (lines, chunks) = self.counts();
        self.descriptor.repeated(self.major, lines, chunks)
    }

    /// Returns the addresses of the chunks, line by line.
    pub(in crate::machine) fn chunks(&self) -> impl Iterator<Item = u32> + use<> {
        let ((lines, chunks), descriptor, major) = (self.counts(), self.descriptor, self.major);
        (0..lines).flat_map(move |line| (0..chunks).map(move |chunk| descriptor.chunk(major, line, chunk)))
    }

    /// Reads the bytes, and makes them contiguous along K.
    fn read(&self, shared: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0; (self.extent * self.depth) as usize];
        let chunk_at = |at: u32| shared.get(at as usize..at as usize + CHUNK).unwrap_or(&[0; CHUNK]);
        match self.major {
            Major::K => {
                for (chunk, at) in bytes.chunks_exact_mut(CHUNK).zip(self.chunks()) {
                    chunk.copy_from_slice(chunk_at(at));
                }
            }
            Major::Mn => {
                let (width, depth) = ((self.element.bits() / 8) as usize, self.depth as usize);
                let per_line = self.counts().1 as usize;
                for (number, at) in self.chunks().enumerate() {
                    let (k, first) = (number / per_line, number % per_line * (CHUNK / width));
                    for (i, element) in (first..).zip(chunk_at(at).chunks_exact(width)) {
                        bytes[i * depth + k * width..][..width].copy_from_slice(element);
                    }
                }
            }
        }
        bytes
    }
}

impl Operands {
    /// Combines the operands with those that the warps hold in registers.
    pub(super) fn factors(
        &self,
        multiplication: &Multiplication,
        left: Option<&[Register]>,
        metadata: Option<&Register>,
    ) -> Factors {
        let form = multiplication.plan.form;
        let left = match &self.left {
            Some(left) => left.clone(),
            None => gathered(form.a, left.unwrap_or_default()),
        };
        let selection =
            metadata.map(|metadata| Selection::new(form, multiplication.arithmetic.selector, metadata));
        Factors { left, right: self.right.clone(), selection }
    }
}

/// Gathers A from the registers of a warpgroup.
fn gathered(element: Operand, registers: &[Register]) -> Vec<u8> {
    let mut bytes = vec![0; ROWS as usize * LINE_BYTES];
    for (register, threads) in (0..).zip(registers) {
        for (thread, value) in (0..).zip(threads) {
            let [row, k] = element.coordinates(FragmentSlot { thread, register, part: 0 });
            let at = row as usize * LINE_BYTES + (k * element.bits() / 8) as usize;
            bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
        }
    }
    bytes
}
