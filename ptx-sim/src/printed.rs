//! The output of a kernel's `printf`, to the extent that a GPU's buffer would hold it.

/// The size in bytes of a launch's output that is kept: the default size of a GPU's `printf`
/// buffer. The buffer is circular, so later output overwrites earlier output. Source: CUDA C++
/// Programming Guide, "Formatted Output", limitations; CUDA driver API,
/// `CU_LIMIT_PRINTF_FIFO_SIZE`.
///
/// A GPU's buffer holds formats and arguments. The simulator counts the formatted text instead.
pub const PRINTED_BYTES: usize = 1 << 20;

/// The last [`PRINTED_BYTES`] of a text, and the number of bytes before them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Printed {
    /// Up to twice the limit, so that an addition rarely has to move the text.
    text: String,
    lost: u64,
}

impl Printed {
    pub(crate) fn push(&mut self, text: &str) {
        self.text.push_str(text);
        if self.text.len() >= 2 * PRINTED_BYTES {
            self.cut();
        }
    }

    /// Appends output that was printed after this one.
    pub(crate) fn append(&mut self, later: Self) {
        let (text, lost) = later.finish();
        if lost > 0 {
            self.lost += self.text.len() as u64 + lost;
            self.text.clear();
        }
        self.push(&text);
    }

    /// Returns the text, and how many bytes before it were lost.
    pub(crate) fn finish(mut self) -> (String, u64) {
        self.cut();
        (self.text, self.lost)
    }

    fn cut(&mut self) {
        let too_many = self.text.len().saturating_sub(PRINTED_BYTES);
        let first = self.text.ceil_char_boundary(too_many);
        self.text.drain(..first);
        self.lost += first as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_output_is_complete() {
        let mut printed = Printed::default();
        printed.push(&"a".repeat(PRINTED_BYTES - 1));
        printed.push("b");
        let (text, lost) = printed.finish();
        assert_eq!((text.len(), lost), (PRINTED_BYTES, 0));
    }

    #[test]
    fn the_tail_is_kept() {
        let (mut printed, mut later) = (Printed::default(), Printed::default());
        printed.push("first");
        for _ in 0..3 * PRINTED_BYTES / 8 {
            later.push("12345678");
        }
        later.push("é");
        assert!(later.text.len() < 2 * PRINTED_BYTES);
        printed.append(later);
        let (text, lost) = printed.finish();
        assert!(text.len() <= PRINTED_BYTES && text.ends_with("5678é"));
        assert_eq!(lost + text.len() as u64, 5 + 3 * PRINTED_BYTES as u64 + 2);
    }

    #[test]
    fn characters_are_not_split() {
        let mut printed = Printed::default();
        printed.push(&"é".repeat(PRINTED_BYTES / 2));
        printed.push("x");
        let (text, lost) = printed.finish();
        assert_eq!((text.len(), lost), (PRINTED_BYTES - 1, 2));
    }
}
