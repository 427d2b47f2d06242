//! No function has more than six parameters: a longer list hides the relations between them. No
//! parameter is a tuple or an array that is taken apart in the list: each part has a name at the
//! call as well.

use syn::visit::{self, Visit};
use syn::{Attribute, FnArg, Pat, Signature, Type};

use tma_tests_repository::{File, expect_none, files};

use crate::{code, parse, planted, sources};

const MOST_PARAMETERS: usize = 6;

/// Attributes of functions whose parameters are those of the device.
const ON_THE_DEVICE: [&str; 2] = ["tma_kernel", "tma_device"];

/// The words of the language, which have the operands of their instructions.
const WORDS: &str = "tma-runtime/src/lang/";

/// Functions with the parameters of another library's, so that either can be called.
const OF_ANOTHER_LIBRARY: &str = "models/tma-candle/src/attention.rs";

/// Folders that still have parameters taken apart in the list, with the most that each may have.
const TAKEN_APART: [(&str, usize); 6] = [
    ("beside/", 4),
    ("codegen/back/src/lower/", 21),
    ("conformance/", 10),
    ("examples/", 3),
    ("ptx-sim/benches/", 1),
    ("tma-kernels/", 9),
];

#[test]
fn no_function_has_more_than_six_parameters() {
    expect_none(too_many_parameters(&files()));
}

#[test]
fn long_lists_of_parameters_are_found() {
    let text = "fn free(a: u32, b: (u32, (u8, u8)), c: [u32; 5], d: u32, e: u32) {}
        #[tma_kernel(threads = 32)] fn kernel(a: u32, b: u32, c: u32, d: u32, e: u32, f: u32, g: u32) {}
        pub fn word(a: u32, b: u32, c: u32, d: u32, e: u32, f: u32, g: u32) {}
        impl A { fn six(&self, b: u32, c: u32, d: u32, e: u32, f: u32) {} }
        trait B { fn seven(&self, b: u32, c: u32, d: u32, e: u32, f: u32, g: u32); }
        impl B for A { fn given(&self, b: u32, c: u32, d: u32, e: u32, f: u32, g: u32) {} }
        fn outer() { fn inner(a: u32, b: u32, c: u32, d: u32, e: u32, f: u32, g: u32) {} }";
    let found =
        too_many_parameters(&[planted("a/src/lib.rs", text), planted(&format!("{WORDS}map.rs"), text)]);
    let wanted = ["`free`", "`word`", "`seven`", "`inner`", "`free`", "`seven`", "`inner`"];
    assert_eq!(found.len(), wanted.len(), "{found:#?}");
    assert!(found.iter().zip(wanted).all(|(found, name)| found.contains(name)), "{found:#?}");
}

#[test]
fn no_parameter_is_taken_apart_in_the_list() {
    let mut found = taken_apart(&files());
    for (folder, most) in TAKEN_APART {
        let here = found.extract_if(.., |found| found.starts_with(folder)).count();
        assert!(here <= most, "{folder} has {here} such parameters, not {most}");
    }
    expect_none(found);
}

#[test]
fn parameters_that_are_taken_apart_are_found() {
    let text = "fn a([x, y]: [u32; 2], z: u32) {}
        fn b((x, y): (u32, u32)) { fn inner(&[x, y]: &[u32; 2]) {} }
        impl A { fn c(&self, Point { x, y }: Point, _: u32) {} }
        trait B { fn d(&self, (x, y): (u32, u32)) {} }
        #[cfg(test)]
        mod tests { fn e([x, y]: [u32; 2]) {} }";
    let found = taken_apart(&[planted("a/src/lib.rs", text), planted("a/tests/b.rs", text)]);
    assert_eq!(found.len(), 4, "{found:#?}");
    let functions = ["`a`", "`b`", "`inner`", "`d`"];
    assert!(found.iter().zip(functions).all(|(found, name)| found.contains(name)), "{found:#?}");
}

/// Returns the functions outside tests with a parameter whose pattern is a tuple or an array.
fn taken_apart(files: &[File]) -> Vec<String> {
    let mut found = vec![];
    for file in sources(files).filter(|file| !file.is_test()) {
        let mut lists = Lists { path: &file.path, found: vec![] };
        lists.visit_file(&code(file));
        found.append(&mut lists.found);
    }
    found
}

struct Lists<'f> {
    path: &'f str,
    found: Vec<String>,
}

impl<'ast> Visit<'ast> for Lists<'_> {
    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        if item.ident != "tests" {
            visit::visit_item_mod(self, item);
        }
    }

    fn visit_signature(&mut self, signature: &'ast Signature) {
        let patterns = signature.inputs.iter().filter(|input| match input {
            FnArg::Receiver(_) => false,
            FnArg::Typed(typed) => is_taken_apart(&typed.pat),
        });
        for _ in patterns {
            let line = signature.ident.span().start().line;
            self.found.push(format!("{}:{line}: `{}` takes a parameter apart", self.path, signature.ident));
        }
        visit::visit_signature(self, signature);
    }
}

fn is_taken_apart(pattern: &Pat) -> bool {
    match pattern {
        Pat::Tuple(_) | Pat::Slice(_) => true,
        Pat::Reference(reference) => is_taken_apart(&reference.pat),
        Pat::Paren(paren) => is_taken_apart(&paren.pat),
        _ => false,
    }
}

fn too_many_parameters(files: &[File]) -> Vec<String> {
    let mut found = vec![];
    for file in sources(files) {
        let mut signatures = Signatures { path: &file.path, is_of_trait: false, found: vec![] };
        signatures.visit_file(&parse(file, &file.text));
        found.append(&mut signatures.found);
    }
    found
}

struct Signatures<'f> {
    path: &'f str,
    /// Whether the functions are those of a trait's implementation.
    is_of_trait: bool,
    found: Vec<String>,
}

impl Signatures<'_> {
    fn judge(&mut self, signature: &Signature) {
        let count = parameters(signature);
        if count > MOST_PARAMETERS {
            let line = signature.ident.span().start().line;
            self.found.push(format!("{}:{line}: `{}` has {count} parameters", self.path, signature.ident));
        }
    }
}

impl<'ast> Visit<'ast> for Signatures<'_> {
    fn visit_item_fn(&mut self, function: &'ast syn::ItemFn) {
        let has_given_parameters = self.path.starts_with(WORDS) || self.path == OF_ANOTHER_LIBRARY;
        let is_exempt = has_given_parameters && matches!(function.vis, syn::Visibility::Public(_));
        if !is_exempt && !function.attrs.iter().any(is_for_the_device) {
            self.judge(&function.sig);
        }
        visit::visit_item_fn(self, function);
    }

    fn visit_item_impl(&mut self, item: &'ast syn::ItemImpl) {
        // The parameters of a trait's functions are those of its definition.
        let is_of_trait = self.is_of_trait;
        self.is_of_trait = item.trait_.is_some();
        visit::visit_item_impl(self, item);
        self.is_of_trait = is_of_trait;
    }

    fn visit_impl_item_fn(&mut self, function: &'ast syn::ImplItemFn) {
        let is_word = self.path.starts_with(WORDS) && matches!(function.vis, syn::Visibility::Public(_));
        if !is_word && !self.is_of_trait {
            self.judge(&function.sig);
        }
        visit::visit_impl_item_fn(self, function);
    }

    fn visit_trait_item_fn(&mut self, function: &'ast syn::TraitItemFn) {
        self.judge(&function.sig);
        visit::visit_trait_item_fn(self, function);
    }
}

fn is_for_the_device(attribute: &Attribute) -> bool {
    ON_THE_DEVICE.iter().any(|name| attribute.path().is_ident(name))
}

fn parameters(signature: &Signature) -> usize {
    let parts = |input: &FnArg| match input {
        FnArg::Receiver(_) => 1,
        FnArg::Typed(typed) => parts_of(&typed.ty),
    };
    signature.inputs.iter().map(parts).sum()
}

/// Returns how many values a parameter of type `ty` is: an anonymous tuple counts as its parts.
fn parts_of(ty: &Type) -> usize {
    match ty {
        Type::Tuple(tuple) => tuple.elems.iter().map(parts_of).sum(),
        _ => 1,
    }
}
