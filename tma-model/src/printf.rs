//! Format strings of `printf`, for those who print what a kernel wrote: the simulator, and the
//! runtime where a kernel may not call the driver's function.

use std::borrow::Cow;

/// A part of a format string.
#[derive(Clone, Debug, PartialEq)]
pub enum Piece<'f> {
    /// Text that is printed as it is.
    Text(Cow<'f, str>),
    /// The conversion of an argument.
    Value(Spec),
    /// A conversion that might print more than [`WIDEST`] characters.
    TooWide,
}

/// A conversion, such as `%-08.3lld`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Spec {
    left: bool,
    plus: bool,
    space: bool,
    alternate: bool,
    zeros: bool,
    width: usize,
    precision: Option<usize>,
    /// Bytes of the argument.
    pub bytes: u32,
    letter: u8,
}

/// The widest field and the greatest precision, so that a broken format cannot exhaust memory.
/// Every C library supports at least this much. Source: C11, 7.21.6.1, "The fprintf function",
/// environmental limits.
pub const WIDEST: usize = 4095;

/// Splits a format string. An invalid conversion is treated as text.
pub fn pieces(format: &[u8]) -> Vec<Piece<'_>> {
    let mut pieces = Vec::new();
    let mut rest = format;
    while !rest.is_empty() {
        let plain = rest.iter().position(|&byte| byte == b'%').unwrap_or(rest.len());
        if plain > 0 {
            pieces.push(Piece::Text(String::from_utf8_lossy(&rest[..plain])));
            rest = &rest[plain..];
            continue;
        }
        match conversion(&rest[1..]) {
            Some((_, length)) if rest[length] == b'%' => {
                pieces.push(Piece::Text(Cow::Borrowed("%")));
                rest = &rest[length + 1..];
            }
            Some((spec, length)) => {
                let fits = spec.width.max(spec.precision.unwrap_or(0)) <= WIDEST;
                pieces.push(if fits { Piece::Value(spec) } else { Piece::TooWide });
                rest = &rest[length + 1..];
            }
            None => {
                pieces.push(Piece::Text(Cow::Borrowed("%")));
                rest = &rest[1..];
            }
        }
    }
    pieces
}

/// Parses the conversion after a `%`, and returns its length too.
fn conversion(text: &[u8]) -> Option<(Spec, usize)> {
    let mut spec = Spec { bytes: 4, ..Spec::default() };
    let mut at = 0;
    loop {
        match text.get(at)? {
            b'-' => spec.left = true,
            b'+' => spec.plus = true,
            b' ' => spec.space = true,
            b'#' => spec.alternate = true,
            b'0' => spec.zeros = true,
            _ => break,
        }
        at += 1;
    }
    let number = |at: &mut usize| {
        let mut value = 0_usize;
        while let Some(digit) = text.get(*at).filter(|byte| byte.is_ascii_digit()) {
            value = value.saturating_mul(10).saturating_add(usize::from(digit - b'0'));
            *at += 1;
        }
        value
    };
    spec.width = number(&mut at);
    if text.get(at) == Some(&b'.') {
        at += 1;
        spec.precision = Some(number(&mut at));
    }
    while let Some(letter) = text.get(at).filter(|byte| b"hljzt".contains(byte)) {
        if *letter != b'h' {
            spec.bytes = 8;
        }
        at += 1;
    }
    spec.letter = *text.get(at)?;
    match spec.letter {
        b'd' | b'i' | b'u' | b'x' | b'X' | b'o' | b'c' | b'%' => {}
        b'f' | b'F' | b'e' | b'E' | b'g' | b'G' | b'a' | b'A' | b's' | b'p' => spec.bytes = 8,
        _ => return None,
    }
    Some((spec, at + 1))
}

impl Spec {
    /// Returns whether the argument is the address of a text.
    pub fn is_text(&self) -> bool {
        self.letter == b's'
    }

    /// Formats a number that is not a text.
    pub fn number(&self, value: u64) -> String {
        let signed = if self.bytes == 8 { value as i64 } else { i64::from(value as i32) };
        let unsigned = if self.bytes == 8 { value } else { value & 0xffff_ffff };
        let (negative, body) = match self.letter {
            b'd' | b'i' => (signed < 0, self.digits(signed.unsigned_abs().to_string())),
            b'u' => (false, self.digits(unsigned.to_string())),
            b'x' => (false, self.prefixed("0x", self.digits(format!("{unsigned:x}")), unsigned)),
            b'X' => (false, self.prefixed("0X", self.digits(format!("{unsigned:X}")), unsigned)),
            b'o' => (false, self.prefixed("0", self.digits(format!("{unsigned:o}")), unsigned)),
            b'p' => (false, format!("0x{unsigned:x}")),
            b'c' => (false, char::from(unsigned as u8).to_string()),
            _ => {
                let number = f64::from_bits(value);
                let text = self.real(number.abs());
                let upper = self.letter.is_ascii_uppercase();
                (number.is_sign_negative(), if upper { text.to_uppercase() } else { text })
            }
        };
        let sign = match (negative, self.plus, self.space) {
            (true, ..) => "-",
            (false, true, _) if self.is_signed() => "+",
            (false, false, true) if self.is_signed() => " ",
            _ => "",
        };
        let zeros = self.zeros && !self.left && !body.contains(['n', 'N']) && self.letter != b'c';
        let zeros = zeros && (self.precision.is_none() || self.is_real());
        if zeros {
            // Padding zeros go between a prefix and the digits.
            let (prefix, digits) =
                body.split_at(if body.starts_with("0x") || body.starts_with("0X") { 2 } else { 0 });
            let width = self.width.saturating_sub(sign.len() + prefix.len());
            return format!("{sign}{prefix}{digits:0>width$}");
        }
        self.padded(format!("{sign}{body}"))
    }

    fn is_real(&self) -> bool {
        matches!(self.letter.to_ascii_lowercase(), b'f' | b'e' | b'g' | b'a')
    }

    fn is_signed(&self) -> bool {
        self.is_real() || matches!(self.letter, b'd' | b'i')
    }

    fn digits(&self, digits: String) -> String {
        let least = self.precision.unwrap_or(1);
        format!("{digits:0>least$}")
    }

    fn prefixed(&self, prefix: &str, digits: String, value: u64) -> String {
        if self.alternate && value != 0 { format!("{prefix}{digits}") } else { digits }
    }

    /// Pads the text to the width of the field.
    pub fn padded(&self, text: String) -> String {
        let text = match self.precision {
            Some(most) if self.is_text() => text.chars().take(most).collect(),
            _ => text,
        };
        let width = self.width;
        if self.left { format!("{text:<width$}") } else { format!("{text:>width$}") }
    }

    /// Formats the magnitude of a floating-point number.
    fn real(&self, value: f64) -> String {
        if value.is_nan() {
            return "nan".to_owned();
        }
        if value.is_infinite() {
            return "inf".to_owned();
        }
        let precision = self.precision.unwrap_or(6);
        match self.letter.to_ascii_lowercase() {
            b'f' => format!("{value:.precision$}"),
            b'e' => scientific(value, precision),
            b'a' => hexadecimal(value, self.precision),
            _ => self.general(value, precision.max(1)),
        }
    }

    /// `%g`: the shortest representation with this many significant digits.
    fn general(&self, value: f64, digits: usize) -> String {
        let rounded = scientific(value, digits - 1);
        let exponent =
            rounded.split_once('e').and_then(|(_, exponent)| exponent.parse::<i32>().ok()).unwrap_or(0);
        let fixed = exponent >= -4 && exponent < digits as i32;
        let text = if fixed {
            let places = (digits as i32 - 1 - exponent).max(0) as usize;
            format!("{value:.places$}")
        } else {
            rounded
        };
        if self.alternate {
            return text;
        }
        let (number, tail) =
            text.split_once('e').map_or((text.as_str(), None), |(number, tail)| (number, Some(tail)));
        let number =
            if number.contains('.') { number.trim_end_matches('0').trim_end_matches('.') } else { number };
        tail.map_or_else(|| number.to_owned(), |tail| format!("{number}e{tail}"))
    }
}

/// `%e`: the exponent has a sign and at least two digits.
fn scientific(value: f64, precision: usize) -> String {
    let text = format!("{value:.precision$e}");
    let (number, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let exponent = exponent.parse::<i32>().unwrap_or(0);
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{number}e{sign}{:02}", exponent.abs())
}

/// `%a`.
fn hexadecimal(value: f64, precision: Option<usize>) -> String {
    let bits = value.to_bits();
    let (field, fraction) = (bits >> 52 & 0x7ff, bits & ((1 << 52) - 1));
    let lead = u64::from(field != 0);
    let exponent = match (field, fraction) {
        (0, 0) => 0,
        (0, _) => -1022,
        _ => field as i64 - 1023,
    };
    let digits = format!("{fraction:013x}");
    let digits = match precision {
        Some(most) => digits.chars().chain(std::iter::repeat('0')).take(most).collect(),
        None => digits.trim_end_matches('0').to_owned(),
    };
    let point = if digits.is_empty() { "" } else { "." };
    format!("0x{lead}{point}{digits}p{exponent:+}")
}

#[cfg(test)]
mod tests {
    use super::{Piece, pieces};

    fn formatted(format: &str, value: u64) -> String {
        let parts = pieces(format.as_bytes()).into_iter();
        parts
            .map(|piece| match piece {
                Piece::Text(text) => text.into_owned(),
                Piece::Value(spec) => spec.number(value),
                Piece::TooWide => "too wide".to_owned(),
            })
            .collect()
    }

    #[test]
    fn integers() {
        assert_eq!(formatted("a %d b", u64::from(u32::MAX)), "a -1 b");
        assert_eq!(formatted("|%8u|", 42), "|      42|");
        assert_eq!(formatted("|%-8x|", 255), "|ff      |");
        assert_eq!(formatted("|%#010x|", 255), "|0x000000ff|");
        assert_eq!(formatted("%llu", u64::MAX), "18446744073709551615");
        assert_eq!(formatted("%+05d", 42), "+0042");
        assert_eq!(formatted("100%%", 0), "100%");
    }

    #[test]
    fn reals() {
        let bits = f64::to_bits;
        assert_eq!(formatted("%g", bits(0.75)), "0.75");
        assert_eq!(formatted("%g", bits(1e10)), "1e+10");
        assert_eq!(formatted("%g", bits(100_000.0)), "100000");
        assert_eq!(formatted("%g", bits(1_000_000.0)), "1e+06");
        assert_eq!(formatted("%g", bits(0.000_012_5)), "1.25e-05");
        assert_eq!(formatted("%.3f", bits(-2.0)), "-2.000");
        assert_eq!(formatted("%e", bits(12345.678)), "1.234568e+04");
        assert_eq!(formatted("%a", bits(1.5)), "0x1.8p+0");
        assert_eq!(formatted("%f", bits(f64::NEG_INFINITY)), "-inf");
    }

    #[test]
    fn fields_have_the_width_of_c() {
        assert_eq!(formatted("%4095d", 7).len(), 4095);
        for format in ["%4096d", "%99999d", "%-99999d", "%.99999f", "%99999999999999999999999d"] {
            assert_eq!(formatted(format, 7), "too wide", "{format}");
        }
    }

    #[test]
    fn other_directives_are_text() {
        assert_eq!(formatted("50%", 0), "50%");
        assert_eq!(formatted("%q", 0), "%q");
    }
}
