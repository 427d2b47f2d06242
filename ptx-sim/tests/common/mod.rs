//! The project's kernels as PTX, and tensors in simulated memory.

#[cfg(feature = "cli")]
#[allow(dead_code, reason = "not every test runs the command")]
pub(crate) mod command;

use std::fs;
use std::path::{Path, PathBuf};

use ptx_sim::tensor_map::{DataType, Fill, Interleave, Mode, Swizzle, TensorMap};
use ptx_sim::{GlobalMemory, LaunchConfig, Module};

/// One warp transposes a tile of 32 × 32 floats, each column of which lies in a single bank. The
/// compiler does not know the first row; otherwise it would write four columns at a time.
#[allow(dead_code, reason = "not every test runs it")]
pub(crate) const NAIVE: &str = "\
use tma_runtime::prelude::*;

#[tma_kernel(threads = 32)]
pub fn naive(src: TensorMap<Tile<f32, Shape2<32, 32>>>, dst: TensorMap<Tile<f32, Shape2<32, 32>>>) {
    let input: Tile<f32, Shape2<32, 32>> = shared();
    let output: Tile<f32, Shape2<32, 32>> = shared();
    let full: Barrier = shared();
    let leader = thread_idx().x == 0;
    if leader {
        full.init(1);
        fence_barrier_init();
        full.arrive_expect_tx(input.bytes());
        src.load(input, [0, 0], full);
    }
    sync_threads();
    full.wait(0);
    let lane = lane_idx();
    for step in 0..32 {
        let row = (step + block_idx().x) % 32;
        let value = input.get([row, lane]);
        output.set([lane, row], value);
    }
    fence_proxy_async();
    sync_threads();
    if leader {
        dst.store([0, 0], output);
        bulk_commit_group();
        bulk_wait_group_read::<0>();
    }
}
";

/// Compiles the kernels of a source file, relative to the repository's root: entry and PTX.
pub(crate) fn compile(path: &str) -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let source = fs::read_to_string(root.join(path)).expect("the source is there");
    compile_text(path, &source)
}

/// Compiles the kernels of a text that purports to be the file `path`.
pub(crate) fn compile_text(path: &str, source: &str) -> Vec<(String, String)> {
    let compiled = tma_codegen::compile(path, source, tma_codegen::Target::default()).expect("it compiles");
    compiled.kernels.into_iter().map(|ptx| (ptx.entry, ptx.text)).collect()
}

/// Loads the only kernel of an example.
#[allow(dead_code, reason = "not every test runs one")]
pub(crate) fn example(name: &str) -> (String, Module) {
    let (entry, text) = compile(&format!("examples/src/bin/{name}.rs")).pop().expect("it has a kernel");
    (entry, Module::load(&text).expect("it loads"))
}

/// Returns all Rust files under a folder of the repository.
#[allow(dead_code, reason = "not every test lists files")]
pub(crate) fn sources(folder: &str) -> Vec<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut found = Vec::new();
    let mut folders = vec![PathBuf::from(folder)];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(root.join(&folder)).expect("the folder is there") {
            let entry = entry.expect("the folder can be read");
            let path = folder.join(entry.file_name());
            if entry.path().is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                found.push(path.to_string_lossy().into_owned());
            }
        }
    }
    found.sort();
    found
}

/// A matrix in simulated memory.
#[allow(dead_code, reason = "not every test has tensors")]
pub(crate) struct Matrix {
    pub(crate) address: u64,
    pub(crate) rows: u64,
    pub(crate) cols: u64,
    pub(crate) element: DataType,
}

#[allow(dead_code, reason = "not every test has tensors")]
impl Matrix {
    /// Creates a matrix with these bytes, or an uninitialised one.
    pub(crate) fn new(
        memory: &mut GlobalMemory,
        element: DataType,
        [rows, cols]: [u64; 2],
        bytes: Option<&[u8]>,
    ) -> Matrix {
        let size = rows * cols * u64::from(element.bytes());
        let address = memory.allocate(size, true).expect("there is room");
        if let Some(bytes) = bytes {
            memory.write(address, bytes).expect("it fits");
        }
        Matrix { address, rows, cols, element }
    }

    /// Returns a map of the matrix, with a box of rows and columns.
    pub(crate) fn map(&self, [rows, cols]: [u32; 2], swizzle: Swizzle) -> TensorMap {
        TensorMap {
            element: self.element,
            address: self.address,
            extents: vec![self.cols, self.rows],
            byte_strides: vec![self.cols * u64::from(self.element.bytes())],
            mode: Mode::Tiled { box_extents: vec![cols, rows] },
            element_strides: vec![1, 1],
            interleave: Interleave::None,
            swizzle,
            fill: Fill::Zeros,
        }
    }

    pub(crate) fn bytes(&self, memory: &GlobalMemory) -> Vec<u8> {
        let mut bytes = vec![0; (self.rows * self.cols * u64::from(self.element.bytes())) as usize];
        memory.read(self.address, &mut bytes).expect("it is there");
        bytes
    }
}

/// Returns a launch with one block per tile, and all checks.
#[allow(dead_code, reason = "not every test launches")]
pub(crate) fn tiles(
    matrix: &Matrix,
    [rows, cols]: [u64; 2],
    threads: u32,
    shared: u32,
    seed: u64,
) -> LaunchConfig {
    LaunchConfig {
        grid: [matrix.cols.div_ceil(cols) as u32, matrix.rows.div_ceil(rows) as u32, 1],
        block: [threads, 1, 1],
        dynamic_shared_bytes: shared,
        seed,
        checks: ptx_sim::Checks::ALL,
        ..LaunchConfig::default()
    }
}
