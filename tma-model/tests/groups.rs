//! Compares groups of copies with a plain model: a list of all copies and their states.

use proptest::prelude::*;
use tma_model::sync::{BulkGroups, CopyGroups, GroupEnd, GroupWait};

#[derive(Clone, Copy, Debug)]
enum Step {
    /// Starts a copy with this many pieces.
    Start(u32),
    /// Advances a piece, which the number selects.
    Progress(usize),
    Commit,
    Wait(u32, GroupEnd),
}

fn step() -> impl Strategy<Value = Step> {
    let end = prop_oneof![Just(GroupEnd::Read), Just(GroupEnd::Written)];
    prop_oneof![
        2 => (1..4_u32).prop_map(Step::Start),
        5 => any::<usize>().prop_map(Step::Progress),
        1 => Just(Step::Commit),
        2 => (0..3_u32, end).prop_map(|(pending, end)| Step::Wait(pending, end)),
    ]
}

/// A piece of a copy: its group, from 1, and the stage that it has reached.
struct Piece {
    group: u32,
    end: Option<GroupEnd>,
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(2048) })]

    #[test]
    fn bulk_groups_are_waited_for(program in prop::collection::vec(step(), 0..60)) {
        let (mut groups, mut pieces, mut committed, mut seen) = (BulkGroups::default(), Vec::new(), 0, 0);
        for step in program {
            match step {
                Step::Start(count) => {
                    prop_assert_eq!(groups.current(), committed + 1);
                    groups.start(count);
                    pieces.extend((0..count).map(|_| Piece { group: committed + 1, end: None }));
                }
                Step::Progress(chosen) => {
                    let mut open: Vec<_> =
                        pieces.iter_mut().filter(|piece| piece.end != Some(GroupEnd::Written)).collect();
                    if open.is_empty() {
                        continue;
                    }
                    let chosen = chosen % open.len();
                    let piece = &mut open[chosen];
                    if piece.end.is_none() {
                        groups.read(piece.group);
                        piece.end = Some(GroupEnd::Read);
                    } else {
                        groups.written(piece.group);
                        piece.end = Some(GroupEnd::Written);
                    }
                }
                Step::Commit => {
                    groups.commit();
                    committed += 1;
                }
                Step::Wait(pending, end) => {
                    let last = u32::saturating_sub(committed, pending);
                    let done = pieces.iter().filter(|piece| piece.group <= last).all(|piece| {
                        piece.end == Some(GroupEnd::Written) || (piece.end.is_some() && end == GroupEnd::Read)
                    });
                    let wanted =
                        if done { GroupWait::Done { last, is_first: last > seen } } else { GroupWait::Pending };
                    prop_assert_eq!(groups.wait(pending, end), wanted);
                    seen = if done { seen.max(last) } else { seen };
                }
            }
        }
    }

    #[test]
    fn groups_of_cp_async_are_waited_for(
        program in prop::collection::vec((0..6_u32, any::<usize>(), prop::option::of(0..3_u32)), 0..60),
    ) {
        // The batch of each copy in flight, and the last batch of each group that has been
        // committed and not waited for.
        let (mut groups, mut in_flight, mut batches) = (CopyGroups::default(), Vec::new(), 0);
        let mut committed: Vec<u32> = Vec::new();
        for (operation, chosen, pending) in program {
            match operation {
                0 | 1 => {
                    groups.start();
                    in_flight.push(batches + 1);
                }
                2 if !in_flight.is_empty() => groups.landed(in_flight.remove(chosen % in_flight.len())),
                2 | 3 => {
                    groups.commit();
                    batches += 1;
                    committed.push(batches);
                }
                4 => {
                    batches += 1;
                    prop_assert_eq!(groups.end_batch(), batches);
                }
                _ => {
                    let last = match pending {
                        None => Some(batches + 1),
                        Some(pending) => committed.len().checked_sub(pending as usize + 1).map(|at| committed[at]),
                    };
                    let wanted = match last {
                        None => GroupWait::Done { last: 0, is_first: false },
                        Some(last) if in_flight.iter().any(|&batch| batch <= last) => GroupWait::Pending,
                        Some(last) => {
                            committed.retain(|&batch| batch > last);
                            batches = batches.max(last);
                            GroupWait::Done { last, is_first: true }
                        }
                    };
                    prop_assert_eq!(groups.wait(pending), wanted);
                }
            }
            prop_assert_eq!(groups.current(), batches + 1);
        }
    }
}
