//! The built-ins that the shared items of a module may refer to, from their syntax.
//!
//! A function that another module imports is resolved there, with the names of its own module. Only
//! the expansion of its own module can have rustc verify these. Nothing calls the function there,
//! so its types are unknown: a name is collected if it may refer to a built-in.

use std::rc::Rc;

use syn::punctuated::Punctuated;
use syn::visit::{self, Visit};
use syn::{Expr, Item, Path, Token};

use super::{Meaning, Method, MethodOfGeneric, WordUse, last_name, lone_name, note, text};
use crate::parse::item::host_items::HostItemDecl;
use crate::parse::item::imports::shareable_name;
use crate::parse::item::{ModuleItems, structs};
use crate::parse::names::Space;
use crate::parse::number::finds_method;
use crate::parse::ptx;
use crate::words::{FunctionWord, MacroWord, NumberWord, ReceiverKind, TypeWord, Word, receivers};

/// The number of tiles for which the methods of slots are collected.
const TILES: std::ops::RangeInclusive<usize> = 1..=3;

/// Returns the built-ins that the shared ones of a module's items may refer to.
pub fn in_module(items: &[Item], shared: &ModuleItems) -> Vec<WordUse> {
    let mut finder =
        Finder { shared, words: vec![], methods: vec![], references: vec![], generics: Rc::default() };
    for item in items {
        let is_impl = matches!(item, Item::Impl(block) if structs::is_device(block));
        if is_impl || shareable_name(item).is_some() {
            finder.visit_item(item);
        }
    }
    let Finder { mut words, methods, references, .. } = finder;
    for name in methods {
        let known = text(&name);
        let word = |meaning| WordUse { path: name.clone().into(), meaning };
        if NumberWord::named(&known).is_some_and(NumberWord::is_of_ord) {
            note(&mut words, word(Meaning::OrdMethod));
        }
        for (of, taken) in receivers(&known) {
            let number = if let TypeWord::Scalar(scalar) = of {
                NumberWord::named(&known).zip(Some(scalar))
            } else {
                None
            };
            if number.is_some_and(|(word, scalar)| !finds_method(scalar, word)) {
                continue;
            }
            // References to integers and to `bool` have the methods of `Ord` as well.
            let only_values = number.is_some_and(|(word, scalar)| word.is_of_ord() && !scalar.is_float());
            let is_slot = matches!(of, TypeWord::EmptySlot | TypeWord::LoadingSlot | TypeWord::FullSlot);
            let may_be_of = |&(kind, referent): &(ReceiverKind, Option<TypeWord>)| {
                referent.is_none_or(|referent| referent == of).then_some(kind)
            };
            let references = references.iter().filter(|_| !only_values);
            let held = references.filter_map(may_be_of).chain([ReceiverKind::Value]);
            for held in held {
                for tiles in if is_slot { TILES } else { 0..=0 } {
                    let method = Method { of, tiles, held, taken };
                    if !method.earlier_steps().is_empty() {
                        note(&mut words, word(Meaning::Method(method)));
                    }
                }
            }
        }
    }
    words
}

struct Finder<'a> {
    shared: &'a ModuleItems,
    words: Vec<WordUse>,
    methods: Vec<syn::Ident>,
    /// The references among parameters, with their types where these are built-in.
    references: Vec<(ReceiverKind, Option<TypeWord>)>,
    /// The generics of the function that is being visited.
    generics: Rc<syn::Generics>,
}

impl Finder<'_> {
    /// Whether the name is that of an item of the module, which comes before a built-in.
    fn is_own(&self, name: &str, space: Space) -> bool {
        let is_host = |item: &HostItemDecl| item.name == name && item.spaces.contains(&space);
        let is_shared = match space {
            Space::Value => self.shared.functions.iter().any(|item| item.sig.ident == name),
            Space::Type => {
                self.shared.aliases.iter().any(|item| item.ident == name)
                    || self.shared.structs.iter().any(|item| item.ident == name)
            }
            Space::Macro => false,
        };
        is_shared
            || self.shared.host_items.iter().any(is_host)
            || self.shared.imports.found.iter().any(|import| import.name == name)
    }

    fn note(&mut self, path: &Path, meaning: Meaning) {
        let mut path = path.clone();
        path.segments.iter_mut().for_each(|segment| segment.arguments = syn::PathArguments::None);
        note(&mut self.words, WordUse { path, meaning });
    }

    fn names_type(&self, path: &Path) -> bool {
        last_name(path).is_some_and(|name| {
            name == "Self" || TypeWord::named(&name).is_some() || self.is_own(&name, Space::Type)
        })
    }
}

impl<'ast> Visit<'ast> for Finder<'_> {
    fn visit_signature(&mut self, signature: &'ast syn::Signature) {
        self.generics = Rc::new(signature.generics.clone());
        visit::visit_signature(self, signature);
    }

    fn visit_expr_call(&mut self, call: &'ast syn::ExprCall) {
        if let Expr::Path(callee) = &*call.func
            && callee.qself.is_none()
            && let Some(name) = last_name(&callee.path)
            && let Some(word) = FunctionWord::named(&name)
        {
            let is_other = match super::own_name(&callee.path) {
                Some(name) => self.is_own(&name, Space::Value),
                None => super::owner(&callee.path).is_some_and(|owner| self.names_type(&owner)),
            };
            if !is_other {
                self.note(&callee.path, Meaning::Function(word));
            }
        }
        visit::visit_expr_call(self, call);
    }

    fn visit_path(&mut self, path: &'ast Path) {
        let mut prefix = Path { leading_colon: path.leading_colon, segments: Punctuated::new() };
        for segment in &path.segments {
            prefix.segments.push(segment.ident.clone().into());
            let name = text(&segment.ident);
            let is_own = super::own_name(&prefix).is_some_and(|name| self.is_own(&name, Space::Type));
            if is_own {
                break;
            }
            if let Some(word) = TypeWord::named(&name) {
                self.note(&prefix, Meaning::of_type(word));
                break;
            }
            if name == "Option" {
                self.note(&prefix, Meaning::Option);
                break;
            }
        }
        visit::visit_path(self, path);
    }

    fn visit_expr_method_call(&mut self, call: &'ast syn::ExprMethodCall) {
        if !self.methods.contains(&call.method) {
            self.methods.push(call.method.clone());
        }
        // The receiver's type is unknown: it may be any of the function's generics.
        let generics = Rc::clone(&self.generics);
        for generic in generics.type_params().map(|param| text(&param.ident)) {
            let method =
                MethodOfGeneric { generics: Rc::clone(&generics), generic, arguments: call.args.len() };
            self.note(&call.method.clone().into(), Meaning::MethodOfGeneric(method));
        }
        visit::visit_expr_method_call(self, call);
    }

    fn visit_pat_type(&mut self, param: &'ast syn::PatType) {
        if let syn::Type::Reference(reference) = &*param.ty {
            let kind = if reference.mutability.is_some() {
                ReceiverKind::MutReference
            } else {
                ReceiverKind::Reference
            };
            let referent = if let syn::Type::Path(path) = &*reference.elem {
                lone_name(&path.path).filter(|name| !self.is_own(name, Space::Type))
            } else {
                None
            };
            let reference = (kind, referent.and_then(|name| TypeWord::named(&name)));
            if !self.references.contains(&reference) {
                self.references.push(reference);
            }
        }
        visit::visit_pat_type(self, param);
    }

    fn visit_macro(&mut self, called: &'ast syn::Macro) {
        if let Some(word) = last_name(&called.path).and_then(|name| MacroWord::named(&name)) {
            self.note(&called.path, Meaning::Macro(word));
        }
        ptx::values(called).iter().for_each(|value| visit_argument(self, value));
        // The front end rejects a call whose arguments are no expressions.
        let arguments = Punctuated::<Expr, Token![,]>::parse_terminated;
        for argument in called.parse_body_with(arguments).iter().flatten() {
            visit_argument(self, argument);
        }
    }
}

/// Visits an argument of a macro, which does not live as long as the item.
fn visit_argument(finder: &mut Finder<'_>, argument: &Expr) {
    finder.visit_expr(argument);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diag::Sink;
    use crate::parse::item;

    fn words(items: &str) -> Vec<String> {
        let module: syn::ItemMod = syn::parse_str(&format!("mod m {{ {items} }}")).unwrap();
        let shared = item::module(&module, &mut Sink::default()).shared;
        let words = in_module(&module.content.unwrap().1, &shared);
        words.iter().map(|word| super::super::shown(&word.path)).collect()
    }

    #[test]
    fn names_that_may_be_built_in_are_collected() {
        let function = "#[tma_device] fn f(t: Tile<f32, Shape1<8>>) -> u32 {
            let a = lang::max(min(1, 2), u32::MAX); assert!(a < exp2(x)); point.sqrt(); f16::from_f32(2.0); a }";
        let found = words(function);
        for name in ["Tile", "f32", "Shape1", "u32", "lang::max", "min", "assert", "exp2", "f16"] {
            assert!(found.iter().any(|found| found == name), "{name}: {found:?}");
        }
    }

    #[test]
    fn items_of_the_module_and_code_of_the_host_are_not() {
        let found = words(
            "#[tma_device] fn min(x: f32) -> f32 { x } #[tma_device] fn g(x: f32) -> f32 { min(x) }
             fn host() { max(1, 2) } struct Tile; type Global = u32;
             #[tma_kernel] fn k() { exp2(1.0) }",
        );
        assert!(!found.iter().any(|name| ["min", "max", "exp2", "Tile", "Global"].contains(&name.as_str())));
    }
}
