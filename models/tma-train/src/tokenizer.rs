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
/// The least number of bytes of a piece, which is a line's end away from its last one.
const PIECE_BYTES: usize = 1 << 16;

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

    /// Returns the number of tokens: the greatest one and 1.
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
    /// Tokenizers convert pieces of 64 KiB or more by themselves. A piece ends before a single line
    /// break, where nearly all tokenizers begin a token in any case.
    ///
    /// # Errors
    ///
    /// [`TrainError::NotUtf8`] and [`TrainError::Tokenizer`], and those of `write`.
    pub fn encode(
        &self,
        text: &[u8],
        write: &mut dyn FnMut(&[u32]) -> Result<(), TrainError>,
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
    write: &mut dyn FnMut(&[u32]) -> Result<(), TrainError>,
) -> Result<(), TrainError> {
    let end = END_TEXT.as_bytes();
    let mut tokens = Vec::with_capacity(PIECE_BYTES);
    while let Some(&first) = text.first() {
        if text.starts_with(end) {
            tokens.push(END);
            text = &text[end.len()..];
        } else {
            tokens.push(u32::from(first));
            text = &text[1..];
        }
        if tokens.len() == PIECE_BYTES || text.is_empty() {
            write(&tokens)?;
            tokens.clear();
        }
    }
    Ok(())
}

/// Converts pieces of a text, several at a time.
fn encode_pieces(
    text: &str,
    path: &Path,
    tokenizer: &tokenizers::Tokenizer,
    write: &mut dyn FnMut(&[u32]) -> Result<(), TrainError>,
) -> Result<(), TrainError> {
    let pieces = pieces(text);
    for batch in pieces.chunks((BATCH_BYTES / PIECE_BYTES).max(1)) {
        let encodings =
            tokenizer.encode_batch_fast(batch.to_vec(), false).map_err(|error| failed(path, &error))?;
        for encoding in encodings {
            write(encoding.get_ids())?;
        }
    }
    Ok(())
}

/// Splits a text before line breaks that are between two characters which are no white space.
fn pieces(mut text: &str) -> Vec<&str> {
    let mut pieces = vec![];
    while let Some(end) = piece_end(text.as_bytes()) {
        let (piece, rest) = text.split_at(end);
        pieces.push(piece);
        text = rest;
    }
    if !text.is_empty() {
        pieces.push(text);
    }
    pieces
}

/// Returns the index of the first place to split after [`PIECE_BYTES`].
fn piece_end(text: &[u8]) -> Option<usize> {
    let is_single = |three: &[u8]| match three {
        [before, b'\n', after] => !before.is_ascii_whitespace() && !after.is_ascii_whitespace(),
        _ => false,
    };
    let from = text.get(PIECE_BYTES..)?;
    from.windows(3).position(is_single).map(|at| PIECE_BYTES + at + 1)
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
