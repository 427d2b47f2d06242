//! The tokens of a text: computed once, kept in a file, and mapped to memory.
//!
//! The file is a header of 56 bytes and the tokens, in little-endian order:
//!
//! | bytes | contents |
//! | --- | --- |
//! | 0..8 | `tmatoks1` |
//! | 8..16 | the bytes of a token: 2 or 4 |
//! | 16..24 | the number of tokens |
//! | 24..52 | the first bytes of SHA-256 of the text and the tokenizer |
//! | 52..56 | CRC-32 of the tokens |

use std::fs::{self, File};
use std::io::{self, BufWriter, Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::path::Path;

use memmap2::Mmap;
use sha2::{Digest, Sha256};

use crate::checkpoint::checksum;
use crate::error::TrainError;
use crate::progress::byte_bar;
use crate::tokenizer::TextTokenizer;

const MAGIC: &[u8; 8] = b"tmatoks1";
const HEADER: usize = 56;
/// The name of the file in the output folder.
const NAME: &str = "tokens.bin";
/// The name while it is written.
const PARTIAL: &str = ".tokens.bin.partial";

/// SHA-256 of some bytes.
type Hash = [u8; 32];

/// The bytes of the header with the identity of a text and a tokenizer.
const IDENTITY: Range<usize> = 24..52;

/// The tokens of a text.
#[derive(Debug)]
pub struct TokenFile {
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

/// A text file that is mapped to memory. The file must not change while it is mapped.
#[derive(Debug)]
pub struct SourceText {
    map: Mmap,
    text: Hash,
    tokenizer: Hash,
}

impl SourceText {
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

impl TokenFile {
    /// Maps the tokens of a text, which are computed if the output folder does not have them.
    ///
    /// # Errors
    ///
    /// [`TrainError::Read`] and [`TrainError::Write`], [`TrainError::Interrupted`] if `interrupted`
    /// returns true, and those of [`TextTokenizer::encode`].
    pub fn open(
        output: &Path,
        text: &SourceText,
        tokenizer: &TextTokenizer,
        interrupted: &dyn Fn() -> bool,
    ) -> Result<Self, TrainError> {
        let path = output.join(NAME);
        if path.exists()
            && let Some(stream) = kept(&path, &text.hash())?
        {
            return Ok(stream);
        }
        write(output, text, tokenizer, interrupted).inspect_err(|_| {
            // The error matters more than that of the removal, which is tried again at the next start.
            let _ = clean(output);
        })?;
        kept(&path, &text.hash())?.ok_or_else(|| {
            let source = io::Error::other("it was changed while it was written");
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

/// Removes a file of tokens that was being written when a process ended.
///
/// # Errors
///
/// [`TrainError::Write`].
pub fn clean(output: &Path) -> Result<(), TrainError> {
    let partial = output.join(PARTIAL);
    match fs::remove_file(&partial) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(TrainError::writing(&partial)(error)),
        Ok(()) | Err(_) => Ok(()),
    }
}

fn map(path: &Path) -> Result<Mmap, TrainError> {
    let file = File::open(path).map_err(TrainError::reading(path))?;
    // SAFETY: nobody changes the file while it is mapped, as documented for texts; files of tokens
    // are only replaced by others.
    unsafe { Mmap::map(&file) }.map_err(TrainError::reading(path))
}

/// Returns the tokens of a file, if they are those of a text.
fn kept(path: &Path, hash: &Hash) -> Result<Option<TokenFile>, TrainError> {
    let failed = TrainError::reading(path);
    let mut file = File::open(path).map_err(&failed)?;
    let mut found = [0; HEADER];
    match file.read_exact(&mut found) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        other => other.map_err(&failed)?,
    }
    let bytes = file.metadata().map_err(&failed)?.len() - HEADER as u64;
    let is_header = |width: &Width| {
        let width_bytes = width.bytes() as u64;
        let wanted = header(*width, bytes / width_bytes, hash, 0);
        bytes.is_multiple_of(width_bytes) && found[..IDENTITY.end] == wanted[..IDENTITY.end]
    };
    let Some(width) = [Width::Two, Width::Four].into_iter().find(is_header) else { return Ok(None) };
    let (_, crc32) = checksum(file).map_err(&failed)?;
    let is_whole = found[IDENTITY.end..] == crc32.to_le_bytes();
    if is_whole { Ok(Some(TokenFile { map: map(path)?, width })) } else { Ok(None) }
}

fn header(width: Width, tokens: u64, hash: &Hash, crc32: u32) -> [u8; HEADER] {
    let mut header = [0; HEADER];
    header[..8].copy_from_slice(MAGIC);
    header[8..16].copy_from_slice(&(width.bytes() as u64).to_le_bytes());
    header[16..24].copy_from_slice(&tokens.to_le_bytes());
    header[IDENTITY].copy_from_slice(&hash[..IDENTITY.len()]);
    header[IDENTITY.end..].copy_from_slice(&crc32.to_le_bytes());
    header
}

/// Writes the tokens of a text under another name, and renames the file when it is whole.
fn write(
    output: &Path,
    text: &SourceText,
    tokenizer: &TextTokenizer,
    interrupted: &dyn Fn() -> bool,
) -> Result<(), TrainError> {
    let partial = output.join(PARTIAL);
    let failed = TrainError::writing(&partial);
    let width = Width::of(tokenizer.tokens());
    let mut file = BufWriter::new(File::create(&partial).map_err(&failed)?);
    file.write_all(&[0; HEADER]).map_err(&failed)?;
    let (mut count, mut crc32, mut bytes) = (0, crc32fast::Hasher::new(), vec![]);
    let bar = byte_bar(text.map.len() as u64);
    tokenizer.encode(&text.map, &mut |piece| {
        bytes.clear();
        bytes.extend(
            piece.tokens.iter().flat_map(|token| token.to_le_bytes().into_iter().take(width.bytes())),
        );
        crc32.update(&bytes);
        count += piece.tokens.len() as u64;
        bar.inc(piece.bytes as u64);
        if interrupted() {
            return Err(TrainError::Interrupted);
        }
        file.write_all(&bytes).map_err(&failed)
    })?;
    bar.finish_and_clear();
    let mut file = file.into_inner().map_err(|error| failed(error.into_error()))?;
    file.seek(SeekFrom::Start(0)).map_err(&failed)?;
    file.write_all(&header(width, count, &text.hash(), crc32.finalize())).map_err(&failed)?;
    file.sync_all().map_err(&failed)?;
    fs::rename(&partial, output.join(NAME)).map_err(&failed)
}
