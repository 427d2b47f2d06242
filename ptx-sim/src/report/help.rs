//! What to do about a finding, in the words of whoever wrote the kernel.

/// What to add or change.
///
/// A help is written once for both kinds of sources.
/// `[[bulk_commit_group()||cp.async.bulk.commit_group]]`, with the backticks of code around each
/// side, is a word of the language and what it is in PTX. A kernel in Rust gets both, the second in
/// parentheses; PTX that is not from Rust gets the second alone. Where a side is no code, each kind
/// gets its own side, which may be empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Help(String);

impl<S: Into<String>> From<S> for Help {
    fn from(text: S) -> Self {
        Self(text.into())
    }
}

impl Help {
    /// For a kernel in PTX.
    pub fn in_ptx(&self) -> String {
        self.with(|_, ptx| ptx.to_owned())
    }

    /// For a kernel in the language, with the PTX beside it.
    pub fn in_language(&self) -> String {
        self.with(|word, ptx| match word.starts_with('`') && ptx.starts_with('`') {
            true => format!("{word} ({ptx})"),
            false => word.to_owned(),
        })
    }

    fn with(&self, choose: impl Fn(&str, &str) -> String) -> String {
        let mut text = String::new();
        let mut rest = self.0.as_str();
        while let Some((before, word, ptx, after)) = next_word(rest) {
            text.push_str(before);
            text.push_str(&choose(word, ptx));
            rest = after;
        }
        text + rest
    }
}

/// What stands before the first pair of words, its two sides, and what comes after it.
fn next_word(text: &str) -> Option<(&str, &str, &str, &str)> {
    let (before, pair) = text.split_once("[[")?;
    let (pair, after) = pair.split_once("]]")?;
    let (word, ptx) = pair.split_once("||")?;
    Some((before, word, ptx, after))
}

#[cfg(test)]
mod tests {
    use super::Help;

    #[test]
    fn each_source_gets_its_words() {
        let help = Help::from(
            "[[`bulk_commit_group()`||`cp.async.bulk.commit_group`]] before this[[, as `release` does||]], of [[a kernel||PTX]]",
        );
        assert_eq!(
            help.in_language(),
            "`bulk_commit_group()` (`cp.async.bulk.commit_group`) before this, as `release` does, of a kernel"
        );
        assert_eq!(help.in_ptx(), "`cp.async.bulk.commit_group` before this, of PTX");
    }

    #[test]
    fn other_brackets_are_text() {
        for text in ["", "a `full[2]` [map], 128", "[[ alone", "[[no bar]]", "]]"] {
            assert_eq!(Help::from(text).in_ptx(), text);
            assert_eq!(Help::from(text).in_language(), text);
        }
    }
}
