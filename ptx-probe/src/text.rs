//! Positions in the source that PTX text refers to.

use std::collections::HashMap;

/// A line of a source file.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Source {
    /// The file, relative to the folder of its package.
    pub file: String,
    /// The line, counted from 1.
    pub line: u32,
}

/// Returns the files that `.file` directives number.
pub(crate) fn files(ptx: &str) -> HashMap<u32, &str> {
    let directives = ptx.lines().filter_map(|line| line.trim_start().strip_prefix(".file"));
    let numbered = directives.filter_map(|directive| {
        let (number, name) = directive.trim_start().split_once(' ')?;
        Some((number.parse().ok()?, name.split('"').nth(1)?))
    });
    numbered.collect()
}

/// Returns the number of the file and the line that a `.loc` directive names. Line 0 is LLVM's
/// notation for "no line".
pub(crate) fn location(line: &str) -> Option<(u32, u32)> {
    let mut numbers = line.trim_start().strip_prefix(".loc")?.split_whitespace();
    let (file, line) = (numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?);
    (line > 0).then_some((file, line))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_are_read_from_directives() {
        assert_eq!(
            files("\t.file\t1 \"src/a b.rs\"\n.file 2 \"c.rs\"\n"),
            HashMap::from([(1, "src/a b.rs"), (2, "c.rs")])
        );
        assert_eq!(location("\t.loc\t1 34 24"), Some((1, 34)));
        assert_eq!(location("\t.loc\t1 0 24"), None);
        assert_eq!(location("\tret;"), None);
    }
}
