//! The tokens of a text: computed once, kept in a file, and mapped to memory.
//!
//! The file is a header of 56 bytes and the tokens, in little-endian order:
//!
//! | bytes | contents |
//! | --- | --- |
//! | 0..8 | `tmatoks1` |
//! | 8..16 | the bytes of a token: 2 or 4 |
//! | 16..24 | the number of tokens |
//! | 24..56 | SHA-256 of the text and the tokenizer |

use std::fs::{self, File};
use std::io::{BufWriter, Seek, SeekFrom, Write};
use std::path::Path;

use memmap2::Mmap;
use sha2::{Digest, Sha256};

use crate::error::TrainError;
use crate::tokenizer::TextTokenizer;

const MAGIC: &[u8; 8] = b"tmatoks1";
const HEADER: usize = 56;
/// The name of the file in the output folder.
const NAME: &str = "tokens.bin";
/// The name while it is written.
const PARTIAL: &str = ".tokens.bin.partial";

/// SHA-256 of some bytes.
type Hash = [u8; 32];

/// The tokens of a text.
#[derive(Debug)]
pub struct Stream {
    map: Mmap,
    width: Width,
}

/// The size of a token in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Width {
    Two,
    Four,
}

impl Width {
    fn of(tokens: usize) -> Self {
        if tokens <= 1 << 16 { Self::Two } else { Self::Four }
    }

    fn bytes(self) -> usize {
        match self {
            Self::Two => 2,
            Self::Four => 4,
        }
    }
}

/// A text file that is mapped to memory. Nobody may change it while it is.
#[derive(Debug)]
pub struct Text {
    map: Mmap,
    text: Hash,
    tokenizer: Hash,
}

impl Text {
    /// Maps a file that a tokenizer will convert, and computes the identities of both.
    ///
    /// # Errors
    ///
    /// [`TrainError::Read`].
    pub fn open(path: &Path, tokenizer: &TextTokenizer) -> Result<Self, TrainError> {
        let map = map(path)?;
        let text = Sha256::digest(&map).into();
        Ok(Self { map, text, tokenizer: Sha256::digest(tokenizer.json()).into() })
    }

    /// Returns SHA-256 of the text and of the tokenizer, in hexadecimal digits.
    pub fn digits(&self) -> [String; 2] {
        [self.text, self.tokenizer].map(|hash| hash.iter().map(|byte| format!("{byte:02x}")).collect())
    }

    /// Returns the identity of both.
    fn hash(&self) -> Hash {
        Sha256::digest([self.text, self.tokenizer].concat()).into()
    }
}

impl Stream {
    /// Maps the tokens of a text, which are computed if the output folder does not have them.
    ///
    /// # Errors
    ///
    /// [`TrainError::Read`] and [`TrainError::Write`], and those of [`TextTokenizer::encode`].
    pub fn open(output: &Path, text: &Text, tokenizer: &TextTokenizer) -> Result<Self, TrainError> {
        let path = output.join(NAME);
        if path.exists()
            && let Some(stream) = kept(&path, &text.hash())?
        {
            return Ok(stream);
        }
        write(output, text, tokenizer)?;
        kept(&path, &text.hash())?.ok_or_else(|| {
            let source = std::io::Error::other("it was changed while it was written");
            TrainError::Read { path, source }
        })
    }

    /// Returns the number of tokens.
    pub fn len(&self) -> usize {
        (self.map.len() - HEADER) / self.width.bytes()
    }

    /// Returns whether there is no token.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Appends the tokens from `start` on, up to `count` of them.
    pub fn append(&self, start: usize, count: usize, to: &mut Vec<u32>) {
        let width = self.width.bytes();
        let tokens = self.map[HEADER..].chunks_exact(width).skip(start).take(count);
        match self.width {
            Width::Two => to.extend(tokens.map(|x| u32::from(u16::from_le_bytes([x[0], x[1]])))),
            Width::Four => to.extend(tokens.map(|x| u32::from_le_bytes([x[0], x[1], x[2], x[3]]))),
        }
    }
}

fn map(path: &Path) -> Result<Mmap, TrainError> {
    let file = File::open(path).map_err(TrainError::reading(path))?;
    // SAFETY: nobody changes the file while it is mapped, as documented for texts; files of tokens
    // are only replaced by others.
    unsafe { Mmap::map(&file) }.map_err(TrainError::reading(path))
}

/// Returns the tokens of a file, if they are those of a text.
fn kept(path: &Path, hash: &Hash) -> Result<Option<Stream>, TrainError> {
    let map = map(path)?;
    let Some((found, tokens)) = map.split_at_checked(HEADER) else { return Ok(None) };
    let is_header = |width: &Width| found == header(*width, tokens.len() / width.bytes(), hash);
    let Some(width) = [Width::Two, Width::Four].into_iter().find(is_header) else { return Ok(None) };
    let is_whole = tokens.len().is_multiple_of(width.bytes());
    Ok(is_whole.then_some(Stream { map, width }))
}

fn header(width: Width, tokens: usize, hash: &Hash) -> [u8; HEADER] {
    let mut header = [0; HEADER];
    header[..8].copy_from_slice(MAGIC);
    header[8..16].copy_from_slice(&(width.bytes() as u64).to_le_bytes());
    header[16..24].copy_from_slice(&(tokens as u64).to_le_bytes());
    header[24..].copy_from_slice(hash);
    header
}

/// Writes the tokens of a text under another name, and renames the file when it is whole.
fn write(output: &Path, text: &Text, tokenizer: &TextTokenizer) -> Result<(), TrainError> {
    let partial = output.join(PARTIAL);
    let failed = TrainError::writing(&partial);
    let width = Width::of(tokenizer.tokens());
    let mut file = BufWriter::new(File::create(&partial).map_err(&failed)?);
    file.write_all(&[0; HEADER]).map_err(&failed)?;
    let mut count = 0;
    tokenizer.encode(&text.map, &mut |tokens| {
        count += tokens.len();
        let mut bytes = tokens.iter().map(|token| token.to_le_bytes());
        bytes.try_for_each(|bytes| file.write_all(&bytes[..width.bytes()])).map_err(&failed)
    })?;
    let mut file = file.into_inner().map_err(|error| failed(error.into_error()))?;
    file.seek(SeekFrom::Start(0)).map_err(&failed)?;
    file.write_all(&header(width, count, &text.hash())).map_err(&failed)?;
    file.sync_all().map_err(&failed)?;
    fs::rename(&partial, output.join(NAME)).map_err(&failed)
}
