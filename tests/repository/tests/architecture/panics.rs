//! No input makes the project panic: code outside tests neither unwraps nor panics by name.

use syn::visit::{self, Visit};
use syn::{Expr, ExprMethodCall, Lit, Macro};

use tma_tests_repository::{File, expect_none, files};

use crate::{code, planted, sources};

/// The packages that users call, or that run in their builds.
const PACKAGES: [&str; 10] = [
    "codegen/back/src/",
    "codegen/front/src/",
    "codegen/protocol/src/",
    "ptx-probe/src/",
    "ptx-sim/src/",
    "tma-macros/src/",
    "tma-model/src/",
    "tma-python/src/",
    "tma-runtime/src/",
    "tma-setup/src/",
];

/// The file with the body of every word of the language, which is called only by mistake.
const DEVICE_ONLY: &str = "tma-runtime/src/lang/mod.rs";

#[test]
fn nothing_panics_by_name() {
    expect_none(panics(&files()));
}

#[test]
fn panics_are_found() {
    let text = "fn f(n: Option<u32>) -> u32 {
            n.unwrap();
            n.expect(\"a number\");
            self.expect(&n, 1);
            panic!(\"none\");
            match n { Some(n) => n, None => std::unreachable!() }
        }
#[cfg(test)]
mod tests { fn g() { panic!() } }";
    let found = panics(&[planted("ptx-sim/src/a.rs", text), planted("tests/src/a.rs", text)]);
    let lines: Vec<_> = found.iter().filter_map(|found| found.split(':').nth(1)).collect();
    assert_eq!(lines, ["2", "3", "5", "6"], "{found:#?}");
}

fn panics(files: &[File]) -> Vec<String> {
    let of_packages = sources(files).filter(|file| {
        PACKAGES.iter().any(|package| file.path.starts_with(package)) && file.path != DEVICE_ONLY
    });
    let mut found = vec![];
    for file in of_packages.filter(|file| !file.is_test()) {
        let mut calls = Calls { path: &file.path, found: vec![] };
        calls.visit_file(&code(file));
        found.append(&mut calls.found);
    }
    found
}

struct Calls<'f> {
    path: &'f str,
    found: Vec<String>,
}

impl<'ast> Visit<'ast> for Calls<'_> {
    /// Skips tests inside of other modules.
    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        if item.ident != "tests" {
            visit::visit_item_mod(self, item);
        }
    }

    fn visit_expr_method_call(&mut self, call: &'ast ExprMethodCall) {
        let panics = match call.args.first() {
            None => call.method == "unwrap",
            Some(Expr::Lit(literal)) => call.method == "expect" && matches!(literal.lit, Lit::Str(_)),
            Some(_) => false,
        };
        if panics {
            self.found.push(format!("{}:{}: {}", self.path, call.method.span().start().line, call.method));
        }
        visit::visit_expr_method_call(self, call);
    }

    fn visit_macro(&mut self, called: &'ast Macro) {
        let Some(name) = called.path.segments.last().map(|segment| &segment.ident) else { return };
        if ["panic", "unreachable", "todo", "unimplemented"].iter().any(|panics| name == panics) {
            self.found.push(format!("{}:{}: {name}!", self.path, name.span().start().line));
        }
    }
}
