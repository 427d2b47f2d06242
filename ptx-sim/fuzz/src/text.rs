//! Changes PTX token by token and line by line.

use std::sync::LazyLock;

use arbitrary::{Result, Unstructured};

use crate::corpus;
use crate::draw::{below, noise, number, once_in};

/// Pieces of PTX that break things.
const HOSTILE: [&str; 46] = [
    "{",
    "}",
    "(",
    ")",
    "[",
    "]",
    "<",
    ">",
    ",",
    ";",
    ":",
    "::",
    "@",
    "@!",
    "!",
    "-",
    "~",
    "+",
    "=",
    "|",
    "\"",
    "/*",
    "//",
    "é",
    "\u{0}",
    "0x",
    "0f",
    "0d",
    "0b2",
    "99999999999999999999",
    "-1",
    "0fZZZZZZZZ",
    "1e999",
    "_",
    "%",
    "%tid",
    "%clock64",
    "%nothing<4294967295>",
    ".b8 x[4294967295];",
    ".pred",
    ".v4",
    ".f16x2",
    ".noreturn",
    "call.uni",
    "ret;",
    "bra.uni",
];

/// A piece of text, as a lexer sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Word,
    /// A register or special register: a word with a `%`.
    Register,
    Number,
    Space,
    Mark,
}

fn kind(token: &str) -> Kind {
    match token.chars().next() {
        Some('%') => Kind::Register,
        Some(c) if c.is_ascii_digit() => Kind::Number,
        Some(c) if is_word(c) => Kind::Word,
        Some(c) if c.is_whitespace() => Kind::Space,
        _ => Kind::Mark,
    }
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '$' | '.' | '%')
}

/// The tokens of a text; together they are the text.
fn tokens(text: &str) -> Vec<&str> {
    let mut tokens = vec![];
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let same = |c: char| match (is_word(first), first.is_whitespace()) {
            (true, _) => is_word(c),
            (false, true) => c.is_whitespace(),
            (false, false) => false,
        };
        let end = rest.char_indices().skip(1).find(|(_, c)| !same(*c)).map_or(rest.len(), |(at, _)| at);
        let (token, after) = rest.split_at(end);
        tokens.push(token);
        rest = after;
    }
    tokens
}

/// The most changes of one text. Few are likelier than many: one change alone may leave it correct.
const CHANGES: usize = 5;

/// Numbers for all changes of one text, in bytes.
const NUMBERS: usize = 256;

/// The text with a few changes that `seed` picks; none where it is no text.
pub fn changed(text: &[u8], seed: u64) -> Option<String> {
    let mut text = str::from_utf8(text).ok()?.to_owned();
    let numbers = noise(seed, NUMBERS);
    let u = &mut Unstructured::new(&numbers);
    for _ in 0..=below(u, CHANGES).ok()?.min(below(u, CHANGES).ok()?) {
        let lines = once_in(u, 4).ok()?;
        text = if lines { lines_changed(&text, u) } else { tokens_changed(&text, u) }.ok()?;
    }
    Some(text)
}

fn lines_changed(text: &str, u: &mut Unstructured<'_>) -> Result<String> {
    static POOL: LazyLock<Vec<&str>> =
        LazyLock::new(|| distinct(|text| text.split_inclusive('\n').collect()));
    let mut lines: Vec<_> = text.split_inclusive('\n').collect();
    if lines.is_empty() {
        return Ok(String::new());
    }
    let (a, b) = (below(u, lines.len())?, below(u, lines.len())?);
    match below(u, 6)? {
        0 => drop(lines.remove(a)),
        1 => lines.insert(a, lines[b]),
        2 => lines.swap(a, b),
        3 if once_in(u, 8)? => lines.truncate(a),
        _ => lines.insert(a, u.choose(&POOL)?),
    }
    Ok(lines.concat())
}

fn tokens_changed(text: &str, u: &mut Unstructured<'_>) -> Result<String> {
    static POOL: LazyLock<Vec<&str>> = LazyLock::new(|| distinct(tokens));
    let mut tokens = tokens(text);
    if tokens.is_empty() {
        return Ok(String::new());
    }
    let (a, b) = (below(u, tokens.len())?, below(u, tokens.len())?);
    let alike = |token: &&&str| kind(token) == kind(tokens[a]);
    let other_number;
    match below(u, 9)? {
        0 => drop(tokens.remove(a)),
        1 => tokens.insert(a, tokens[b]),
        2 => tokens.swap(a, b),
        3 => tokens[a] = u.choose(&HOSTILE)?,
        4 => tokens[a] = u.choose(&POOL)?,
        5 => {
            other_number = number(u)?.to_string();
            let mut numbers = tokens.iter_mut().skip(a);
            if let Some(token) = numbers.find(|token| kind(token) == Kind::Number) {
                *token = &other_number;
            }
        }
        // Another one of this text: a register, mostly.
        6 => tokens[a] = tokens[b..].iter().find(alike).copied().unwrap_or(tokens[a]),
        _ => {
            let from = below(u, POOL.len())?;
            tokens[a] = POOL[from..].iter().find(alike).copied().unwrap_or(tokens[a]);
        }
    }
    Ok(tokens.concat())
}

/// The pieces of all texts of the corpus, each once.
fn distinct(pieces: impl Fn(&'static str) -> Vec<&'static str>) -> Vec<&'static str> {
    let mut all: Vec<_> = corpus::all().flat_map(pieces).collect();
    all.sort_unstable();
    all.dedup();
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_concatenate_to_the_text() {
        let text = "\t@!%p1 bra \t$L_0;\nld.global.v2.b32 {%r1,%r2}, [%rd1+16]; // é\u{301}\n";
        let tokens = tokens(text);
        assert_eq!(tokens.concat(), text);
        assert_eq!(tokens[..6], ["\t", "@", "!", "%p1", " ", "bra"]);
        assert_eq!((kind("%p1"), kind("16"), kind("$L_0"), kind(" \t"), kind("@")), {
            (Kind::Register, Kind::Number, Kind::Word, Kind::Space, Kind::Mark)
        });
    }

    #[test]
    fn most_texts_differ_from_where_they_started_and_all_are_repeatable() {
        let text = "add.s32 %r1, %r2, 3;\nret;\n";
        let made = || (0..200).filter_map(|seed| changed(text.as_bytes(), seed)).collect::<Vec<_>>();
        let first = made();
        assert!(first.iter().filter(|changed| *changed != text).count() > 100);
        assert_eq!(first, made());
        assert_eq!(changed(b"\xff", 0), None);
    }
}
