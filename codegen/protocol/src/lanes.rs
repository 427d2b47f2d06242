//! A value for each thread of a group, which is mostly the same for all.
//!
//! The loops are written out, because most of a check's time is spent here. Iterators that are
//! collected take several times as long where macros are compiled without optimisation.

use std::rc::Rc;

/// The values of the threads of a group, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Lanes<T> {
    Same(T),
    Each(Rc<[T]>),
}

impl<T: Copy + PartialEq> Lanes<T> {
    /// Collects a value for each thread. Returns `None` if there are no threads.
    pub(super) fn of(all: Vec<T>) -> Option<Self> {
        let first = *all.first()?;
        Some(if all.iter().all(|value| *value == first) { Self::Same(first) } else { Self::Each(all.into()) })
    }

    /// Returns the value of the thread at this index in its group.
    pub(super) fn get(&self, lane: usize) -> Option<T> {
        match self {
            Self::Same(value) => Some(*value),
            Self::Each(all) => all.get(lane).copied(),
        }
    }

    /// Returns the value that all threads share.
    pub(super) fn uniform(&self) -> Option<T> {
        match self {
            Self::Same(value) => Some(*value),
            Self::Each(_) => None,
        }
    }

    /// Applies `f` to each value.
    pub(super) fn map<U: Copy + PartialEq>(&self, mut f: impl FnMut(T) -> Option<U>) -> Option<Lanes<U>> {
        match self {
            Self::Same(value) => f(*value).map(Lanes::Same),
            Self::Each(all) => each(all, f),
        }
    }

    /// Applies `f` to each pair of values.
    pub(super) fn zip<U: Copy + PartialEq, V: Copy + PartialEq>(
        &self,
        other: &Lanes<U>,
        mut f: impl FnMut(T, U) -> Option<V>,
    ) -> Option<Lanes<V>> {
        match (self, other) {
            (Self::Same(a), Lanes::Same(b)) => f(*a, *b).map(Lanes::Same),
            (Self::Same(a), Lanes::Each(all)) => each(all, |b| f(*a, b)),
            (Self::Each(all), Lanes::Same(b)) => each(all, |a| f(a, *b)),
            (Self::Each(one), Lanes::Each(two)) => {
                let mut lane = 0;
                each(one, |a| {
                    lane += 1;
                    f(a, two[lane - 1])
                })
            }
        }
    }

    /// Returns the classes of threads that share a value, by index in the group. There are none if
    /// all do.
    pub(super) fn classes(&self) -> Vec<Vec<usize>> {
        let Self::Each(all) = self else { return vec![] };
        let mut classes: Vec<(T, Vec<usize>)> = vec![];
        for (lane, value) in all.iter().enumerate() {
            match classes.iter_mut().find(|(known, _)| known == value) {
                Some((_, class)) => class.push(lane),
                None => classes.push((*value, vec![lane])),
            }
        }
        classes.into_iter().map(|(_, class)| class).collect()
    }
}

/// Applies `f` to each value.
fn each<T: Copy, U: Copy + PartialEq>(all: &[T], mut f: impl FnMut(T) -> Option<U>) -> Option<Lanes<U>> {
    let mut values = Vec::with_capacity(all.len());
    for &value in all {
        values.push(f(value)?);
    }
    Lanes::of(values)
}
