//! Splits PTX text into tokens that borrow from it.

use super::LoadError;

/// The kind of a token. Its text is in [`Token::text`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A name: register, label, variable or opcode.
    Name,
    /// A word that starts with a dot: a directive, a type or a modifier. The text lacks the dot.
    Dotted,
    /// A number as written.
    Number,
    /// A string, without its quotes.
    Text,
    /// One character of punctuation.
    Mark(u8),
    /// After the last token.
    End,
}

/// A token and its position.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Token<'s> {
    pub(crate) kind: Kind,
    pub(crate) text: &'s str,
    /// The line, counted from 1.
    pub(crate) line: u32,
    /// Whether the token follows the previous one without a space.
    pub(crate) joined: bool,
}

/// Splits `source` into tokens, the last of which is [`Kind::End`].
pub(crate) fn tokens(source: &str) -> Result<Vec<Token<'_>>, LoadError> {
    let bytes = source.as_bytes();
    let (mut at, mut line, mut joined) = (0, 1, false);
    let mut tokens = Vec::with_capacity(source.len() / 5);
    while let Some(&byte) = bytes.get(at) {
        let start = at;
        let kind = match byte {
            b'\n' => {
                line += 1;
                at += 1;
                joined = false;
                continue;
            }
            b' ' | b'\t' | b'\r' => {
                at += 1;
                joined = false;
                continue;
            }
            b'/' if bytes.get(at + 1) == Some(&b'/') => {
                at = end_of(bytes, at, |byte| byte != b'\n');
                joined = false;
                continue;
            }
            b'/' if bytes.get(at + 1) == Some(&b'*') => {
                let Some(length) = source.get(at + 2..).and_then(|rest| rest.find("*/")) else {
                    return Err(LoadError::new(line, "unterminated comment"));
                };
                let end = at + 2 + length + 2;
                line += bytes[at..end].iter().filter(|&&byte| byte == b'\n').count() as u32;
                at = end;
                joined = false;
                continue;
            }
            b'"' => {
                let end = end_of(bytes, at + 1, |byte| byte != b'"' && byte != b'\n');
                if bytes.get(end) != Some(&b'"') {
                    return Err(LoadError::new(line, "unterminated string"));
                }
                tokens.push(Token { kind: Kind::Text, text: &source[at + 1..end], line, joined });
                at = end + 1;
                joined = true;
                continue;
            }
            b'.' if bytes.get(at + 1).is_some_and(|&next| is_word(next)) => {
                at = end_of_dotted(bytes, at + 1);
                tokens.push(Token { kind: Kind::Dotted, text: &source[start + 1..at], line, joined });
                joined = true;
                continue;
            }
            b'0'..=b'9' => {
                at = end_of_number(bytes, at);
                Kind::Number
            }
            _ if is_word(byte) || byte == b'%' => {
                at = end_of(bytes, at + 1, is_word);
                Kind::Name
            }
            b'{' | b'}' | b'(' | b')' | b'[' | b']' | b'<' | b'>' | b',' | b';' | b':' | b'@' | b'!'
            | b'+' | b'-' | b'*' | b'/' | b'%' | b'|' | b'&' | b'^' | b'~' | b'=' | b'?' => {
                at += 1;
                Kind::Mark(byte)
            }
            _ => {
                let found = source[at..].chars().next().unwrap_or('?');
                return Err(LoadError::new(line, format!("a character that PTX does not have: {found:?}")));
            }
        };
        tokens.push(Token { kind, text: &source[start..at], line, joined });
        joined = true;
    }
    tokens.push(Token { kind: Kind::End, text: "the end of the text", line, joined: false });
    Ok(tokens)
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'$'
}

fn end_of(bytes: &[u8], from: usize, inside: impl Fn(u8) -> bool) -> usize {
    from + bytes.iter().skip(from).take_while(|&&byte| inside(byte)).count()
}

/// Returns the end of a dotted word. Two colons belong to a modifier (`shared::cta`), a single one
/// ends it.
fn end_of_dotted(bytes: &[u8], mut at: usize) -> usize {
    loop {
        at = end_of(bytes, at, is_word);
        let more = bytes.get(at..at + 3).is_some_and(|next| next[..2] == *b"::" && is_word(next[2]));
        if !more {
            return at;
        }
        at += 2;
    }
}

/// Returns the end of a number, including a fraction and an exponent: `1.5e-3` is one token.
fn end_of_number(bytes: &[u8], from: usize) -> usize {
    let mut at = end_of(bytes, from, is_word);
    let prefixed = matches!(bytes.get(from..from + 2), Some([b'0', second]) if second.is_ascii_alphabetic());
    if prefixed {
        return at;
    }
    if bytes.get(at) == Some(&b'.') {
        at = end_of(bytes, at + 1, is_word);
    }
    let signed_exponent = matches!(bytes.get(at - 1), Some(b'e' | b'E'))
        && matches!(bytes.get(at), Some(b'+' | b'-'))
        && bytes.get(at + 1).is_some_and(u8::is_ascii_digit);
    if signed_exponent { end_of(bytes, at + 1, is_word) } else { at }
}
