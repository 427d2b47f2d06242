//! Tokens of texts: bytes, or those of a `tokenizer.json`.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use crate::error::TrainError;

/// The text that stands for the end of a text, if each byte is a token.
pub const END_TEXT: &str = "<|endoftext|>";
/// The token of [`END_TEXT`], after those of bytes.
const END: u32 = 256;

/// Texts of tokens that end a text, of which tokenizers have one or two. The first one that a
/// tokenizer has counts.
const KNOWN_ENDS: [&str; 4] = [END_TEXT, "<|end_of_text|>", "</s>", "<eos>"];

/// The bytes that a tokenizer converts at a time: enough for all threads, and little memory.
const BATCH_BYTES: usize = 1 << 24;
/// The bytes after which a piece ends before a line break.
const PIECE_BYTES: usize = 1 << 16;
/// The bytes after which it ends before any white space.
const LONG_PIECE_BYTES: usize = 1 << 20;
/// The bytes after which it ends before any character.
const LONGEST_PIECE_BYTES: usize = 1 << 22;

/// Tokens of a part of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece<'a> {
    /// The tokens.
    pub tokens: &'a [u32],
    /// The bytes of the text that they stand for.
    pub bytes: usize,
}

/// The conversion of a text to tokens.
#[derive(Debug)]
pub enum TextTokenizer {
    /// A token for each byte, and one for [`END_TEXT`].
    Bytes,
    /// The tokens of a `tokenizer.json`.
    File {
        /// The file.
        path: PathBuf,
        /// The contents of the file.
        json: Vec<u8>,
        /// The same, parsed.
        tokenizer: Box<tokenizers::Tokenizer>,
    },
}

impl TextTokenizer {
    /// Reads a `tokenizer.json`.
    ///
    /// # Errors
    ///
    /// [`TrainError::Read`] and [`TrainError::Tokenizer`].
    pub fn open(path: &Path) -> Result<Self, TrainError> {
        let json = fs::read(path).map_err(TrainError::reading(path))?;
        let failed = |error: tokenizers::Error| failed(path, &error);
        let mut tokenizer = tokenizers::Tokenizer::from_bytes(&json).map_err(failed)?;
        // Files may have those of another training, which would cut or fill texts.
        tokenizer.with_padding(None);
        tokenizer.with_truncation(None).map_err(failed)?;
        Ok(Self::File { path: path.into(), json, tokenizer: Box::new(tokenizer) })
    }

    /// Returns the number of tokens: one more than the greatest id.
    pub fn tokens(&self) -> usize {
        match self {
            Self::Bytes => END as usize + 1,
            Self::File { tokenizer, .. } => {
                tokenizer.get_vocab(true).into_values().max().map_or(0, |last| last as usize + 1)
            }
        }
    }

    /// Returns the token that ends a text, if there is one.
    pub fn end(&self) -> Option<u32> {
        match self {
            Self::Bytes => Some(END),
            Self::File { tokenizer, .. } => KNOWN_ENDS.iter().find_map(|text| tokenizer.token_to_id(text)),
        }
    }

    /// Returns the contents of a `tokenizer.json`.
    pub fn json(&self) -> Vec<u8> {
        match self {
            Self::Bytes => bytes_json().to_string().into_bytes(),
            Self::File { json, .. } => json.clone(),
        }
    }

    /// Converts a text, and passes its tokens on piece by piece.
    ///
    /// Tokenizers convert pieces of 64 KiB or more by themselves. A piece ends between a letter or a
    /// digit and a line break, where nearly all tokenizers begin a token in any case. Where there is no
    /// such place, it ends before other white space after 1 MiB, and before any character after 4 MiB.
    ///
    /// # Errors
    ///
    /// [`TrainError::NotUtf8`] and [`TrainError::Tokenizer`], and those of `write`.
    pub fn encode(
        &self,
        text: &[u8],
        write: &mut dyn FnMut(Piece<'_>) -> Result<(), TrainError>,
    ) -> Result<(), TrainError> {
        match self {
            Self::Bytes => encode_bytes(text, write),
            Self::File { path, tokenizer, .. } => {
                let text = std::str::from_utf8(text)
                    .map_err(|error| TrainError::NotUtf8 { at: error.valid_up_to() })?;
                encode_pieces(text, path, tokenizer, write)
            }
        }
    }
}

fn failed(path: &Path, error: &tokenizers::Error) -> TrainError {
    TrainError::Tokenizer { path: path.into(), reason: error.to_string() }
}

/// Converts each byte, but [`END_TEXT`] to one token.
fn encode_bytes(
    mut text: &[u8],
    write: &mut dyn FnMut(Piece<'_>) -> Result<(), TrainError>,
) -> Result<(), TrainError> {
    let end = END_TEXT.as_bytes();
    let mut tokens = Vec::with_capacity(PIECE_BYTES);
    let mut bytes = 0;
    while let Some(&first) = text.first() {
        let (token, length) = if text.starts_with(end) { (END, end.len()) } else { (first.into(), 1) };
        tokens.push(token);
        bytes += length;
        text = &text[length..];
        if tokens.len() == PIECE_BYTES || text.is_empty() {
            write(Piece { tokens: &tokens, bytes })?;
            tokens.clear();
            bytes = 0;
        }
    }
    Ok(())
}

/// Converts pieces of a text, several at a time.
fn encode_pieces(
    mut text: &str,
    path: &Path,
    tokenizer: &tokenizers::Tokenizer,
    write: &mut dyn FnMut(Piece<'_>) -> Result<(), TrainError>,
) -> Result<(), TrainError> {
    while !text.is_empty() {
        let batch = batch(&mut text);
        let encodings =
            tokenizer.encode_batch_fast(batch.clone(), false).map_err(|error| failed(path, &error))?;
        for (encoding, piece) in encodings.iter().zip(batch) {
            write(Piece { tokens: encoding.get_ids(), bytes: piece.len() })?;
        }
    }
    Ok(())
}

/// Takes pieces of some [`BATCH_BYTES`] from the beginning of a text.
fn batch<'a>(text: &mut &'a str) -> Vec<&'a str> {
    let (mut pieces, mut bytes) = (vec![], 0);
    while !text.is_empty() && bytes < BATCH_BYTES {
        let (piece, rest) = text.split_at(piece_end(text));
        pieces.push(piece);
        bytes += piece.len();
        *text = rest;
    }
    pieces
}

/// Returns the index at which the first piece of a text ends.
fn piece_end(text: &str) -> usize {
    let bytes = text.as_bytes();
    // The index of the first place from `from` to `to` where one of two bytes makes it an end.
    let first = |from: usize, to: usize, is_end: fn(u8, u8) -> bool| {
        let range = bytes.get(from..to.min(bytes.len()))?;
        range.windows(2).position(|two| is_end(two[0], two[1])).map(|at| from + at + 1)
    };
    if bytes.len() <= PIECE_BYTES {
        return bytes.len();
    }
    first(PIECE_BYTES, LONG_PIECE_BYTES, ends_line)
        .or_else(|| first(LONG_PIECE_BYTES, LONGEST_PIECE_BYTES, ends_word))
        .unwrap_or_else(|| text.floor_char_boundary(LONGEST_PIECE_BYTES))
}

/// Returns whether a line break begins white space after a letter or a digit. Some tokenizers have
/// tokens of punctuation together with line breaks.
fn ends_line(before: u8, after: u8) -> bool {
    before.is_ascii_alphanumeric() && matches!(after, b'\n' | b'\r')
}

/// Returns whether white space begins.
fn ends_word(before: u8, after: u8) -> bool {
    !before.is_ascii_whitespace() && after.is_ascii_whitespace()
}

/// Returns a `tokenizer.json` whose tokens are bytes: a BPE without merges.
fn bytes_json() -> Value {
    let vocabulary: Map<String, Value> =
        (0..=u8::MAX).map(|byte| (letter(byte).to_string(), byte.into())).collect();
    json!({
        "version": "1.0",
        "truncation": null,
        "padding": null,
        "added_tokens": [{
            "id": END, "content": END_TEXT, "single_word": false, "lstrip": false, "rstrip": false,
            "normalized": false, "special": true
        }],
        "normalizer": null,
        "pre_tokenizer": {
            "type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true
        },
        "post_processor": null,
        "decoder": {
            "type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true, "use_regex": true
        },
        "model": {
            "type": "BPE", "dropout": null, "unk_token": null, "continuing_subword_prefix": null,
            "end_of_word_suffix": null, "fuse_unk": false, "byte_fallback": false,
            "ignore_merges": false, "vocab": vocabulary, "merges": []
        }
    })
}

/// Returns the letter that stands for a byte in vocabularies of type `ByteLevel`: printable
/// characters of Latin-1 stand for themselves, and the others for those from U+0100 on.
fn letter(byte: u8) -> char {
    let is_printable = |byte: u8| matches!(byte, b'!'..=b'~' | 0xA1..=0xAC | 0xAE..=0xFF);
    if is_printable(byte) {
        return char::from(byte);
    }
    let before = (0..byte).filter(|&other| !is_printable(other)).count() as u32;
    char::from_u32(0x100 + before).unwrap_or(char::REPLACEMENT_CHARACTER)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_without_white_space_are_split_between_characters() {
        let text = "\u{65e5}".repeat(LONGEST_PIECE_BYTES / 2);
        let end = piece_end(&text);
        assert!(text.is_char_boundary(end));
        assert!((LONGEST_PIECE_BYTES - 3..=LONGEST_PIECE_BYTES).contains(&end), "{end}");
    }

    #[test]
    fn pieces_end_after_letters_and_before_line_breaks() {
        let begin = "a ".repeat(PIECE_BYTES / 2);
        for (rest, wanted) in [("end.\nnext\nand", 9), ("end\r\n\r\nand", 3), ("1\n2\n3", 1)] {
            let text = format!("{begin}{rest}{}", " more".repeat(LONG_PIECE_BYTES));
            assert_eq!(piece_end(&text), begin.len() + wanted, "{rest:?}");
        }
    }
}
