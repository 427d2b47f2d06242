//! Reads what `tma_runtime::lang` declares from its source, whose macros are simple enough to be
//! seen through: each makes one function, or one type, of each of its entries.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};
use quote::{ToTokens, quote};

use crate::parse::names::By;

/// A function or a method.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Declared {
    /// How a method takes its receiver.
    pub(super) taken: Option<By>,
    /// The names of its parameters.
    pub(super) parameters: Vec<String>,
}

/// What a module declares for kernels.
#[derive(Default)]
pub(super) struct Lang {
    /// Functions and methods, by owner and name; a function has no owner.
    pub(super) functions: BTreeMap<(String, String), Declared>,
    pub(super) types: BTreeSet<String>,
    /// What the macros of the file make of each entry.
    macros: BTreeMap<String, TokenStream>,
}

/// All files of the module `folder`.
pub(super) fn read(folder: &Path) -> Lang {
    let mut lang = Lang::default();
    for path in super::sources(folder) {
        if path.file_name().is_some_and(|name| name != "tests.rs" && name != "names.rs") {
            let text = fs::read_to_string(&path).expect("it can be read");
            lang.macros.clear();
            lang.items("", &text.parse::<TokenStream>().expect("it is Rust"));
        }
    }
    lang
}

impl Lang {
    /// Notes the public items among `tokens`, which stand in an `impl` of `owner` or outside of
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
                ("pub", "struct" | "enum") => _ = self.types.insert(word(at + 2)),
                ("macro_rules", "!") => _ = self.macros.insert(word(at + 2), transcriber(&tokens[at + 3])),
                ("impl", _) => self.implementation(&tokens[at + 1..]),
                (name, "!") if self.macros.contains_key(name) => {
                    if let Some(TokenTree::Group(entries)) = tokens.get(at + 2) {
                        self.invocation(owner, &self.macros[name].clone(), entries);
                    }
                }
                _ => {}
            }
        }
    }

    fn function(&mut self, owner: &str, name: &str, rest: &[TokenTree]) {
        // What a macro's entries name.
        if name == "$" {
            return;
        }
        let parameters = rest.iter().find_map(|token| group(token, Delimiter::Parenthesis));
        let parameters = parameters.expect("a function has parameters");
        let signature: syn::Signature = syn::parse2(quote!(fn f #parameters)).expect("they are Rust");
        let taken = signature.receiver().map(|receiver| {
            let by_reference = matches!(receiver.kind, syn::ReceiverKind::Reference(..));
            let by_mut = matches!(receiver.kind, syn::ReceiverKind::Reference(_, _, Some(_)));
            if by_mut {
                By::MutReference
            } else if by_reference {
                By::Reference
            } else {
                By::Value
            }
        });
        let names = signature.inputs.iter().filter_map(|input| match input {
            syn::FnArg::Typed(typed) => Some(typed.pat.to_token_stream().to_string()),
            _ => None,
        });
        let declared = Declared { taken, parameters: names.collect() };
        self.functions.insert((owner.to_owned(), name.to_owned()), declared);
    }

    /// An `impl` of a type, from its generics on; not that of a trait.
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

    /// What a macro makes of its entries: `name ..;`, or `[generics] Type;`.
    fn invocation(&mut self, owner: &str, made: &TokenStream, entries: &Group) {
        let shape: Vec<_> = made.clone().into_iter().collect();
        let shown: Vec<_> = shape.iter().map(ToString::to_string).collect();
        let declares = |what: &str| shown.windows(3).position(|words| *words == ["pub", what, "$"]);
        let entries: Vec<_> = entries.stream().into_iter().collect();
        for entry in entries.split(|token| token.to_string() == ";") {
            let undocumented = entry.iter().position(|token| {
                !matches!(token, TokenTree::Punct(_)) && group(token, Delimiter::Bracket).is_none()
            });
            let Some(first) = undocumented else { continue };
            if let Some(at) = declares("fn") {
                self.function(owner, &entry[first].to_string(), &shape[at + 4..]);
            } else if declares("enum").is_some() {
                self.types.insert(entry[first].to_string());
            } else if shown.windows(2).any(|words| *words == ["$", "ty"])
                && let Some(body) = shape.iter().find_map(|token| group(token, Delimiter::Brace))
            {
                let ty: TokenStream = entry[first..].iter().cloned().collect();
                self.items(&owner_of(&syn::parse2(ty).expect("it is a type")), &body.stream());
            }
        }
    }
}

/// What a macro makes of one entry: the repetition on the right side of its only rule.
fn transcriber(rules: &TokenTree) -> TokenStream {
    let rules: Vec<_> = group(rules, Delimiter::Brace).expect("it has rules").stream().into_iter().collect();
    let made = rules.iter().filter_map(|token| group(token, Delimiter::Brace)).next();
    let made: Vec<_> = made.into_iter().flat_map(Group::stream).collect();
    match &made[..] {
        [dollar, TokenTree::Group(each), ..] if dollar.to_string() == "$" => each.stream(),
        _ => made.into_iter().collect(),
    }
}

fn group(token: &TokenTree, delimiter: Delimiter) -> Option<&Group> {
    let TokenTree::Group(group) = token else { return None };
    (group.delimiter() == delimiter).then_some(group)
}

/// The name of a type; of what another block has `Remote<Barrier>`.
fn owner_of(ty: &syn::Type) -> String {
    let syn::Type::Path(path) = ty else { return ty.to_token_stream().to_string() };
    let last = path.path.segments.last().expect("a path has a name");
    if last.ident == "Remote"
        && let syn::PathArguments::AngleBracketed(list) = &last.arguments
        && let Some(syn::GenericArgument::Type(thing)) = list.args.first()
    {
        return format!("Remote<{}>", owner_of(thing));
    }
    last.ident.to_string()
}
