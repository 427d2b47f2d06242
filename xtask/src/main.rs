//! The project's tasks, run as `cargo xtask TASK`.
//!
//! Of the project's packages it links only `tma-setup`, and it needs only Rust and a C compiler, so
//! that it can install everything that the others need. A task that compiles kernels runs [`setup`]
//! first.

mod apart;
mod book;
mod bundle;
mod demo;
mod editor;
mod fuzz;
mod keep;
mod package;
mod protocol;
mod ptx;
mod python;
mod quick;
mod setup;
mod test;
mod workspace;

use std::path::PathBuf;

use anyhow::Result;
use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(name = "cargo xtask", about = "The project's tasks")]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Installs LLVM 22 and unpacks ptxas and nvdisasm, unless they are present
    Setup,
    /// Sets up, compiles the examples, shows the PTX of `tma_copy`, and runs it, on the simulator
    /// without a GPU
    Demo,
    /// Sets up, then checks format, lints, features, tests and documentation
    Test {
        /// Run only the tests that the changed files call for
        #[arg(long)]
        quick: bool,
        /// With --quick: the revision to compare with
        #[arg(long, requires = "quick", default_value = "HEAD")]
        since: String,
    },
    /// Writes the PTX of every kernel of the examples and tests, one file per instance
    Ptx {
        /// Folder to write to [default: target/ptx]
        #[arg(long)]
        out: Option<PathBuf>,
        /// Architecture to compile for
        #[arg(long, default_value = ptx::DEFAULT_TARGET)]
        target: String,
    },
    /// Rewrites the PTX that `tma-kernels` keeps for builds without LLVM; after a change of its
    /// kernels or of the compiler
    Keep {
        /// Compare every instruction instead
        #[arg(long)]
        check: bool,
    },
    /// Packs every published package, builds each from its packed files, and checks their sizes;
    /// before a release
    Package,
    /// Sets up, packs the wheel of `tma-kernels`, and tests it by the `python3` of this machine:
    /// with NumPy, and with PyTorch if that has it
    Python,
    /// Checks the barrier protocol of every kernel, and prints which are proved, and which are
    /// undecided and why
    Protocol {
        /// Files and folders [default: the examples]
        paths: Vec<PathBuf>,
        /// Maximum number of states to visit in each kernel
        #[arg(long)]
        budget: Option<u64>,
    },
    /// Builds and tests the programs that use other crates: cudarc, candle, DLPack, ndarray and so
    /// on
    Beside,
    /// Builds and tests the language models, on the simulator
    Models,
    /// Checks completion, diagnostics, hover and definitions in kernels with rust-analyzer, which
    /// it installs
    Editor,
    /// Builds the book into target/book and checks its links; installs mdBook if it is missing
    Book {
        #[command(subcommand)]
        step: Option<book::Step>,
    },
    /// Builds the GPU tests, benchmarks and examples into target/bundle, to be copied to a machine
    /// with a GPU
    Bundle,
    /// Looks for inputs (kernels, PTX, launches) that panic, hang, exhaust memory, or whose
    /// inferred types differ from rustc's
    Fuzz {
        /// The target of the inputs
        #[arg(long, value_enum, default_value_t = fuzz::Target::Kernel)]
        target: fuzz::Target,
        /// Minutes to run
        #[arg(long, default_value_t = 10)]
        minutes: u32,
        /// Number of inputs, instead of a time
        #[arg(long)]
        inputs: Option<u32>,
    },
}

fn main() -> Result<()> {
    match Arguments::parse().task {
        Task::Setup => setup::run().map(|_| ()),
        Task::Demo => demo::run(),
        Task::Test { quick: false, .. } => test::run(),
        Task::Test { quick: true, since } => test::run_quick(&since),
        Task::Ptx { out, target } => ptx::run(out.as_deref(), &target),
        Task::Keep { check } => keep::run(check),
        Task::Package => package::run(),
        Task::Python => python::run(),
        Task::Protocol { paths, budget } => protocol::run(&paths, budget),
        Task::Beside => apart::run(apart::BESIDE),
        Task::Models => apart::run(apart::MODELS),
        Task::Editor => editor::run(),
        Task::Book { step } => book::run(step.as_ref()),
        Task::Bundle => bundle::run(),
        Task::Fuzz { target, minutes, inputs } => fuzz::run(target, fuzz::RunExtent { minutes, inputs }),
    }
}
