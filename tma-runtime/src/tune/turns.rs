//! Who runs when.

/// The order in which `count` contestants take turns in a round. What a chip does depends on what it
/// did before: its clock on how much power it drew. So each begins a round as often as any other, and
/// within rounds each comes right after each other equally often: over `count` rounds if that is even,
/// else over twice as many, and nearly so over any number (Williams, "Experimental designs balanced
/// for the estimation of residual effects of treatments", 1949).
pub fn turns(round: usize, count: usize) -> impl Iterator<Item = usize> {
    let is_backwards = (round / count.max(1)) % 2 == 1;
    (0..count).map(move |turn| {
        let turn = if is_backwards { count - 1 - turn } else { turn };
        // 0, 1, -1, 2, -2 and so on: neighbours differ by every number but 0.
        let place = if turn.is_multiple_of(2) { count - turn / 2 } else { turn / 2 + 1 };
        (round + place) % count
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rounds(number: usize, count: usize) -> Vec<Vec<usize>> {
        (0..number).map(|round| turns(round, count).collect()).collect()
    }

    /// How often each comes right after each other, by both.
    fn successors(rounds: &[Vec<usize>], count: usize) -> Vec<usize> {
        let mut times = vec![0; count * count];
        for pair in rounds.iter().flat_map(|round| round.windows(2)) {
            times[pair[0] * count + pair[1]] += 1;
        }
        times
    }

    /// `order` in `tests/rivals/rounds.py` gives the same.
    #[test]
    fn neighbours_change() {
        assert_eq!(rounds(4, 4), [[0, 1, 3, 2], [1, 2, 0, 3], [2, 3, 1, 0], [3, 0, 2, 1]]);
        let three = [[0, 1, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0], [0, 2, 1], [1, 0, 2]];
        assert_eq!(rounds(6, 3), three);
    }

    #[test]
    fn each_runs_once_a_round_begins_and_follows_each_other_equally_often() {
        for count in 1..8 {
            let number = if count % 2 == 0 { count } else { 2 * count };
            let rounds = rounds(number, count);
            for index in 0..count {
                assert!(rounds.iter().all(|round| round.contains(&index)), "{rounds:?}");
                let begins = rounds.iter().filter(|round| round[0] == index).count();
                assert_eq!(begins, number / count, "{rounds:?}");
            }
            for (pair, times) in successors(&rounds, count).into_iter().enumerate() {
                let wanted = if pair / count == pair % count { 0 } else { number / count };
                assert_eq!(times, wanted, "{pair} of {count}: {rounds:?}");
            }
        }
    }
}
