//! Changes texts token by token and line by line.

use crate::draw::Draw;

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

/// Makes texts out of others.
pub(crate) struct Mutator {
    texts: Vec<String>,
    /// Every token of all texts, once.
    pool: Vec<String>,
    hostile: &'static [&'static str],
}

/// The most changes of one text. Few are likelier than many: one change alone may leave it correct.
const CHANGES: usize = 5;

impl Mutator {
    /// Starts from `texts`, of which there is at least one; `hostile` are tokens that break things.
    pub(crate) fn new(texts: Vec<String>, hostile: &'static [&'static str]) -> Self {
        let mut pool: Vec<_> = texts.iter().flat_map(|text| tokens(text)).map(str::to_owned).collect();
        pool.sort_unstable();
        pool.dedup();
        Self { texts, pool, hostile }
    }

    /// The next text.
    pub(crate) fn text(&self, draw: &Draw) -> String {
        let mut text = draw.one_of(&self.texts).clone();
        for _ in 0..=draw.below(CHANGES).min(draw.below(CHANGES)) {
            text = if draw.once_in(4) {
                self.lines_changed(&text, draw)
            } else {
                self.tokens_changed(&text, draw)
            };
        }
        text
    }

    fn lines_changed(&self, text: &str, draw: &Draw) -> String {
        let mut lines: Vec<_> = text.split_inclusive('\n').collect();
        if lines.is_empty() {
            return String::new();
        }
        let (a, b) = (draw.below(lines.len()), draw.below(lines.len()));
        match draw.below(6) {
            0 => drop(lines.remove(a)),
            1 => lines.insert(a, lines[b]),
            2 => lines.swap(a, b),
            3 if draw.once_in(8) => lines.truncate(a),
            _ => {
                let other: Vec<_> = draw.one_of(&self.texts).split_inclusive('\n').collect();
                if let Some(line) = other.get(draw.below(other.len())) {
                    lines.insert(a, line);
                }
            }
        }
        lines.concat()
    }

    fn tokens_changed(&self, text: &str, draw: &Draw) -> String {
        let mut tokens = tokens(text);
        if tokens.is_empty() {
            return String::new();
        }
        let (a, b) = (draw.below(tokens.len()), draw.below(tokens.len()));
        let number;
        match draw.below(9) {
            0 => drop(tokens.remove(a)),
            1 => tokens.insert(a, tokens[b]),
            2 => tokens.swap(a, b),
            3 => tokens[a] = *draw.one_of(self.hostile),
            4 => tokens[a] = draw.one_of(&self.pool).as_str(),
            5 => {
                number = draw.number().to_string();
                let numbers = tokens.iter_mut().skip(a).find(|token| kind(token) == Kind::Number);
                if let Some(token) = numbers {
                    *token = &number;
                }
            }
            6 => {
                // Another one of this text: a register, mostly.
                let alike = |token: &&&str| kind(token) == kind(tokens[a]);
                if let Some(other) = tokens[b..].iter().find(alike).copied() {
                    tokens[a] = other;
                }
            }
            _ => {
                let start = draw.below(self.pool.len());
                let alike = |token: &&String| kind(token) == kind(tokens[a]);
                if let Some(other) = self.pool[start..].iter().find(alike) {
                    tokens[a] = other;
                }
            }
        }
        tokens.concat()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_together_are_the_text() {
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
        let texts = vec!["add.s32 %r1, %r2, 3;\nret;\n".to_owned(), "bra.uni done;\n".to_owned()];
        let mutator = Mutator::new(texts.clone(), &["{", "-1"]);
        let made = || {
            let draw = Draw::new(5);
            (0..200).map(|_| mutator.text(&draw)).collect::<Vec<_>>()
        };
        let first = made();
        assert!(first.iter().filter(|text| !texts.contains(text)).count() > 100);
        assert_eq!(first, made());
    }
}
