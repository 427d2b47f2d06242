//! The compiler handles each operation by name: no match over operations has an arm for all
//! remaining ones, so that a new operation is an error in each of them.

use std::collections::BTreeSet;

use syn::visit::{self, Visit};
use syn::{ExprMatch, ItemImpl, Pat, Type};

use tma_tests_repository::{File, expect_none, files};

use crate::{code, enums, planted, sources};

/// The modules in which, with their submodules, clippy rejects `_` for any enum.
const EXHAUSTIVE: [&str; 21] = [
    "codegen/front/src/check/mod.rs",
    "codegen/front/src/diag/mistake/mod.rs",
    "codegen/back/src/expand/mod.rs",
    "codegen/back/src/host/mod.rs",
    "codegen/front/src/infer/fold.rs",
    "codegen/front/src/infer/rule.rs",
    "codegen/front/src/infer/scalar.rs",
    "codegen/front/src/infer/settle.rs",
    "codegen/front/src/ir/mod.rs",
    "codegen/back/src/lower/mod.rs",
    "codegen/front/src/parse/call.rs",
    "codegen/front/src/parse/method/mod.rs",
    "codegen/front/src/parse/names/mod.rs",
    "codegen/front/src/parse/number.rs",
    "codegen/front/src/words/mod.rs",
    "codegen/protocol/src/lib.rs",
    "ptx-sim/src/code/mod.rs",
    "ptx-sim/src/exec/mod.rs",
    "ptx-sim/src/isa/mod.rs",
    "ptx-sim/src/machine/mod.rs",
    "tma-model/src/lib.rs",
];

/// The files with the enums of operations.
const OPERATIONS: [&str; 10] = [
    "codegen/front/src/ir/copy.rs",
    "codegen/front/src/ir/descriptor.rs",
    "codegen/front/src/ir/expr.rs",
    "codegen/front/src/ir/stmt.rs",
    "codegen/front/src/words/",
    "ptx-sim/src/isa/op/",
    "ptx-sim/src/isa/float/mod.rs",
    "ptx-sim/src/isa/integer.rs",
    "tma-model/src/operation.rs",
    "tma-model/src/sync/fence.rs",
];

/// The table of words, whose rows become enums of words and of their calls.
const WORDS: &str = "codegen/front/src/words/table.rs";

/// Enums in these files that are not operations: values, their types, and the forms of expressions,
/// of which the front end mostly needs one.
const OF_VALUES: [&str; 5] = ["Const", "ExprKind", "FloatType", "Generic", "Numeric"];

const LINT: &str = "#![warn(clippy::wildcard_enum_match_arm)]";

#[test]
fn clippy_refuses_wildcards_where_operations_are_matched() {
    let files = files();
    let linted: BTreeSet<_> =
        sources(&files).filter(|file| has_lint(file)).map(|file| file.path.as_str()).collect();
    assert_eq!(linted, BTreeSet::from(EXHAUSTIVE));
    expect_none(exceptions(&files));
}

#[test]
fn exceptions_from_the_lint_are_found() {
    let text = format!("{LINT}\n#[allow(clippy::wildcard_enum_match_arm)]\nfn f() {{}}\n");
    let found = exceptions(&[planted("ptx-sim/src/isa/mod.rs", &text)]);
    assert_eq!(found, ["ptx-sim/src/isa/mod.rs:2: #[allow(clippy::wildcard_enum_match_arm)]"]);
}

#[test]
fn no_match_over_operations_has_an_arm_for_all_others() {
    let files = files();
    for home in OPERATIONS {
        assert!(files.iter().any(|file| file.path.starts_with(home)), "there is no {home}");
    }
    expect_none(catch_alls(&files));
}

#[test]
fn arms_for_all_others_are_found_in_every_form() {
    let home = planted("tma-model/src/operation.rs", "made! { pub enum ReduceOp { Add = 1, Min } }");
    let text = "fn f(op: ReduceOp, n: Option<u32>) {
            match op { ReduceOp::Add => 1, _ => 2 };
            match op { ReduceOp::Add => 1, other => 2 };
            match (n, op) { (Some(_), ReduceOp::Add) => 1, (..) => 2 };
            match Some(op) { Some(model::ReduceOp::Add) => 1, Some(_) | None => 2 };
            match op { ReduceOp::Add => 1, ReduceOp::Min => 2 };
            match op { ReduceOp::Add => 1, _ if n.is_some() => 2, ReduceOp::Min => 3 };
            match n { Some(1) => 1, _ => 2 };
        }
        impl ReduceOp { fn g(self) { match self { Self::Add => 1, _ => 2 } } }
        fn h(w: RangeWord) { match w { RangeWord::Rev => 1, _ => 2 } }";
    let table = planted(WORDS, "words! { Range: RangeWord => RangeCall { fn rev() => Rev; } }");
    let found = catch_alls(&[home, table, planted("a/src/lib.rs", text)]);
    let lines: Vec<_> = found.iter().filter_map(|found| found.split(':').nth(1)).collect();
    assert_eq!(lines, ["2", "3", "4", "5", "10", "11"], "{found:#?}");
}

fn has_lint(file: &File) -> bool {
    file.text.lines().any(|line| line == LINT)
}

/// Returns `path:line: text` of each other mention of the lint in the packages.
fn exceptions(files: &[File]) -> Vec<String> {
    let of_packages = sources(files).filter(|file| file.path.contains("/src/"));
    let lines = of_packages.flat_map(|file| file.text.lines().zip(1..).map(move |line| (file, line)));
    let mentions = lines.filter(|(_, (text, _))| text.contains("wildcard_enum_match_arm") && *text != LINT);
    mentions.map(|(file, (text, line))| format!("{}:{line}: {}", file.path, text.trim())).collect()
}

/// Returns `path:line` of each arm for all operations that no other arm names.
fn catch_alls(files: &[File]) -> Vec<String> {
    let homes = sources(files).filter(|file| OPERATIONS.iter().any(|home| file.path.starts_with(home)));
    let declared = homes.flat_map(enums).map(|found| found.name);
    let words = files.iter().filter(|file| file.path == WORDS).flat_map(words);
    let operations: BTreeSet<_> =
        declared.chain(words).filter(|name| !OF_VALUES.contains(&name.as_str())).collect();
    let mut found = vec![];
    for file in sources(files).filter(|file| !file.is_test()) {
        let mut matches = Matches { path: &file.path, operations: &operations, own: None, found: vec![] };
        matches.visit_file(&code(file));
        found.append(&mut matches.found);
    }
    found
}

fn words(table: &File) -> impl Iterator<Item = String> {
    let names = table.text.split(|c: char| !c.is_ascii_alphanumeric());
    names.filter(|name| name.ends_with("Word") || name.ends_with("Call")).map(str::to_owned)
}

struct Matches<'f> {
    path: &'f str,
    operations: &'f BTreeSet<String>,
    /// The type of the `impl` that is being visited.
    own: Option<String>,
    found: Vec<String>,
}

impl<'ast> Visit<'ast> for Matches<'_> {
    fn visit_item_impl(&mut self, item: &'ast ItemImpl) {
        let own = match &*item.self_ty {
            Type::Path(path) => path.path.segments.last().map(|segment| segment.ident.to_string()),
            _ => None,
        };
        let outer = std::mem::replace(&mut self.own, own);
        visit::visit_item_impl(self, item);
        self.own = outer;
    }

    fn visit_expr_match(&mut self, found: &'ast ExprMatch) {
        let mut paths = Paths(vec![]);
        found.arms.iter().for_each(|arm| paths.visit_pat(&arm.pat));
        let of_operations = paths.0.iter().find(|name| {
            let name = if *name == "Self" { self.own.as_ref() } else { Some(*name) };
            name.is_some_and(|name| self.operations.contains(name))
        });
        let others = found.arms.iter().find(|arm| is_open(&arm.pat));
        if let (Some(name), Some(arm)) = (of_operations, others) {
            let line = syn::spanned::Spanned::span(&arm.pat).start().line;
            self.found.push(format!("{}:{line}: an arm for all others of `{name}`", self.path));
        }
        visit::visit_expr_match(self, found);
    }
}

/// Whether a pattern matches every value: `_`, a binding without a guard, or a combination of
/// these.
fn is_open(pattern: &Pat) -> bool {
    match pattern {
        Pat::Wild(_) | Pat::Rest(_) => true,
        Pat::Ident(name) => name.subpat.is_none() && name.ident.to_string().starts_with(char::is_lowercase),
        Pat::Paren(inner) => is_open(&inner.pat),
        Pat::Tuple(parts) => parts.elems.iter().all(is_open),
        Pat::Or(alternatives) => alternatives.cases.iter().any(is_open),
        Pat::TupleStruct(inner) if inner.path.is_ident("Some") || inner.path.is_ident("Ok") => {
            inner.elems.iter().all(is_open)
        }
        _ => false,
    }
}

/// The types of the variants that patterns name.
struct Paths(Vec<String>);

impl<'ast> Visit<'ast> for Paths {
    /// Guards are skipped: the names in them are not patterns.
    fn visit_expr(&mut self, _: &'ast syn::Expr) {}

    fn visit_path(&mut self, path: &'ast syn::Path) {
        if let Some(owner) = path.segments.iter().rev().nth(1) {
            self.0.push(owner.ident.to_string());
        }
    }
}
