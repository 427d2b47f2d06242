//! Fuzzes the parts that need the whole workspace: no generated input may cause a panic or a hang.
//!
//! * `kernel`: the front end, on kernels mutated token by token, through the entry points of the
//!   compiler and of the macros.
//! * `values`: generated kernels, whose results on the simulator must be those of plain Rust.
//! * `host`: the runtime's launches, tensors and tensor maps, with unreasonable grids, arguments
//!   and layouts.
//! * `types`: bodies with omitted types, on which rustc and the front end must agree.
//!
//! The targets of cargo-fuzz in `ptx-sim/fuzz` generate the simulator's own input.
//!
//! Prints the number of inputs, and last 'N passed, N failed'. The current input is in the file
//! `tma-fuzz-TARGET.txt` of the folder for temporary files, where it can be found after a crash
//! that ends the process.

mod host;
mod kernel;
mod types;
#[cfg(feature = "llvm")]
mod values;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};
use std::{env, fmt, fs, thread};

use clap::{Parser, ValueEnum};

use host::Host;
use kernel::Kernels;
use tma_tests::rng;
#[cfg(feature = "llvm")]
use values::Values;

/// Searches for inputs that make the project panic or hang.
#[derive(Clone, Parser)]
struct Args {
    /// The target of the inputs.
    #[arg(long, value_enum, default_value_t = Target::Kernel)]
    target: Target,
    /// The duration in minutes.
    #[arg(long, default_value_t = 1.0)]
    minutes: f64,
    /// The number of inputs, regardless of the time.
    #[arg(long)]
    inputs: Option<usize>,
    /// The seed of the random numbers: the same seed generates the same inputs.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// The target of the inputs.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Target {
    /// The front end of the compiler.
    Kernel,
    /// The runtime's launches, tensors and tensor maps.
    Host,
    /// The types that the front end infers, and rustc.
    Types,
    /// The values that kernels compute.
    #[cfg(feature = "llvm")]
    Values,
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Kernel => "kernel",
            Self::Host => "host",
            Self::Types => "types",
            #[cfg(feature = "llvm")]
            Self::Values => "values",
        })
    }
}

/// An input to try.
struct Input<'a> {
    /// Its description, printed if it fails.
    text: String,
    /// Tries the input. Returns true if it was accepted, and false if it was rejected with an
    /// error.
    run: Box<dyn FnOnce() -> bool + 'a>,
}

/// The source of the inputs.
enum Fuzzer {
    Kernel(Kernels),
    Host(Host),
    #[cfg(feature = "llvm")]
    Values(Values),
}

impl Fuzzer {
    fn next(&mut self) -> Input<'_> {
        match self {
            Self::Kernel(kernels) => kernels.next(),
            Self::Host(host) => host.next(),
            #[cfg(feature = "llvm")]
            Self::Values(values) => values.next(),
        }
    }
}

/// The stack that rustc gives to a macro, as far as documented (rustc, "RUST_MIN_STACK": 8 MiB).
const STACK_BYTES: usize = 8 << 20;

/// The maximum time for one input.
const PATIENCE: Duration = Duration::from_secs(60);

/// The outcome of an input.
enum Outcome {
    Accepted,
    Refused,
    Panicked(String),
}

fn main() -> anyhow::Result<ExitCode> {
    let args = Args::parse();
    let passed = match args.target {
        Target::Kernel => survives(args, |seed| Ok(Fuzzer::Kernel(Kernels::new(seed)?)))?,
        Target::Host => survives(args, |seed| Ok(Fuzzer::Host(Host::new(seed)?)))?,
        #[cfg(feature = "llvm")]
        Target::Values => survives(args, |seed| Ok(Fuzzer::Values(Values::new(seed))))?,
        Target::Types => types::run(args.inputs, args.minutes, args.seed, &built()?.join("tmp"))?,
    };
    Ok(if passed { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Returns whether no input from `start` panics or hangs.
fn survives(args: Args, start: fn(u64) -> anyhow::Result<Fuzzer>) -> anyhow::Result<bool> {
    let current_input = env::temp_dir().join(format!("tma-fuzz-{}.txt", args.target));
    let (sender, receiver) = channel();
    let worker = {
        let current_input = current_input.clone();
        let work = move || fuzz(&args, start, &current_input, &sender);
        thread::Builder::new().stack_size(STACK_BYTES).spawn(work)?
    };
    let failed = watch(&receiver, &current_input);
    // After a hang the worker never ends.
    if failed == 0 {
        worker.join().map_err(|_| anyhow::anyhow!("the fuzzer itself failed"))??;
    }
    Ok(failed == 0)
}

/// Counts outcomes until there are no more, or one does not arrive. Returns the number of failed
/// inputs.
fn watch(outcomes: &Receiver<Outcome>, current_input: &Path) -> usize {
    let (mut accepted, mut refused, mut failed) = (0usize, 0usize, 0usize);
    loop {
        match outcomes.recv_timeout(PATIENCE) {
            Ok(Outcome::Accepted) => accepted += 1,
            Ok(Outcome::Refused) => refused += 1,
            Ok(Outcome::Panicked(report)) => {
                failed += 1;
                println!("{report}\n");
            }
            Err(RecvTimeoutError::Disconnected) => break,
            Err(RecvTimeoutError::Timeout) => {
                failed += 1;
                println!("no end after {} s: the input in {}", PATIENCE.as_secs(), current_input.display());
                break;
            }
        }
    }
    println!("{} inputs: {accepted} accepted, {refused} refused", accepted + refused + failed);
    println!("{} passed, {failed} failed", accepted + refused);
    failed
}

/// Generates inputs and tries them until the time is over, or the number is reached.
fn fuzz(
    args: &Args,
    start: fn(u64) -> anyhow::Result<Fuzzer>,
    current_input: &Path,
    outcomes: &Sender<Outcome>,
) -> anyhow::Result<()> {
    let mut fuzzer = start(args.seed)?;
    // Panics are reported with the input that caused them. Of the panic itself, the location is
    // printed.
    std::panic::set_hook(Box::new(|panic| {
        if let Some(place) = panic.location() {
            println!("{place}");
        }
    }));
    let end = Instant::now() + Duration::from_secs_f64(args.minutes * 60.0);
    let mut tried = 0;
    while args.inputs.map_or(Instant::now() < end, |inputs| tried < inputs) {
        tried += 1;
        if outcomes.send(attempt(fuzzer.next(), current_input)).is_err() {
            break;
        }
    }
    Ok(())
}

fn attempt(input: Input<'_>, current_input: &Path) -> Outcome {
    let Input { text, run } = input;
    // A failed write only matters after a crash.
    _ = fs::write(current_input, &text);
    match catch_unwind(AssertUnwindSafe(run)) {
        Ok(true) => Outcome::Accepted,
        Ok(false) => Outcome::Refused,
        Err(panic) => Outcome::Panicked(report(&*panic, &text)),
    }
}

fn report(panic: &(dyn std::any::Any + Send), text: &str) -> String {
    let message = panic.downcast_ref::<String>().map(String::as_str);
    let message = message.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message");
    format!("panicked: {message}\nwith the input:\n{text}")
}

/// Returns cargo's build folder, which contains this program.
fn built() -> anyhow::Result<PathBuf> {
    let program = env::current_exe()?;
    let folder = program.ancestors().nth(2).map(Path::to_owned);
    folder.ok_or_else(|| anyhow::anyhow!("{} is not where cargo puts programs", program.display()))
}

/// Returns the workspace's folder.
fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}
