//! Runs several cases in one kernel.

use tma_model::mma::Form;
use tma_runtime::launch::{Arg, Grid, KernelParts, KernelSpec, ParamKind, ParamSpec, launch};
use tma_runtime::spec::{Cluster, Scalar};
use tma_runtime::{Device, DeviceTensor};

use crate::case::{Case, Family};
use crate::draw::Addend;
use crate::instruction::Instruction;
use crate::kernel::{self, RECORD, STEP_HEAD};
use crate::operand::{Matrices, Matrix, THREADS, result};

/// The kernel's parameters, documented in [`kernel`].
static PARAMS: [ParamSpec; 3] = [words("records", false), words("data", false), words("out", true)];

/// Creates a parameter that is a slice of words.
pub(crate) const fn words(name: &'static str, written: bool) -> ParamSpec {
    ParamSpec { name, kind: ParamKind::Global { element: Scalar::U32, written, alignment: 16 } }
}

/// The work of one block of the kernel.
#[derive(Clone, Debug)]
pub struct Job {
    /// Instruction that the block executes.
    pub instruction: Instruction,
    /// Contents of shared memory.
    pub image: Vec<u8>,
    /// Registers of C.
    pub c: Vec<u32>,
    /// Inputs of each step.
    pub steps: Vec<StepInputs>,
}

/// The inputs of a step.
#[derive(Clone, Debug)]
pub struct StepInputs {
    /// Descriptors of A and B.
    pub descriptors: [u64; 2],
    /// The predicate `scale-d`.
    pub adds: bool,
    /// Registers of A.
    pub left: Vec<u32>,
    /// The metadata register of each thread.
    pub metadata: Vec<u32>,
}

impl Job {
    /// Creates the job of a case with these matrices.
    pub fn new(case: &Case, matrices: &Matrices) -> Self {
        let (image, starts) = matrices.image(case);
        let steps = (0..case.steps).map(|step| StepInputs {
            descriptors: case.descriptors(step, starts),
            adds: step > 0 || case.addend != Addend::Absent,
            left: matrices.registers(case.form(), step),
            metadata: matrices.metadata_registers(case, step),
        });
        let c = matrices.c_registers(case.form());
        Self { instruction: case.instruction, image, c, steps: steps.collect() }
    }
}

/// Appends words at a multiple of 16 bytes, and returns their position in units of 16 bytes.
fn append(data: &mut Vec<u32>, words: impl IntoIterator<Item = u32>) -> u32 {
    data.resize(data.len().next_multiple_of(4), 0);
    let at = data.len() / 4;
    data.extend(words);
    at as u32
}

/// Returns the distinct instructions of jobs, in the order in which the kernel has them.
fn instructions<'j>(jobs: impl IntoIterator<Item = &'j Instruction>) -> Vec<Instruction> {
    let mut instructions = Vec::new();
    for instruction in jobs {
        if !instructions.contains(instruction) {
            instructions.push(*instruction);
        }
    }
    instructions
}

/// Returns the PTX of the kernel that runs cases of a family.
pub fn text(family: Family, cases: &[Case]) -> String {
    kernel::text(family.0, &instructions(cases.iter().map(|case| &case.instruction)))
}

/// Runs jobs of a family, and returns the registers of D of each.
///
/// # Errors
///
/// Errors of the device.
pub fn run(device: &Device, family: Family, jobs: &[Job]) -> anyhow::Result<Vec<Vec<u32>>> {
    let instructions = instructions(jobs.iter().map(|job| &job.instruction));
    let (mut records, mut data) = (Vec::new(), Vec::new());
    for job in jobs {
        let arm = instructions.iter().position(|one| *one == job.instruction).unwrap_or_default();
        let words = job
            .image
            .chunks(4)
            .map(|word| word.iter().rev().fold(0, |all, byte| all << 8 | u32::from(*byte)));
        let image = append(&mut data, words);
        let c = append(&mut data, job.c.iter().copied());
        data.resize(data.len().next_multiple_of(4), 0);
        let first = (data.len() / 4) as u32;
        job.steps.iter().for_each(|step| step.put(&mut data));
        let record = [image, job.image.len() as u32, arm as u32, job.steps.len() as u32, first, c, 0, 0];
        debug_assert_eq!(record.len(), RECORD);
        records.extend(record);
    }
    let spec = specification(family.0, &instructions, jobs);
    let each = (family.0.accumulator_registers() * THREADS) as usize;
    let records = device.tensor(&records, [records.len()])?;
    let data = device.tensor(&data, [data.len()])?;
    let mut out: DeviceTensor<u32, 1> = device.filled_bytes([each * jobs.len()], 0xa5)?;
    let args = [Arg::global(records.slice()), Arg::global(data.slice()), Arg::global_mut(out.slice_mut())];
    launch(device, spec, Grid::x(jobs.len() as u32), &args)?;
    let words = out.to_vec()?;
    Ok(words.chunks(each).map(<[u32]>::to_vec).collect())
}

impl StepInputs {
    fn put(&self, data: &mut Vec<u32>) {
        let mut head = [0; STEP_HEAD];
        for (words, descriptor) in head.chunks_mut(2).zip(self.descriptors) {
            words.copy_from_slice(&[descriptor as u32, (descriptor >> 32) as u32]);
        }
        head[4] = self.adds.into();
        data.extend(head);
        data.extend(&self.left);
        data.extend(&self.metadata);
    }
}

/// Returns the kernel in the form that the runtime expects. It is leaked.
fn specification(form: Form, instructions: &[Instruction], jobs: &[Job]) -> &'static KernelSpec {
    let most = jobs.iter().map(|job| job.image.len() as u32).max().unwrap_or_default();
    let parts = KernelParts {
        name: kernel::ENTRY,
        entry: kernel::ENTRY,
        ptx: Box::leak(kernel::text(form, instructions).into_boxed_str()),
        threads: [THREADS, 1, 1],
        cluster: Cluster::None,
        cooperative: false,
        dependency_wait: false,
        team: false,
        shared_bytes: most,
        params: &PARAMS,
    };
    // SAFETY: a block reads what its record refers to, all of which `run` puts into `data`, and
    // writes its own part of `out`. Shared memory is large enough for the largest image.
    Box::leak(Box::new(unsafe { KernelSpec::from_parts(parts) }))
}

/// Runs cases of a family, and returns the D of each.
///
/// # Errors
///
/// Errors of [`run`].
pub fn results(device: &Device, family: Family, cases: &[(Case, Matrices)]) -> anyhow::Result<Vec<Matrix>> {
    let jobs: Vec<_> = cases.iter().map(|(case, matrices)| Job::new(case, matrices)).collect();
    let registers = run(device, family, &jobs)?;
    Ok(registers.iter().map(|registers| result(family.0, registers)).collect())
}
