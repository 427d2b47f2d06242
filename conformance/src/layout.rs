//! Asks the hardware which elements of shared memory a descriptor addresses.
//!
//! Shared memory contains distinct numbers, and the other operand selects them, so that each
//! element of D is the number that was read for it.

use std::fmt;

use tma_model::Swizzle;
use tma_model::mma::{Accumulator, Descriptor, Form, FragmentSlot, Major, Operand, ROWS};
use tma_runtime::Device;

use crate::batch::{self, Job, StepInputs};
use crate::case::Family;
use crate::instruction::{Instruction, Source};
use crate::list::SWIZZLES;
use crate::operand::{Matrix, THREADS, result};
use crate::run::{CaseOutcome, differing};

/// Bytes of shared memory that are numbered, in pairs, from 1 up. As f16, all numbers are positive
/// and finite.
const NUMBERED: u32 = 0x7bff * 2;

/// Bytes of shared memory. The end holds the selecting operand.
const BYTES: u32 = 64 << 10;

/// Address of the selecting operand.
const SELECTOR_ADDRESS: u32 = BYTES - 512;

/// Rows of B that a sparse A selects one by one: its whole K.
const SELECTED_ROWS: u32 = 32;

/// The bits of 1 in f16.
const ONE: u32 = 0x3c00;

/// A descriptor to test, of A or of the B of a sparse instruction.
#[derive(Clone, Copy, Debug)]
pub struct Probe {
    /// Whether it describes B.
    pub right: bool,
    /// Descriptor under test.
    pub descriptor: Descriptor,
    /// Contiguous dimension of the operand.
    pub major: Major,
}

/// Returns all probes.
pub fn probes() -> Vec<Probe> {
    let mut all = Vec::new();
    for swizzle in SWIZZLES {
        for major in [Major::K, Major::Mn] {
            let of = |start: u32, base_offset, leading| Descriptor {
                start: 2048 + start,
                leading,
                stride: 2048,
                base_offset,
                swizzle,
            };
            for start in [0_u32, 16, 32, 64, 128, 256, 384, 512, 640, 896] {
                let bases = if swizzle == Swizzle::None { 0..2 } else { 0..8 };
                let descriptors = bases.map(|base| of(start, base, 4096));
                all.extend(descriptors.map(|descriptor| Probe { right: false, descriptor, major }));
            }
            for (start, leading) in [(0, 16), (0, 4096), (32, 16), (32, 4096)] {
                let descriptor = of(start, 0, leading);
                all.push(Probe { right: true, descriptor, major });
                all.push(Probe { right: false, descriptor, major });
            }
        }
    }
    all
}

/// Formats the descriptor and its fields.
impl fmt::Display for Probe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let side = if self.right { "B" } else { "A" };
        let bits = self.descriptor.encode();
        write!(f, "{side} {:?} {bits:#018x} {:?}", self.major, self.descriptor)
    }
}

impl Probe {
    /// Returns the result of a device that reads the addresses in the model.
    pub fn modelled(&self) -> Matrix {
        let rows = if self.right { SELECTED_ROWS } else { ROWS };
        Matrix::new([ROWS, 16], |[row, column]| {
            let (i, k) = if self.right { (column, row) } else { (row, column) };
            let at = self.descriptor.address(self.major, Operand::F16, i, k);
            if row < rows { at / 2 + 1 } else { 0 }
        })
    }

    /// Returns whether the operand starts where the pattern of its swizzle does, apart from steps
    /// along K, and its chunks are distinct. The simulator rejects other operands.
    pub fn is_allowed(&self) -> bool {
        let Form { n, .. } = self.instruction().form;
        let [extent, k] = if self.right { [n, SELECTED_ROWS] } else { [ROWS, 16] };
        let (lines, chunks) = match self.major {
            Major::K => (extent, k / Operand::F16.per_chunk()),
            Major::Mn => (k, extent / Operand::F16.per_chunk()),
        };
        self.descriptor.into_pattern() == 0 && self.descriptor.repeated(self.major, lines, chunks).is_none()
    }

    fn instruction(&self) -> Instruction {
        let form = Form { d: Accumulator::F32, a: Operand::F16, b: Operand::F16, n: 16, sparse: self.right };
        let (source, majors) = if self.right {
            (Source::Registers, [Major::K, self.major])
        } else {
            (Source::Shared, [self.major, Major::K])
        };
        Instruction { majors, ..Instruction::plain(form, source) }
    }

    fn job(&self) -> Job {
        let mut image = vec![0; BYTES as usize];
        for (number, bytes) in (1_u16..).zip(image[..NUMBERED as usize].chunks_mut(2)) {
            bytes.copy_from_slice(&number.to_le_bytes());
        }
        // The unit matrix of 16 rows, K-major without a swizzle.
        let unit = Descriptor { start: SELECTOR_ADDRESS, leading: 256, stride: 128, ..Descriptor::default() };
        for i in 0..16 {
            let at = unit.address(Major::K, Operand::F16, i, i) as usize;
            image[at..at + 2].copy_from_slice(&(ONE as u16).to_le_bytes());
        }
        let probed = self.descriptor.encode();
        let descriptors = if self.right { [0, probed] } else { [probed, unit.encode()] };
        let (left, metadata) = if self.right { row_selection() } else { (vec![0; 512], vec![0; 128]) };
        let instruction = self.instruction();
        let c = vec![0; (instruction.form.accumulator_registers() * THREADS) as usize];
        Job { instruction, image, c, steps: vec![StepInputs { descriptors, adds: false, left, metadata }] }
    }
}

/// Returns a sparse A whose row r is 1 at k = r, as registers and metadata.
fn row_selection() -> (Vec<u32>, Vec<u32>) {
    let a = Operand::F16;
    let (mut left, mut metadata) = (vec![0; 4 * THREADS as usize], vec![0; THREADS as usize]);
    for row in 0..ROWS {
        for group in 0..8 {
            let is_selected = row < SELECTED_ROWS && row / 4 == group;
            let (bits, slot) = match row % 4 {
                _ if !is_selected => (0b0100, 0),
                3 => (0b1100, 1),
                at => (at | 0b1100, 0),
            };
            let location = a.metadata(0, row, group);
            metadata[location.thread as usize] |= bits << location.bit;
            if is_selected {
                let FragmentSlot { thread, register, part } = a.slot(row, 2 * group + slot);
                left[(register * THREADS + thread) as usize] |= ONE << (16 * part);
            }
        }
    }
    (left, metadata)
}

/// Returns the elements of D for each probe. Each is the number, from 1, of the 2 bytes of shared
/// memory that were read.
///
/// # Errors
///
/// Errors of the device.
pub fn results(device: &Device, probes: &[Probe]) -> anyhow::Result<Vec<Matrix>> {
    let jobs: Vec<Job> = probes.iter().map(Probe::job).collect();
    let Some(first) = jobs.first() else { return Ok(vec![]) };
    let form = Form { sparse: false, ..first.instruction.form };
    let registers = batch::run(device, Family(form), &jobs)?;
    Ok(registers.iter().map(|registers| numbers(form, registers)).collect())
}

/// Returns the elements of D, which are values of f16, as bits.
fn numbers(form: Form, registers: &[u32]) -> Matrix {
    let mut d = result(form, registers);
    for bits in &mut d.bits {
        *bits = crate::number::F16.nearest(f64::from(f32::from_bits(*bits)));
    }
    d
}

/// Runs the probes on each device, and passes on each outcome. The expected result is the model's.
/// An error of a device is a problem of all probes.
pub fn each(devices: &[Device], probes: &[Probe], take: &mut dyn FnMut(CaseOutcome)) {
    let taken = |device: &Device| {
        let is_simulated = device.name() == Device::simulator().name();
        move |probe: &Probe| !is_simulated || probe.is_allowed()
    };
    let mut all_results: Vec<Vec<Matrix>> = probes.iter().map(|probe| vec![probe.modelled()]).collect();
    let mut failure = None;
    for device in devices {
        let indices: Vec<usize> = (0..probes.len()).filter(|&i| taken(device)(&probes[i])).collect();
        let allowed: Vec<Probe> = indices.iter().map(|&index| probes[index]).collect();
        match results(device, &allowed) {
            Ok(all) => indices.iter().zip(all).for_each(|(&index, result)| all_results[index].push(result)),
            Err(error) => failure = failure.or(Some(format!("{}: {error:#}", device.name()))),
        }
    }
    for (index, mut results) in all_results.into_iter().enumerate() {
        let problem = failure.clone().or_else(|| differing(&results));
        // The results to record are a device's, not the model's.
        if results.len() > 1 {
            results.remove(0);
        }
        take(CaseOutcome { index, results, problem });
    }
}
