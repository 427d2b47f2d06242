//! The vocabulary: which words there are, and what each takes.
//!
//! [`table`] lists them. The text of a name is looked up once, with [`Word::named`], and is an enum
//! from then on; [`Callable::read`] judges a call's arguments, by their number and by the
//! [shapes](shape) that the row gives them. What a word does is said by an exhaustive `match` over
//! its calls. Suggestions, the index of words in the book, and the tests that compare the table with
//! `tma_runtime::lang` follow from the table too.

#![warn(clippy::wildcard_enum_match_arm)]

#[macro_use]
mod macros;
pub(super) mod shape;
mod table;
#[cfg(test)]
mod tests;

use std::borrow::Cow;

pub(crate) use table::*;

use super::cx::Cx;
use super::device::Argument;
use super::wording::{arguments, given};
use crate::diag::Code;
use crate::ir::{Compound, Expr, ExprKind, Span, Type};

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

/// A kind of generic argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Generic {
    /// A number that is computed with.
    Number,
    /// What shared memory holds.
    Shared,
    /// What a `for` runs over.
    Range,
    /// How many bulk groups may be pending.
    Groups,
    /// A dimension of a tensor.
    Dimension,
    /// The element of a tile, an array or a slice.
    Element,
    /// The shape of a tile.
    Shape,
    /// The layout of a tile's rows; it may be left out.
    Swizzle,
    /// A constant.
    Count,
    /// A tuple of tiles.
    Tiles,
    /// A tile.
    Tile,
    /// The dimensions of a tensor whose pixels are copied in columns.
    Rank,
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

impl Generic {
    /// What stands for it in a text.
    fn letter(self) -> &'static str {
        match self {
            Self::Number | Self::Element => "T",
            Self::Shared => "X",
            Self::Range => "R",
            Self::Groups | Self::Count | Self::Rank => "N",
            Self::Dimension => "D",
            Self::Shape => "S",
            Self::Swizzle => "W",
            Self::Tiles => "(A, B)",
            Self::Tile => "Tile<..>",
        }
    }

    /// What is to be said of it, as the end of a sentence.
    fn note(self) -> &'static str {
        match self {
            Self::Groups => ": at most `N` groups may be pending, and 0 waits for all",
            Self::Dimension => ", for dimension `D`",
            Self::Number
            | Self::Shared
            | Self::Range
            | Self::Element
            | Self::Shape
            | Self::Swizzle
            | Self::Count
            | Self::Tiles
            | Self::Tile
            | Self::Rank => "",
        }
    }

    /// Whether it has to be written in a call, since nothing else decides it.
    fn is_written(self) -> bool {
        matches!(self, Self::Groups | Self::Dimension)
    }
}

impl TypeWord {
    /// Whether it is the shape of a tile.
    pub(crate) fn is_shape(self) -> bool {
        matches!(self, Self::Shape1 | Self::Shape2 | Self::Shape3 | Self::Shape4 | Self::Shape5)
    }

    /// Whether it is a part of a tile's type, and no type of a value.
    pub(crate) fn is_part(self) -> bool {
        self.is_shape() || matches!(self, Self::TileSwizzle(_))
    }

    /// Whether it takes so many generic arguments.
    pub(crate) fn takes(self, found: usize) -> bool {
        (self.least()..=self.generics().len()).contains(&found)
    }

    /// How many generic arguments it takes, for a message.
    pub(crate) fn takes_what(self) -> String {
        match (self.least(), self.generics().len()) {
            (least, most) if least == most => arguments(most),
            (least, most) => format!("{least} or {most} arguments"),
        }
    }

    /// Without those that may be left out.
    fn least(self) -> usize {
        self.generics().iter().filter(|generic| !matches!(generic, Generic::Swizzle)).count()
    }

    /// How it is written with its generic arguments.
    pub(crate) fn usage(self) -> String {
        let extents = ["A", "B", "C", "D", "E"];
        let is_extent = |generic: &Generic| self.is_shape() && matches!(generic, Generic::Count);
        let letter = |(generic, extent): (&Generic, _)| {
            if is_extent(generic) { extent } else { generic.letter() }
        };
        let generics = self.generics().iter().zip(extents).map(letter);
        let generics: Vec<_> = generics.take(self.least()).collect();
        match generics[..] {
            [] => self.name().to_owned(),
            _ => format!("{}<{}>", self.name(), generics.join(", ")),
        }
    }

    /// The name of a type; none of one that is written otherwise.
    pub(crate) fn of(ty: &Type) -> Option<Self> {
        Some(match ty {
            Type::Scalar(scalar) => Self::Scalar(*scalar),
            Type::Dim3 => Self::Dim3,
            Type::CachePolicy => Self::CachePolicy,
            Type::Tile(_) => Self::Tile,
            Type::Barrier => Self::Barrier,
            Type::Token => Self::Token,
            Type::SharedArray(..) => Self::SharedArray,
            Type::Stages(..) => Self::Stages,
            Type::Remote(_) => Self::Remote,
            Type::ClusterAxis => Self::ClusterAxis,
            Type::TensorMap(_) => Self::TensorMap,
            Type::Im2colMap(..) => Self::Im2colMap,
            Type::Maps(_) => Self::Maps,
            Type::SharedMap(_) => Self::SharedMap,
            Type::Global(_) => Self::Global,
            Type::Compound(compound) => match compound {
                Compound::Phase => Self::Phase,
                Compound::Pipeline(_) => Self::Pipeline,
                Compound::Producer(_) => Self::Producer,
                Compound::Consumer(_) => Self::Consumer,
                Compound::EmptySlot(_) => Self::EmptySlot,
                Compound::LoadingSlot(_) => Self::LoadingSlot,
                Compound::FullSlot(_) => Self::FullSlot,
            },
            Type::Unit | Type::Never | Type::Array(..) | Type::Infer(_) | Type::Error => return None,
        })
    }
}

impl Cx<'_> {
    /// The values of arguments, in order, for a word with this signature; for any, if there is none.
    pub(super) fn argument_values<'s>(
        &mut self,
        word: Option<&Entry>,
        args: impl IntoIterator<Item = &'s syn::Expr>,
    ) -> Vec<Expr> {
        let parameters = word.map(|word| word.signature.parameters).unwrap_or_default();
        let mut values = vec![];
        for (i, arg) in args.into_iter().enumerate() {
            let by_mut = parameters.get(i).is_some_and(|parameter| parameter.by_mut);
            let (effects, value) = self.block(|cx| match word {
                Some(word) if by_mut => cx.phase_by_mut(&word.name, arg),
                Some(_) | None => cx.expr(arg),
            });
            self.hold(&mut values, &effects);
            self.append(effects);
            values.push(value);
        }
        values
    }

    /// `values`, if they are as many as the word has parameters.
    pub(super) fn counted<const N: usize>(
        &mut self,
        word: impl Word,
        values: Vec<Expr>,
        span: Span,
    ) -> Option<[Expr; N]> {
        let (found, is_sound) = (values.len(), !values.iter().any(is_error));
        let exact = <[Expr; N]>::try_from(values).ok();
        if exact.is_none() {
            let entry = Entry::of(word);
            let message = format!("`{}` takes {}, but {}", entry.name, arguments(N), given(found));
            self.error(Code::ArgumentCount, span, message).help(format!(
                "write `{}`{}",
                entry.usage(),
                entry.note()
            ));
        }
        exact.filter(|_| is_sound)
    }

    /// `&mut phase`, for a word that changes the phase.
    fn phase_by_mut(&mut self, word: &str, arg: &syn::Expr) -> Expr {
        let (phase, by_mut) = match self.argument(arg) {
            Argument::Reference { value, mutable } => (value, mutable),
            Argument::Value(value) => (value, false),
        };
        if is_error(&phase) {
            return phase;
        }
        if self.resolve(&phase.ty) != Type::Compound(Compound::Phase) {
            let message = format!("`{word}` takes a `Phase`, not {}", self.infer.name(&phase.ty));
            self.error(Code::TypeMismatch, phase.span, message)
                .help("pass `&mut phase`, of `let mut phase = Phase::new();`; a parity is for `wait`");
            return Expr::error(phase.span);
        }
        if !by_mut {
            let message = format!("`{word}` changes the phase, so it takes a `&mut`");
            self.error(Code::TypeMismatch, phase.span, message).help("write `&mut phase`");
            return Expr::error(phase.span);
        }
        phase
    }
}

fn is_error(value: &Expr) -> bool {
    matches!(value.kind, ExprKind::Error)
}
