//! Relations between the events of an execution, as matrices of bits.

/// The largest number of events of a program.
pub(crate) const MOST_EVENTS: usize = 32;

/// A set of events.
pub(crate) type Events = u32;

/// Iterates over the events of a set.
pub(crate) fn each(mut events: Events) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let first = events.trailing_zeros() as usize;
        (first < MOST_EVENTS).then(|| {
            events &= events - 1;
            first
        })
    })
}

/// A relation: for each event, the events that follow it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Relation([Events; MOST_EVENTS]);

impl Relation {
    /// Returns the relation of the pairs for which `holds` is true.
    pub(crate) fn of(events: usize, mut holds: impl FnMut(usize, usize) -> bool) -> Self {
        let mut all = Self::default();
        for from in 0..events {
            for to in 0..events {
                if holds(from, to) {
                    all.add(from, to);
                }
            }
        }
        all
    }

    pub(crate) fn has(&self, from: usize, to: usize) -> bool {
        self.0[from] & 1 << to != 0
    }

    pub(crate) fn add(&mut self, from: usize, to: usize) {
        self.0[from] |= 1 << to;
    }

    /// Returns the events that follow one.
    pub(crate) fn after(&self, event: usize) -> Events {
        self.0[event]
    }

    /// Returns the pairs of either relation.
    pub(crate) fn union(mut self, other: &Self) -> Self {
        self.0.iter_mut().zip(&other.0).for_each(|(row, other)| *row |= other);
        self
    }

    /// Returns the pairs that are in both relations.
    pub(crate) fn and(mut self, other: &Self) -> Self {
        self.0.iter_mut().zip(&other.0).for_each(|(row, other)| *row &= other);
        self
    }

    /// Returns the pairs of events that are both in a set.
    pub(crate) fn within(mut self, events: Events) -> Self {
        for (event, row) in self.0.iter_mut().enumerate() {
            *row &= if events & 1 << event == 0 { 0 } else { events };
        }
        self
    }

    /// Returns the composition: first this one, then `next`.
    pub(crate) fn then(&self, next: &Self) -> Self {
        let follow = |row: &Events| each(*row).fold(0, |all, middle| all | next.0[middle]);
        let mut all = Self::default();
        all.0.iter_mut().zip(&self.0).for_each(|(to, row)| *to = follow(row));
        all
    }

    /// Returns the transitive closure.
    pub(crate) fn closure(mut self) -> Self {
        for middle in 0..MOST_EVENTS {
            let next = self.0[middle];
            if next == 0 {
                continue;
            }
            for row in &mut self.0 {
                if *row & 1 << middle != 0 {
                    *row |= next;
                }
            }
        }
        self
    }

    /// Whether no event follows itself, directly or through others.
    pub(crate) fn is_acyclic(self) -> bool {
        let closure = self.closure();
        (0..MOST_EVENTS).all(|event| !closure.has(event, event))
    }
}

#[test]
fn a_cycle_is_found_through_others() {
    let chain = Relation::of(4, |from, to| from + 1 == to);
    assert!(chain.is_acyclic());
    assert!(chain.closure().has(0, 3));
    assert!(!chain.union(&Relation::of(4, |from, to| (from, to) == (3, 1))).is_acyclic());
    assert_eq!(each(chain.then(&chain).after(1)).collect::<Vec<_>>(), [3]);
}
