//! A hash of tokens that is the same in the macro and in the build script.
//!
//! The two see the same tokens through different implementations, which differ in spacing and in
//! the spelling of doc comments. Both are therefore left out. So are the attributes next to
//! `#[tma_kernel]`, which do not change the PTX: rustc has removed any `#[cfg(..)]` before it.
//! rust-analyzer also adds a `;` after a block-like expression statement, such as `if first { ..
//! }`, before it calls a macro. Such a `;` has no meaning and is not hashed.
//!
//! FNV-1a (Fowler, Noll, Vo) is used because, unlike the standard library's hasher, it is the same
//! in every release of Rust.

use std::ptr;

use proc_macro2::{Delimiter, TokenStream, TokenTree};
use quote::ToTokens;
use syn::visit_mut::{self, VisitMut};
use syn::{Block, Expr, ItemFn, Stmt};
use tma_front::parse::item::{DeviceMethod, KernelItem, ModuleItems};

/// Computes the hash of a kernel and of the items that it shares with others of its module.
pub(crate) fn kernel(item: &KernelItem, shared: &ModuleItems) -> u64 {
    let mut hash = Fnv::new();
    hash.tokens(item.attr.clone());
    hash.byte(0);
    hash.tokens(normal(ItemFn { attrs: vec![], ..item.function.clone() }).into_token_stream());
    hash.module(shared);
    hash.value()
}

/// Computes the hash of the items that a module shares, with those that it imports.
pub(crate) fn module(shared: &ModuleItems) -> u64 {
    let mut hash = Fnv::new();
    hash.module(shared);
    hash.value()
}

/// Removes each `;` that only some implementations produce.
fn normal(mut function: ItemFn) -> ItemFn {
    WithoutNeedlessSemicolons.visit_item_fn_mut(&mut function);
    function
}

/// Removes the `;` after `if c { .. }` and the like, if another statement follows: at the end of a
/// block, the `;` decides whether the block has a value.
struct WithoutNeedlessSemicolons;

impl VisitMut for WithoutNeedlessSemicolons {
    fn visit_block_mut(&mut self, block: &mut Block) {
        if let Some((_, followed)) = block.stmts.split_last_mut() {
            for statement in followed {
                if let Stmt::Expr(expr, semicolon) = statement
                    && ends_itself(expr)
                {
                    *semicolon = None;
                }
            }
        }
        visit_mut::visit_block_mut(self, block);
    }
}

/// Whether `expr` is a complete statement without a `;`. Source: The Rust Reference, "Expression
/// statements".
fn ends_itself(expr: &Expr) -> bool {
    matches!(
        expr,
        Expr::If(_)
            | Expr::Match(_)
            | Expr::ForLoop(_)
            | Expr::While(_)
            | Expr::Loop(_)
            | Expr::Block(_)
            | Expr::Unsafe(_)
    )
}

/// The state of the hash.
pub(crate) struct Fnv(u64);

impl Fnv {
    pub(crate) fn new() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }

    fn byte(&mut self, byte: u8) {
        self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
    }

    pub(crate) fn value(&self) -> u64 {
        self.0
    }

    pub(crate) fn number(&mut self, number: usize) {
        (number as u64).to_le_bytes().into_iter().for_each(|byte| self.byte(byte));
    }

    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.byte(*byte);
        }
    }

    pub(crate) fn text(&mut self, text: &str) {
        self.bytes(text.as_bytes());
        self.byte(0xff);
    }

    fn module(&mut self, shared: &ModuleItems) {
        let all = shared.with_imported();
        for items in &all {
            self.items(items);
            for import in &items.imports.found {
                self.text(&import.name);
                self.text(&import.item);
                self.number(all.iter().position(|from| ptr::eq(*from, &raw const *import.from)).unwrap_or(0));
            }
        }
    }

    fn items(&mut self, items: &ModuleItems) {
        let functions = items.functions.iter().cloned().map(normal).collect();
        let methods = items.methods.iter().cloned();
        let methods =
            methods.map(|method| DeviceMethod { function: normal(method.function), ..method }).collect();
        let items = ModuleItems { functions, methods, ..items.clone() };
        for tokens in items.iter() {
            self.byte(0);
            self.tokens(tokens);
        }
    }

    pub(crate) fn tokens(&mut self, tokens: TokenStream) {
        let mut tokens = tokens.into_iter().peekable();
        while let Some(token) = tokens.next() {
            match token {
                TokenTree::Punct(punct) if punct.as_char() == '#' && tokens.peek().is_some_and(is_doc) => {
                    tokens.next();
                }
                TokenTree::Group(group) => {
                    let (open, close) = match group.delimiter() {
                        Delimiter::Parenthesis => ("(", ")"),
                        Delimiter::Brace => ("{", "}"),
                        Delimiter::Bracket => ("[", "]"),
                        Delimiter::None => ("", ""),
                    };
                    self.text(open);
                    self.tokens(group.stream());
                    self.text(close);
                }
                TokenTree::Punct(punct) => self.text(punct.as_char().encode_utf8(&mut [0; 4])),
                TokenTree::Ident(ident) => self.text(&ident.to_string()),
                TokenTree::Literal(literal) => self.text(&literal.to_string()),
            }
        }
    }
}

/// Whether the token is `[doc = ".."]`.
fn is_doc(token: &TokenTree) -> bool {
    let TokenTree::Group(group) = token else { return false };
    matches!(group.stream().into_iter().next(), Some(TokenTree::Ident(ident)) if ident == "doc")
}

#[cfg(test)]
mod tests {
    use super::Fnv;
    use tma_front::parse::item::template::Elsewhere;

    fn hash(source: &str) -> u64 {
        let mut hash = Fnv::new();
        hash.tokens(source.parse().unwrap());
        hash.value()
    }

    #[test]
    fn spacing_and_documentation_do_not_count() {
        assert_eq!(hash("fn f ( ) { a+=1 }"), hash("/// Says so.\nfn f() { a += 1 }"));
    }

    fn of_kernel(source: &str) -> u64 {
        let file = syn::parse_file(source).unwrap();
        let all = tma_front::parse::item::file::kernels(&file, &Elsewhere::UNKNOWN).kernels;
        assert_eq!(all.len(), 1);
        super::kernel(&all[0].0, &all[0].1)
    }

    #[test]
    fn attributes_beside_the_macro_do_not_count() {
        let bare = of_kernel("#[tma_kernel(threads = 32)] fn k() {}");
        for attribute in
            ["#[cfg(test)]", "#[cfg_attr(test, allow(unused))]", "#[allow(unused)]", "/** Says so. */"]
        {
            assert_eq!(of_kernel(&format!("{attribute} #[tma_kernel(threads = 32)] fn k() {{}}")), bare);
            assert_eq!(of_kernel(&format!("#[tma_kernel(threads = 32)] {attribute} fn k() {{}}")), bare);
        }
        assert_ne!(of_kernel("#[tma_kernel(threads = 64)] fn k() {}"), bare);
    }

    /// The tokens that rust-analyzer passes to the macro, and those that the build script reads.
    #[test]
    fn a_semicolon_after_a_block_that_is_a_statement_does_not_count() {
        let kernel = |body: &str| of_kernel(&format!("#[tma_kernel(threads = 32)] fn k() {{ {body} }}"));
        let blocks = [
            "if a { b(); }",
            "if a { b(); } else if c { d(); } else { e(); }",
            "match a { 0 => b(), _ => c() }",
            "for i in 0..4 { b(i); }",
            "while a { b(); }",
            "'outer: loop { break 'outer; }",
            "{ b(); }",
        ];
        for block in blocks {
            assert_eq!(kernel(&format!("{block}; f();")), kernel(&format!("{block} f();")), "{block}");
            // In an inner block, and in a device function.
            assert_eq!(
                kernel(&format!("loop {{ {block}; f(); }}")),
                kernel(&format!("loop {{ {block} f(); }}"))
            );
            let device = |body: &str| {
                of_kernel(&format!(
                    "#[tma_module] mod m {{ #[tma_device] fn d() {{ {body} }} #[tma_kernel] fn k() {{ d() }} }}"
                ))
            };
            assert_eq!(device(&format!("{block}; f();")), device(&format!("{block} f();")));
        }
    }

    #[test]
    fn a_semicolon_that_means_something_counts() {
        for (with, without) in [
            // Two statements, and a subtraction.
            ("let x = if a { 1 } else { 2 }; -b;", "let x = if a { 1 } else { 2 } -b;"),
            // A block without a value, and one with a value.
            ("let x = { if a { 1 } else { 2 }; };", "let x = { if a { 1 } else { 2 } };"),
            ("f(); g();", "f(); g()"),
        ] {
            let kernel = |body: &str| of_kernel(&format!("#[tma_kernel(threads = 32)] fn k() {{ {body} }}"));
            assert_ne!(kernel(with), kernel(without), "{with}");
        }
    }

    #[test]
    fn every_token_counts() {
        for other in
            ["fn f() { a += 2 }", "fn g() { a += 1 }", "fn f() ( a += 1 )", "#[inline] fn f() { a += 1 }"]
        {
            assert_ne!(hash("fn f() { a += 1 }"), hash(other), "{other}");
        }
    }
}
