//! Asks the hardware what each value of a sparse A's metadata means.
//!
//! The first stored element of each group is 1, and the second is 2. B is the unit matrix, so D
//! shows where along K the elements went.

use tma_model::Swizzle;
use tma_model::mma::{Accumulator, Form, Major, Operand, OperandTile, ROWS};
use tma_runtime::Device;

use crate::batch::{self, Job, StepInputs};
use crate::case::Family;
use crate::draw::rough;
use crate::instruction::{Instruction, Source};
use crate::number::Float;
use crate::operand::{Matrix, THREADS, result};

/// A type of A, and the four bits of metadata for all groups.
#[derive(Clone, Copy, Debug)]
pub struct MetadataProbe {
    /// The type of A.
    pub a: Operand,
    /// The four bits of metadata.
    pub bits: u32,
}

/// The types to test: one for each layout of metadata.
pub const TYPES: [Operand; 4] = [Operand::F16, Operand::Tf32, Operand::E5m2, Operand::S8];

/// The elements in the first group of columns of row 0 of D. `None` if other groups or rows differ.
pub type Positions = Option<Vec<f64>>;

fn form(a: Operand) -> Form {
    let form = Form { d: a.accumulates()[0], a, b: a, n: 8, sparse: true };
    Form { n: form.k(), ..form }
}

/// Returns the bits of a small number.
fn bits(operand: Operand, value: u32) -> u32 {
    Float::of(operand).map_or(value, |float| float.nearest(value.into()))
}

impl MetadataProbe {
    fn job(self) -> Job {
        let Self { a, bits: metadata } = self;
        let form = form(a);
        let unit =
            OperandTile { element: a, extents: [form.n, form.k()], swizzle: Swizzle::None, major: Major::K };
        let mut image = vec![0; unit.bytes() as usize];
        let width = a.bits() as usize / 8;
        for i in 0..form.n {
            let at = unit.offset(i, i) as usize;
            image[at..at + width].copy_from_slice(&bits(a, 1).to_le_bytes()[..width]);
        }
        // The elements of a register alternate, except for tf32, whose only element is the first.
        let word = (0..a.per_register()).fold(0, |word, part| {
            let number = if a == Operand::Tf32 { 1 } else { 1 + part % 2 };
            word | bits(a, number) << (part * a.bits())
        });
        let instruction = Instruction::plain(form, Source::Registers);
        let step = StepInputs {
            descriptors: [0, unit.descriptor(0).encode()],
            adds: false,
            left: vec![word; 4 * THREADS as usize],
            metadata: vec![metadata * 0x1111_1111; THREADS as usize],
        };
        let c = vec![0; (form.accumulator_registers() * THREADS) as usize];
        Job { instruction, image, c, steps: vec![step] }
    }
}

/// Returns the positions to which the elements of each group go.
///
/// # Errors
///
/// Errors of the device.
pub fn positions(device: &Device, probe: MetadataProbe) -> anyhow::Result<Positions> {
    let form = form(probe.a);
    let registers = batch::run(device, Family(Form { sparse: false, ..form }), &[probe.job()])?;
    Ok(registers.first().and_then(|registers| first_group(form, &result(form, registers))))
}

/// Formats the positions as a line of text.
pub fn line(MetadataProbe { a, bits }: MetadataProbe, positions: &Positions) -> String {
    match positions {
        Some(numbers) => format!("{a} {bits:04b} = {numbers:?}"),
        None => format!("{a} {bits:04b} = not the same everywhere"),
    }
}

fn first_group(form: Form, d: &Matrix) -> Positions {
    let number = |bits: u32| match form.d {
        Accumulator::S32 => f64::from(bits as i32),
        Accumulator::F32 => f64::from(f32::from_bits(bits)),
        Accumulator::F16 => rough(Operand::F16, bits),
    };
    let group = form.a.group() as usize;
    let first = &d.line(0)[..group];
    let same = (0..ROWS).all(|row| d.line(row).chunks(group).all(|other| other == first));
    same.then(|| first.iter().map(|bits| number(*bits)).collect())
}
