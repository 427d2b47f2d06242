//! Tests that the table agrees with the book and with `tma_runtime::lang`, which rustc checks
//! kernels against.

mod expand;
mod index;
mod lang;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use syn::parse::Parser;
use syn::visit::{self, Visit};

use super::*;
use lang::Declared;

/// Returns a path relative to the root of the project.
fn folder(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}

/// Returns the declarations that the table expects in `lang`, by owner and name: `Barrier`, `init`.
fn in_table() -> BTreeMap<(String, String), Declared> {
    let mut all = BTreeMap::new();
    for Entry { name, signature } in entries() {
        let (owner, taken) = match signature.owner {
            // Defined by Rust, or by the crates of the small floats.
            Owner::Functions("Number") | Owner::Methods("Number" | "Range") => continue,
            Owner::Functions("lang") => ("", None),
            Owner::Functions(owner) => (owner, None),
            Owner::Methods(owner) => (owner, Some(signature.taken())),
        };
        let parameters = signature.parameters.iter().map(|parameter| parameter.name.to_owned()).collect();
        let declared = Declared { taken, parameters };
        if signature.has(Mark::Remote) {
            all.insert((format!("Remote<{owner}>"), name.to_string()), declared.clone());
        }
        if signature.has(Mark::Peer) {
            all.insert((format!("Peer<{owner}>"), name.to_string()), declared.clone());
        }
        all.insert((owner.to_owned(), name.into_owned()), declared);
    }
    all
}

#[test]
fn the_table_and_lang_have_the_same_functions_and_methods() {
    let (table, lang) = (in_table(), lang::read(&folder("tma-runtime/src/lang")).functions);
    let missing: Vec<_> = table.keys().filter(|key| !lang.contains_key(key)).collect();
    assert!(missing.is_empty(), "in the table, but not in lang: {missing:?}");
    let unknown: Vec<_> = lang.keys().filter(|key| !table.contains_key(key)).collect();
    assert!(unknown.is_empty(), "in lang, but not in the table: {unknown:?}");
    for (key, declared) in &table {
        assert_eq!(*declared, lang[key], "{key:?}: the table's parameters, and those of lang");
    }
}

#[test]
fn the_table_and_lang_have_the_same_types() {
    let is_declared = |word: &TypeWord| !matches!(word, TypeWord::Scalar(_));
    let table = TypeWord::all().into_iter().filter(is_declared).map(|word| word.name().to_owned());
    let mut lang = lang::read(&folder("tma-runtime/src/lang")).types;
    assert!(lang.remove("Rank"), "the bound of an im2col map's rank is no word");
    assert_eq!(table.collect::<BTreeSet<_>>(), lang);
}

/// The second of two rows with the same word would never be found.
#[test]
fn each_word_has_one_row() {
    let mut found = BTreeSet::new();
    for Entry { name, signature } in entries() {
        let key = format!("{:?} {name}", signature.owner);
        assert!(found.insert(key.clone()), "{key} stands twice");
    }
    for word in TypeWord::all() {
        assert_eq!(TypeWord::named(word.name()), Some(word));
    }
}

#[test]
fn words_are_shown_as_they_are_called() {
    let usage = |word: BarrierWord| Entry::of(word).usage();
    assert_eq!(usage(BarrierWord::TryWaitFor), "try_wait_for(parity, nanoseconds)");
    assert_eq!(usage(BarrierWord::WaitNext), "wait_next(&mut phase)");
    assert_eq!(Entry::of(FunctionWord::BulkWaitGroup).usage(), "bulk_wait_group::<N>()");
    assert_eq!(Entry::of(SharedMapWord::SetExtent).usage(), "set_extent::<D>(extent)");
    assert_eq!(TypeWord::Tile.usage(), "Tile<T, S>");
    assert_eq!(TypeWord::Shape3.usage(), "Shape3<A, B, C>");
    assert_eq!(TypeWord::Pipeline.usage(), "Pipeline<(A, B), N>");
}

/// rustc finds a method with `&mut self` after one with `self`. The expansion depends on that.
#[test]
fn receivers_are_taken_as_marked() {
    assert_eq!(ProducerWord::Acquire.signature().taken(), ReceiverKind::MutReference);
    assert_eq!(ProducerWord::Ready.signature().taken(), ReceiverKind::Reference);
    assert_eq!(FullSlotWord::Release.signature().taken(), ReceiverKind::Value);
}

/// Collects strings that are compared: in patterns, and as operands of `==` and `!=`.
#[derive(Default)]
struct Compared(Vec<String>);

impl<'ast> Visit<'ast> for Compared {
    fn visit_pat(&mut self, pat: &'ast syn::Pat) {
        if let syn::Pat::Lit(syn::ExprLit { lit: syn::Lit::Str(text), .. }) = pat {
            self.0.push(text.value());
        }
        visit::visit_pat(self, pat);
    }

    fn visit_expr_binary(&mut self, binary: &'ast syn::ExprBinary) {
        if let syn::BinOp::Eq(_) | syn::BinOp::Ne(_) = binary.op {
            for side in [&binary.left, &binary.right] {
                if let syn::Expr::Lit(syn::ExprLit { lit: syn::Lit::Str(text), .. }) = &**side {
                    self.0.push(text.value());
                }
            }
        }
        visit::visit_expr_binary(self, binary);
    }

    fn visit_macro(&mut self, mac: &'ast syn::Macro) {
        // `matches!(expr, pattern)`
        let parser = |input: syn::parse::ParseStream<'_>| {
            let (expr, _) = (input.parse::<syn::Expr>()?, input.parse::<syn::Token![,]>()?);
            Ok((expr, syn::Pat::parse_multi_with_leading_vert(input)?))
        };
        if mac.path.is_ident("matches")
            && let Ok((_, pat)) = parser.parse2(mac.tokens.clone())
        {
            self.visit_pat(&pat);
        }
    }
}

/// Returns the Rust files in a folder and its subfolders.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("it is a folder").map(|entry| entry.expect("an entry").path());
    let under = |path: PathBuf| if path.is_dir() { sources(&path) } else { vec![path] };
    entries.flat_map(under).collect()
}

/// A word that is compared as a string would escape the compiler's check for completeness.
#[test]
fn words_are_looked_up_in_the_table_alone() {
    let words: BTreeSet<_> = entries()
        .into_iter()
        .map(|entry| entry.name.into_owned())
        .chain(TypeWord::all().into_iter().map(|word| word.name().to_owned()))
        .chain(ConstantWord::ALL.iter().map(|word| word.name().to_owned()))
        .chain(MacroWord::ALL.iter().map(|word| word.name().to_owned()))
        .collect();
    let folders = ["codegen/front/src/infer", "codegen/front/src/parse", "codegen/back/src/expand"];
    let files = folders.map(|path| sources(&folder(path)));
    let mut found = vec![];
    for path in files.iter().flatten() {
        let mut compared = Compared::default();
        let text = fs::read_to_string(path).expect("it can be read");
        compared.visit_file(&syn::parse_file(&text).expect("it is Rust"));
        found.extend(compared.0.into_iter().filter(|text| words.contains(text)).map(|text| (path, text)));
    }
    assert!(found.is_empty(), "ask the table instead of comparing texts: {found:?}");
}
