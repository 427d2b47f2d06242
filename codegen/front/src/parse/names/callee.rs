//! Resolves the callee of a call: a function of the module, a built-in, or an associated function.

use syn::Expr as Syntax;

use super::{Meaning, Space, refuse_foreign_path, refuse_qualified};
use crate::diag::Sink;
use crate::diag::mistake::Name;
use crate::diag::suggest::{self, Suggestion, did_you_mean, elsewhere};
use crate::ir::{
    AccumulatorType, Compound, Expr, ExprKind, FragmentType, RowsType, Scalar, Span, StructType, Team, Type,
    WarpFragmentType, WarpSide,
};
use crate::parse::cx::{Binding, Cx, Scoped};
use crate::parse::number::has_conversion;
use crate::parse::{names, span};
use crate::words::{
    AccumulatorFunction, ConversionWord, FragmentFunction, FunctionWord, PhaseFunction, RowsFunction,
    TypeWord, WarpAccumulatorFunction, WarpLeftFunction, WarpRightFunction, WarpRowsFunction, Word,
};

/// The callee of a call.
pub(in crate::parse) enum Callee<'a> {
    /// A function of the module.
    Device(Scoped<&'a syn::ItemFn>),
    /// A function of a struct of the module.
    Method(Scoped<&'a syn::ItemFn>, StructType),
    /// The constructor of a tuple struct.
    Constructor(StructType),
    /// A built-in function.
    Word(FunctionWord),
    /// `f16::from_f32` and other conversions.
    Conversion(Scalar, ConversionWord),
    /// An associated function of `Phase`.
    Phase(PhaseFunction),
    /// An associated function of an accumulator type.
    Accumulator(AccumulatorFunction, AccumulatorOwner),
    /// An associated function of the type of an accumulator's rows.
    Rows(RowsFunction, RowsType),
    /// An associated function of a warp's accumulator type.
    WarpAccumulator(WarpAccumulatorFunction, AccumulatorOwner),
    /// An associated function of the type of the rows of a warp's accumulator.
    WarpRows(WarpRowsFunction, RowsType),
    /// An associated function of a left operand type.
    Fragment(FragmentFunction, FragmentType),
    /// An associated function of a warp's left operand type.
    WarpLeft(WarpLeftFunction, WarpFragmentType),
    /// An associated function of a warp's right operand type.
    WarpRight(WarpRightFunction, WarpFragmentType),
    /// None; an error was reported.
    Refused,
}

/// The accumulator type whose function is called. Not known yet if the generics are omitted.
pub(in crate::parse) struct AccumulatorOwner(pub(in crate::parse) Type);

impl<'a> Cx<'a> {
    /// Resolves a path to a function. Reports a path that does not name one.
    pub(in crate::parse) fn callee(&mut self, path: &syn::ExprPath) -> Callee<'a> {
        let at = span::of_expr_path(path);
        let path = match refuse_qualified(self.sink, path.qself.as_ref(), at) {
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
            if let Some(device) = self.module.function(&name) {
                return Callee::Device(device);
            }
            if self.names_struct(path) {
                let Type::Compound(Compound::Struct(of)) = self.path_type(path) else {
                    return Callee::Refused;
                };
                return Callee::Constructor(of);
            }
            if self.refuse_host_item(&name, Space::Value, at) {
                return Callee::Refused;
            }
        }
        if let Some(owner) = names::owner(path).filter(|owner| self.names_type(owner)) {
            return self.callee_of_type(path, &owner, &name);
        }
        match FunctionWord::named(&name) {
            Some(word) if self.takes_word(path, Meaning::Function(word)) => Callee::Word(word),
            Some(_) => Callee::Refused,
            None if self.refuse_member_of_generic(path, true, at) => Callee::Refused,
            None if path.segments.len() > 1 => {
                refuse_foreign_path(self.sink, path);
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
                let mut known = names_of::<ConversionWord>();
                known.retain(|name| {
                    ConversionWord::named(name).is_some_and(|word| has_conversion(scalar, word))
                });
                let suggestion = call_of_function(name)
                    .or_else(|| elsewhere(name, suggest::Kind::Function))
                    .or_else(|| did_you_mean(name, &known));
                self.error(Name::ScalarFunction { of: scalar, name: name.to_owned(), suggestion, known }, at);
                return Callee::Refused;
            };
            let by_own_name =
                owner.segments.last().is_some_and(|owner| names::text(&owner.ident) == scalar.name());
            if by_own_name {
                self.takes_word(path, Meaning::Conversion(scalar, word));
            }
            return Callee::Conversion(scalar, word);
        }
        if let Type::Compound(Compound::Struct(of)) = ty {
            if let Some(function) = self.module.method(&of, name) {
                return Callee::Method(function, of);
            }
            let known = self.module.method_names(&of);
            self.error(Name::StructFunction { of: of.name, name: name.to_owned(), known }, at);
            return Callee::Refused;
        }
        if let Some(found) = of_matrix(&ty, name) {
            match found {
                Ok(callee) => return callee,
                Err((of, known)) => no_function(self.sink, of, name, known, at),
            }
        } else if ty == Type::Compound(Compound::Phase) {
            if let Some(word) = PhaseFunction::named(name) {
                return Callee::Phase(word);
            }
            let known = names_of::<PhaseFunction>().iter().map(|name| format!("Phase::{name}()")).collect();
            no_function(self.sink, "Phase", name, known, at);
        } else if ty != Type::Error {
            self.error(Name::NoFunction { of: self.infer.partial(&ty), name: name.to_owned() }, at);
        }
        Callee::Refused
    }

    /// Resolves the type whose function is called. An accumulator type without generics is left to
    /// inference.
    fn owner_type(&mut self, owner: &syn::Path) -> Type {
        let open = owner.segments.last().filter(|last| last.arguments.is_none());
        let open = open.and_then(|last| TypeWord::named(&names::text(&last.ident)));
        let open = open.filter(|word| matches!(word, TypeWord::Accumulator | TypeWord::WarpAccumulator));
        let is_own = names::own_name(owner).is_none_or(|name| self.module.alias(&name).is_none());
        if let Some(word) = open.filter(|_| is_own)
            && self.takes_word(owner, Meaning::Type(word))
        {
            return self.infer.fresh_accumulator(word.name());
        }
        self.path_type(owner)
    }

    /// Returns whether `name` is a variable, or the kernel itself, and reports the call of it.
    fn refuse_call_of_variable(&mut self, name: &str, at: Span) -> bool {
        if let Some(binding) = self.frames.lookup(name) {
            // An error was already reported at the declaration.
            let reported = matches!(binding, Binding::Value(Expr { kind: ExprKind::Error, .. }));
            if !reported {
                let hides_word = FunctionWord::named(name).is_some();
                self.error(Name::Variable { name: name.to_owned(), hides_word }, at);
            }
            return true;
        }
        let is_kernel = self.module.is_own() && self.frames.kernel_name() == name;
        if is_kernel {
            self.error(Name::ThisKernel(name.to_owned()), at);
        }
        is_kernel
    }

    /// Whether `func` names this built-in function. Reports nothing if it does not.
    pub(in crate::parse) fn is_word(&mut self, func: &Syntax, word: FunctionWord) -> bool {
        let Syntax::Path(path) = func else { return false };
        let Some(name) = path.path.segments.last().map(|last| names::text(&last.ident)) else { return false };
        let lone = names::lone_name(&path.path);
        FunctionWord::named(&name) == Some(word)
            && path.qself.is_none()
            && lone.is_none_or(|name| {
                self.frames.lookup(&name).is_none() && self.module.function(&name).is_none()
            })
            && self.takes_word(&path.path, Meaning::Function(word))
    }

    fn unknown_function(&mut self, name: &str, at: Span) {
        if self.refuse_import(name, at) {
            return;
        }
        let devices = self.module.function_names();
        let words = FunctionWord::all().into_iter().map(|word| word.name().into_owned());
        let known: Vec<_> = devices.chain(words).collect();
        let suggestion = elsewhere(name, suggest::Kind::Function).or_else(|| did_you_mean(name, known));
        self.error(Name::Function { name: name.to_owned(), suggestion }, at);
    }
}

/// Reports an unknown associated function, with those that the type has.
fn no_function(sink: &mut Sink, of: &'static str, name: &str, known: Vec<String>, at: Span) {
    sink.error(Name::TypeFunction { of, name: name.to_owned(), known }, at);
}

/// The callee with a name among the functions of a type, or else the type's name and its functions.
type Found<'a> = Result<Callee<'a>, (&'static str, Vec<String>)>;

/// Resolves a function of a type of matrices in registers. Returns `None` for other types.
fn of_matrix<'a>(ty: &Type, name: &str) -> Option<Found<'a>> {
    fn of<'a, W: Word>(ty: &'static str, name: &str, callee: impl FnOnce(W) -> Callee<'a>) -> Found<'a> {
        W::named(name).map(callee).ok_or_else(|| (ty, names_of::<W>()))
    }
    let owner = || AccumulatorOwner(ty.clone());
    if let Type::Accumulator(AccumulatorType { team: Team::Warp, .. }) = ty {
        Some(of("WarpAccumulator", name, |word| Callee::WarpAccumulator(word, owner())))
    } else if let Type::Accumulator(_) | Type::Infer(_) = ty {
        Some(of("Accumulator", name, |word| Callee::Accumulator(word, owner())))
    } else if let Type::Rows(rows) = *ty {
        Some(match rows.team {
            Team::Warpgroup => of("Rows", name, |word| Callee::Rows(word, rows)),
            Team::Warp => of("WarpRows", name, |word| Callee::WarpRows(word, rows)),
        })
    } else if let Type::Fragment(operand) = *ty {
        Some(of("Fragment", name, |word| Callee::Fragment(word, operand)))
    } else if let Type::WarpFragment(operand) = *ty {
        Some(match operand.side {
            WarpSide::Left => of("WarpLeft", name, |word| Callee::WarpLeft(word, operand)),
            WarpSide::Right => of("WarpRight", name, |word| Callee::WarpRight(word, operand)),
        })
    } else {
        None
    }
}

/// Suggests the call of the function with this name, if the language has one.
pub(in crate::parse) fn call_of_function(name: &str) -> Option<Suggestion> {
    let parameters: Vec<_> =
        FunctionWord::named(name)?.signature().parameters.iter().map(|parameter| parameter.name).collect();
    Some(Suggestion::Function(format!("{name}({})", parameters.join(", "))))
}

fn names_of<W: Word>() -> Vec<String> {
    W::all().into_iter().map(|word| word.name().into_owned()).collect()
}
