//! Which elements of shared memory descriptors lead to, asked of the hardware.
//!
//! Shared memory holds numbers, each of which is there once, and the other operand picks: each
//! element of D is then the number that was read for it.

use std::fmt;

use tma_model::Swizzle;
use tma_model::mma::{Accumulated, Descriptor, Form, Major, Operand, Place, ROWS};
use tma_runtime::Device;

use crate::batch::{self, Job, Step};
use crate::case::Family;
use crate::instruction::{Instruction, Source};
use crate::list::SWIZZLES;
use crate::operand::{Matrix, THREADS, result};
use crate::run::{Outcome, differing};

/// Bytes of shared memory that are numbered, 2 at a time from 1 up: as f16, positive and finite.
const NUMBERED: u32 = 0x7bff * 2;

/// Bytes of shared memory, the last of which hold what picks.
const BYTES: u32 = 64 << 10;

/// Where that is.
const PICK: u32 = BYTES - 512;

/// Rows of B that a sparse A picks one by one: all of its K.
const PICKED: u32 = 32;

/// Bits of the f16 that is 1.
const ONE: u32 = 0x3c00;

/// A descriptor of A, or of B of a sparse instruction.
#[derive(Clone, Copy, Debug)]
pub struct Probe {
    /// Whether it is of B.
    pub right: bool,
    /// What it is asked about.
    pub descriptor: Descriptor,
    /// K-major or not.
    pub major: Major,
}

/// Every question.
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

/// The descriptor with its fields.
impl fmt::Display for Probe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let side = if self.right { "B" } else { "A" };
        let bits = self.descriptor.encode();
        write!(f, "{side} {:?} {bits:#018x} {:?}", self.major, self.descriptor)
    }
}

impl Probe {
    /// The answer of a device that reads where the model says.
    pub fn modelled(&self) -> Matrix {
        let rows = if self.right { PICKED } else { ROWS };
        Matrix::new([ROWS, 16], |[row, column]| {
            let place = if self.right { [column, row] } else { [row, column] };
            let at = self.descriptor.address(self.major, Operand::F16, place);
            if row < rows { at / 2 + 1 } else { 0 }
        })
    }

    /// Whether the operand starts where the pattern of its swizzle does, but for steps along K, and
    /// its chunks are different bytes: the simulator finds fault with others.
    pub fn is_allowed(&self) -> bool {
        let Form { n, .. } = self.instruction().form;
        let [extent, k] = if self.right { [n, PICKED] } else { [ROWS, 16] };
        let counts = match self.major {
            Major::K => [extent, k / Operand::F16.per_chunk()],
            Major::Mn => [k, extent / Operand::F16.per_chunk()],
        };
        self.descriptor.into_pattern() == 0 && self.descriptor.repeated(self.major, counts).is_none()
    }

    fn instruction(&self) -> Instruction {
        let form = Form { d: Accumulated::F32, a: Operand::F16, b: Operand::F16, n: 16, sparse: self.right };
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
        let unit = Descriptor { start: PICK, leading: 256, stride: 128, ..Descriptor::default() };
        for i in 0..16 {
            let at = unit.address(Major::K, Operand::F16, [i, i]) as usize;
            image[at..at + 2].copy_from_slice(&(ONE as u16).to_le_bytes());
        }
        let probed = self.descriptor.encode();
        let descriptors = if self.right { [0, probed] } else { [probed, unit.encode()] };
        let (left, metadata) = if self.right { picking_rows() } else { (vec![0; 512], vec![0; 128]) };
        let instruction = self.instruction();
        let c = vec![0; (instruction.form.accumulator_registers() * THREADS) as usize];
        Job { instruction, image, c, steps: vec![Step { descriptors, adds: false, left, metadata }] }
    }
}

/// A sparse A whose row r is 1 at k = r, as registers and metadata.
fn picking_rows() -> (Vec<u32>, Vec<u32>) {
    let a = Operand::F16;
    let (mut left, mut metadata) = (vec![0; 4 * THREADS as usize], vec![0; THREADS as usize]);
    for row in 0..ROWS {
        for group in 0..8 {
            let here = row < PICKED && row / 4 == group;
            let (bits, slot) = match row % 4 {
                _ if !here => (0b0100, 0),
                3 => (0b1100, 1),
                at => (at | 0b1100, 0),
            };
            let place = a.metadata(0, [row, group]);
            metadata[place.thread as usize] |= bits << place.bit;
            if here {
                let Place { thread, register, part } = a.place([row, 2 * group + slot]);
                left[(register * THREADS + thread) as usize] |= ONE << (16 * part);
            }
        }
    }
    (left, metadata)
}

/// For each probe the number of each element of D: which 2 bytes of shared memory, from 1 up.
///
/// # Errors
///
/// What the device reports.
pub fn answers(device: &Device, probes: &[Probe]) -> anyhow::Result<Vec<Matrix>> {
    let jobs: Vec<Job> = probes.iter().map(Probe::job).collect();
    let Some(first) = jobs.first() else { return Ok(vec![]) };
    let form = Form { sparse: false, ..first.instruction.form };
    let registers = batch::run(device, Family(form), &jobs)?;
    Ok(registers.iter().map(|registers| numbers(form, registers)).collect())
}

/// D's elements, which are those of f16, as their bits.
fn numbers(form: Form, registers: &[u32]) -> Matrix {
    let mut d = result(form, registers);
    for bits in &mut d.bits {
        *bits = crate::number::F16.nearest(f64::from(f32::from_bits(*bits)));
    }
    d
}

/// Asks each device, and hands out each answer, which is to be the model's. A device's errors are
/// problems of all probes that it was asked.
pub fn each(devices: &[Device], probes: &[Probe], take: &mut dyn FnMut(Outcome)) {
    let taken = |device: &Device| {
        let is_simulated = device.name() == Device::simulator().name();
        move |probe: &Probe| !is_simulated || probe.is_allowed()
    };
    let mut results: Vec<Vec<Matrix>> = probes.iter().map(|probe| vec![probe.modelled()]).collect();
    let mut failure = None;
    for device in devices {
        let places: Vec<usize> = (0..probes.len()).filter(|&i| taken(device)(&probes[i])).collect();
        let asked: Vec<Probe> = places.iter().map(|&place| probes[place]).collect();
        match answers(device, &asked) {
            Ok(all) => places.iter().zip(all).for_each(|(&place, answer)| results[place].push(answer)),
            Err(error) => failure = failure.or(Some(format!("{}: {error:#}", device.name()))),
        }
    }
    for (index, mut results) in results.into_iter().enumerate() {
        let problem = failure.clone().or_else(|| differing(&results));
        // What is recorded is a device's.
        if results.len() > 1 {
            results.remove(0);
        }
        take(Outcome { index, results, problem });
    }
}
