//! Reads and formats what kernels have printed.

use tma_model::printf::{Piece, pieces};

use super::{Form, VALUES};

/// Reads a ring from where it has read to.
#[derive(Clone, Debug)]
pub struct Reader {
    form: Form,
    /// The number of the next record, counted from 1, modulo 2³².
    next: u32,
}

/// Whether launches may still be printing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// Some may. A record that is not complete is left for later, and those behind it.
    Running,
    /// All have ended. A record that is not complete is lost.
    Ended,
}

/// The records that a reader has found, as text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Taken {
    /// The text.
    pub text: String,
    /// The records that were lost: replaced by later ones, or not completed.
    pub lost: u64,
}

impl Reader {
    /// Returns the reader of a ring that nobody has written to.
    pub fn new(form: Form) -> Self {
        Self { form, next: 1 }
    }

    /// Takes the records that have been written since the last call, in their order. `word` returns
    /// a word of the ring.
    pub fn take(&mut self, word: impl Fn(usize) -> u32, progress: Progress) -> Taken {
        let mut taken = Taken::default();
        loop {
            let first = self.place(self.next);
            let last = first + self.form.words as usize - 1;
            let found = word(first);
            if found == self.next && word(last) == self.next {
                let text = self.text(&|index| word(first + index));
                // The ring may have come round meanwhile.
                if word(first) == self.next {
                    taken.text += &text;
                    self.next = self.next.wrapping_add(1);
                    continue;
                }
            }
            if !self.is_later(word(first)) && progress == Progress::Running {
                return taken;
            }
            let Some(kept) = self.kept(&word) else { return taken };
            taken.lost += u64::from(kept.wrapping_sub(self.next));
            self.next = kept;
        }
    }

    /// Returns the number of the first record behind the next one that is complete and will not be
    /// replaced by those that are there.
    fn kept(&self, word: &impl Fn(usize) -> u32) -> Option<u32> {
        let Form { records, words, .. } = self.form;
        let numbers = (0..records as usize).filter_map(|place| {
            let first = place * words as usize;
            let number = word(first);
            (self.is_later(number) && number == word(first + words as usize - 1))
                .then(|| number.wrapping_sub(self.next))
        });
        let numbers: Vec<u32> = numbers.collect();
        let newest = *numbers.iter().max()?;
        let oldest = newest.saturating_sub(records - 1);
        let first = numbers.into_iter().filter(|&number| number >= oldest).min()?;
        Some(self.next.wrapping_add(first))
    }

    /// Returns whether a record comes after the next one.
    fn is_later(&self, number: u32) -> bool {
        number != 0 && number.wrapping_sub(self.next).cast_signed() > 0
    }

    /// Returns the index of a record's first word.
    fn place(&self, number: u32) -> usize {
        let place = number.wrapping_sub(1) & (self.form.records - 1);
        place as usize * self.form.words as usize
    }

    /// Formats a record.
    fn text(&self, word: &impl Fn(usize) -> u32) -> String {
        let format = self.form.formats.get(word(1) as usize).map_or(&[][..], Vec::as_slice);
        let (mut text, mut next) = (String::new(), 4 * VALUES);
        for piece in pieces(format) {
            match piece {
                Piece::Text(part) => text += &part,
                Piece::TooWide => text += "%",
                Piece::Value(spec) => {
                    let at = next.next_multiple_of(spec.bytes);
                    next = at + spec.bytes;
                    let low = u64::from(word(at as usize / 4));
                    let high = if spec.bytes == 8 { u64::from(word(at as usize / 4 + 1)) } else { 0 };
                    let value = low | high << 32;
                    if spec.is_text() {
                        let number = usize::try_from(value).unwrap_or(0).checked_sub(1);
                        let found = number.and_then(|number| self.form.texts.get(number));
                        let found = found.map_or(&b"?"[..], Vec::as_slice);
                        text += &spec.padded(String::from_utf8_lossy(found).into_owned());
                    } else {
                        text += &spec.number(value);
                    }
                }
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A ring of four records of four words, whose only call prints a number.
    struct Ring([u32; 16]);

    impl Ring {
        fn write(&mut self, number: u32, value: u32) {
            let at = (number as usize - 1) % 4 * 4;
            self.0[at..at + 4].copy_from_slice(&[number, 0, value, number]);
        }

        fn take(&self, reader: &mut Reader, progress: Progress) -> (String, u64) {
            let Taken { text, lost } = reader.take(|index| self.0[index], progress);
            (text, lost)
        }
    }

    fn ring() -> (Ring, Reader) {
        let form = Form { formats: vec![b"%u ".to_vec()], texts: Vec::new(), records: 4, words: 4 };
        (Ring([0; 16]), Reader::new(form))
    }

    #[test]
    fn each_record_is_taken_once() {
        let (mut ring, mut reader) = ring();
        assert_eq!(ring.take(&mut reader, Progress::Ended), (String::new(), 0));
        ring.write(1, 10);
        ring.write(2, 20);
        assert_eq!(ring.take(&mut reader, Progress::Running), ("10 20 ".to_owned(), 0));
        ring.write(3, 30);
        ring.write(4, 40);
        ring.write(5, 50);
        assert_eq!(ring.take(&mut reader, Progress::Ended), ("30 40 50 ".to_owned(), 0));
        assert_eq!(ring.take(&mut reader, Progress::Ended), (String::new(), 0));
    }

    #[test]
    fn replaced_records_are_counted() {
        let (mut ring, mut reader) = ring();
        (1..=11).for_each(|number| ring.write(number, 10 * number));
        assert_eq!(ring.take(&mut reader, Progress::Running), ("80 90 100 110 ".to_owned(), 7));
    }

    #[test]
    fn incomplete_records_wait_until_nothing_runs() {
        let (mut ring, mut reader) = ring();
        (1..=3).for_each(|number| ring.write(number, 10 * number));
        ring.0[7] = 0;
        assert_eq!(ring.take(&mut reader, Progress::Running), ("10 ".to_owned(), 0));
        assert_eq!(ring.take(&mut reader, Progress::Running), (String::new(), 0));
        assert_eq!(ring.take(&mut reader, Progress::Ended), ("30 ".to_owned(), 1));
    }
}
