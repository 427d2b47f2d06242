//! The matrix instructions of a warp: `mma.sync`.
//!
//! In each case a warp multiplies fragments, which hold the same kinds of numbers as those of
//! `wgmma`. Source: PTX ISA, "Matrix Fragments for mma.m16n8k*".

use std::fmt;

use tma_model::limits::WARP_THREADS;
use tma_model::mma::{Accumulator, FragmentSlot, Operand, WARP_COLUMNS, WARP_ROWS, WarpForm};
use tma_runtime::Device;

use crate::draw::{self, Addend, Kind, Rng};
use crate::operand::Matrix;
use crate::run::{CaseOutcome, each_of};
use crate::warp_kernel::WarpKernel;

/// Threads of a warp.
const LANES: u32 = WARP_THREADS;

/// An `mma.sync` with all of its modifiers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Warp {
    /// Types and K.
    pub form: WarpForm,
    /// Whether integer sums are clamped.
    pub saturates: bool,
    /// Whether single bits are combined by exclusive or.
    pub differs: bool,
}

/// Returns all instructions with a dense A.
pub fn all() -> Vec<Warp> {
    let mut all = Vec::new();
    for a in Operand::ALL {
        for k in WarpForm::depths(a) {
            for b in Operand::ALL.into_iter().filter(|b| a.multiplies(*b)) {
                for &d in a.accumulates() {
                    let form = WarpForm { d, a, b, k };
                    let plain = Warp { form, saturates: false, differs: false };
                    all.push(plain);
                    if a.is_saturable() {
                        all.push(Warp { saturates: true, ..plain });
                    }
                    if a == Operand::B1 {
                        all.push(Warp { differs: true, ..plain });
                    }
                }
            }
        }
    }
    all
}

/// Formats the instruction as in PTX: `m16n8k16.row.col.f32.bf16.bf16.f32`.
impl fmt::Display for Warp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { form, saturates, differs } = self;
        let WarpForm { d, a, b, .. } = form;
        let clamped = if *saturates { ".satfinite" } else { "" };
        let combined = match (a, differs) {
            (Operand::B1, true) => ".xor.popc",
            (Operand::B1, false) => ".and.popc",
            _ => "",
        };
        write!(f, "{form}.row.col{clamped}.{d}.{a}.{b}.{d}{combined}")
    }
}

impl Warp {
    /// Returns the PTX of the kernel under test. Each block is one warp.
    pub fn text(self) -> String {
        self.kernel().text()
    }

    fn kernel(self) -> WarpKernel {
        WarpKernel {
            instruction: self.to_string(),
            registers: self.form.registers(),
            words: 1,
            version: self.form.ptx_version(),
        }
    }
}

/// The inputs of an instruction.
#[derive(Clone, Copy, Debug)]
pub struct WarpCase {
    /// Instruction to execute.
    pub warp: Warp,
    /// Kind of numbers in A and B.
    pub kind: Kind,
    /// Kind of numbers in C, which is always added.
    pub addend: Addend,
    /// Seed of the random numbers.
    pub seed: u64,
}

impl fmt::Display for WarpCase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { warp, kind, addend, seed } = self;
        write!(f, "{warp} {kind}+{addend} #{seed}")
    }
}

/// Returns the cases: every kind of numbers with every C, for each instruction.
pub fn cases() -> Vec<WarpCase> {
    let mut cases = Vec::new();
    for warp in all() {
        for kind in Kind::ALL {
            for addend in Addend::ALL.into_iter().filter(|addend| *addend != Addend::Absent) {
                cases.push(WarpCase { warp, kind, addend, seed: cases.len() as u64 });
            }
        }
    }
    cases
}

/// The matrices of a case.
#[derive(Clone, Debug)]
pub struct WarpMatrices {
    /// A, by rows.
    pub a: Matrix,
    /// B, by columns.
    pub b: Matrix,
    /// C, by rows.
    pub c: Matrix,
}

impl WarpMatrices {
    /// Draws the matrices of a case.
    pub fn new(case: &WarpCase) -> Self {
        let WarpCase { warp, kind, addend, seed } = *case;
        let WarpForm { d, a, b, k } = warp.form;
        let mut rng = Rng::new(seed);
        let left = Matrix::new([WARP_ROWS, k], |[line, k]| {
            draw::element(kind, a, draw::ElementIndex { right: false, line, k }, &mut rng)
        });
        let right = Matrix::new([WARP_COLUMNS, k], |[line, k]| {
            draw::element(kind, b, draw::ElementIndex { right: true, line, k }, &mut rng)
        });
        let c = Matrix::new([WARP_ROWS, WARP_COLUMNS], |[row, column]| {
            let products = left.line(row).iter().zip(right.line(column));
            let sum = products.map(|(x, y)| draw::rough(a, *x) * draw::rough(b, *y)).sum();
            draw::addend(addend, d, sum, &mut rng)
        });
        Self { a: left, b: right, c }
    }

    /// Returns the registers of A, B and C, each for all lanes.
    fn words(&self, form: WarpForm) -> Vec<u32> {
        let WarpForm { d, a, b, .. } = form;
        let [left, right, sum] = form.registers();
        let mut words =
            fragment([left, a.per_register(), a.bits()], |position| self.a.at(a.coordinates(position)));
        words.extend(fragment([right, b.per_register(), b.bits()], |position| {
            let [k, column] = form.right_coordinates(position);
            self.b.at([column, k])
        }));
        let per = d.per_register();
        words.extend(fragment([sum, per, 32 / per], |position| self.c.at(d.coordinates(position))));
        words
    }
}

/// Returns `registers` registers of `per` elements with `bits` bits, each register for all lanes.
fn fragment([registers, per, bits]: [u32; 3], element: impl Fn(FragmentSlot) -> u32) -> Vec<u32> {
    let words = (0..registers).flat_map(|register| (0..LANES).map(move |thread| (register, thread)));
    let part = |register, thread, part| element(FragmentSlot { thread, register, part }) << (part * bits);
    let word =
        |(register, thread)| (0..per).map(|i| part(register, thread, i)).fold(0, |word, bits| word | bits);
    words.map(word).collect()
}

/// Runs cases of one instruction, and returns the D of each, by rows.
///
/// # Errors
///
/// Errors of the device.
pub fn results(device: &Device, warp: Warp, cases: &[WarpMatrices]) -> anyhow::Result<Vec<Matrix>> {
    let data: Vec<u32> = cases.iter().flat_map(|case| case.words(warp.form)).collect();
    let d = warp.form.d;
    let matrix = |words: &Vec<u32>| {
        Matrix::new([WARP_ROWS, WARP_COLUMNS], |[row, column]| {
            let FragmentSlot { thread, register, part } = d.slot(row, column);
            let word = words[(register * LANES + thread) as usize];
            if d == Accumulator::F16 { word >> (16 * part) & 0xffff } else { word }
        })
    };
    Ok(warp.kernel().run(device, &data, cases.len())?.iter().map(matrix).collect())
}

/// Runs cases on each device, and passes on each outcome as it is available. An error of a device
/// is a problem of all cases with that instruction.
pub fn each(devices: &[Device], cases: &[WarpCase], take: &mut dyn FnMut(CaseOutcome)) {
    for warp in all() {
        let indices: Vec<_> = (0..cases.len()).filter(|&index| cases[index].warp == warp).collect();
        let matrices: Vec<_> = indices.iter().map(|&index| WarpMatrices::new(&cases[index])).collect();
        each_of(devices, &indices, |device| results(device, warp, &matrices), |_, _| None, take);
    }
}
