//! The kernel that runs cases of `mma.sync`. Each block is one warp, which reads the registers of
//! its fragments and writes those of D.

use std::fmt::Write;

use tma_model::limits::WARP_THREADS;
use tma_runtime::launch::{Arg, Grid, KernelParts, KernelSpec, ParamSpec, launch};
use tma_runtime::spec::Cluster;
use tma_runtime::{Device, DeviceTensor};

use crate::batch::words;

/// Name of the kernel's entry point.
const ENTRY: &str = "warp_products";

/// The kernel's parameters: the registers of all blocks' fragments, and those of all D.
static PARAMS: [ParamSpec; 2] = [words("data", false), words("out", true)];

/// An `mma.sync` with everything that its kernel depends on.
#[derive(Clone, Debug)]
pub(crate) struct WarpKernel {
    /// Text after `mma.sync.aligned.`.
    pub(crate) instruction: String,
    /// Number of registers of A, B and C.
    pub(crate) registers: [u32; 3],
    /// 32-bit words in each register: one, or two for an `f64`.
    pub(crate) words: u32,
    /// Minimum version of PTX.
    pub(crate) version: (u32, u32),
}

impl WarpKernel {
    /// Returns the PTX of the kernel.
    pub(crate) fn text(&self) -> String {
        let Self { instruction, registers, words, version } = self;
        let [a, b, c] = *registers;
        let (plain, memory) = if *words == 1 { ("b32", "u32") } else { ("f64", "f64") };
        let bytes = 4 * words;
        let line = bytes * WARP_THREADS;
        let fragments = [("a", a), ("b", b), ("c", c)];
        let [left, right, sum] = fragments.map(|(name, count)| {
            let names: Vec<_> = (0..count).map(|i| format!("%{name}{i}")).collect();
            names.join(", ")
        });
        let mut load = String::new();
        let names = fragments.iter().flat_map(|(name, count)| (0..*count).map(move |i| format!("{name}{i}")));
        for (i, name) in (0..).zip(names) {
            let _ = writeln!(load, "ld.global.{memory} %{name}, [%q1+{}];", i * line);
        }
        let mut store = String::new();
        for i in 0..c {
            let _ = writeln!(store, "st.global.{memory} [%q2+{}], %c{i};", i * line);
        }
        format!(
            ".version {}.{}\n.target sm_90a\n.address_size 64\n.visible .entry {ENTRY}(\n\
             .param .u64 data, .param .u64 data_words,\n.param .u64 out, .param .u64 out_words)\n\
             .maxntid {WARP_THREADS}, 1, 1\n{{\n\
             .reg .b32 %r<2>; .reg .{plain} %a<{a}>; .reg .{plain} %b<{b}>; .reg .{plain} %c<{c}>; .reg .b64 %q<6>;\n\
             ld.param.u64 %q1, [data];\nld.param.u64 %q2, [out];\nmov.u32 %r0, %tid.x;\nmov.u32 %r1, %ctaid.x;\n\
             mul.wide.u32 %q3, %r0, {bytes};\nmul.wide.u32 %q4, %r1, {};\nmul.wide.u32 %q5, %r1, {};\n\
             add.u64 %q1, %q1, %q3;\nadd.u64 %q1, %q1, %q4;\nadd.u64 %q2, %q2, %q3;\nadd.u64 %q2, %q2, %q5;\n\
             {load}mma.sync.aligned.{instruction} {{{sum}}}, {{{left}}}, {{{right}}}, {{{sum}}};\n{store}ret;\n}}\n",
            version.0,
            version.1,
            (a + b + c) * line,
            c * line,
        )
    }

    /// Runs one block for each case, whose fragments follow one another in `data`. Returns the
    /// registers of D of each: the first register for all lanes, then the next. An `f64` has its
    /// low word first.
    ///
    /// # Errors
    ///
    /// Errors of the device.
    pub(crate) fn run(&self, device: &Device, data: &[u32], cases: usize) -> anyhow::Result<Vec<Vec<u32>>> {
        let each = (self.words * self.registers[2] * WARP_THREADS) as usize;
        let data = device.tensor(data, [data.len()])?;
        let mut out: DeviceTensor<u32, 1> = device.filled_bytes([each * cases], 0xa5)?;
        let args = [Arg::global(data.slice()), Arg::global_mut(out.slice_mut())];
        launch(device, self.specification(), Grid::x(cases as u32), &args)?;
        Ok(out.to_vec()?.chunks(each).map(<[u32]>::to_vec).collect())
    }

    /// Returns the kernel in the form that the runtime expects. It is leaked.
    fn specification(&self) -> &'static KernelSpec {
        let parts = KernelParts {
            name: ENTRY,
            entry: ENTRY,
            ptx: Box::leak(self.text().into_boxed_str()),
            threads: [WARP_THREADS, 1, 1],
            cluster: Cluster::None,
            cooperative: false,
            dependency_wait: false,
            team: false,
            shared_bytes: 0,
            params: &PARAMS,
        };
        // SAFETY: a block reads its own part of `data` and writes its own part of `out`, and `run`
        // launches as many blocks as there are parts.
        Box::leak(Box::new(unsafe { KernelSpec::from_parts(parts) }))
    }
}
