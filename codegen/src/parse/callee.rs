//! Which function a call calls: one of the module, one of the vocabulary, or one of a type.

use syn::Expr as Syntax;

use super::call::{Function, function_named};
use super::cx::{Binding, Cx};
use super::names::{self, Meaning, Space};
use super::span;
use super::suggest::{self, did_you_mean, elsewhere};
use crate::diag::Code;
use crate::ir::{Compound, Expr, ExprKind, Scalar, Span, Type};

/// What a call calls.
pub(super) enum Callee<'a> {
    /// A function of the module.
    Device(&'a syn::ItemFn),
    /// A function of the vocabulary.
    Word(Function),
    /// `f16::from_f32` and the like.
    Conversion(Scalar, String),
    /// A function of `Phase`.
    Phase(String),
    /// Nothing; that was reported.
    Refused,
}

impl<'a> Cx<'a> {
    /// Which function a path names; reports what names none.
    pub(super) fn callee(&mut self, path: &syn::ExprPath) -> Callee<'a> {
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
            return self.callee_of_type(path, &owner, name);
        }
        match function_named(&name) {
            Some(function) if self.takes_word(path, Meaning::Function(name.clone())) => {
                Callee::Word(function)
            }
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

    fn callee_of_type(&mut self, path: &syn::Path, owner: &syn::Path, name: String) -> Callee<'a> {
        match self.path_type(owner) {
            Type::Scalar(scalar) => {
                let by_own_name =
                    owner.segments.last().is_some_and(|owner| names::text(&owner.ident) == scalar.name());
                if by_own_name && conversion_from(scalar, &name).is_some() {
                    self.takes_word(path, Meaning::Conversion(scalar, name.clone()));
                }
                Callee::Conversion(scalar, name)
            }
            Type::Compound(Compound::Phase) => Callee::Phase(name),
            Type::Error => Callee::Refused,
            other => {
                let message = format!("{} has no function `{name}`", self.infer.name(&other));
                self.error(Code::UnknownName, Span::of(path), message);
                Callee::Refused
            }
        }
    }

    /// The module's `#[tma_device]` function of this name.
    pub(super) fn device_function(&self, name: &str) -> Option<&'a syn::ItemFn> {
        self.shared_items.functions.iter().find(|item| names::text(&item.sig.ident) == name)
    }

    /// Whether `name` is a variable, or the kernel itself; reports that it is called.
    fn refuse_call_of_variable(&mut self, name: &str, at: Span) -> bool {
        if let Some(binding) = self.lookup(name) {
            // What a refused declaration left was reported there.
            let reported = matches!(binding, Binding::Value(Expr { kind: ExprKind::Error, .. }));
            if !reported {
                let message = format!("`{name}` is a variable here, not a function");
                let error = self.error(Code::OtherMeaning, at, message);
                if super::call::names().any(|word| word == name) {
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
    pub(super) fn is_word(&mut self, func: &Syntax, word: &str) -> bool {
        let Syntax::Path(path) = func else { return false };
        let Some(name) = path.path.segments.last().map(|last| names::text(&last.ident)) else { return false };
        let lone = names::lone_name(&path.path);
        name == word
            && path.qself.is_none()
            && lone.is_none_or(|name| self.lookup(&name).is_none() && self.device_function(&name).is_none())
            && self.takes_word(&path.path, Meaning::Function(name))
    }

    fn unknown_function(&mut self, name: &str, at: Span) {
        let devices = self.shared_items.functions.iter().map(|item| names::text(&item.sig.ident));
        let known: Vec<_> = devices.chain(super::call::names().map(str::to_owned)).collect();
        let help = elsewhere(name, suggest::Kind::Function).or_else(|| did_you_mean(name, known)).unwrap_or_else(|| {
            "a kernel calls the vocabulary's functions and, in a `#[tma_module]`, the module's `#[tma_device]` functions".to_owned()
        });
        self.error(Code::UnknownName, at, format!("kernels have no function `{name}`")).help(help);
    }
}

/// What the function of the scalar `to` converts from: `f16::from_f32` and the like.
pub(super) fn conversion_from(to: Scalar, name: &str) -> Option<Scalar> {
    match (name, to) {
        ("from_f32", _) if to.is_of_library() => Some(Scalar::F32),
        ("from_f64", _) if to.is_of_library() => Some(Scalar::F64),
        ("from_bits", Scalar::F16 | Scalar::Bf16) => Some(Scalar::U16),
        ("from_bits", Scalar::E4m3 | Scalar::E5m2) => Some(Scalar::U8),
        ("from_bits", Scalar::F32 | Scalar::Tf32) => Some(Scalar::U32),
        ("from_bits", Scalar::F64) => Some(Scalar::U64),
        _ => None,
    }
}
