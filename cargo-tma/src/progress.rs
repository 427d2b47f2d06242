//! Shows progress on standard error, if the work takes more than a second and standard error is a
//! terminal.

use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// The delay before anything is shown.
const PATIENCE: Duration = Duration::from_secs(1);
/// The interval at which the line changes.
const TICK: Duration = Duration::from_millis(100);

/// Runs `work`, and meanwhile shows `label` with a spinner and the elapsed time.
pub(crate) fn during<T>(label: &str, work: impl FnOnce() -> T) -> T {
    let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden());
    shown(&styled(bar, label, "{spinner} {msg} ({elapsed})"), work)
}

/// Runs `work` for each item, and meanwhile shows how many are done. Stops at the first error.
pub(crate) fn over<I, T, E>(
    label: &str,
    items: &[I],
    mut work: impl FnMut(&I) -> Result<T, E>,
) -> Result<Vec<T>, E> {
    let bar = ProgressBar::with_draw_target(Some(items.len() as u64), ProgressDrawTarget::hidden());
    let bar = styled(bar, label, "{spinner} {msg} [{bar:30}] {pos}/{len} ({elapsed})");
    let one = |item| {
        let result = work(item);
        bar.inc(1);
        result
    };
    shown(&bar, || items.iter().map(one).collect())
}

/// Runs `work`. After a second, the bar is drawn until the work is done.
fn shown<T>(bar: &ProgressBar, work: impl FnOnce() -> T) -> T {
    let (done, is_done) = mpsc::channel::<()>();
    thread::scope(|scope| {
        scope.spawn(move || {
            if is_done.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout) {
                bar.set_draw_target(ProgressDrawTarget::stderr());
                bar.enable_steady_tick(TICK);
                // Nothing is ever sent: the other end is dropped when the work is done.
                let _dropped = is_done.recv();
                bar.finish_and_clear();
            }
        });
        let result = work();
        drop(done);
        result
    })
}

fn styled(bar: ProgressBar, label: &str, template: &str) -> ProgressBar {
    let bar = bar.with_message(label.to_owned());
    match ProgressStyle::with_template(template) {
        Ok(style) => bar.with_style(style.progress_chars("=> ")),
        Err(_) => bar,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_in_order_and_the_first_error_ends_it() {
        assert_eq!(over("halves", &[2, 4, 6], |n| Ok::<_, String>(n / 2)), Ok(vec![1, 2, 3]));
        let mut seen = vec![];
        let halves = over("halves", &[2, 3, 5], |n| {
            seen.push(*n);
            if n % 2 == 0 { Ok(n / 2) } else { Err(format!("{n} is odd")) }
        });
        assert_eq!((halves, seen), (Err("3 is odd".to_owned()), vec![2, 3]));
        assert_eq!(during("adding", || 1 + 1), 2);
    }
}
