//! Fuzzes the front end: kernels that are correct are mutated, token by token, and whatever comes out must be accepted
//! or refused with errors, by the compiler's entrances and by the macros' ones. Never a panic, never without end.
//!
//! Prints how many programs there were and last 'N passed, N failed'. The program under way is in the file
//! `tma-fuzz-input.rs` of the folder for temporary files: there it is found after a crash that ends the process.

mod corpus;
mod mutate;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};
use std::{env, fs, thread};

use clap::Parser;
use corpus::Program;
use mutate::Mutator;

/// Fuzzes the front end of the compiler.
#[derive(Clone, Parser)]
struct Args {
    /// For how long.
    #[arg(long, default_value_t = 1.0)]
    minutes: f64,
    /// Where the random numbers start: the same seed makes the same programs.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// The stack that rustc gives a macro, as far as it is documented (rustc, "RUST_MIN_STACK": 8 MiB).
const STACK_BYTES: usize = 8 << 20;

/// The longest that one program may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// Every so-many-th accepted program is compiled to PTX.
#[cfg(feature = "llvm")]
const COMPILED: usize = 50;

/// What became of a program.
enum Outcome {
    Accepted,
    Refused,
    Panicked(String),
}

fn main() -> anyhow::Result<ExitCode> {
    let args = Args::parse();
    let input = env::temp_dir().join("tma-fuzz-input.rs");
    let (sender, receiver) = channel();
    let programs = corpus::programs()?;
    println!("{} kernels and modules to mutate, seed {}", programs.len(), args.seed);
    // Panics are reported with the program that caused them.
    std::panic::set_hook(Box::new(|_| {}));
    let worker = {
        let (args, input) = (args.clone(), input.clone());
        let texts: Vec<_> = programs.iter().map(Program::text).collect();
        thread::Builder::new().stack_size(STACK_BYTES).spawn(move || fuzz(&texts, &args, &input, &sender))?
    };
    let failed = watch(&receiver, &input);
    if failed == 0 && worker.join().is_err() {
        anyhow::bail!("the fuzzer itself failed");
    }
    Ok(if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Counts outcomes until there are no more, or one does not come; returns how many programs failed.
fn watch(outcomes: &Receiver<Outcome>, input: &Path) -> usize {
    let (mut accepted, mut refused, mut failed) = (0usize, 0usize, 0usize);
    loop {
        match outcomes.recv_timeout(PATIENCE) {
            Ok(Outcome::Accepted) => accepted += 1,
            Ok(Outcome::Refused) => refused += 1,
            Ok(Outcome::Panicked(report)) => {
                failed += 1;
                println!("{report}\n");
            }
            Err(std::sync::mpsc::RecvTimeoutError::Disconnected) => break,
            Err(std::sync::mpsc::RecvTimeoutError::Timeout) => {
                failed += 1;
                println!("no end after {} s: the program in {}", PATIENCE.as_secs(), input.display());
                break;
            }
        }
    }
    println!("{} programs: {accepted} accepted, {refused} refused", accepted + refused + failed);
    println!("{} passed, {failed} failed", accepted + refused);
    failed
}

/// Makes programs and tries them until the time is over.
fn fuzz(texts: &[String], args: &Args, input: &Path, outcomes: &Sender<Outcome>) {
    let end = Instant::now() + Duration::from_secs_f64(args.minutes * 60.0);
    let programs: Vec<_> = texts.iter().filter_map(|text| Program::parse(text)).collect();
    let mutator = Mutator::new(&programs, args.seed);
    let mut accepted = 0;
    while Instant::now() < end {
        let program = mutator.program();
        let outcome = try_program(&program, &mut accepted, input);
        if outcomes.send(outcome).is_err() {
            return;
        }
    }
}

fn try_program(program: &Program, accepted: &mut usize, input: &Path) -> Outcome {
    let text = program.text();
    // What cannot be written is only missed after a crash.
    _ = fs::write(input, &text);
    let result = catch_unwind(AssertUnwindSafe(|| {
        program.expand();
        let sound = tma_codegen::check("fuzz.rs", &text).is_ok();
        if sound {
            *accepted += 1;
            #[cfg(feature = "llvm")]
            if accepted.is_multiple_of(COMPILED) {
                tma_codegen::compile("fuzz.rs", &text, tma_codegen::Target::default())
                    .expect("an accepted kernel must compile");
            }
        }
        sound
    }));
    match result {
        Ok(true) => Outcome::Accepted,
        Ok(false) => Outcome::Refused,
        Err(panic) => Outcome::Panicked(report(&*panic, &text)),
    }
}

fn report(panic: &(dyn std::any::Any + Send), text: &str) -> String {
    let message = panic.downcast_ref::<String>().map(String::as_str);
    let message = message.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message");
    format!("panicked: {message}\nwith the program:\n{text}")
}

/// The workspace's folder.
fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}
