//! The target `ptx`: mutated PTX is parsed and loaded, and run for a while if that goes well.

use std::fs;
use std::path::Path;

use ptx_sim::{Arg, GlobalMemory, LaunchConfig, Module, launch};

use crate::draw::Draw;
use crate::text::Mutator;
use crate::{Input, maps, workspace};

/// Thread-instructions that a cluster may run.
const INSTRUCTIONS: u64 = 50_000;
/// Bytes of each of the buffers that arguments point to.
const BUFFER: u64 = 1 << 16;
/// The longest argument, in bytes: longer parameters get too short ones, which is an error.
const ARGUMENT: u32 = 1 << 12;

/// Pieces of PTX that break things.
const HOSTILE: [&str; 46] = [
    "{",
    "}",
    "(",
    ")",
    "[",
    "]",
    "<",
    ">",
    ",",
    ";",
    ":",
    "::",
    "@",
    "@!",
    "!",
    "-",
    "~",
    "+",
    "=",
    "|",
    "\"",
    "/*",
    "//",
    "é",
    "\u{0}",
    "0x",
    "0f",
    "0d",
    "0b2",
    "99999999999999999999",
    "-1",
    "0fZZZZZZZZ",
    "1e999",
    "_",
    "%",
    "%tid",
    "%clock64",
    "%nothing<4294967295>",
    ".b8 x[4294967295];",
    ".pred",
    ".v4",
    ".f16x2",
    ".noreturn",
    "call.uni",
    "ret;",
    "bra.uni",
];

/// PTX without end.
pub(crate) struct Texts {
    mutator: Mutator,
    draw: Draw,
}

/// Every PTX text of the tree: what the compiler makes of all kernels, and what the simulator's tests keep.
pub(crate) fn corpus() -> anyhow::Result<Vec<String>> {
    let mut texts = vec![];
    #[cfg(feature = "llvm")]
    for source in tma_tests::sources::examples().iter().chain(tma_tests::sources::corpus()) {
        let kernels = tma_codegen::compile(source.path, source.text, tma_codegen::Target::default());
        let kernels = kernels.map_err(|failure| anyhow::anyhow!("{}: {failure}", source.path))?;
        texts.extend(kernels.into_iter().map(|kernel| kernel.text));
    }
    files(&workspace().join("ptx-sim/tests"), &mut texts)?;
    Ok(texts)
}

fn files(folder: &Path, texts: &mut Vec<String>) -> anyhow::Result<()> {
    let mut paths =
        fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>, std::io::Error>>()?;
    // The order of a folder is the file system's; that of a seed's inputs is not to be.
    paths.sort();
    for path in paths {
        if path.is_dir() {
            files(&path, texts)?;
        } else if path.extension().is_some_and(|extension| extension == "ptx") {
            texts.push(fs::read_to_string(path)?);
        }
    }
    Ok(())
}

impl Texts {
    pub(crate) fn new(seed: u64) -> anyhow::Result<Self> {
        let texts = corpus()?;
        println!("{} PTX texts to mutate, seed {seed}", texts.len());
        Ok(Self { mutator: Mutator::new(texts, &HOSTILE), draw: Draw::new(seed) })
    }

    /// The next text.
    pub(crate) fn next(&self) -> Input<'_> {
        let text = self.mutator.text(&self.draw);
        let ptx = text.clone();
        Input { text, run: Box::new(move || is_loaded(&ptx, &self.draw)) }
    }
}

/// Loads a text and launches its first kernels.
fn is_loaded(ptx: &str, draw: &Draw) -> bool {
    let Ok(module) = Module::load(ptx) else { return false };
    for kernel in module.kernels().take(2) {
        let mut memory = GlobalMemory::default();
        let buffers: Vec<_> = (0..3).filter_map(|_| memory.allocate(BUFFER, draw.once_in(2))).collect();
        let args: Vec<_> =
            kernel.param_bytes().iter().map(|&bytes| argument(bytes, &buffers, draw)).collect();
        let small =
            |most: usize| std::array::from_fn(|axis| if axis == 2 { 1 } else { 1 + draw.below(most) as u32 });
        let config = LaunchConfig {
            grid: kernel.required_cluster().unwrap_or_else(|| small(3)),
            block: kernel.required_threads().unwrap_or_else(|| small(12)),
            cluster: kernel.required_cluster().unwrap_or([1; 3]),
            dynamic_shared_bytes: *draw.one_of(&[0, 16, 1 << 12, 20_000, 70_000, 200_000]),
            seed: draw.bits(),
            instruction_limit: INSTRUCTIONS,
            ..LaunchConfig::default()
        };
        if let Ok(report) = launch(&module, &mut memory, kernel.name(), &config, &args) {
            // A finding is shown to users: that must not fail either.
            report.findings.render(&module.sources(|_| None));
        }
    }
    true
}

/// An argument that a parameter of so many bytes may be meant for.
fn argument(bytes: u32, buffers: &[u64], draw: &Draw) -> Arg {
    match bytes {
        128 => Arg::Map(maps::sound(*draw.one_of(buffers), BUFFER, draw)),
        8 if draw.once_in(2) => Arg::Address(draw.one_of(buffers).wrapping_add(draw.mostly(0))),
        8 => Arg::Bytes((draw.number() % 512).to_le_bytes().into()),
        4 => Arg::Bytes((draw.number() as u32 % 64).to_le_bytes().into()),
        _ => Arg::Bytes((0..bytes.min(ARGUMENT)).map(|_| draw.bits() as u8).collect()),
    }
}
