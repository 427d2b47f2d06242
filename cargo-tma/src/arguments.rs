//! The command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use ptx_sim::cli::Launch;

use crate::output::Format;

/// cargo calls `cargo-tma tma ..`.
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
    /// Whether output has colours
    #[arg(long, global = true, value_enum, default_value_t = Color::Auto)]
    pub(crate) color: Color,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Whether output has colours.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Color {
    /// On a terminal, unless `NO_COLOR` is set
    Auto,
    /// Also in files and pipes
    Always,
    /// Nowhere
    Never,
}

impl Color {
    /// For all that this process prints.
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
    /// Makes a package with a kernel, its launch, and its test under seeds
    New(New),
    /// Says what is installed, what is missing, and what to do about it
    Doctor,
    /// Installs what is missing: LLVM 22, ptxas, nvdisasm
    Setup(Setup),
    /// Shows the PTX of a kernel with its source lines, or lists the package's kernels
    Ptx(Kernels),
    /// Shows the machine code of a kernel with its source lines; spills and ptxas's notes on
    /// multiplications are errors
    Sass(Sass),
    /// Judges every kernel of this package: its protocol of barriers, bank conflicts, registers,
    /// spills, ptxas's notes
    Check(Check),
    /// Runs a kernel on the simulator: findings, counts, bank conflicts, timeline
    Run(Box<Run>),
    /// Draws where the elements of a tile, operand, accumulator or fragment are
    Layout(Layout),
    /// Explains an error code, or lists all
    Explain(Explain),
}

#[derive(Debug, Args)]
pub(crate) struct New {
    /// Folder of the package; its last part is the package's name
    pub(crate) path: PathBuf,
    /// Folder of a clone of the project to depend on [default: the one that this command was
    /// installed from; if that is gone, released versions]
    #[arg(long, value_name = "FOLDER")]
    pub(crate) project: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct Setup {
    /// Also makes a libcuda to link with, for builds of this package with the feature `cust` where
    /// no CUDA toolkit is installed
    #[arg(long)]
    pub(crate) cust: bool,
}

/// How the package is built.
#[derive(Debug, Args)]
pub(crate) struct Build {
    /// The package, if the current folder is not in it
    #[arg(short, long, value_name = "NAME")]
    pub(crate) package: Option<String>,
    /// Kernels as in a release build: without checks
    #[arg(short, long)]
    pub(crate) release: bool,
    /// Features of the package
    #[arg(short = 'F', long, value_name = "FEATURES")]
    pub(crate) features: Vec<String>,
    /// Without the package's default features
    #[arg(long)]
    pub(crate) no_default_features: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Kernels {
    /// The kernel: NAME, or NAME::INSTANCE; all instances if it has several
    pub(crate) kernel: Option<String>,
    /// The PTX as it is, without source lines
    #[arg(long)]
    pub(crate) plain: bool,
    /// Writes the PTX of all kernels into the package's folder `tma-ptx`, for builds without LLVM
    #[arg(long, conflicts_with_all = ["kernel", "plain", "check", "release"])]
    pub(crate) keep: bool,
    /// Compares the folder `tma-ptx` with what the compiler makes
    #[arg(long, conflicts_with_all = ["kernel", "plain", "release"])]
    pub(crate) check: bool,
    #[command(flatten)]
    pub(crate) build: Build,
}

#[derive(Debug, Args)]
pub(crate) struct Sass {
    /// The kernel: NAME, or NAME::INSTANCE; all instances if it has several
    pub(crate) kernel: String,
    #[command(flatten)]
    pub(crate) build: Build,
}

#[derive(Debug, Args)]
pub(crate) struct Check {
    /// Only this kernel: NAME, or NAME::INSTANCE
    pub(crate) kernel: Option<String>,
    /// A file or folder with kernels, instead of all that the build script looks into
    #[arg(long = "source", value_name = "PATH")]
    pub(crate) sources: Vec<PathBuf>,
    /// Compiles nothing, so that neither LLVM nor ptxas is needed, and registers are not known
    #[arg(long)]
    pub(crate) no_build: bool,
    /// What else the exit code is 1 for
    #[arg(long, value_enum)]
    pub(crate) deny: Vec<Deny>,
    /// How many steps are followed of each kernel
    #[arg(long, value_name = "STEPS")]
    pub(crate) budget: Option<u64>,
    #[command(flatten)]
    pub(crate) build: Build,
}

/// What is no error by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Deny {
    /// Bank conflicts
    Conflicts,
    /// Kernels whose protocol is not decided
    Undecided,
}

#[derive(Debug, Args)]
pub(crate) struct Run {
    /// The kernel: NAME, or NAME::INSTANCE
    pub(crate) kernel: String,
    #[command(flatten)]
    pub(crate) launch: Launch,
    #[command(flatten)]
    pub(crate) build: Build,
}

#[derive(Debug, Args)]
pub(crate) struct Layout {
    #[command(subcommand)]
    pub(crate) what: Drawn,
    /// Writes a drawing to this file
    #[arg(long, global = true, value_name = "FILE.svg")]
    pub(crate) svg: Option<PathBuf>,
}

/// What is drawn. Extents are outermost first, such as 64x32.
#[derive(Debug, Subcommand)]
pub(crate) enum Drawn {
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
    /// What each instruction reads of a tile that is an operand of tensor cores
    Operand {
        /// Element type, such as f16
        element: String,
        /// Extents, such as 64x64
        extents: String,
        /// none, 32, 64, 128, panels16, interleave16 or interleave32
        #[arg(long, default_value = "128")]
        swizzle: String,
        /// The dimension whose elements are contiguous
        #[arg(long, value_enum, default_value_t = MajorName::K)]
        major: MajorName,
    },
    /// Which thread holds which element of an accumulator
    Accumulator {
        /// Element type, such as f32
        element: String,
        /// Rows and columns, such as 64x16
        extents: String,
        /// Only the first rows of this warp
        #[arg(long)]
        warp: Option<u32>,
    },
    /// Which thread holds which element of a left operand in registers
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
    /// The one that is summed over
    K,
    /// The other one
    Mn,
}

#[derive(Debug, Args)]
pub(crate) struct Explain {
    /// The code: TMA0203, or 203
    pub(crate) code: Option<String>,
}
