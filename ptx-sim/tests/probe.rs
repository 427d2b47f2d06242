//! Tensor maps and copies compared with an H200. `tests/probe/results.txt` records what it did with
//! boxes of all kinds.
//!
//! `tests/probe` has the programs that produced it: `cases.py` draws the cases, `kernels.py` writes
//! the PTX that the GPU and the simulator both run, `run.py` runs it through the driver, and
//! `results.py` writes the file.

use std::collections::BTreeMap;

use ptx_sim::tensor_map::{DataType, Fill, Interleave, Mode, Swizzle, TensorMap};
use ptx_sim::{Arg, Checks, GlobalMemory, LaunchConfig, Module, launch};

const RESULTS: &str = include_str!("probe/results.txt");
const KERNELS: &str = include_str!("probe/kernels.ptx");

/// Bytes of the tensor's buffer, and of shared memory that the kernel of a load writes out. Both
/// must match `cases.py` and `kernels.py`.
const BUFFER: usize = 65536;
const DUMP: usize = 20480;
/// The contents of shared memory before a load.
const UNTOUCHED: u8 = 0xee;

/// The words of a case by their keys, and the outcome on the GPU.
struct Case<'t> {
    line: &'t str,
    words: BTreeMap<&'t str, &'t str>,
    outcome: &'t str,
}

fn cases() -> impl Iterator<Item = Case<'static>> {
    RESULTS.lines().map(|line| {
        let (words, outcome) = line.split_once(" = ").expect("a case and its outcome");
        let words = words.split(' ').map(|word| word.split_once('=').expect("a key and a value")).collect();
        Case { line, words, outcome }
    })
}

impl Case<'_> {
    fn word(&self, key: &str) -> &str {
        self.words.get(key).copied().unwrap_or_else(|| panic!("no {key} in {}", self.line))
    }

    fn list<T: std::str::FromStr>(&self, key: &str) -> Vec<T> {
        let list = self.words.get(key).copied().unwrap_or_default();
        let numbers = list.split(',').filter(|number| !number.is_empty());
        numbers.map(|number| number.parse().ok().expect("a number")).collect()
    }

    fn number<T: std::str::FromStr>(&self, key: &str) -> T {
        self.word(key).parse().ok().expect("a number")
    }

    fn map(&self, tensor: u64) -> TensorMap {
        TensorMap {
            element: element(self.word("element")),
            address: tensor + self.number::<u64>("offset"),
            extents: self.list("extents"),
            byte_strides: self.list("strides"),
            mode: match self.word("mode") {
                "tiled" => Mode::Tiled { box_extents: self.list("box") },
                _ => Mode::Im2col {
                    lower: self.list("lower"),
                    upper: self.list("upper"),
                    channels: self.number("channels"),
                    pixels: self.number("pixels"),
                },
            },
            element_strides: self.list("steps"),
            interleave: match self.word("interleave") {
                "0" => Interleave::None,
                "16" => Interleave::B16,
                _ => Interleave::B32,
            },
            swizzle: match self.word("swizzle") {
                "0" => Swizzle::None,
                "32" => Swizzle::B32,
                "64" => Swizzle::B64,
                _ => Swizzle::B128,
            },
            fill: if self.word("fill") == "nan" { Fill::Nan } else { Fill::Zeros },
        }
    }

    fn kernel(&self) -> String {
        let kind = self.word("kind");
        let mode = match (self.word("mode"), kind) {
            ("tiled", _) => "tile",
            (_, "load") => "im2col",
            _ => "im2col_no_offs",
        };
        match self.words.get("kernel") {
            Some(kernel) => (*kernel).to_owned(),
            None => format!("{kind}_{mode}_{}d", self.list::<i32>("at").len()),
        }
    }
}

fn element(name: &str) -> DataType {
    match name {
        "u8" => DataType::U8,
        "u16" => DataType::U16,
        "u32" => DataType::U32,
        "i32" => DataType::I32,
        "u64" => DataType::U64,
        "i64" => DataType::I64,
        "f16" => DataType::F16,
        "f32" => DataType::F32,
        "f64" => DataType::F64,
        "bf16" => DataType::Bf16,
        "f32ftz" => DataType::F32Ftz,
        "tf32" => DataType::Tf32,
        "tf32ftz" => DataType::Tf32Ftz,
        other => panic!("an element type {other}"),
    }
}

/// Must match `SPECIAL` in `run.py`.
const SPECIAL: [u32; 25] = [
    0,
    0x3f80_0000,
    0x7f7f_ffff,
    0x7f80_0000,
    0x7f80_0001,
    0x7fc0_0000,
    0x7fff_ffff,
    0x7f80_1000,
    1,
    0x7f_ffff,
    0x80_0fff,
    0x3f80_1000,
    0x3f80_3000,
    0x3f80_0fff,
    0x3f80_1001,
    0x3f80_2fff,
    0x3fff_ffff,
    0x3fff_f000,
    0x1000,
    0x2000,
    0x7f7f_f000,
    0x7c01_7c01,
    0x0001_0001,
    0x7e00_7e00,
    0x7bff_7bff,
];

/// Returns the contents of the tensor's buffer before the kernel.
fn pattern(kind: &str) -> Vec<u8> {
    let words = 0..BUFFER as u32 / 4;
    let mixed = |word: u32| {
        let product = word.wrapping_mul(0x9e37_79b1);
        (product ^ product >> 15).wrapping_mul(0x85eb_ca77)
    };
    match kind {
        "index" => words.flat_map(|word| ((2 * word) | ((2 * word + 1) << 16)).to_le_bytes()).collect(),
        "special" => words
            .flat_map(|word| {
                let (turn, index) = (word / SPECIAL.len() as u32, word as usize % SPECIAL.len());
                (SPECIAL[index] ^ ((turn % 2) << 31)).to_le_bytes()
            })
            .collect(),
        _ => words.flat_map(|word| mixed(word + 77).to_le_bytes()).collect(),
    }
}

fn fnv(data: &[u8]) -> u64 {
    data.iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

/// Simulates a case, and returns the outcome in the words of `results.py`.
fn simulate(module: &Module, case: &Case<'_>) -> Result<String, String> {
    let mut memory = GlobalMemory::default();
    let tensor = memory.allocate(BUFFER as u64, false).expect("there is room");
    let out = memory.allocate(BUFFER as u64, false).expect("there is room");
    let before = pattern(case.word("data"));
    memory.write(tensor, &before).expect("it fits");
    let word = |value: u32| Arg::Bytes(value.to_le_bytes().into());
    let map = case.map(tensor);
    let moved = map.box_bytes();
    let mut args = vec![Arg::Map(map), Arg::Address(out), word(moved), word(case.number("place"))];
    let filled = |mut list: Vec<i32>, len| {
        list.resize(len, 0);
        list
    };
    args.extend(filled(case.list("at"), 5).into_iter().map(|at| word(at as u32)));
    args.extend(filled(case.list("offsets"), 3).into_iter().map(|offset| word(offset as u32)));
    let config = LaunchConfig { block: [32, 1, 1], checks: Checks::ALL, ..LaunchConfig::default() };
    let report = match launch(module, &mut memory, &case.kernel(), &config, &args) {
        Ok(report) => report,
        Err(error) => return Ok(format!("refused: {error}")),
    };
    if !report.findings.is_empty() {
        return Err(report.findings.render(&module.sources(|_| None)));
    }
    let (mut bytes, untouched) = if case.word("kind") == "load" {
        let mut bytes = vec![0; DUMP];
        memory.read(out, &mut bytes).expect("it is there");
        (bytes, UNTOUCHED)
    } else {
        let mut bytes = vec![0; BUFFER];
        memory.read(tensor, &mut bytes).expect("it is there");
        (bytes, 0)
    };
    if untouched == 0 {
        bytes.iter_mut().zip(&before).for_each(|(now, before)| *now ^= before);
    }
    Ok(format!("{:016x} {}", fnv(&bytes), bytes.iter().filter(|byte| **byte != untouched).count()))
}

impl Case<'_> {
    /// Whether the GPU's mbarrier expected as many bytes as the simulator counts. If not, its phase
    /// may not have completed, or too early.
    fn ready(&self) -> bool {
        self.word("kind") != "load" || self.map(0).box_bytes() == self.number::<u32>("bytes")
    }

    /// Whether the simulator reports an error that the hardware tolerates: the hardware takes the
    /// low bits of offsets.
    fn stricter(&self) -> bool {
        self.list::<u32>("offsets").iter().any(|offset| *offset > 255)
    }

    fn agrees(&self, simulated: &Result<String, String>) -> bool {
        match simulated {
            Ok(done) if done.starts_with("refused") => self.outcome == "refused",
            Ok(done) => match self.outcome.strip_suffix(" late") {
                Some(outcome) => !self.ready() && done == outcome,
                None => done == self.outcome,
            },
            Err(_) => self.outcome.starts_with("fault") || self.stricter(),
        }
    }
}

#[test]
fn copies_match_an_h200() {
    let module = Module::load(KERNELS).expect("it loads");
    let mut wrong = Vec::new();
    for case in cases().filter(|case| case.word("kind") != "encode") {
        let simulated = simulate(&module, &case);
        if !case.agrees(&simulated) {
            wrong.push(format!("{}\n    {simulated:?}", case.line));
        }
    }
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn maps_are_refused_where_the_driver_refuses_them() {
    let mut wrong = Vec::new();
    for case in cases().filter(|case| case.word("kind") == "encode") {
        let checked = case.map(0x10_0000).check();
        // The simulator refuses maps that the documentation forbids, even if the driver accepts
        // them.
        let slices = case.word("interleave") == "32" && case.word("swizzle") != "32";
        // The driver rounds down the number of elements that a stride leaves of a box, and so takes
        // a box as empty if the stride exceeds it.
        let rounded = case
            .list::<u32>("box")
            .iter()
            .zip(case.list::<u32>("steps"))
            .any(|(extent, step)| *extent < step);
        let stricter = slices || rounded;
        let agrees = if case.outcome == "refused" { checked.is_err() } else { checked.is_ok() || stricter };
        if !agrees {
            wrong.push(format!("{}\n    {checked:?}", case.line));
        }
    }
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n"));
}
