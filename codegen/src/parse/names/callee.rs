//! Which function a call calls: one of the module, one of the vocabulary, or one of a type.

#![warn(clippy::wildcard_enum_match_arm)]

use syn::Expr as Syntax;

use super::suggest::{self, did_you_mean, elsewhere};
use super::{Meaning, Space};
use crate::diag::Code;
use crate::ir::{Compound, Expr, ExprKind, Scalar, Span, Type};
use crate::parse::cx::{Binding, Cx};
use crate::parse::infer::Kind;
use crate::parse::names;
use crate::parse::number::has_conversion;
use crate::parse::span;
use crate::parse::wording::listed;
use crate::parse::words::{
    AccumulatorFunction, ConversionWord, FunctionWord, PhaseFunction, RowsFunction, TypeWord, Word,
};

/// What a call calls.
pub(in crate::parse) enum Callee<'a> {
    /// A function of the module.
    Device(&'a syn::ItemFn),
    /// A function of the vocabulary.
    Word(FunctionWord),
    /// `f16::from_f32` and the like.
    Conversion(Scalar, ConversionWord),
    /// A function of `Phase`.
    Phase(PhaseFunction),
    /// A function of an accumulator's type.
    Accumulator(AccumulatorFunction, AccumulatorOwner),
    /// A function of the type of so many rows of these scalars.
    Rows(RowsFunction, Scalar, u32),
    /// Nothing; that was reported.
    Refused,
}

/// The type of an accumulator whose function is called; not yet known where it stands without its
/// generics.
pub(in crate::parse) struct AccumulatorOwner(pub(in crate::parse) Type);

impl<'a> Cx<'a> {
    /// Which function a path names; reports what names none.
    pub(in crate::parse) fn callee(&mut self, path: &syn::ExprPath) -> Callee<'a> {
        let at = span::of_expr_path(path);
        let path = match self.refuse_qualified(path.qself.as_ref(), at) {
            true => return Callee::Refused,
            false => &path.path,
        };
        let Some(name) = path.segments.last().map(|last| names::text(&last.ident)) else {
            return Callee::Refused;
        };
        if let Some(name) = names::lone_name(path)
            && self.refuse_call_of_variable(&name, at)
        {
            return Callee::Refused;
        }
        if names::own_name(path).is_some() {
            if let Some(device) = self.device_function(&name) {
                return Callee::Device(device);
            }
            if self.refuse_outsider(&name, Space::Value, at) {
                return Callee::Refused;
            }
        }
        if let Some(owner) = names::owner(path).filter(|owner| self.names_type(owner)) {
            return self.callee_of_type(path, &owner, &name);
        }
        match FunctionWord::named(&name) {
            Some(word) if self.takes_word(path, Meaning::Function(word)) => Callee::Word(word),
            Some(_) => Callee::Refused,
            None if path.segments.len() > 1 => {
                self.refuse_foreign_path(path);
                Callee::Refused
            }
            None => {
                self.unknown_function(&name, at);
                Callee::Refused
            }
        }
    }

    fn callee_of_type(&mut self, path: &syn::Path, owner: &syn::Path, name: &str) -> Callee<'a> {
        let at = span::of_path(path);
        let ty = self.owner_type(owner);
        if let Type::Scalar(scalar) = ty {
            let word = ConversionWord::named(name).filter(|&word| has_conversion(scalar, word));
            let Some(word) = word else {
                self.error(Code::UnknownName, at, format!("`{scalar}` has no function `{name}` in kernels"))
                    .help(format!(
                        "there are {}; `cast::<T>(x)` converts any scalar",
                        listed(ConversionWord::all().into_iter().map(Word::name))
                    ));
                return Callee::Refused;
            };
            let by_own_name =
                owner.segments.last().is_some_and(|owner| names::text(&owner.ident) == scalar.name());
            if by_own_name {
                self.takes_word(path, Meaning::Conversion(scalar, word));
            }
            return Callee::Conversion(scalar, word);
        }
        if let Type::Accumulator(_) | Type::Infer(_) = ty {
            if let Some(word) = AccumulatorFunction::named(name) {
                return Callee::Accumulator(word, AccumulatorOwner(ty));
            }
            let names = AccumulatorFunction::all().into_iter().map(Word::name);
            self.error(Code::UnknownName, at, format!("`Accumulator` has no function `{name}`"))
                .help(format!("there are {}", listed(names)));
        } else if let Type::Rows(element, rows) = ty {
            if let Some(word) = RowsFunction::named(name) {
                return Callee::Rows(word, element, rows);
            }
            let names = RowsFunction::all().into_iter().map(Word::name);
            self.error(Code::UnknownName, at, format!("`Rows` has no function `{name}`"))
                .help(format!("there are {}", listed(names)));
        } else if ty == Type::Compound(Compound::Phase) {
            if let Some(word) = PhaseFunction::named(name) {
                return Callee::Phase(word);
            }
            self.error(Code::UnknownName, at, format!("`Phase` has no function `{name}`")).help(format!(
                "there are {}",
                listed(PhaseFunction::all().into_iter().map(|word| format!("Phase::{}()", word.name())))
            ));
        } else if ty != Type::Error {
            let message = format!("{} has no function `{name}`", self.infer.name(&ty));
            self.error(Code::UnknownName, at, message);
        }
        Callee::Refused
    }

    /// The type whose function is called. That of an accumulator may be left to what it becomes.
    fn owner_type(&mut self, owner: &syn::Path) -> Type {
        let is_open = owner.segments.last().is_some_and(|last| {
            last.arguments.is_none()
                && TypeWord::named(&names::text(&last.ident)) == Some(TypeWord::Accumulator)
        });
        let is_own = names::own_name(owner).is_none_or(|name| self.alias(&name).is_none());
        if is_open && is_own && self.takes_word(owner, Meaning::Type(TypeWord::Accumulator)) {
            return self.infer.fresh(Kind::Any);
        }
        self.path_type(owner)
    }

    /// The module's `#[tma_device]` function of this name.
    pub(in crate::parse) fn device_function(&self, name: &str) -> Option<&'a syn::ItemFn> {
        self.module_items.functions.iter().find(|item| names::text(&item.sig.ident) == name)
    }

    /// Whether `name` is a variable, or the kernel itself; reports that it is called.
    fn refuse_call_of_variable(&mut self, name: &str, at: Span) -> bool {
        if let Some(binding) = self.lookup(name) {
            // What a refused declaration left was reported there.
            let reported = matches!(binding, Binding::Value(Expr { kind: ExprKind::Error, .. }));
            if !reported {
                let message = format!("`{name}` is a variable here, not a function");
                let error = self.error(Code::OtherMeaning, at, message);
                if FunctionWord::named(name).is_some() {
                    error.help(format!("rename the variable: it hides `{name}` of the kernel language"));
                }
            }
            return true;
        }
        let is_kernel = self.frames.first().is_some_and(|kernel| kernel.name == name);
        if is_kernel {
            self.error(
                Code::OtherMeaning,
                at,
                format!("`{name}` is this kernel, and kernels are not called"),
            )
            .help("write a loop, or share code in a `#[tma_device]` function");
        }
        is_kernel
    }

    /// Whether `func` names this function of the vocabulary. Nothing is reported if not.
    pub(in crate::parse) fn is_word(&mut self, func: &Syntax, word: FunctionWord) -> bool {
        let Syntax::Path(path) = func else { return false };
        let Some(name) = path.path.segments.last().map(|last| names::text(&last.ident)) else { return false };
        let lone = names::lone_name(&path.path);
        FunctionWord::named(&name) == Some(word)
            && path.qself.is_none()
            && lone.is_none_or(|name| self.lookup(&name).is_none() && self.device_function(&name).is_none())
            && self.takes_word(&path.path, Meaning::Function(word))
    }

    fn unknown_function(&mut self, name: &str, at: Span) {
        let devices = self.module_items.functions.iter().map(|item| names::text(&item.sig.ident));
        let words = FunctionWord::all().into_iter().map(|word| word.name().into_owned());
        let known: Vec<_> = devices.chain(words).collect();
        let help = elsewhere(name, suggest::Kind::Function).or_else(|| did_you_mean(name, known)).unwrap_or_else(|| {
            "a kernel calls the vocabulary's functions and, in a `#[tma_module]`, the module's `#[tma_device]` functions".to_owned()
        });
        self.error(Code::UnknownName, at, format!("kernels have no function `{name}`")).help(help);
    }
}
