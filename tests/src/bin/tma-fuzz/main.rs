//! Fuzzes what needs the whole workspace: nothing that it makes up may lead to a panic, or to no
//! end.
//!
//! * `kernel`: the front end, on kernels mutated token by token, by the compiler's entrances and by
//!   the macros'.
//! * `values`: generated kernels, whose results on the simulator must be those of plain Rust.
//! * `host`: the runtime's launches, tensors and tensor maps, with grids, arguments and layouts
//!   that nobody would ask for.
//! * `types`: bodies with types left out, of which rustc and the front end must think the same.
//!
//! The simulator's own input is made up by the targets of cargo-fuzz in `ptx-sim/fuzz`.
//!
//! Prints how many inputs there were and last 'N passed, N failed'. The input under way is in the
//! file `tma-fuzz-TARGET.txt` of the folder for temporary files: there it is found after a crash
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
use tma_tests::draw;
#[cfg(feature = "llvm")]
use values::Values;

/// Looks for inputs that make the project panic or hang.
#[derive(Clone, Parser)]
struct Args {
    /// What gets the inputs.
    #[arg(long, value_enum, default_value_t = Target::Kernel)]
    target: Target,
    /// For how long.
    #[arg(long, default_value_t = 1.0)]
    minutes: f64,
    /// How many inputs, whatever the time.
    #[arg(long)]
    inputs: Option<usize>,
    /// Where the random numbers start: the same seed makes the same inputs.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// What gets the inputs.
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

/// Something to try.
struct Input<'a> {
    /// What it is, to be shown where it fails.
    text: String,
    /// Tries it; true if it was accepted, false if it was refused with an error.
    run: Box<dyn FnOnce() -> bool + 'a>,
}

/// Where the inputs come from.
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

/// The stack that rustc gives a macro, as far as it is documented (rustc, "RUST_MIN_STACK": 8 MiB).
const STACK_BYTES: usize = 8 << 20;

/// The longest that one input may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// What became of an input.
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

/// Whether no input that `start` leads to panics or hangs.
fn survives(args: Args, start: fn(u64) -> anyhow::Result<Fuzzer>) -> anyhow::Result<bool> {
    let under_way = env::temp_dir().join(format!("tma-fuzz-{}.txt", args.target));
    let (sender, receiver) = channel();
    let worker = {
        let under_way = under_way.clone();
        let work = move || fuzz(&args, start, &under_way, &sender);
        thread::Builder::new().stack_size(STACK_BYTES).spawn(work)?
    };
    let failed = watch(&receiver, &under_way);
    // After a hang there is no end to wait for.
    if failed == 0 {
        worker.join().map_err(|_| anyhow::anyhow!("the fuzzer itself failed"))??;
    }
    Ok(failed == 0)
}

/// Counts outcomes until there are no more, or one does not come; returns how many inputs failed.
fn watch(outcomes: &Receiver<Outcome>, under_way: &Path) -> usize {
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
                println!("no end after {} s: the input in {}", PATIENCE.as_secs(), under_way.display());
                break;
            }
        }
    }
    println!("{} inputs: {accepted} accepted, {refused} refused", accepted + refused + failed);
    println!("{} passed, {failed} failed", accepted + refused);
    failed
}

/// Makes inputs and tries them until the time is over, or there were enough.
fn fuzz(
    args: &Args,
    start: fn(u64) -> anyhow::Result<Fuzzer>,
    under_way: &Path,
    outcomes: &Sender<Outcome>,
) -> anyhow::Result<()> {
    let mut fuzzer = start(args.seed)?;
    // Panics are reported with the input that caused them; of the panic itself, where it was.
    std::panic::set_hook(Box::new(|panic| {
        if let Some(place) = panic.location() {
            println!("{place}");
        }
    }));
    let end = Instant::now() + Duration::from_secs_f64(args.minutes * 60.0);
    let mut tried = 0;
    while args.inputs.map_or(Instant::now() < end, |inputs| tried < inputs) {
        tried += 1;
        if outcomes.send(attempt(fuzzer.next(), under_way)).is_err() {
            break;
        }
    }
    Ok(())
}

fn attempt(input: Input<'_>, under_way: &Path) -> Outcome {
    let Input { text, run } = input;
    // What cannot be written is only missed after a crash.
    _ = fs::write(under_way, &text);
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

/// The folder that cargo builds in, in which this program is.
fn built() -> anyhow::Result<PathBuf> {
    let program = env::current_exe()?;
    let folder = program.ancestors().nth(2).map(Path::to_owned);
    folder.ok_or_else(|| anyhow::anyhow!("{} is not where cargo puts programs", program.display()))
}

/// The workspace's folder.
fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}
