//! The products of a warp: `mma.sync`.
//!
//! A case is a warp that multiplies fragments, which hold numbers of the same kinds as those of
//! `wgmma`. Source: PTX ISA, "Matrix Fragments for mma.m16n8k*".

use std::fmt;

use tma_model::limits::WARP_THREADS;
use tma_model::mma::{Accumulated, Operand, Place, WARP_COLUMNS, WARP_ROWS, WarpForm};
use tma_runtime::launch::{Arg, Grid, KernelParts, KernelSpec, launch};
use tma_runtime::spec::Cluster;
use tma_runtime::{Device, DeviceTensor};

use crate::batch::PARAMS;
use crate::draw::{self, Addend, Draws, Kind};
use crate::operand::Matrix;
use crate::run::{Outcome, differing};

/// Threads of a warp.
const LANES: u32 = WARP_THREADS;

/// An `mma.sync` with all that its text says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Warp {
    /// Types and depth.
    pub form: WarpForm,
    /// Whether sums of integers are clamped.
    pub saturates: bool,
    /// Single bits: whether they are combined by exclusive or.
    pub differs: bool,
}

/// Every one of them with A dense.
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

/// `m16n8k16.f32.bf16.bf16.f32`, as PTX has it.
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
    /// The kernel that multiplies, a warp for each block.
    pub fn text(self) -> String {
        let counts = self.form.registers();
        let version = self.form.ptx_version();
        let names = |prefix: &str, count: u32| {
            let names: Vec<_> = (0..count).map(|i| format!("%{prefix}{i}")).collect();
            names.join(", ")
        };
        let [a, b, c] = [("a", counts[0]), ("b", counts[1]), ("c", counts[2])].map(|(p, n)| names(p, n));
        let mut at = 0;
        let mut load = String::new();
        for (prefix, count) in ["a", "b", "c"].into_iter().zip(counts) {
            for i in 0..count {
                load += &format!("ld.global.u32 %{prefix}{i}, [%q1+{at}];\n");
                at += 4 * LANES;
            }
        }
        let store: String =
            (0..counts[2]).map(|i| format!("st.global.u32 [%q2+{}], %c{i};\n", i * 4 * LANES)).collect();
        format!(
            ".version {}.{}\n.target sm_90a\n.address_size 64\n.visible .entry {ENTRY}(\n\
             .param .u64 records, .param .u64 record_words,\n.param .u64 data, .param .u64 data_words,\n\
             .param .u64 out, .param .u64 out_words)\n.maxntid {LANES}, 1, 1\n{{\n\
             .reg .b32 %r<4>; .reg .b32 %a<4>; .reg .b32 %b<2>; .reg .b32 %c<4>; .reg .b64 %q<6>;\n\
             ld.param.u64 %q1, [data];\nld.param.u64 %q2, [out];\nmov.u32 %r0, %tid.x;\nmov.u32 %r1, %ctaid.x;\n\
             mul.wide.u32 %q3, %r0, 4;\nmul.wide.u32 %q4, %r1, {at};\nmul.wide.u32 %q5, %r1, {};\n\
             add.u64 %q1, %q1, %q3;\nadd.u64 %q1, %q1, %q4;\nadd.u64 %q2, %q2, %q3;\nadd.u64 %q2, %q2, %q5;\n\
             {load}mma.sync.aligned.{self} {{{c}}}, {{{a}}}, {{{b}}}, {{{c}}};\n{store}ret;\n}}\n",
            version.0,
            version.1,
            counts[2] * 4 * LANES
        )
    }
}

/// The symbol of the kernel.
const ENTRY: &str = "warp_products";

/// Numbers that go into an instruction.
#[derive(Clone, Copy, Debug)]
pub struct WarpCase {
    /// The instruction.
    pub warp: Warp,
    /// What A and B hold.
    pub kind: Kind,
    /// What C is, which is always added.
    pub addend: Addend,
    /// The random numbers.
    pub seed: u64,
}

impl fmt::Display for WarpCase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { warp, kind, addend, seed } = self;
        write!(f, "{warp} {kind}+{addend} #{seed}")
    }
}

/// Every kind of numbers with every C, for each instruction.
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
    /// Those of a case.
    pub fn new(case: &WarpCase) -> Self {
        let WarpCase { warp, kind, addend, seed } = *case;
        let WarpForm { d, a, b, k } = warp.form;
        let mut draws = Draws::new(seed);
        let left = Matrix::new([WARP_ROWS, k], |[line, k]| {
            draw::element(kind, a, draw::Place { right: false, line, k }, &mut draws)
        });
        let right = Matrix::new([WARP_COLUMNS, k], |[line, k]| {
            draw::element(kind, b, draw::Place { right: true, line, k }, &mut draws)
        });
        let c = Matrix::new([WARP_ROWS, WARP_COLUMNS], |[row, column]| {
            let products = left.line(row).iter().zip(right.line(column));
            let sum = products.map(|(x, y)| draw::rough(a, *x) * draw::rough(b, *y)).sum();
            draw::addend(addend, d, sum, &mut draws)
        });
        Self { a: left, b: right, c }
    }

    /// The registers of A, B and C, of each those of all lanes.
    fn words(&self, form: WarpForm) -> Vec<u32> {
        let WarpForm { d, a, b, .. } = form;
        let [left, right, sum] = form.registers();
        let mut words = fragment([left, a.per_register(), a.bits()], |place| self.a.at(a.coordinates(place)));
        words.extend(fragment([right, b.per_register(), b.bits()], |place| {
            let [k, column] = form.right_coordinates(place);
            self.b.at([column, k])
        }));
        let per = d.per_register();
        words.extend(fragment([sum, per, 32 / per], |place| self.c.at(d.coordinates(place))));
        words
    }
}

/// A number of registers with so many elements of so many bits, of each those of all lanes.
fn fragment([registers, per, bits]: [u32; 3], element: impl Fn(Place) -> u32) -> Vec<u32> {
    let words = (0..registers).flat_map(|register| (0..LANES).map(move |thread| (register, thread)));
    let part = |register, thread, part| element(Place { thread, register, part }) << (part * bits);
    let word =
        |(register, thread)| (0..per).map(|i| part(register, thread, i)).fold(0, |word, bits| word | bits);
    words.map(word).collect()
}

/// Runs cases of one instruction, and returns D of each, by rows.
///
/// # Errors
///
/// What the device reports.
pub fn results(device: &Device, warp: Warp, cases: &[WarpMatrices]) -> anyhow::Result<Vec<Matrix>> {
    let data: Vec<u32> = cases.iter().flat_map(|case| case.words(warp.form)).collect();
    let [_, _, registers] = warp.form.registers();
    let each = (registers * LANES) as usize;
    let records = device.tensor(&[0_u32; 4], [4])?;
    let data = device.tensor(&data, [data.len()])?;
    let mut out: DeviceTensor<u32, 1> = device.filled_bytes([each * cases.len()], 0xa5)?;
    let args = [Arg::global(records.slice()), Arg::global(data.slice()), Arg::global_mut(out.slice_mut())];
    launch(device, specification(warp), Grid::x(cases.len() as u32), &args)?;
    let words = out.to_vec()?;
    let d = warp.form.d;
    let matrix = |words: &[u32]| {
        Matrix::new([WARP_ROWS, WARP_COLUMNS], |at| {
            let Place { thread, register, part } = d.place(at);
            let word = words[(register * LANES + thread) as usize];
            if d == Accumulated::F16 { word >> (16 * part) & 0xffff } else { word }
        })
    };
    Ok(words.chunks(each).map(matrix).collect())
}

/// Runs cases on each device, and hands out each as it is done. A device's errors are problems of
/// all cases of their instruction.
pub fn each(devices: &[Device], cases: &[WarpCase], take: &mut dyn FnMut(Outcome)) {
    for warp in all() {
        let of_warp = || cases.iter().enumerate().filter(|(_, case)| case.warp == warp);
        let matrices: Vec<_> = of_warp().map(|(_, case)| WarpMatrices::new(case)).collect();
        if matrices.is_empty() {
            continue;
        }
        let run = |device: &Device| {
            let failed = |error| format!("{}: {error:#}", device.name());
            results(device, warp, &matrices).map_err(failed)
        };
        let by_device: Result<Vec<_>, String> = devices.iter().map(run).collect();
        for (place, (index, _)) in of_warp().enumerate() {
            let (results, problem) = match &by_device {
                Ok(all) => {
                    let results: Vec<Matrix> = all.iter().map(|results| results[place].clone()).collect();
                    let problem = differing(&results);
                    (results, problem)
                }
                Err(error) => (vec![], Some(error.clone())),
            };
            take(Outcome { index, results, problem });
        }
    }
}

/// The kernel as the runtime takes it. It is kept until the program ends.
fn specification(warp: Warp) -> &'static KernelSpec {
    let parts = KernelParts {
        name: ENTRY,
        entry: ENTRY,
        ptx: Box::leak(warp.text().into_boxed_str()),
        threads: [LANES, 1, 1],
        cluster: Cluster::None,
        cooperative: false,
        dependency_wait: false,
        shared_bytes: 0,
        params: &PARAMS,
    };
    // SAFETY: a block reads its own part of `data` and writes its own part of `out`, and `results`
    // launches as many blocks as there are parts.
    Box::leak(Box::new(unsafe { KernelSpec::from_parts(parts) }))
}
