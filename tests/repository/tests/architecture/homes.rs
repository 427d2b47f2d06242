//! Code that is allowed in one place only: assembly text, FFI, the words of the compiler's errors,
//! the model's enums, and the question whether there is a GPU.

use std::collections::BTreeSet;

use proc_macro2::{Group, TokenStream, TokenTree};
use quote::ToTokens;
use syn::Attribute;
use syn::visit::{self, Visit};

use tma_tests_repository::{File, expect_none, files};

use crate::{Enum, code, enums, planted, sources};

/// The table of instructions, and the workarounds for ptxas.
const ASSEMBLY: [&str; 2] = ["codegen/back/src/lower/nvvm/", "codegen/back/src/lower/ptxas/"];
const FFI: &str = "tma-runtime/src/backend/cuda/driver/";
/// Functions for other languages, and calls of libraries that have no other interface.
const C_LIBRARIES: [&str; 3] =
    ["beside/src/c_abi.rs", "cargo-tma/src/commands/wheel/library.rs", "tma-python/src/ffi/"];
/// The code that finds mistakes of users. Its messages are made in `codegen/front/src/diag`.
const FINDERS: [&str; 7] = [
    "codegen/front/src/words/",
    "codegen/front/src/infer/",
    "codegen/front/src/parse/",
    "codegen/front/src/check/",
    "codegen/protocol/src/",
    "codegen/back/src/expand/",
    "codegen/back/src/position.rs",
];
/// The table of words has the usage of each, which the index of words repeats.
const WORDS: &str = "codegen/front/src/words/";
/// The declarations of the kernel language for rustc.
const LANG: &str = "tma-runtime/src/lang/";
const BACKENDS: &str = "tma-runtime/src/backend/mod.rs";
/// The exchange of objects with cust, and the streams that it makes for that.
const EXCHANGE: [&str; 2] = ["tma-runtime/src/lib.rs", "tma-runtime/src/backend/cuda/mod.rs"];

#[test]
fn assembly_text_has_one_home() {
    expect_none(assembly_elsewhere(&files()));
}

#[test]
fn assembly_elsewhere_is_found() {
    let text = "/// `bar.sync 0;`\n#[doc = \"bar.sync 0;\"]\nfn f() { g(\"bar.sync 0;\", \"no. 1;\"); }
        fn h() { emit!(\"mbarrier.init.shared::cta.b64 [$0], $1;\"); module.create_inline_asm(); }
        #[cfg(test)]\nmod tests { const A: &str = \"bar.sync 0;\"; }";
    let text = text.replace("        #[cfg", "#[cfg");
    let found = assembly_elsewhere(&[
        planted("codegen/back/src/lower/sync.rs", &text),
        planted(&format!("{}sync.rs", ASSEMBLY[0]), &text),
        planted(&format!("{}line.rs", ASSEMBLY[1]), &text),
    ]);
    assert_eq!(found.len(), 3, "{found:#?}");
}

#[test]
fn ffi_has_one_home() {
    expect_none(ffi_elsewhere(&files()));
}

#[test]
fn ffi_elsewhere_is_found() {
    let text = "extern \"C\" { fn a(); }\nfn b(f: unsafe extern \"C\" fn()) {}\nextern \"system\" fn c() {}";
    let found = ffi_elsewhere(&[planted("ptx-sim/src/lib.rs", text), planted(&format!("{FFI}mod.rs"), text)]);
    assert_eq!(found.len(), 3, "{found:#?}");
}

#[test]
fn what_is_said_of_mistakes_has_one_home() {
    let files = files();
    for finder in FINDERS.into_iter().chain([WORDS]) {
        assert!(files.iter().any(|file| file.path.starts_with(finder)), "there is no {finder}");
    }
    expect_none(said_elsewhere(&files));
}

#[test]
fn what_is_said_elsewhere_is_found() {
    let text = "use crate::diag::{Code, Sink};
/// A comment that says much.
#[doc = \"Another one.\"]
fn f(sink: &mut Sink, n: u32) {
    sink.error(Text::new(diag::Code::Parity, \"it is not\"), span);
    sink.error(Odd { why: format!(\"{n} is odd\") }, span);
    sink.error(Odd { n, word: \"sync_warp\", name: format!(\"{} result\", n) }, span);
    let doc = format!(\"The instance of {n}.\");
    quote!(#[doc = #doc] /// What is generated.
        fn g() { panic!(\"is never called\") });
}
#[cfg(test)]
mod tests { const A: &str = \"so many words\"; }";
    let paths = [
        "codegen/front/src/check/size.rs",
        "codegen/front/src/words/table.rs",
        "codegen/front/src/diag/a.rs",
    ];
    let found = said_elsewhere(&paths.map(|path| planted(path, text)));
    let lines: Vec<_> = found.iter().filter_map(|found| found.strip_prefix("codegen/front/src/")).collect();
    let places: Vec<_> = lines.iter().filter_map(|line| line.split(": ").next()).collect();
    let of = |path: &'static str, lines: [u32; 2]| lines.map(|line| format!("{path}:{line}"));
    let codes = [of("check/size.rs", [1, 5]), of("words/table.rs", [1, 5])];
    let texts = ["check/size.rs:5", "check/size.rs:6", "check/size.rs:10"].map(str::to_owned);
    let wanted = [&codes[0][..], &texts, &codes[1][..]].concat();
    assert_eq!(places, wanted, "{found:#?}");
}

#[test]
fn one_module_asks_for_the_feature_cuda_and_two_for_cust() {
    expect_none(questions_elsewhere(&files(), "cuda", &[BACKENDS]));
    expect_none(questions_elsewhere(&files(), "cust", &EXCHANGE));
}

#[test]
fn questions_for_a_feature_are_found() {
    let text = "#[cfg(feature = \"cuda\")] mod a;\nfn f() -> bool { cfg!(feature = \"cuda\") }
        #[cfg(not(feature = \"llvm\"))] mod b;\n/// The feature = \"cuda\".\nfn c() {}";
    let files = [planted("tma-runtime/src/lib.rs", text), planted(BACKENDS, text)];
    let found = questions_elsewhere(&files, "cuda", &[BACKENDS]);
    assert_eq!(found.len(), 2, "{found:#?}");
    let found = questions_elsewhere(&files, "llvm", &EXCHANGE);
    assert_eq!(found.len(), 1, "{found:#?}");
}

#[test]
fn no_package_repeats_an_enum_of_the_model() {
    expect_none(copies_of_the_model(&files()));
}

#[test]
fn copies_of_the_models_enums_are_found() {
    let model = planted(
        "tma-model/src/a.rs",
        "made! { enum Op { #[a] Add = 1, Min, Max, } } enum Level { Low, High }",
    );
    let text = "mod b { enum Reduction { Max(u32), Min, Add } } enum Other { Add, Min } enum C { High, Low }";
    let found = copies_of_the_model(&[model, planted("ptx-sim/src/lib.rs", text)]);
    assert_eq!(found, ["ptx-sim/src/lib.rs:1: `Reduction` has the variants of the model's `Op`"]);
}

fn assembly_elsewhere(files: &[File]) -> Vec<String> {
    let elsewhere = sources(files).filter(|file| {
        file.path.starts_with("codegen/")
            && !ASSEMBLY.iter().any(|home| file.path.starts_with(home))
            && !file.is_test()
    });
    let mut problems = vec![];
    for file in elsewhere {
        let code = code(file);
        let mut strings = Strings(vec![]);
        strings.visit_file(&code);
        let assembly = strings.0.into_iter().filter(|(_, text)| is_assembly(text));
        problems.extend(assembly.map(|(line, text)| format!("{}:{line}: {text:?}", file.path)));
        if file.split_tests().0.contains("create_inline_asm") {
            problems.push(format!("{} creates inline assembly", file.path));
        }
    }
    problems
}

/// Returns the names of codes, and the texts of several words, in code that finds mistakes.
fn said_elsewhere(files: &[File]) -> Vec<String> {
    let finders = sources(files)
        .filter(|file| FINDERS.iter().any(|finder| file.path.starts_with(finder)) && !file.is_test());
    let mut problems = vec![];
    for file in finders {
        let code = code(file);
        let mut codes = vec![];
        lines_of("Code", code.to_token_stream(), &mut codes);
        problems.extend(codes.iter().map(|line| format!("{}:{line}: names a code", file.path)));
        if file.path.starts_with(WORDS) {
            continue;
        }
        let mut strings = Strings(vec![]);
        strings.visit_file(&code);
        let said = strings.0.into_iter().filter(|(_, text)| has_words(text));
        problems.extend(said.map(|(line, text)| format!("{}:{line}: {text:?}", file.path)));
    }
    problems
}

/// Collects the lines that name `wanted`.
fn lines_of(wanted: &str, tokens: TokenStream, found: &mut Vec<usize>) {
    for token in tokens {
        match token {
            TokenTree::Group(group) => lines_of(wanted, group.stream(), found),
            TokenTree::Ident(name) if name == wanted => found.push(name.span().start().line),
            TokenTree::Ident(_) | TokenTree::Punct(_) | TokenTree::Literal(_) => {}
        }
    }
}

/// Whether a text has two words besides its format arguments.
fn has_words(text: &str) -> bool {
    let mut own = String::new();
    let mut depth = 0_usize;
    for c in text.chars() {
        match c {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            c if depth == 0 => own.push(c),
            _ => {}
        }
    }
    own.split_whitespace().filter(|word| word.contains(char::is_alphabetic)).count() > 1
}

/// The lines and texts of the string literals except documentation.
struct Strings(Vec<(usize, String)>);

impl Strings {
    fn tokens(&mut self, tokens: TokenStream) {
        for token in tokens {
            match token {
                TokenTree::Group(group) if is_documentation(&group) => {}
                TokenTree::Group(group) => self.tokens(group.stream()),
                TokenTree::Literal(literal) => {
                    if let Ok(text) = syn::parse_str::<syn::LitStr>(&literal.to_string()) {
                        self.0.push((literal.span().start().line, text.value()));
                    }
                }
                TokenTree::Ident(_) | TokenTree::Punct(_) => {}
            }
        }
    }
}

/// Whether the group is `[doc = ..]`.
fn is_documentation(group: &Group) -> bool {
    let first = group.stream().into_iter().next();
    matches!(first, Some(TokenTree::Ident(name)) if name == "doc")
}

impl<'ast> Visit<'ast> for Strings {
    fn visit_attribute(&mut self, _: &'ast Attribute) {}

    /// Skips variables called `doc`, which hold the documentation of generated items.
    fn visit_local(&mut self, local: &'ast syn::Local) {
        if !matches!(&local.pat, syn::Pat::Ident(name) if name.ident == "doc") {
            visit::visit_local(self, local);
        }
    }

    fn visit_lit_str(&mut self, literal: &'ast syn::LitStr) {
        self.0.push((literal.span().start().line, literal.value()));
    }

    fn visit_macro(&mut self, called: &'ast syn::Macro) {
        self.tokens(called.tokens.clone());
    }
}

/// Whether a text is PTX instructions: an opcode with a modifier, operands and `;`.
fn is_assembly(text: &str) -> bool {
    let opcode = text.split_whitespace().next().unwrap_or_default();
    let is_part = |part: &str| {
        !part.is_empty()
            && part.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '_' | ':'))
    };
    text.trim_end().ends_with(';')
        && opcode.contains('.')
        && opcode.trim_end_matches(';').split('.').all(is_part)
}

fn ffi_elsewhere(files: &[File]) -> Vec<String> {
    struct Abis<'f>(&'f str, Vec<String>);
    impl<'ast> Visit<'ast> for Abis<'_> {
        fn visit_abi(&mut self, abi: &'ast syn::Abi) {
            self.1.push(format!("{}:{}: FFI", self.0, abi.extern_token.span.start().line));
            visit::visit_abi(self, abi);
        }
    }
    let elsewhere = sources(files)
        .filter(|file| file.path.contains("/src/") && !file.path.starts_with(FFI))
        .filter(|file| !C_LIBRARIES.iter().any(|home| file.path.starts_with(home)));
    let mut problems = vec![];
    for file in elsewhere {
        let mut abis = Abis(&file.path, vec![]);
        abis.visit_file(&code(file));
        problems.append(&mut abis.1);
    }
    problems
}

fn questions_elsewhere(files: &[File], feature: &str, homes: &[&str]) -> Vec<String> {
    let question = format!("feature = \"{feature}\"");
    let elsewhere = sources(files).filter(|file| {
        file.path.starts_with("tma-runtime/src/") && !homes.contains(&file.path.as_str()) && !file.is_test()
    });
    let asks = |line: &str| line.split("//").next().is_some_and(|code| code.contains(&question));
    elsewhere
        .flat_map(|file| {
            let lines = file.split_tests().0.lines().zip(1..).filter(move |(line, _)| asks(line));
            lines.map(|(line, number)| format!("{}:{number}: {}", file.path, line.trim()))
        })
        .collect()
}

/// Finds enums with the same variants as one of the model's with more than two. Enums that kernels
/// name are declared for rustc, in `lang`; the table of words keeps them equal to the model's.
fn copies_of_the_model(files: &[File]) -> Vec<String> {
    let is_judged =
        |file: &&File| file.path.contains("/src/") && !file.path.starts_with(LANG) && !file.is_test();
    let sources: Vec<_> = sources(files).filter(is_judged).collect();
    let (model, others): (Vec<_>, Vec<_>) =
        sources.into_iter().partition(|file| file.path.starts_with("tma-model/"));
    let variants = |of: &Enum| BTreeSet::from_iter(of.variants.iter().cloned());
    let own = model.into_iter().flat_map(enums).filter(|own| own.variants.len() > 2);
    let own: Vec<_> = own.map(|own| (variants(&own), own.name)).collect();
    let mut problems = vec![];
    for file in others {
        for other in enums(file) {
            if let Some((_, name)) = own.iter().find(|(own, _)| *own == variants(&other)) {
                let Enum { name: copy, line, .. } = &other;
                let path = &file.path;
                problems.push(format!("{path}:{line}: `{copy}` has the variants of the model's `{name}`"));
            }
        }
    }
    problems
}
