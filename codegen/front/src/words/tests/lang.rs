//! Reads the declarations of `tma_runtime::lang` from its source, and [expands](super::expand) its
//! macros.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};
use quote::{ToTokens, quote};

use super::expand::Rule;
use crate::words::ReceiverKind;

/// A function or a method.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Declared {
    /// How a method takes its receiver.
    pub(super) taken: Option<ReceiverKind>,
    /// The names of the parameters.
    pub(super) parameters: Vec<String>,
}

/// The declarations of a module for kernels.
#[derive(Default)]
pub(super) struct Lang {
    /// Functions and methods, by owner and name. The owner of a free function is empty.
    pub(super) functions: BTreeMap<(String, String), Declared>,
    pub(super) types: BTreeSet<String>,
    /// The macros of the current file.
    macros: BTreeMap<String, Rule>,
}

/// Reads all files of the module `folder` and of its submodules.
pub(super) fn read(folder: &Path) -> Lang {
    let mut lang = Lang::default();
    lang.folder(folder);
    lang
}

impl Lang {
    fn folder(&mut self, folder: &Path) {
        for file in fs::read_dir(folder).expect("the module is a folder") {
            let path = file.expect("it can be listed").path();
            if path.is_dir() {
                self.folder(&path);
            } else if path.file_name().is_some_and(|name| name != "tests.rs" && name != "names.rs") {
                let text = fs::read_to_string(&path).expect("it can be read");
                let tokens = text.parse::<TokenStream>().expect("it is Rust");
                self.macros = macros(&tokens);
                self.items("", &tokens);
            }
        }
    }

    /// Records the public items among `tokens`, which are in an `impl` of `owner` or outside of
    /// any.
    fn items(&mut self, owner: &str, tokens: &TokenStream) {
        let tokens: Vec<_> = tokens.clone().into_iter().collect();
        let word = |at: usize| tokens.get(at).map(ToString::to_string).unwrap_or_default();
        let mut is_hidden = false;
        for (at, token) in tokens.iter().enumerate() {
            match (token.to_string().as_str(), word(at + 1).as_str()) {
                ("#", attribute) if attribute.contains("hidden") => is_hidden = true,
                ("pub", "fn") if is_hidden => is_hidden = false,
                ("pub", "fn") => self.function(owner, &word(at + 2), &tokens[at + 3..]),
                // A function of Rust's own.
                ("pub", "use") if word(at + 2) == "core" => self.imported(&tokens[at + 2..]),
                ("pub", "struct" | "enum") => _ = self.types.insert(word(at + 2)),
                ("impl", _) => self.implementation(&tokens[at + 1..]),
                (name, "!") => {
                    if let (Some(rule), Some(TokenTree::Group(arguments))) =
                        (self.macros.get(name), tokens.get(at + 2))
                        && rule.makes_public_items(&self.macros)
                    {
                        let made = rule.expand(&arguments.stream());
                        self.items(owner, &made.unwrap_or_else(|| panic!("{name}! takes its arguments")));
                    }
                }
                _ => {}
            }
        }
    }

    /// Records the function without parameters that a `pub use` imports, from its path on.
    fn imported(&mut self, path: &[TokenTree]) {
        let path = path.iter().map(ToString::to_string).take_while(|token| token != ";");
        let name = path.last().expect("a path has a name");
        self.functions.insert((String::new(), name), Declared { taken: None, parameters: vec![] });
    }

    fn function(&mut self, owner: &str, name: &str, rest: &[TokenTree]) {
        let parameters = rest.iter().find_map(|token| group(token, Delimiter::Parenthesis));
        let parameters = parameters.expect("a function has parameters");
        let signature: syn::Signature = syn::parse2(quote!(fn f #parameters)).expect("they are Rust");
        let taken = signature.receiver().map(|receiver| {
            let by_reference = matches!(receiver.kind, syn::ReceiverKind::Reference(..));
            let by_mut = matches!(receiver.kind, syn::ReceiverKind::Reference(_, _, Some(_)));
            if by_mut {
                ReceiverKind::MutReference
            } else if by_reference {
                ReceiverKind::Reference
            } else {
                ReceiverKind::Value
            }
        });
        let names = signature.inputs.iter().filter_map(|input| match input {
            syn::FnArg::Typed(typed) => Some(typed.pat.to_token_stream().to_string()),
            _ => None,
        });
        let declared = Declared { taken, parameters: names.collect() };
        self.functions.insert((owner.to_owned(), name.to_owned()), declared);
    }

    /// Reads an `impl` from its generics on. An `impl` of a trait is skipped.
    fn implementation(&mut self, rest: &[TokenTree]) {
        let Some(end) = rest.iter().position(|token| group(token, Delimiter::Brace).is_some()) else {
            return;
        };
        let header: TokenStream = rest[..end].iter().cloned().collect();
        let Some(body) = group(&rest[end], Delimiter::Brace) else { return };
        if let Ok(item) = syn::parse2::<syn::ItemImpl>(quote!(impl #header {}))
            && item.trait_.is_none()
        {
            self.items(&owner_of(&item.self_ty), &body.stream());
        }
    }
}

/// Returns the macros that are defined among `tokens`.
fn macros(tokens: &TokenStream) -> BTreeMap<String, Rule> {
    let tokens: Vec<_> = tokens.clone().into_iter().collect();
    let define = |at: usize| match &tokens[at..] {
        [keyword, _, name, rules, ..] if keyword.to_string() == "macro_rules" => {
            Some((name.to_string(), Rule::first(&group(rules, Delimiter::Brace)?.stream())?))
        }
        _ => None,
    };
    (0..tokens.len()).filter_map(define).collect()
}

fn group(token: &TokenTree, delimiter: Delimiter) -> Option<&Group> {
    let TokenTree::Group(group) = token else { return None };
    (group.delimiter() == delimiter).then_some(group)
}

/// Returns the name of a type; for an object of another block or rank, `Remote<Barrier>`.
fn owner_of(ty: &syn::Type) -> String {
    let syn::Type::Path(path) = ty else { return ty.to_token_stream().to_string() };
    let last = path.path.segments.last().expect("a path has a name");
    if (last.ident == "Remote" || last.ident == "Peer")
        && let syn::PathArguments::AngleBracketed(list) = &last.arguments
        && let Some(syn::GenericArgument::Type(thing)) = list.args.first()
    {
        return format!("{}<{}>", last.ident, owner_of(thing));
    }
    last.ident.to_string()
}
