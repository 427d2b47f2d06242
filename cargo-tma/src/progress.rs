//! Shows on standard error that something is going on, if it takes more than a second and somebody
//! watches.

use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

/// How long nothing is shown.
const PATIENCE: Duration = Duration::from_secs(1);
/// How often the line changes.
const TICK: Duration = Duration::from_millis(100);

/// Does `work`, and meanwhile shows `what` with a moving sign and the time that has passed.
pub(crate) fn during<T>(what: &str, work: impl FnOnce() -> T) -> T {
    let (done, is_done) = mpsc::channel::<()>();
    thread::scope(|scope| {
        scope.spawn(move || {
            if is_done.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout) {
                let bar = spinner(what);
                bar.enable_steady_tick(TICK);
                // Nothing is sent: the other end is dropped when the work is done.
                let _dropped = is_done.recv();
                bar.finish_and_clear();
            }
        });
        let result = work();
        drop(done);
        result
    })
}

fn spinner(what: &str) -> ProgressBar {
    let bar = ProgressBar::new_spinner().with_message(what.to_owned());
    match ProgressStyle::with_template("{spinner} {msg} ({elapsed})") {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}
