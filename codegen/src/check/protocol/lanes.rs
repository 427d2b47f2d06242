//! A value for each thread of a group, which is mostly one for all.

use std::rc::Rc;

/// What each thread of a group has, in their order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Lanes<T> {
    Same(T),
    Each(Rc<[T]>),
}

impl<T: Copy + PartialEq> Lanes<T> {
    /// Of a value for each.
    pub(super) fn of(all: Vec<T>) -> Option<Self> {
        let first = *all.first()?;
        Some(if all.iter().all(|value| *value == first) { Self::Same(first) } else { Self::Each(all.into()) })
    }

    /// What the thread of this number in its group has.
    pub(super) fn get(&self, lane: usize) -> Option<T> {
        match self {
            Self::Same(value) => Some(*value),
            Self::Each(all) => all.get(lane).copied(),
        }
    }

    /// What all have.
    pub(super) fn uniform(&self) -> Option<T> {
        match self {
            Self::Same(value) => Some(*value),
            Self::Each(_) => None,
        }
    }

    /// `f` of each.
    pub(super) fn map<U: Copy + PartialEq>(&self, mut f: impl FnMut(T) -> Option<U>) -> Option<Lanes<U>> {
        match self {
            Self::Same(value) => f(*value).map(Lanes::Same),
            Self::Each(all) => Lanes::of(all.iter().map(|value| f(*value)).collect::<Option<_>>()?),
        }
    }

    /// `f` of each two.
    pub(super) fn zip<U: Copy + PartialEq, V: Copy + PartialEq>(
        &self,
        other: &Lanes<U>,
        mut f: impl FnMut(T, U) -> Option<V>,
    ) -> Option<Lanes<V>> {
        match (self, other) {
            (Self::Same(a), Lanes::Same(b)) => f(*a, *b).map(Lanes::Same),
            (Self::Same(a), Lanes::Each(all)) => {
                Lanes::of(all.iter().map(|b| f(*a, *b)).collect::<Option<_>>()?)
            }
            (Self::Each(all), Lanes::Same(b)) => {
                Lanes::of(all.iter().map(|a| f(*a, *b)).collect::<Option<_>>()?)
            }
            (Self::Each(one), Lanes::Each(two)) => {
                Lanes::of(one.iter().zip(two.iter()).map(|(a, b)| f(*a, *b)).collect::<Option<_>>()?)
            }
        }
    }

    /// The threads that have the same, by number in their group.
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
