//! Shows that something is going on, on standard error, if it takes more than a second and somebody
//! watches.

use std::io::{self, IsTerminal, Write as _};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

/// How long nothing is shown.
const PATIENCE: Duration = Duration::from_secs(1);
/// How often the line changes.
const TICK: Duration = Duration::from_millis(100);
/// The states of the moving bar.
const BAR: [&str; 8] = ["=   ", "==  ", "=== ", " ===", "  ==", "   =", "  ==", " ==="];

/// Does `work`, and meanwhile shows `what` with a moving bar and the seconds that have passed.
pub(crate) fn during<T>(what: &str, work: impl FnOnce() -> T) -> T {
    if !io::stderr().is_terminal() {
        return work();
    }
    let (done, is_done) = mpsc::channel::<()>();
    thread::scope(|scope| {
        scope.spawn(move || show(what, &is_done));
        let result = work();
        drop(done);
        result
    })
}

fn show(what: &str, is_done: &mpsc::Receiver<()>) {
    let start = Instant::now();
    let mut wait = PATIENCE;
    for bar in BAR.iter().cycle() {
        if is_done.recv_timeout(wait) != Err(RecvTimeoutError::Timeout) {
            break;
        }
        wait = TICK;
        line(&format!("[{bar}] {what} ({} s)", start.elapsed().as_secs()));
    }
    if start.elapsed() >= PATIENCE {
        line("");
    }
}

/// Replaces the terminal's current line.
fn line(text: &str) {
    let mut terminal = io::stderr().lock();
    // It is only for the eye.
    let _unseen = write!(terminal, "\r\x1b[K{text}").and_then(|()| terminal.flush());
}
