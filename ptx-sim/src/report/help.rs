//! Help for findings, in terms of the language in which the kernel is written.

/// The suggested change for a finding.
///
/// Each help is written once for both source languages.
/// `[[bulk_commit_group()||cp.async.bulk.commit_group]]`, with code backticks around each side,
/// pairs a term of the kernel language with its PTX. A Rust kernel shows both, the second in
/// parentheses; PTX that does not come from Rust shows only the second. If a side is not code, each
/// language shows its own side, which may be empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Help(String);

impl<S: Into<String>> From<S> for Help {
    fn from(text: S) -> Self {
        Self(text.into())
    }
}

impl Help {
    /// Formats the help for a kernel in PTX.
    pub fn in_ptx(&self) -> String {
        self.with(|_, ptx| ptx.to_owned())
    }

    /// Formats the help for a kernel in the kernel language, with the PTX in parentheses.
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

/// Splits a text into the part before the first pair, the two sides of the pair, and the rest.
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
