//! Matrices, and their layouts in shared memory and registers.

use tma_model::limits::WARPGROUP_THREADS;
use tma_model::mma::{Accumulator, Form, FragmentSlot, MetadataLocation, Operand, OperandTile, ROWS};

use crate::case::Case;
use crate::draw::{self, Addend, Rng};

/// Threads of a warpgroup.
pub const THREADS: u32 = WARPGROUP_THREADS;

/// A matrix, line by line: rows of A, columns of B, rows of D.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Matrix {
    /// Number of elements of a line.
    pub depth: u32,
    /// All elements.
    pub bits: Vec<u32>,
}

impl Matrix {
    /// Creates a matrix of `lines` lines from a function of line and index.
    pub fn new([lines, depth]: [u32; 2], mut element: impl FnMut([u32; 2]) -> u32) -> Self {
        let positions = (0..lines).flat_map(|line| (0..depth).map(move |k| [line, k]));
        Self { depth, bits: positions.map(&mut element).collect() }
    }

    /// Returns an element.
    pub fn at(&self, [line, k]: [u32; 2]) -> u32 {
        self.bits[(line * self.depth + k) as usize]
    }

    /// Returns a line.
    pub fn line(&self, line: u32) -> &[u32] {
        &self.bits[(line * self.depth) as usize..][..self.depth as usize]
    }
}

/// The matrices of a case, over all steps.
#[derive(Clone, Debug)]
pub struct Matrices {
    /// A. Of a sparse one, the stored elements.
    pub a: Matrix,
    /// B.
    pub b: Matrix,
    /// C, the initial value of D.
    pub c: Matrix,
    /// Four bits for each row and group along K, if A is sparse.
    pub metadata: Option<Matrix>,
}

impl Matrices {
    /// Draws the matrices of a case.
    pub fn new(case: &Case) -> Self {
        let (form, mut rng) = (case.form(), Rng::new(case.seed));
        let Form { d, a, b, n, .. } = form;
        let (stored, depth) = (case.steps * form.stored_k(), case.steps * form.k());
        let kind = case.kind;
        let left = Matrix::new([ROWS, stored], |[line, k]| {
            draw::element(kind, a, draw::ElementIndex { right: false, line, k }, &mut rng)
        });
        let right = Matrix::new([n, depth], |[line, k]| {
            draw::element(kind, b, draw::ElementIndex { right: true, line, k }, &mut rng)
        });
        let metadata = form.sparse.then(|| Matrix::new([ROWS, depth / a.group()], |_| group(a, &mut rng)));
        let mut matrices = Self { a: left, b: right, c: Matrix { depth: n, bits: vec![] }, metadata };
        matrices.c = Matrix::new([ROWS, n], |position| {
            let sum = if case.addend == Addend::Opposite { matrices.sum(case, position) } else { 0.0 };
            draw::addend(case.addend, d, sum, &mut rng)
        });
        matrices
    }

    /// Returns the index along K of a stored element in a row of A.
    pub fn position(&self, form: Form, [row, k]: [u32; 2]) -> u32 {
        let Some(metadata) = &self.metadata else { return k };
        let group = form.a.group();
        let each = group / 2;
        let bits = metadata.at([row, k / each]);
        k / each * group + form.a.position(bits, k % each).unwrap_or_default()
    }

    /// Returns the approximate sum of the products of a row and a column.
    fn sum(&self, case: &Case, [row, column]: [u32; 2]) -> f64 {
        let form = case.form();
        let products = (0..).zip(self.a.line(row)).map(|(k, a)| {
            let b = self.b.at([column, self.position(form, [row, k])]);
            draw::rough(form.a, *a) * draw::rough(form.b, b)
        });
        let sum: f64 = products.sum();
        let [a, b] = case.instruction.negates;
        if a == b { sum } else { -sum }
    }

    /// Returns the contents of shared memory, and the offsets of A and B in it.
    pub fn image(&self, case: &Case) -> (Vec<u8>, [u32; 2]) {
        let (left, right) = (case.left(), case.right());
        let left_bytes = left.map_or(0, |tile| tile.bytes().next_multiple_of(ALIGNMENT));
        // Bytes outside of the operands are not zero, so that reading them is noticed.
        let mut rng = Rng::new(!case.seed);
        let bytes = (left_bytes + right.bytes()).next_multiple_of(16);
        let mut image: Vec<u8> = (0..bytes).map(|_| rng.next() as u8).collect();
        if let Some(tile) = left {
            put(&mut image, tile, &self.a);
        }
        put(&mut image[left_bytes as usize..], right, &self.b);
        (image, [0, left_bytes])
    }

    /// Returns the registers of A for a step, each for all threads.
    pub fn registers(&self, form: Form, step: u32) -> Vec<u32> {
        let first = step * form.stored_k();
        let positions =
            (0..Form::LEFT_REGISTERS).flat_map(|reg| (0..THREADS).map(move |thread| (reg, thread)));
        let word = |(register, thread)| {
            let part = |part| {
                let [row, k] = form.a.coordinates(FragmentSlot { thread, register, part });
                self.a.at([row, first + k]) << (part * form.a.bits())
            };
            (0..form.a.per_register()).map(part).fold(0, |word, bits| word | bits)
        };
        positions.map(word).collect()
    }

    /// Returns the metadata registers of all threads for a step. Threads that the selector does not
    /// select hold other bits.
    pub fn metadata_registers(&self, case: &Case, step: u32) -> Vec<u32> {
        let mut words: Vec<u32> = (0..THREADS).map(|thread| thread.wrapping_mul(0x9e37_79b1)).collect();
        let Some(metadata) = &self.metadata else { return words };
        let Form { a, .. } = case.form();
        let groups = case.form().k() / a.group();
        for row in 0..ROWS {
            for group in 0..groups {
                let MetadataLocation { thread, bit } = a.metadata(case.instruction.selector, row, group);
                let bits = metadata.at([row, step * groups + group]);
                let word = &mut words[thread as usize];
                *word = *word & !(0xf << bit) | bits << bit;
            }
        }
        words
    }

    /// Returns the registers of C, each for all threads.
    pub fn c_registers(&self, form: Form) -> Vec<u32> {
        let registers = form.accumulator_registers();
        let positions =
            (0..registers).flat_map(|register| (0..THREADS).map(move |thread| (register, thread)));
        let per = form.d.per_register();
        let word = |(register, thread)| {
            let part =
                |part| self.c.at(form.d.coordinates(FragmentSlot { thread, register, part })) << (part * 16);
            (0..per).map(part).fold(0, |word, bits| word | bits)
        };
        positions.map(word).collect()
    }
}

/// Alignment of the tiles, in bytes: the period of the widest swizzle's pattern.
pub const ALIGNMENT: u32 = 1024;

/// Draws the metadata of a group: two indices in ascending order, or one of a 32-bit element.
fn group(a: Operand, rng: &mut Rng) -> u32 {
    match a {
        Operand::Tf32 => rng.choose(&[0b0100, 0b1110]),
        Operand::F16
        | Operand::Bf16
        | Operand::E4m3
        | Operand::E5m2
        | Operand::S8
        | Operand::U8
        | Operand::B1 => rng.choose(&[0b0100, 0b1000, 0b1100, 0b1001, 0b1101, 0b1110]),
    }
}

/// Writes the elements of a tile into an image.
fn put(image: &mut [u8], tile: OperandTile, matrix: &Matrix) {
    let bits = tile.element.bits();
    for (at, element) in (0..).zip(&matrix.bits) {
        let (line, k) = (at / matrix.depth, at % matrix.depth);
        let byte = tile.offset(line, k) as usize;
        match bits {
            1 => image[byte] = image[byte] & !(1 << (k % 8)) | (*element as u8) << (k % 8),
            _ => image[byte..][..bits as usize / 8]
                .copy_from_slice(&element.to_le_bytes()[..bits as usize / 8]),
        }
    }
}

/// Assembles D from the registers of all threads.
pub fn result(form: Form, registers: &[u32]) -> Matrix {
    Matrix::new([ROWS, form.n], |[row, column]| {
        let FragmentSlot { thread, register, part } = form.d.slot(row, column);
        let word = registers[(register * THREADS + thread) as usize];
        match form.d {
            Accumulator::F16 => word >> (16 * part) & 0xffff,
            Accumulator::F32 | Accumulator::S32 => word,
        }
    })
}
