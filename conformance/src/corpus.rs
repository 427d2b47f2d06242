//! The recorded results of a GPU: a hash for each result of a list. The simulator must reproduce
//! them without a GPU, and so must other GPUs and drivers.
//!
//! A file begins with the device's name, the number of cases and a hash of their names. If the list
//! changes, it is therefore reported as a different list, and not as different results.

use std::fmt;

use crate::operand::Matrix;

/// A list of cases with results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum List {
    /// [`list::arithmetic`](crate::list::arithmetic).
    Arithmetic,
    /// [`list::table`](crate::list::table).
    Table,
    /// [`warp::cases`](crate::warp::cases).
    Warps,
    /// [`double::cases`](crate::double::cases).
    Doubles,
    /// [`layout::probes`](crate::layout::probes).
    Layout,
}

/// The effect of each metadata value, in the format of [`metadata::line`](crate::metadata::line),
/// one line each.
pub const METADATA: &str = include_str!("../corpus/metadata.txt");

impl List {
    /// All lists.
    pub const ALL: [Self; 5] = [Self::Arithmetic, Self::Table, Self::Warps, Self::Doubles, Self::Layout];

    /// Returns the name of the list, which is also that of its file.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Arithmetic => "arithmetic",
            Self::Table => "table",
            Self::Warps => "warps",
            Self::Doubles => "doubles",
            Self::Layout => "layout",
        }
    }

    /// Returns the recorded file of the list.
    const fn text(self) -> &'static str {
        match self {
            Self::Arithmetic => include_str!("../corpus/arithmetic.txt"),
            Self::Table => include_str!("../corpus/table.txt"),
            Self::Warps => include_str!("../corpus/warps.txt"),
            Self::Doubles => include_str!("../corpus/doubles.txt"),
            Self::Layout => include_str!("../corpus/layout.txt"),
        }
    }

    /// Returns the recorded results of the list, whose cases have these names.
    ///
    /// # Errors
    ///
    /// The file is malformed, or belongs to different cases.
    pub fn recorded(self, names: &[String]) -> anyhow::Result<Corpus> {
        let advice = "record it on a GPU: tma-gpu-products --record conformance/corpus";
        let Some(corpus) = Corpus::parse(self.text()) else {
            anyhow::bail!("corpus/{}.txt is damaged; {advice}", self.name());
        };
        if (corpus.hashes.len(), corpus.names) != (names.len(), hash_of(names)) {
            anyhow::bail!("the cases of corpus/{}.txt are not those of the list; {advice}", self.name());
        }
        Ok(corpus)
    }
}

/// The recorded results of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Corpus {
    /// Device that produced them.
    pub device: String,
    /// Hash of the names of the cases.
    names: u64,
    /// Hash of each result.
    hashes: Vec<u64>,
}

/// Number of hashes per line.
const PER_LINE: usize = 4;

/// Computes the FNV-1a hash (Fowler, Noll, Vo).
fn fnv(bytes: impl IntoIterator<Item = u8>) -> u64 {
    let add = |hash: u64, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    bytes.into_iter().fold(0xcbf2_9ce4_8422_2325, add)
}

/// Returns a 64-bit hash of a result.
pub fn hash(result: &Matrix) -> u64 {
    fnv(result.bits.iter().flat_map(|word| word.to_le_bytes()))
}

/// Returns a 64-bit hash of the names in a list.
fn hash_of(names: &[String]) -> u64 {
    fnv(names.iter().flat_map(|name| name.bytes().chain(*b"\n")))
}

impl Corpus {
    /// Creates the results of a device, with a hash for each case.
    pub fn new(device: &str, names: &[String], hashes: Vec<u64>) -> Self {
        Self { device: device.to_owned(), names: hash_of(names), hashes }
    }

    /// Parses the output of [`fmt::Display`]. Returns `None` for any other text.
    fn parse(text: &str) -> Option<Self> {
        let (device, rest) = text.strip_prefix("device ")?.split_once("\ncases ")?;
        let (head, hashes) = rest.split_once('\n')?;
        let (count, names) = head.split_once(' ')?;
        let number = |digits| u64::from_str_radix(digits, 16).ok();
        let hashes = hashes.split_ascii_whitespace().map(number).collect::<Option<Vec<u64>>>()?;
        let is_whole = count.parse() == Ok(hashes.len());
        is_whole.then_some(Self { device: device.to_owned(), names: number(names)?, hashes })
    }

    /// Describes a mismatch of a case's result, if there is one.
    pub fn problem(&self, index: usize, result: &Matrix) -> Option<String> {
        let is_same = self.hashes.get(index) == Some(&hash(result));
        (!is_same).then(|| format!("the result is not that of the {}", self.device))
    }
}

impl fmt::Display for Corpus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "device {}\ncases {} {:016x}", self.device, self.hashes.len(), self.names)?;
        for line in self.hashes.chunks(PER_LINE) {
            let hashes: Vec<_> = line.iter().map(|hash| format!("{hash:016x}")).collect();
            writeln!(f, "{}", hashes.join(" "))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names() -> Vec<String> {
        ["one", "two"].map(str::to_owned).to_vec()
    }

    #[test]
    fn written_files_are_read_back() {
        let corpus = Corpus::new("a device", &names(), vec![1, u64::MAX]);
        assert_eq!(Corpus::parse(&corpus.to_string()), Some(corpus.clone()));
        let cut = corpus.to_string().replace(" ffffffffffffffff", "");
        assert_eq!(Corpus::parse(&cut), None);
    }

    #[test]
    fn changed_bits_and_lists_are_detected() {
        let result = Matrix::new([2, 2], |[line, k]| line + k);
        let other = Matrix::new([2, 2], |[line, k]| line + k + (line & k));
        let corpus = Corpus::new("a device", &names(), vec![hash(&result), 0]);
        assert_eq!(corpus.problem(0, &result), None);
        assert_eq!(corpus.problem(0, &other).as_deref(), Some("the result is not that of the a device"));
        let error = List::Table.recorded(&names()).expect_err("these are not the table's names");
        assert!(error.to_string().contains("are not those of the list"), "{error}");
    }

    #[test]
    fn all_files_belong_to_their_lists() {
        use crate::{double, layout, list, warp};
        let text =
            |cases: Vec<crate::Case>| -> Vec<String> { cases.iter().map(ToString::to_string).collect() };
        let lists = [
            (List::Arithmetic, text(list::arithmetic())),
            (List::Table, text(list::table())),
            (List::Warps, warp::cases().iter().map(ToString::to_string).collect()),
            (List::Doubles, double::cases().iter().map(ToString::to_string).collect()),
            (List::Layout, layout::probes().iter().map(ToString::to_string).collect()),
        ];
        for (list, names) in lists {
            let corpus = list.recorded(&names).expect("the file is that of the list");
            assert_eq!(corpus.device, "NVIDIA H200");
        }
    }
}
