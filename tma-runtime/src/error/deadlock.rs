//! Waits of warps whose time was over.

use std::ffi::OsString;
use std::fmt;

/// The waits of the warps of a kernel whose time was over. Displays each wait with its warps and
/// its line in the source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeadlockReport {
    /// The waits, each a line of text, and a line with its place in the source if that is known.
    pub waiting: Vec<String>,
    /// The number of warps that waited.
    pub warps: usize,
    /// The command that runs the program on the simulator, with the same arguments.
    pub replay: String,
}

impl DeadlockReport {
    /// Creates the report of a launch of this program.
    pub fn new(waiting: Vec<String>, warps: usize) -> Self {
        Self { waiting, warps, replay: replay(std::env::args_os()) }
    }
}

impl fmt::Display for DeadlockReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines = self.waiting.iter().flat_map(|wait| wait.lines()).map(|line| format!("  {line}"));
        write!(f, "{}", lines.collect::<Vec<_>>().join("\n"))
    }
}

/// Returns the command that runs a program on the simulator, for a shell.
fn replay(arguments: impl IntoIterator<Item = OsString>) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./=:,+@%".contains(&byte);
    let words = arguments.into_iter().map(|word| {
        let word = word.to_string_lossy().into_owned();
        let plain = !word.is_empty() && word.bytes().all(is_plain);
        if plain { word } else { format!("'{}'", word.replace('\'', "'\\''")) }
    });
    let words: Vec<_> = std::iter::once("TMA_DEVICE=sim".to_owned()).chain(words).collect();
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_replay_has_the_same_arguments() {
        let command = |words: &[&str]| replay(words.iter().map(OsString::from));
        assert_eq!(
            command(&["target/debug/sums", "--rows", "20"]),
            "TMA_DEVICE=sim target/debug/sums --rows 20"
        );
        assert_eq!(command(&["a", "b c", "it's", ""]), r"TMA_DEVICE=sim a 'b c' 'it'\''s' ''");
    }
}
