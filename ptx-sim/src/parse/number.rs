//! Numbers, and the constant expressions of initialisers and offsets.

use super::LoadError;
use super::cursor::Cursor;
use super::lex::Kind;
use super::syntax::Operand;

/// Parses a number as an operand: an integer, a single (`0f`), or a double (`0d`, or with a point
/// or exponent).
pub(crate) fn literal<'s>(text: &str, line: u32) -> Result<Operand<'s>, LoadError> {
    let wrong = || LoadError::new(line, format!("`{text}` is not a number"));
    let hex = |digits: &str| u64::from_str_radix(digits, 16).map_err(|_| wrong());
    let prefix = text.get(..2).unwrap_or("");
    let rest = text.get(2..).unwrap_or("");
    match prefix {
        "0f" | "0F" if rest.len() == 8 => Ok(Operand::Single(hex(rest)? as u32)),
        "0d" | "0D" if rest.len() == 16 => Ok(Operand::Double(hex(rest)?)),
        "0x" | "0X" => Ok(Operand::Integer(hex(rest.trim_end_matches('U'))?)),
        "0b" | "0B" => {
            u64::from_str_radix(rest.trim_end_matches('U'), 2).map(Operand::Integer).map_err(|_| wrong())
        }
        _ if text.contains(['.', 'e', 'E']) => {
            text.parse::<f64>().map(|value| Operand::Double(value.to_bits())).map_err(|_| wrong())
        }
        _ => {
            let digits = text.trim_end_matches('U');
            let octal = digits.len() > 1 && digits.starts_with('0');
            let value = if octal { u64::from_str_radix(digits, 8) } else { digits.parse::<u64>() };
            value.map(Operand::Integer).map_err(|_| wrong())
        }
    }
}

/// Parses a constant integer expression: `+ - * / % << >> & | ^ ~ !` and brackets, in 64-bit two's
/// complement.
pub(crate) fn integer(cursor: &mut Cursor<'_, '_>) -> Result<i64, LoadError> {
    cursor.nested(|cursor| binary(cursor, 0))
}

fn binary(cursor: &mut Cursor<'_, '_>, lowest: u8) -> Result<i64, LoadError> {
    let mut left = unary(cursor)?;
    while let Some((operator, length, level)) = operator(cursor).filter(|&(_, _, level)| level >= lowest) {
        let line = cursor.line();
        for _ in 0..length {
            cursor.next();
        }
        let right = cursor.nested(|cursor| binary(cursor, level + 1))?;
        left = match operator {
            b'*' => left.wrapping_mul(right),
            b'/' | b'%' if right == 0 => return Err(LoadError::new(line, "a constant divided by zero")),
            b'/' => left.wrapping_div(right),
            b'%' => left.wrapping_rem(right),
            b'+' => left.wrapping_add(right),
            b'-' => left.wrapping_sub(right),
            b'<' => left.wrapping_shl(right as u32),
            b'>' => left.wrapping_shr(right as u32),
            b'&' => left & right,
            b'^' => left ^ right,
            _ => left | right,
        };
    }
    Ok(left)
}

/// Returns the next operator, the number of its tokens, and its precedence.
fn operator(cursor: &Cursor<'_, '_>) -> Option<(u8, usize, u8)> {
    let Kind::Mark(mark) = cursor.peek().kind else { return None };
    let doubled = cursor.peek_at(1).kind == Kind::Mark(mark);
    match mark {
        b'*' | b'/' | b'%' => Some((mark, 1, 5)),
        b'+' | b'-' => Some((mark, 1, 4)),
        b'<' | b'>' if doubled => Some((mark, 2, 3)),
        b'&' => Some((mark, 1, 2)),
        b'^' => Some((mark, 1, 1)),
        b'|' => Some((mark, 1, 0)),
        _ => None,
    }
}

fn unary(cursor: &mut Cursor<'_, '_>) -> Result<i64, LoadError> {
    let token = cursor.peek();
    match token.kind {
        Kind::Mark(b'-') => {
            cursor.next();
            Ok(cursor.nested(unary)?.wrapping_neg())
        }
        Kind::Mark(b'+') => {
            cursor.next();
            cursor.nested(unary)
        }
        Kind::Mark(b'~') => {
            cursor.next();
            Ok(!cursor.nested(unary)?)
        }
        Kind::Mark(b'!') => {
            cursor.next();
            Ok(i64::from(cursor.nested(unary)? == 0))
        }
        Kind::Mark(b'(') => {
            cursor.next();
            let value = integer(cursor)?;
            cursor.expect(b')')?;
            Ok(value)
        }
        Kind::Number => {
            cursor.next();
            match literal(token.text, token.line)? {
                Operand::Integer(value) => Ok(value as i64),
                _ => Err(LoadError::new(token.line, format!("`{}` is not an integer", token.text))),
            }
        }
        _ => Err(cursor.wanted("an integer")),
    }
}
