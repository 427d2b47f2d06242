//! Texts and tokens.

use std::path::Path;

use tokenizers::Tokenizer;

use crate::ModelError;

/// The tokenizer of a model.
#[derive(Clone, Debug)]
pub struct Text {
    tokenizer: Tokenizer,
}

/// Converts the tokens of a text one at a time.
///
/// A character may consist of several tokens, and a token's text may depend on the one before it. The
/// text of a token is therefore the difference between that of the last ones with and without it, and
/// is held back as long as it ends in the middle of a character.
#[derive(Clone, Debug, Default)]
pub struct TextStream {
    /// The tokens since the last one but one whose text was complete.
    tokens: Vec<u32>,
    /// The number of those whose text was returned.
    returned: usize,
}

fn failed(error: tokenizers::Error) -> ModelError {
    ModelError::Tokenizer(error.to_string())
}

impl Text {
    /// Reads `tokenizer.json` of a folder.
    ///
    /// # Errors
    ///
    /// [`ModelError::Tokenizer`].
    pub fn open(folder: &Path) -> Result<Self, ModelError> {
        let path = folder.join("tokenizer.json");
        let tokenizer = Tokenizer::from_file(&path)
            .map_err(|error| ModelError::Tokenizer(format!("cannot read {}: {error}", path.display())))?;
        Ok(Self { tokenizer })
    }

    /// Returns the tokens of a text, with those that its beginning gets.
    ///
    /// # Errors
    ///
    /// [`ModelError::Tokenizer`].
    pub fn encode(&self, text: &str) -> Result<Vec<u32>, ModelError> {
        Ok(self.tokenizer.encode(text, true).map_err(failed)?.get_ids().to_vec())
    }

    /// Returns the text of tokens, without those that are no text.
    ///
    /// # Errors
    ///
    /// [`ModelError::Tokenizer`].
    pub fn decode(&self, tokens: &[u32]) -> Result<String, ModelError> {
        self.tokenizer.decode(tokens, true).map_err(failed)
    }
}

impl TextStream {
    /// Returns the text that a token completes, which may be empty.
    ///
    /// # Errors
    ///
    /// [`ModelError::Tokenizer`].
    pub fn push(&mut self, text: &Text, token: u32) -> Result<String, ModelError> {
        self.tokens.push(token);
        let (before, all) = (text.decode(&self.tokens[..self.returned])?, text.decode(&self.tokens)?);
        // A part of a character is decoded as U+FFFD.
        if all.len() <= before.len() || all.ends_with('\u{FFFD}') {
            return Ok(String::new());
        }
        let new = all.get(before.len()..).unwrap_or("").to_owned();
        self.tokens.drain(..self.returned);
        self.returned = self.tokens.len();
        Ok(new)
    }

    /// Returns the text that is held back, with replacements of what is not a character.
    ///
    /// # Errors
    ///
    /// [`ModelError::Tokenizer`].
    pub fn finish(&self, text: &Text) -> Result<String, ModelError> {
        let (before, all) = (text.decode(&self.tokens[..self.returned])?, text.decode(&self.tokens)?);
        Ok(all.get(before.len()..).unwrap_or("").to_owned())
    }
}
