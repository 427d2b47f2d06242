//! The seed programs of the mutation: every kernel and module of the examples, of this package and
//! of the book.

use std::fs;
use std::str::FromStr;

use proc_macro2::TokenStream;
use quote::ToTokens;
use syn::{Attribute, Item, Meta};
use tma_tests::sources;

use crate::workspace;

/// A kernel or module, and its attribute as a macro gets it.
#[derive(Clone, Debug)]
pub(crate) struct Program {
    /// `tma_kernel` or `tma_module`.
    pub(crate) attribute: &'static str,
    /// The attribute's arguments.
    pub(crate) arguments: TokenStream,
    /// The item with the attribute.
    pub(crate) item: TokenStream,
}

const ATTRIBUTES: [&str; 2] = ["tma_kernel", "tma_module"];

impl Program {
    /// Formats the program as a source file.
    pub(crate) fn text(&self) -> String {
        let Self { attribute, arguments, item } = self;
        if arguments.is_empty() {
            format!("#[{attribute}]\n{item}\n")
        } else {
            format!("#[{attribute}({arguments})]\n{item}\n")
        }
    }

    /// Expands the attribute as rustc would.
    pub(crate) fn expand(&self) -> TokenStream {
        let (arguments, item) = (self.arguments.clone(), self.item.clone());
        match self.attribute {
            "tma_module" => tma_codegen::expand::module(arguments, item),
            _ => tma_codegen::expand::kernel(arguments, item),
        }
    }
}

/// Returns all seed programs.
pub(crate) fn programs() -> anyhow::Result<Vec<Program>> {
    let mut programs = vec![];
    for source in sources::examples().iter().chain(sources::corpus()) {
        programs.extend(of_text(source.text));
    }
    let docs = workspace().join("docs");
    for folder in [docs.join("errors"), docs] {
        for entry in fs::read_dir(&folder)? {
            let path = entry?.path();
            if path.extension().is_some_and(|extension| extension == "md") {
                let page = fs::read_to_string(&path)?;
                let blocks = sources::code_blocks(&page).into_iter();
                let rust = blocks.filter(|block| block.info.starts_with("rust"));
                programs.extend(rust.flat_map(|block| of_text(&block.code)));
            }
        }
    }
    Ok(programs)
}

fn of_text(text: &str) -> Vec<Program> {
    let Ok(file) = syn::parse_file(text) else { return vec![] };
    file.items.into_iter().filter_map(of_item).collect()
}

fn of_item(mut item: Item) -> Option<Program> {
    let attributes = match &mut item {
        Item::Fn(function) => &mut function.attrs,
        Item::Mod(module) => &mut module.attrs,
        _ => return None,
    };
    let (at, attribute) = attributes.iter().enumerate().find_map(|(at, found)| Some((at, name(found)?)))?;
    let arguments = match attributes.remove(at).meta {
        Meta::List(list) => list.tokens,
        Meta::Path(_) | Meta::NameValue(_) => TokenStream::new(),
    };
    Some(Program { attribute, arguments, item: item.into_token_stream() })
}

fn name(attribute: &Attribute) -> Option<&'static str> {
    ATTRIBUTES.into_iter().find(|name| attribute.path().is_ident(name))
}

/// Returns tokens that break programs: numbers at and beyond the limits of types, words in the
/// wrong position, empty brackets.
pub(crate) fn hostile() -> Vec<TokenStream> {
    let texts = [
        "0",
        "1",
        "-1",
        "255",
        "256",
        "65536",
        "4294967295",
        "4294967296",
        "2147483648",
        "9223372036854775808",
        "18446744073709551615",
        "18446744073709551616",
        "170141183460469231731687303715884105727",
        "340282366920938463463374607431768211456",
        "1e308",
        "1e400",
        "1f16",
        "0x",
        "0b1",
        "1_u7",
        "0u8",
        "300u8",
        "3.5",
        "2f32",
        "i128",
        "u128",
        "char",
        "str",
        "self",
        "Self",
        "super",
        "crate",
        "loop {}",
        "break",
        "continue",
        "return",
        "'a",
        "'a: loop { break 'a }",
        "..",
        "..=",
        "=>",
        "->",
        "::",
        "&&",
        "||",
        "|",
        "&",
        "&mut",
        "*",
        "!",
        "?",
        ";",
        ",",
        "#",
        "@",
        "_",
        "()",
        "[]",
        "{}",
        "<>",
        "<0>",
        "[0; 4294967295]",
        "[[[0; 1]; 1]; 1]",
        "(1, 2)",
        "x.0",
        "move || 1",
        "async {}",
        "unsafe {}",
        "let x = 1 else { return };",
        "const X: u32 = X;",
        "fn f() { f() }",
        "struct S;",
        "impl T for S {}",
        "where",
        "dyn",
        "\"text\"",
        "\"\\u{0}{\"",
        "b\"bytes\"",
        "'c'",
        "r#\"{}\"#",
        "printf!(\"{0:999999999999}\", 1)",
        "printf!(\"{}{}{}\", 1)",
        "printf!(\"{x\")",
        "assert!(1)",
        "assert!(false, \"{}\")",
        "unroll(0..4294967295u32)",
        "unroll(0..=255u8)",
        "(0..10).step_by(0)",
        "1 << 4294967295u32",
        "1 / 0",
        "1 % 0",
        "i32::MIN / -1",
        "-128i8",
        "shared()",
        "trap()",
        "Shape0<>",
        "Shape2<0, 0>",
        "Shape5<256, 256, 256, 256, 256>",
        "Tile<f16, Shape2<4294967295, 4294967295>>",
        "Stages<Stages<Barrier, 4294967295>, 4294967295>",
        "SharedArray<f64, 4294967295>",
        "Swizzle128",
        "f16",
        "e4m3",
        "bulk_wait_group::<4294967295>()",
        "cast::<bool>(1)",
        "thread_idx().w",
        "match 0 { 5..=1 => {} _ => {} }",
    ];
    texts.iter().filter_map(|text| TokenStream::from_str(text).ok()).collect()
}
