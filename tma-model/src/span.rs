//! Spans of time that a kernel names. The compiler marks both ends by a comment in the PTX, which
//! ptxas ignores; the simulator's timeline and the traces of GPUs show the spans.

use std::fmt;

/// An end of a span.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SpanEdge {
    /// The beginning.
    Begin,
    /// The end.
    End,
}

/// A mark in PTX: a comment in a line of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpanMark<'n> {
    /// The end that it marks.
    pub edge: SpanEdge,
    /// The name of the span.
    pub name: &'n str,
}

/// The text that introduces a mark of each end.
const BEGIN: &str = "// span begin ";
const END: &str = "// span end ";

/// The most characters of a name.
pub const LONGEST_NAME: usize = 64;

/// Returns whether a span may have this name: it fits in a line of PTX, which is ASCII, and in a
/// table.
pub fn is_name(name: &str) -> bool {
    let is_shown = |byte: u8| byte.is_ascii_graphic() || byte == b' ';
    (1..=LONGEST_NAME).contains(&name.len()) && name.bytes().all(is_shown) && name.trim() == name
}

impl<'n> SpanMark<'n> {
    /// Returns the mark in a line of PTX, if there is one.
    pub fn in_line(line: &'n str) -> Option<Self> {
        let line = line.trim();
        let (edge, name) = match line.strip_prefix(BEGIN) {
            Some(name) => (SpanEdge::Begin, name),
            None => (SpanEdge::End, line.strip_prefix(END)?),
        };
        is_name(name).then_some(Self { edge, name })
    }
}

impl fmt::Display for SpanMark<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let beginning = match self.edge {
            SpanEdge::Begin => BEGIN,
            SpanEdge::End => END,
        };
        write!(f, "{beginning}{}", self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_read_as_they_are_written() {
        for edge in [SpanEdge::Begin, SpanEdge::End] {
            let mark = SpanMark { edge, name: "rescale, then $add {x}" };
            assert_eq!(SpanMark::in_line(&format!("\t{mark}")), Some(mark));
        }
    }

    #[test]
    fn other_comments_are_no_marks() {
        for line in
            ["// span", "// span begin ", "// span middle a", "\tret; // span end a", "// spans begin a"]
        {
            assert_eq!(SpanMark::in_line(line), None, "{line}");
        }
    }

    #[test]
    fn names_are_short_and_of_one_line() {
        let longest = "n".repeat(LONGEST_NAME);
        for name in ["softmax", "a b", &longest] {
            assert!(is_name(name), "{name}");
        }
        for name in ["", " a", "a ", "a\nb", "a\tb", "µs", &(longest.clone() + "n")] {
            assert!(!is_name(name), "{name}");
        }
    }
}
