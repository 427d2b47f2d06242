//! The reason why a call failed.

use std::fmt;

/// The reason why a call of an operator failed: a text that begins with a code, such as `TMA0566`,
/// which has a page in `docs/errors`. Python raises it as an exception.
///
/// Any error becomes one, so that an operator can use `?`. Those of `tma-runtime` and `tma-kernels`
/// begin with codes of their own, and others get `TMA0567`.
#[derive(Debug)]
pub struct Failure {
    text: String,
}

impl Failure {
    /// Returns the failure that an argument does not fit, for a reason such as `has 3 dimensions,
    /// not 2`.
    pub fn argument(name: &str, why: impl fmt::Display) -> Self {
        Self { text: format!("{}: `{name}` {why}", Self::ARGUMENT) }
    }

    /// Returns the failure of a library that cannot be used.
    pub(crate) fn library(why: impl fmt::Display) -> Self {
        Self { text: format!("{}: {why}", Self::LIBRARY) }
    }

    /// The code of arguments that do not fit.
    const ARGUMENT: &str = "TMA0566";
    /// The code of libraries that cannot be used, and of operators whose description is wrong.
    const LIBRARY: &str = "TMA0567";
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl<E: std::error::Error> From<E> for Failure {
    fn from(error: E) -> Self {
        let text = error.to_string();
        if text.starts_with("TMA0") { Self { text } } else { Self::library(text) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_failure_has_a_code() {
        let text = |failure: Failure| failure.to_string();
        assert_eq!(text(Failure::argument("x", "is 3")), "TMA0566: `x` is 3");
        let launch = tma_runtime::Error::NoBackend;
        let wanted = launch.to_string();
        assert_eq!(text(launch.into()), wanted);
        assert!(wanted.starts_with("TMA0603: "), "{wanted}");
        let other = u8::try_from(300).map_err(Failure::from).err().map(text);
        assert!(other.is_some_and(|other| other.starts_with("TMA0567: ")));
    }
}
