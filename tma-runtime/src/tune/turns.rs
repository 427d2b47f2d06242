//! Who runs when.

/// The order in which `count` contestants take turns in a round: each begins as often as any other,
/// and every other round runs backwards, so that neighbours change.
pub fn turns(round: usize, count: usize) -> impl Iterator<Item = usize> {
    (0..count).map(move |turn| {
        let turn = if round.is_multiple_of(2) { turn } else { count - 1 - turn };
        (round / 2 + turn) % count
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_runs_once_a_round_and_begins_as_often_as_any_other() {
        for count in 1..6 {
            let rounds: Vec<Vec<usize>> = (0..2 * count).map(|round| turns(round, count).collect()).collect();
            for index in 0..count {
                assert!(rounds.iter().all(|round| round.contains(&index)), "{rounds:?}");
                assert_eq!(rounds.iter().filter(|round| round[0] == index).count(), 2, "{rounds:?}");
            }
        }
    }
}
