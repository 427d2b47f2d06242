//! The vocabulary: which words there are, and what each takes.
//!
//! [`table`] lists them. The text of a name is looked up once, with [`Word::named`], and is an enum
//! from then on; [`Callable::read`] judges a call's arguments, by their number and by the
//! [shapes](shape) that the row gives them. What a word does is said by an exhaustive `match` over
//! its calls. Suggestions, the index of words in the book, and the tests that compare the table
//! with `tma_runtime::lang` follow from the table too.

#![warn(clippy::wildcard_enum_match_arm)]

mod arguments;
mod generics;
#[macro_use]
mod macros;
mod mma_sync;
pub(super) mod shape;
mod table;
#[cfg(test)]
mod tests;
mod types;

use std::borrow::Cow;

pub(crate) use generics::Generic;
pub(in crate::parse) use mma_sync::{
    WarpAccumulatorCall, WarpAccumulatorFunctionCall, WarpLeftFunctionCall, WarpRightFunctionCall,
    WarpRowsCall, WarpRowsFunctionCall,
};
pub(crate) use mma_sync::{
    WarpAccumulatorFunction, WarpAccumulatorWord, WarpLeftFunction, WarpRightFunction, WarpRowsFunction,
    WarpRowsWord,
};
pub(crate) use table::*;
pub(crate) use types::*;

use super::cx::Cx;
use crate::ir::{Expr, Span};

/// A word with a signature: a variant of an enum that `words!` makes.
pub(crate) trait Word: Copy + 'static {
    /// Every word of this enum, in the order of the table.
    fn all() -> Vec<Self>;

    /// Its name.
    fn name(self) -> Cow<'static, str>;

    /// What the table says of it.
    fn signature(self) -> &'static Signature;

    /// The word of this name.
    fn named(name: &str) -> Option<Self> {
        Self::all().into_iter().find(|word| word.name() == name)
    }
}

/// A word whose calls the table makes.
pub(super) trait Callable: Word {
    /// A call of it, with its arguments.
    type Call;
    /// What the shapes of its arguments depend on.
    type On;

    /// A call with these values, in order; reports arguments that it does not take.
    fn read(self, cx: &mut Cx<'_>, on: &Self::On, values: Vec<Expr>, span: Span) -> Option<Self::Call>;
}

/// What the table says of a word.
#[derive(Debug)]
pub(crate) struct Signature {
    /// What it is a function or a method of.
    #[cfg(test)]
    pub(crate) owner: Owner,
    /// The heading of `docs/language.md` under which it is explained.
    #[cfg(test)]
    pub(crate) chapter: &'static str,
    /// What is special about it.
    pub(crate) marks: &'static [Mark],
    /// Its generic arguments.
    pub(crate) generics: &'static [Generic],
    /// Its parameters, without the receiver.
    pub(crate) parameters: &'static [Parameter],
}

/// What a word belongs to.
#[cfg(test)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Owner {
    /// Functions: of the vocabulary itself (`lang`), or of a type.
    Functions(&'static str),
    /// Methods of a type.
    Methods(&'static str),
}

/// What is special about a word. See [`table`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mark {
    ByRef,
    ByMut,
    Remote,
    Sliced,
    /// It is made of a row for several.
    Family,
}

/// A parameter.
#[derive(Debug)]
pub(crate) struct Parameter {
    pub(crate) name: &'static str,
    /// What is to be said of the argument beside its name, as the end of a sentence.
    pub(crate) note: &'static str,
    /// Whether it takes a `&mut`.
    pub(crate) by_mut: bool,
}

/// A word whose enum does not matter.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) name: Cow<'static, str>,
    pub(crate) signature: &'static Signature,
}

/// Every word with a signature.
#[cfg(test)]
fn entries() -> Vec<Entry> {
    // Those of the table, and those of the file beside it.
    [rows(), mma_sync::rows()].concat()
}

impl Entry {
    pub(crate) fn of(word: impl Word) -> Self {
        Self { name: word.name(), signature: word.signature() }
    }

    /// What is to be said beside how it is called, as the end of a sentence.
    fn note(&self) -> &'static str {
        let of_generics = self.signature.generics.iter().map(|generic| generic.note());
        let of_parameters = self.signature.parameters.iter().map(|parameter| parameter.note);
        of_generics.chain(of_parameters).find(|note| !note.is_empty()).unwrap_or_default()
    }

    /// How it is called: `wait_next(&mut phase)`.
    pub(crate) fn usage(&self) -> String {
        let parameters = self.signature.parameters.iter();
        let parameters: Vec<_> =
            parameters.map(|p| format!("{}{}", if p.by_mut { "&mut " } else { "" }, p.name)).collect();
        let generics = self.signature.generics.iter().filter(|generic| generic.is_written());
        let generics: Vec<_> = generics.map(|generic| generic.letter()).collect();
        let turbofish =
            if generics.is_empty() { String::new() } else { format!("::<{}>", generics.join(", ")) };
        format!("{}{turbofish}({})", self.name, parameters.join(", "))
    }
}

impl Signature {
    pub(crate) fn has(&self, mark: Mark) -> bool {
        self.marks.contains(&mark)
    }
}
