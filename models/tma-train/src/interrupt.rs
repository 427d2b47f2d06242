//! Signals that ask a run to end after its step.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::thread;

use tokio::runtime::{Builder, Runtime};

use crate::progress::note;

/// The exit code after ctrl-c: 128 and the number of the signal, as shells have it.
pub const INTERRUPTED: i32 = 130;
/// The exit code after SIGTERM.
#[cfg(unix)]
const TERMINATED: i32 = 143;
/// The exit code after SIGHUP.
#[cfg(unix)]
const HUNG_UP: i32 = 129;

/// Whether a signal has asked the run to end.
#[derive(Clone, Debug, Default)]
pub struct Interrupt(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    /// The exit code of the last signal, or 0.
    code: AtomicI32,
    /// Whether the first step has begun.
    has_steps: AtomicBool,
}

impl Interrupt {
    /// Listens for ctrl-c and, on Unix, for SIGTERM and SIGHUP. The second signal ends the process at
    /// once. A SIGHUP that was ignored before, as by `nohup`, stays ignored.
    ///
    /// # Errors
    ///
    /// The system refuses.
    pub fn listen() -> io::Result<Self> {
        let interrupt = Self::default();
        let runtime = Builder::new_current_thread().enable_all().build()?;
        start(runtime, interrupt.clone())?;
        Ok(interrupt)
    }

    /// Returns the exit code, if a signal has asked the run to end.
    pub fn code(&self) -> Option<i32> {
        match self.0.code.load(Ordering::Relaxed) {
            0 => None,
            code => Some(code),
        }
    }

    /// Says that the first step begins, which changes what a signal waits for.
    pub fn begin_steps(&self) {
        self.0.has_steps.store(true, Ordering::Relaxed);
    }

    /// Records a signal, or ends the process if it is the second one.
    fn receive(&self, code: i32) {
        if self.0.code.swap(code, Ordering::Relaxed) != 0 {
            std::process::exit(code);
        }
        let phase = match self.0.has_steps.load(Ordering::Relaxed) {
            true => "Finishing the step and saving it",
            false => "Ending before the first step",
        };
        note(&format!("\n{phase}; the next signal ends the process at once"));
    }
}

/// Receives signals in a thread of its own, once this returns.
#[cfg(unix)]
fn start(runtime: Runtime, interrupt: Interrupt) -> io::Result<()> {
    use tokio::signal::unix::{SignalKind, signal};

    let listen = |kind| {
        let _context = runtime.enter();
        signal(kind)
    };
    let (mut interrupts, mut terminations) =
        (listen(SignalKind::interrupt())?, listen(SignalKind::terminate())?);
    let mut hang_ups = if is_hang_up_ignored() { None } else { Some(listen(SignalKind::hangup())?) };
    let receive = move || {
        runtime.block_on(async {
            loop {
                tokio::select! {
                    Some(()) = interrupts.recv() => interrupt.receive(INTERRUPTED),
                    Some(()) = terminations.recv() => interrupt.receive(TERMINATED),
                    Some(()) = received(&mut hang_ups) => interrupt.receive(HUNG_UP),
                    else => return,
                }
            }
        });
    };
    thread::Builder::new().name("signals".into()).spawn(receive)?;
    Ok(())
}

/// Waits for a signal, or for ever if there is none to wait for.
#[cfg(unix)]
async fn received(signal: &mut Option<tokio::signal::unix::Signal>) -> Option<()> {
    match signal {
        Some(signal) => signal.recv().await,
        None => std::future::pending().await,
    }
}

/// Returns whether SIGHUP is ignored, as `nohup` wants. Linux tells; elsewhere it is left as it is.
#[cfg(unix)]
fn is_hang_up_ignored() -> bool {
    let Ok(status) = std::fs::read_to_string("/proc/self/status") else { return true };
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    // SIGHUP is signal 1, the lowest bit.
    mask.is_none_or(|mask| mask & 1 == 1)
}

/// Receives ctrl-c in a thread of its own.
#[cfg(not(unix))]
fn start(runtime: Runtime, interrupt: Interrupt) -> io::Result<()> {
    let receive = move || {
        runtime.block_on(async {
            while tokio::signal::ctrl_c().await.is_ok() {
                interrupt.receive(INTERRUPTED);
            }
        });
    };
    thread::Builder::new().name("signals".into()).spawn(receive)?;
    Ok(())
}
