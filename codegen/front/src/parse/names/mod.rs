//! Name resolution: a name resolves to what rustc resolves it to, or is reported.
//!
//! Variables, parameters and generics take precedence, then the items of the `#[tma_module]`,
//! then the built-ins. A name that resolves to a built-in is recorded. The macro has rustc
//! verify it, since only rustc sees imports, macros and the code around a kernel. See
//! `expand/names.rs`.

#![warn(clippy::wildcard_enum_match_arm)]

pub(in crate::parse) mod callee;
mod generic;
mod in_module;

pub use in_module::in_module;

use quote::ToTokens;
use std::rc::Rc;
use syn::ext::IdentExt;
use syn::{Ident, Path, PathArguments};

use crate::diag::Sink;
use crate::diag::mistake::{Import, Name};
use crate::ir::{Scalar, Span};
use crate::parse::cx::Cx;
use crate::parse::item::ModuleItems;
use crate::parse::span;
use crate::words::{ConstantWord, ConversionWord, FunctionWord, MacroWord, ReceiverKind, TypeWord, Word};

/// Rust's namespaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Space {
    Value,
    Type,
    Macro,
}

/// The first use of a built-in name in a kernel.
#[derive(Clone, Debug)]
pub struct WordUse {
    /// The path in the source, without generic arguments.
    pub path: Path,
    /// The meaning it was resolved to.
    pub meaning: Meaning,
}

/// The built-in that a path was resolved to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Meaning {
    /// A function.
    Function(FunctionWord),
    /// A type other than a scalar.
    Type(TypeWord),
    /// A scalar type.
    Scalar(Scalar),
    /// The `Option` of the standard library.
    Option,
    /// A constant of a scalar: `u32::MAX`.
    Constant(Scalar, ConstantWord),
    /// A function of a scalar: `f16::from_f32`.
    Conversion(Scalar, ConversionWord),
    /// `printf!`, `assert!` or `ptx!`.
    Macro(MacroWord),
    /// A method.
    Method(Method),
    /// A method of integers that is also one of `Ord`, which is in Rust's prelude.
    OrdMethod,
    /// A method of a value whose type may be a type generic.
    MethodOfGeneric(MethodOfGeneric),
}

/// A method call on a value whose type may be a type generic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MethodOfGeneric {
    /// The generics of the function that has the type generic.
    pub generics: Rc<syn::Generics>,
    /// The name of the type generic.
    pub generic: String,
    /// The number of arguments.
    pub arguments: usize,
}

/// A built-in method.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Method {
    /// The type that has the method.
    pub of: TypeWord,
    /// For a slot that dereferences to its tiles, the number of tiles.
    pub tiles: usize,
    /// The receiver expression.
    pub(crate) held: ReceiverKind,
    /// The receiver parameter.
    pub(crate) taken: ReceiverKind,
}

impl Method {
    /// Returns the lookup steps at which rustc searches for the method before it finds it.
    pub fn earlier_steps(&self) -> Vec<(ReceiverKind, ReceiverKind)> {
        earlier_steps(self.held, self.taken)
    }
}

/// Returns the lookup steps at which rustc searches for a method, which takes `taken`, before it
/// finds it for a receiver expression `held`. Each step has the receiver expression, and the
/// receiver parameter that a method would need there.
pub fn earlier_steps(held: ReceiverKind, taken: ReceiverKind) -> Vec<(ReceiverKind, ReceiverKind)> {
    let receivers = match held {
        ReceiverKind::Value => vec![ReceiverKind::Value],
        held @ (ReceiverKind::Reference | ReceiverKind::MutReference) => vec![held, ReceiverKind::Value],
    };
    let steps = receivers.into_iter().flat_map(|held| {
        [ReceiverKind::Value, ReceiverKind::Reference, ReceiverKind::MutReference].map(|taken| (held, taken))
    });
    let finds = |(held_at, taken_at)| match taken_at {
        ReceiverKind::Value => held_at == taken,
        ReceiverKind::Reference | ReceiverKind::MutReference => {
            held_at == ReceiverKind::Value && taken_at == taken
        }
    };
    steps.take_while(|&step| !finds(step)).collect()
}

impl Meaning {
    /// Returns the meaning of a type name.
    pub(in crate::parse) fn of_type(word: TypeWord) -> Self {
        if let TypeWord::Scalar(scalar) = word { Self::Scalar(scalar) } else { Self::Type(word) }
    }

    fn space(&self) -> Space {
        match self {
            Self::Function(_) | Self::Method(_) | Self::OrdMethod | Self::MethodOfGeneric(..) => Space::Value,
            // A constant or function of a scalar is hidden by an item that takes the scalar's name.
            Self::Type(_) | Self::Scalar(_) | Self::Option | Self::Constant(..) | Self::Conversion(..) => {
                Space::Type
            }
            Self::Macro(_) => Space::Macro,
        }
    }
}

/// Returns the name without `r#`, which is not part of it.
pub(in crate::parse) fn text(name: &Ident) -> String {
    name.unraw().to_string()
}

/// Returns the name, if the path is a single name or one of this module: `x`, `self::x`.
pub(in crate::parse) fn own_name(path: &Path) -> Option<String> {
    let segments: Vec<_> = path.segments.iter().collect();
    match segments[..] {
        [name] if path.leading_colon.is_none() => Some(text(&name.ident)),
        [own, name] if path.leading_colon.is_none() && own.ident == "self" => Some(text(&name.ident)),
        _ => None,
    }
}

/// Returns the name, if the path is a single name, as that of a variable is.
pub(in crate::parse) fn lone_name(path: &Path) -> Option<String> {
    match path.segments.first() {
        Some(name) if path.segments.len() == 1 && path.leading_colon.is_none() => Some(text(&name.ident)),
        _ => None,
    }
}

/// Returns the last name of a path.
pub(in crate::parse) fn last_name(path: &Path) -> Option<String> {
    path.segments.last().map(|last| text(&last.ident))
}

/// Returns a path as it is spelled in the source.
pub(in crate::parse) fn shown(path: &Path) -> String {
    path.to_token_stream().to_string().replace(' ', "")
}

/// Returns `path` without its last segment, if it has others.
pub(in crate::parse) fn owner(path: &Path) -> Option<Path> {
    let mut owner = path.clone();
    owner.segments.pop();
    owner.segments.pop_punct();
    (!owner.segments.is_empty()).then_some(owner)
}

impl Cx<'_> {
    /// Records that `path` was resolved to a built-in. Reports an error and returns false if it is
    /// certain to mean something else.
    pub(in crate::parse) fn takes_word(&mut self, path: &Path, meaning: Meaning) -> bool {
        if let Some(name) = own_name(path)
            && self.refuse_host_item(&name, meaning.space(), span::of_path(path))
        {
            return false;
        }
        if self.refuse_path(path, &meaning) {
            return false;
        }
        let mut path = path.clone();
        for segment in &mut path.segments {
            segment.arguments = PathArguments::None;
        }
        // `r#min` and `min` are the same name, and no built-in is a keyword.
        if let Some(last) = path.segments.last_mut() {
            last.ident = last.ident.unraw();
        }
        self.note_word(WordUse { path, meaning });
        true
    }

    /// Records the use of a built-in in the kernel's own module. The module of an imported function
    /// proves the names in it.
    pub(in crate::parse) fn note_word(&mut self, word: WordUse) {
        if self.module.is_own() {
            self.record.word(word);
        }
    }

    /// Returns whether `name` is imported from a place where kernels have no items, and reports it.
    pub(in crate::parse) fn refuse_import(&mut self, name: &str, span: Span) -> bool {
        let Some(import) = self.module.missing_import(name) else { return false };
        let (path, why) = (import.path.clone(), import.why.clone());
        self.error(Import::Unusable { name: name.to_owned(), path, why }, span);
        true
    }

    /// Returns whether `name` is an item of the host, and reports it.
    pub(in crate::parse) fn refuse_host_item(&mut self, name: &str, space: Space, span: Span) -> bool {
        let Some(other) = self.module.host_item(name, space) else { return false };
        let (item, hides_word) = (other.item, is_vocabulary(name, space));
        self.error(Name::Host { name: name.to_owned(), item, hides_word }, span);
        true
    }

    /// Whether a path cannot refer to a built-in: a member of a type or trait, or a function of the
    /// standard library.
    fn refuse_path(&mut self, path: &Path, meaning: &Meaning) -> bool {
        let Some(prefix) = (match meaning {
            Meaning::Constant(..) | Meaning::Conversion(..) => owner(path).and_then(|path| owner(&path)),
            Meaning::Function(_)
            | Meaning::Type(_)
            | Meaning::Scalar(_)
            | Meaning::Option
            | Meaning::Macro(_)
            | Meaning::Method(_)
            | Meaning::OrdMethod
            | Meaning::MethodOfGeneric(..) => owner(path),
        }) else {
            return false;
        };
        let first = prefix.segments.first().map(|first| text(&first.ident)).unwrap_or_default();
        let is_std = matches!(first.as_str(), "std" | "core" | "alloc");
        let foreign = match meaning {
            Meaning::Function(_) | Meaning::Type(_) => is_std,
            Meaning::Scalar(_)
            | Meaning::Option
            | Meaning::Constant(..)
            | Meaning::Conversion(..)
            | Meaning::Macro(_)
            | Meaning::Method(_)
            | Meaning::OrdMethod
            | Meaning::MethodOfGeneric(..) => false,
        };
        let is_type = |name: &str| name == "Self" || self.is_type_generic(name);
        let generic = prefix.segments.iter().any(|segment| !segment.arguments.is_none());
        if foreign || generic || is_type(&first) {
            refuse_foreign_path(self.sink, path);
            return true;
        }
        false
    }
}

/// Reports a path to an item that does not exist in kernels.
pub(in crate::parse) fn refuse_foreign_path(sink: &mut Sink, path: &Path) {
    let shown = shown(path);
    let name = last_name(path).unwrap_or_default();
    let is_word = [Space::Value, Space::Type].into_iter().any(|space| is_vocabulary(&name, space));
    sink.error(Name::Foreign { path: shown, word: is_word.then_some(name) }, Span::of(path));
}

/// Returns whether the path has a `qself`, as in `<u32>::MAX`, and reports it.
pub(in crate::parse) fn refuse_qualified(sink: &mut Sink, qself: Option<&syn::QSelf>, span: Span) -> bool {
    if qself.is_some() {
        sink.error(Name::Qualified, span);
    }
    qself.is_some()
}

/// Adds a use of a built-in to `words`, unless it is there already.
pub(in crate::parse) fn note(words: &mut Vec<WordUse>, word: WordUse) {
    let same = |known: &WordUse| known.meaning == word.meaning && is_same(&known.path, &word.path);
    if !words.iter().any(same) {
        words.push(word);
    }
}

/// Whether two paths without generic arguments are spelled alike.
fn is_same(one: &Path, other: &Path) -> bool {
    fn names(path: &Path) -> impl Iterator<Item = &Ident> {
        path.segments.iter().map(|segment| &segment.ident)
    }
    one.leading_colon.is_some() == other.leading_colon.is_some() && names(one).eq(names(other))
}

/// Whether `name` is a built-in in this namespace.
fn is_vocabulary(name: &str, space: Space) -> bool {
    match space {
        Space::Value => FunctionWord::named(name).is_some(),
        Space::Type => TypeWord::named(name).is_some(),
        Space::Macro => MacroWord::named(name).is_some(),
    }
}

/// Whether `name` is a built-in in any namespace.
pub(in crate::parse) fn is_word(name: &Ident) -> bool {
    [Space::Value, Space::Type, Space::Macro].into_iter().any(|space| is_vocabulary(&text(name), space))
}

/// Reports the first use of a built-in if it is certain that nothing imports any.
pub fn judge_imports(words: &[WordUse], shared: &ModuleItems, sink: &mut Sink) {
    let imported = |word: &&WordUse| match &word.meaning {
        Meaning::Function(_) | Meaning::Type(_) => true,
        Meaning::Scalar(scalar) | Meaning::Constant(scalar, _) | Meaning::Conversion(scalar, _) => {
            scalar.is_of_library()
        }
        Meaning::Macro(word) => match word {
            MacroWord::Printf | MacroWord::Ptx | MacroWord::TraceSpan => true,
            MacroWord::Assert => false,
        },
        Meaning::Option | Meaning::Method(_) | Meaning::OrdMethod | Meaning::MethodOfGeneric(..) => false,
    };
    let lone = |word: &&WordUse| {
        word.path.segments.len() == 1
            && matches!(
                word.meaning,
                Meaning::Macro(_) | Meaning::Function(_) | Meaning::Type(_) | Meaning::Scalar(_)
            )
    };
    let Some(first) = words.iter().filter(imported).find(lone).filter(|_| shared.lacks_words) else { return };
    let word = first.path.to_token_stream().to_string().into();
    sink.error(Name::NotImported { word }, Span::of(&first.path));
}
