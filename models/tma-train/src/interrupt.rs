//! Signals that ask a run to end after its step.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};
use std::thread;

use tokio::runtime::{Builder, Runtime};

/// The exit code after ctrl-c: 128 and the number of the signal, as shells have it.
pub const INTERRUPTED: i32 = 130;
/// The exit code after SIGTERM.
#[cfg(unix)]
const TERMINATED: i32 = 143;

/// Whether a signal has asked the run to end.
#[derive(Clone, Debug, Default)]
pub struct Interrupt(Arc<AtomicI32>);

impl Interrupt {
    /// Listens for ctrl-c and, on Unix, for SIGTERM. The second signal ends the process at once.
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
        match self.0.load(Ordering::Relaxed) {
            0 => None,
            code => Some(code),
        }
    }

    /// Takes a signal down, or ends the process if it is the second one.
    fn receive(&self, code: i32) {
        if self.0.swap(code, Ordering::Relaxed) != 0 {
            std::process::exit(code);
        }
        eprintln!("\nFinishing the step and saving it; the next signal ends the process at once");
    }
}

/// Receives signals in a thread of its own, from the moment on when this returns.
#[cfg(unix)]
fn start(runtime: Runtime, interrupt: Interrupt) -> io::Result<()> {
    use tokio::signal::unix::{SignalKind, signal};

    let (mut interrupts, mut terminations) = {
        let _context = runtime.enter();
        (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?)
    };
    let receive = move || {
        runtime.block_on(async {
            loop {
                tokio::select! {
                    Some(()) = interrupts.recv() => interrupt.receive(INTERRUPTED),
                    Some(()) = terminations.recv() => interrupt.receive(TERMINATED),
                    else => return,
                }
            }
        });
    };
    thread::Builder::new().name("signals".into()).spawn(receive)?;
    Ok(())
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
