//! The barriers and other things that reports of deadlocks say that threads wait for.
//!
//! The simulator's finding and the report of limited waits differ in their details, such as the
//! counts of arrivals. Here both have the same words.

use std::collections::BTreeSet;

/// Returns what the waits in a text are for. Lines about anything else are ignored.
pub fn awaited(text: &str) -> BTreeSet<String> {
    text.lines().flat_map(of_line).collect()
}

/// Returns what a line says that threads or warps wait for: an mbarrier has several names if its
/// memory is reused.
fn of_line(line: &str) -> Vec<String> {
    let line = line.trim();
    let names_waiters = ["thread", "warp"].iter().any(|noun| line.contains(noun));
    let waits = [" waits ", " wait "].iter().find_map(|verb| line.split_once(verb));
    let Some((_, subject)) = waits.filter(|_| names_waiters) else { return vec![] };
    if let Some((_, mbarrier)) = subject.split_once(" the mbarrier ") {
        let names: Vec<_> = mbarrier.split('`').skip(1).step_by(2).map(mbarrier_called).collect();
        return if names.is_empty() { vec![format!("mbarrier {mbarrier}")] } else { names };
    }
    if let Some(number) = subject.strip_prefix("at barrier ") {
        let number: String = number.chars().take_while(char::is_ascii_digit).collect();
        return vec![format!("barrier {number}")];
    }
    let kinds = [
        ("at the cluster's barrier", "barrier of the cluster"),
        ("global memory", "global memory"),
        ("shared memory", "shared memory"),
        ("bulk groups", "bulk groups"),
        ("`cp.async`", "groups of `cp.async`"),
        ("multiplications", "multiplications"),
        ("registers", "registers"),
        ("of the warp", "lanes of the warp"),
        ("previous grids", "previous grids"),
        ("endless loop", "endless loop"),
    ];
    kinds
        .iter()
        .filter(|(part, _)| subject.contains(part))
        .take(1)
        .map(|(_, kind)| (*kind).to_owned())
        .collect()
}

fn mbarrier_called(name: &str) -> String {
    format!("mbarrier `{name}`")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set<const N: usize>(names: [&str; N]) -> BTreeSet<String> {
        names.map(str::to_owned).into()
    }

    #[test]
    fn both_reports_have_the_same_names() {
        let of_simulator = "no thread can continue
  threads 0 to 31 of block 1 wait for the phase with parity 1 of the mbarrier at 0x400 (`ring.full[0]`)
  thread 32 waits for phase 3 of the mbarrier at 0x480 (`a` or `b`)
  33 threads between 64 and 127 wait at barrier 12, where 32 have arrived
  threads 0 to 3 wait at the cluster's barrier, where 4 have arrived
  thread 5 waits in a loop until global memory at 0x7f00 changes
  mbarrier at 0x480 (`c`): phase 0, 1 of 2 arrivals pending";
        let of_gpu = "TMA0632: deadlock: warps of `k` waited longer than 1s
  warps 0, 1, 2, 3 of block 2 wait for the phase with parity 1 of the mbarrier `ring.full[0]`
    from src/bin/row_sums.rs:38: let slot = consumer.wait();
  warp 1 of block 0 waits for the phase of its token of the mbarrier `a`
  warp 1 of block 0 waits for the phase of its token of the mbarrier `b`
  warp 2 of 4 blocks (the first is block 0) wait at barrier 12, where 1 thread is missing
  warp 0 of block 0 waits at the cluster's barrier
  warp 0 of block 0 waits for a value in global memory other than 7
  help: set `TMA_WATCH` to more seconds if the wait is as long as it should be";
        let names = [
            "mbarrier `ring.full[0]`",
            "mbarrier `a`",
            "mbarrier `b`",
            "barrier 12",
            "barrier of the cluster",
            "global memory",
        ];
        assert_eq!(awaited(of_simulator), set(names));
        assert_eq!(awaited(of_gpu), set(names));
    }

    #[test]
    fn an_mbarrier_without_a_name_has_its_address() {
        let text = "thread 0 waits for the phase with parity 0 of the mbarrier at 0x40";
        assert_eq!(awaited(text), set(["mbarrier at 0x40"]));
    }

    #[test]
    fn other_lines_are_ignored() {
        assert_eq!(awaited("all blocks of rank 1 have ended"), set([]));
    }
}
