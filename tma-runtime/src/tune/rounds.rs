//! The order in which contestants are measured.

/// Returns the order in which `count` contestants run in a round. A chip's behaviour depends on
/// what ran before: its clock depends on the power that was drawn. Each contestant therefore begins
/// a round as often as any other, and within rounds comes right after each other one equally often.
/// This is exact over `count` rounds if that is even, else over twice as many, and approximate over
/// any other number of rounds (Williams, "Experimental designs balanced for the estimation of
/// residual effects of treatments", 1949).
pub fn turns(round: usize, count: usize) -> impl Iterator<Item = usize> {
    let is_backwards = (round / count.max(1)) % 2 == 1;
    (0..count).map(move |position| {
        let position = if is_backwards { count - 1 - position } else { position };
        // The sequence 0, 1, -1, 2, -2 and so on: neighbours differ by every number but 0.
        let offset = if position.is_multiple_of(2) { count - position / 2 } else { position / 2 + 1 };
        (round + offset) % count
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rounds(number: usize, count: usize) -> Vec<Vec<usize>> {
        (0..number).map(|round| turns(round, count).collect()).collect()
    }

    /// Counts how often each contestant comes right after each other one, indexed by both.
    fn successors(rounds: &[Vec<usize>], count: usize) -> Vec<usize> {
        let mut times = vec![0; count * count];
        for pair in rounds.iter().flat_map(|round| round.windows(2)) {
            times[pair[0] * count + pair[1]] += 1;
        }
        times
    }

    /// The same orders as those of `order` in `tests/rivals/rounds.py`.
    #[test]
    fn neighbours_change() {
        assert_eq!(rounds(4, 4), [[0, 1, 3, 2], [1, 2, 0, 3], [2, 3, 1, 0], [3, 0, 2, 1]]);
        let three = [[0, 1, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0], [0, 2, 1], [1, 0, 2]];
        assert_eq!(rounds(6, 3), three);
    }

    #[test]
    fn rounds_are_balanced() {
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
