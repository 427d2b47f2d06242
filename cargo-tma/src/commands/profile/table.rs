//! Comma-separated values as `ncu` prints them: quoted, with warnings of `ncu` in between.

/// Splits a text into rows of values. Rows of warnings and errors are left out.
pub(super) fn rows(text: &str) -> impl Iterator<Item = Vec<String>> {
    text.lines().filter(|line| line.starts_with('"')).map(row)
}

/// Splits a row. Two quotes inside of a quoted value are one.
fn row(line: &str) -> Vec<String> {
    let (mut values, mut value, mut quoted) = (vec![], String::new(), false);
    let mut characters = line.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '"' if quoted && characters.peek() == Some(&'"') => {
                characters.next();
                value.push('"');
            }
            '"' => quoted = !quoted,
            ',' if !quoted => values.push(std::mem::take(&mut value)),
            other => value.push(other),
        }
    }
    values.push(value);
    values
}

/// Parses a number, which may have commas between thousands.
pub(super) fn number(text: &str) -> Option<f64> {
    text.replace(',', "").parse().ok()
}

/// Parses a count.
pub(super) fn count(text: &str) -> Option<u64> {
    text.replace(',', "").parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_may_have_commas_and_quotes() {
        let text = "==WARNING== a, b\n\"a, b\",\"say \"\"c\"\"\",\"\",4\n";
        assert_eq!(rows(text).collect::<Vec<_>>(), [["a, b", "say \"c\"", "", "4"]]);
        assert_eq!((number("85,015"), number("1.5"), number("-")), (Some(85015.0), Some(1.5), None));
        assert_eq!((count("1,204"), count("1.5")), (Some(1204), None));
    }
}
