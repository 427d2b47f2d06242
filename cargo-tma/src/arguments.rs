//! The command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use ptx_sim::cli::Launch;

use crate::output::Format;

/// The outer command: cargo calls `cargo-tma tma ..`.
#[derive(Debug, Parser)]
#[command(name = "cargo", bin_name = "cargo", styles = clap::builder::Styles::styled())]
pub(crate) enum Cargo {
    /// Tools for TMA kernels
    #[command(version)]
    Tma(Arguments),
}

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Format of standard output
    #[arg(long, global = true, value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,
    /// When to colour the output
    #[arg(long, global = true, value_enum, default_value_t = Color::Auto)]
    pub(crate) color: Color,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// When output is coloured.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Color {
    /// On a terminal, unless `NO_COLOR` is set
    Auto,
    /// Always, also in files and pipes
    Always,
    /// Never
    Never,
}

impl Color {
    /// Applies to everything that this process prints.
    pub(crate) fn write_global(self) {
        match self {
            Self::Auto => anstream::ColorChoice::Auto,
            Self::Always => anstream::ColorChoice::Always,
            Self::Never => anstream::ColorChoice::Never,
        }
        .write_global();
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Creates a package with a kernel, its launch, and its test under seeds
    New(New),
    /// Reports what is installed, what is missing, and how to install it
    Doctor,
    /// Installs what is missing: LLVM 22, ptxas, nvdisasm
    Setup(Setup),
    /// Shows the PTX of a kernel with its source lines, or lists the package's kernels
    Ptx(Kernels),
    /// Shows the machine code of a kernel with its source lines; spills and ptxas's notes on
    /// multiplications are errors
    Sass(Sass),
    /// Checks every kernel of this package: barrier protocol, bank conflicts, registers, spills,
    /// notes of ptxas
    Check(Check),
    /// Runs a kernel on the simulator: findings, counts, bank conflicts, timeline
    Run(Box<Run>),
    /// Runs a program of this package, and records what the warps of a launch wait for, on the GPU
    Trace(Trace),
    /// Lists and draws the rows of a timeline: a file of `cargo tma trace`, or of `--trace`
    Timeline(Timeline),
    /// Runs a program of this package under Nsight Compute, and shows the counters of a launch
    /// beside the lines of the kernel
    Profile(Profile),
    /// Draws the layout of a tile, operand, accumulator or fragment
    Layout(Layout),
    /// Packs the operators of this package into a Python wheel
    Wheel(Wheel),
    /// Explains an error code, or lists all codes
    Explain(Explain),
}

#[derive(Debug, Args)]
pub(crate) struct New {
    /// Folder of the package; its last part is the package's name
    pub(crate) path: PathBuf,
    /// Creates a package with an operator of PyTorch, for `cargo tma wheel`
    #[arg(long)]
    pub(crate) torch: bool,
    /// Folder of a clone of the project to depend on [default: the one that this command was
    /// installed from; if that is gone, released versions]
    #[arg(long, value_name = "FOLDER")]
    pub(crate) project: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct Setup {
    /// Also creates a libcuda to link with, for builds of this package with the feature `cust` on
    /// machines without a CUDA toolkit
    #[arg(long)]
    pub(crate) cust: bool,
}

/// The options for building the package.
#[derive(Debug, Args)]
pub(crate) struct Build {
    /// Package to build [default: that of the current folder]
    #[arg(short, long, value_name = "NAME")]
    pub(crate) package: Option<String>,
    /// Builds kernels as in a release build, without run-time checks
    #[arg(short, long)]
    pub(crate) release: bool,
    /// Features of the package
    #[arg(short = 'F', long, value_name = "FEATURES")]
    pub(crate) features: Vec<String>,
    /// Disables the package's default features
    #[arg(long)]
    pub(crate) no_default_features: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Kernels {
    /// Kernel: NAME, or NAME::INSTANCE; all instances if it has several
    pub(crate) kernel: Option<String>,
    /// Shows the PTX unchanged, without source lines
    #[arg(long)]
    pub(crate) plain: bool,
    /// Writes the PTX of all kernels into the package's folder `tma-ptx`, for builds without LLVM
    #[arg(long, conflicts_with_all = ["kernel", "plain", "check", "release"])]
    pub(crate) keep: bool,
    /// Compares the folder `tma-ptx` with the compiler's output
    #[arg(long, conflicts_with_all = ["kernel", "plain", "release"])]
    pub(crate) check: bool,
    #[command(flatten)]
    pub(crate) build: Build,
}

#[derive(Debug, Args)]
pub(crate) struct Sass {
    /// Kernel: NAME, or NAME::INSTANCE; all instances if it has several
    pub(crate) kernel: String,
    #[command(flatten)]
    pub(crate) build: Build,
}

#[derive(Debug, Args)]
pub(crate) struct Check {
    /// Only this kernel: NAME, or NAME::INSTANCE
    pub(crate) kernel: Option<String>,
    /// File or folder with kernels, instead of everything that the build script reads
    #[arg(long = "source", value_name = "PATH")]
    pub(crate) sources: Vec<PathBuf>,
    /// Skips compilation: needs neither LLVM nor ptxas, and reports no registers
    #[arg(long)]
    pub(crate) no_build: bool,
    /// Additional problems to treat as errors
    #[arg(long, value_enum)]
    pub(crate) deny: Vec<Deny>,
    /// Maximum number of states to visit in each kernel
    #[arg(long, value_name = "STATES")]
    pub(crate) budget: Option<u64>,
    #[command(flatten)]
    pub(crate) build: Build,
}

/// Problems that are not errors by default.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Deny {
    /// Bank conflicts
    Conflicts,
    /// Kernels whose protocol is undecided
    Undecided,
}

#[derive(Debug, Args)]
pub(crate) struct Run {
    /// Kernel: NAME, or NAME::INSTANCE
    pub(crate) kernel: String,
    #[command(flatten)]
    pub(crate) launch: Launch,
    #[command(flatten)]
    pub(crate) build: Build,
}

#[derive(Debug, Args)]
pub(crate) struct Trace {
    /// Kernel: NAME, or NAME::INSTANCE
    pub(crate) kernel: String,
    /// The launch of the kernel to trace, from 1
    #[arg(long, value_name = "NUMBER", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) launch: u64,
    /// File to write [default: KERNEL.trace.json]
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    /// Arguments of `cargo run`, such as `--release --bin gemm -- 4096`
    #[arg(last = true, value_name = "ARGUMENTS")]
    pub(crate) arguments: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct Timeline {
    /// File of `cargo tma trace`, or of the simulator's option `--trace`
    pub(crate) file: PathBuf,
    /// Block of the file, from 0
    #[arg(long, value_name = "NUMBER", default_value_t = 0)]
    pub(crate) block: usize,
    /// Rows to show, by prefixes of their names, in this order, such as `warp 0,loads` [default: all]
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) rows: Vec<String>,
    /// Start of the interval, in the file's unit [default: that of the first slice]
    #[arg(long, value_name = "TIME")]
    pub(crate) from: Option<f64>,
    /// End of the interval [default: that of the last slice]
    #[arg(long, value_name = "TIME")]
    pub(crate) to: Option<f64>,
    /// Writes a drawing to this file
    #[arg(long, value_name = "FILE.svg")]
    pub(crate) svg: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct Profile {
    /// Kernel: NAME, or NAME::INSTANCE
    pub(crate) kernel: String,
    /// The launch of the kernel to profile, from 1
    #[arg(long, value_name = "NUMBER", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) launch: u64,
    /// File to write [default: KERNEL.ncu-rep]
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    /// Shows the report of an earlier run instead of running a program
    #[arg(long, value_name = "FILE", conflicts_with_all = ["launch", "out", "arguments"])]
    pub(crate) report: Option<PathBuf>,
    /// Arguments of `cargo run`, such as `--release --bin gemm -- 4096`
    #[arg(last = true, value_name = "ARGUMENTS")]
    pub(crate) arguments: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct Layout {
    #[command(subcommand)]
    pub(crate) kind: LayoutKind,
    /// Writes a drawing to this file
    #[arg(long, global = true, value_name = "FILE.svg")]
    pub(crate) svg: Option<PathBuf>,
}

/// The object to draw. Extents are outermost first, such as 64x32.
#[derive(Debug, Subcommand)]
pub(crate) enum LayoutKind {
    /// A tile in shared memory
    Tile {
        /// Element type, such as f16
        element: String,
        /// Extents, such as 8x64
        extents: String,
        /// none, 32, 64, 128, panels16, interleave16 or interleave32
        #[arg(long, default_value = "none")]
        swizzle: String,
    },
    /// The part of an operand's tile that each tensor core instruction reads
    Operand {
        /// Element type, such as f16
        element: String,
        /// Extents, such as 64x64
        extents: String,
        /// none, 32, 64, 128, panels16, interleave16 or interleave32
        #[arg(long, default_value = "128")]
        swizzle: String,
        /// Dimension whose elements are contiguous
        #[arg(long, value_enum, default_value_t = MajorName::K)]
        major: MajorName,
    },
    /// The thread that holds each element of an accumulator
    Accumulator {
        /// Element type, such as f32
        element: String,
        /// Rows and columns, such as 64x16
        extents: String,
        /// Only the first rows of this warp
        #[arg(long)]
        warp: Option<u32>,
    },
    /// The thread that holds each element of a left operand in registers
    Fragment {
        /// Element type, such as f16
        element: String,
        /// Rows and columns, such as 64x16
        extents: String,
        /// Only the first rows of this warp
        #[arg(long)]
        warp: Option<u32>,
    },
}

/// The dimension of an operand whose elements are contiguous.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum MajorName {
    /// The reduction dimension
    K,
    /// The other dimension
    Mn,
}

#[derive(Debug, Args)]
pub(crate) struct Wheel {
    /// Folder of the wheel [default: `wheels` in the target folder]
    #[arg(long, value_name = "FOLDER")]
    pub(crate) out: Option<PathBuf>,
    /// Package to pack [default: that of the current folder]
    #[arg(short, long, value_name = "NAME")]
    pub(crate) package: Option<String>,
    /// Features of the package, besides `cuda`, which is always on
    #[arg(short = 'F', long, value_name = "FEATURES")]
    pub(crate) features: Vec<String>,
    /// Disables the package's default features
    #[arg(long)]
    pub(crate) no_default_features: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Explain {
    /// Code, such as TMA0203 or 203
    pub(crate) code: Option<String>,
}
