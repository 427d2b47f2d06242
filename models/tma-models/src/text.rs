//! Texts and tokens.

use std::path::Path;

use tokenizers::{PostProcessor, Tokenizer, TruncationParams};

use crate::ModelError;

/// The tokenizer of a model.
#[derive(Clone, Debug)]
pub struct Text {
    tokenizer: Tokenizer,
}

/// Converts the tokens of a text one at a time.
///
/// A character may consist of several tokens, and a token's text may depend on the one before it.
/// The text of a token is therefore the difference between that of the last ones with and without
/// it, and is held back as long as it ends in the middle of a character.
#[derive(Clone, Debug)]
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
        let mut tokenizer = Tokenizer::from_file(&path)
            .map_err(|error| ModelError::Tokenizer(format!("cannot read {}: {error}", path.display())))?;
        // Files may have those of training, which would cut or fill prompts.
        tokenizer.with_padding(None);
        tokenizer.with_truncation(None).map_err(failed)?;
        Ok(Self { tokenizer })
    }

    /// Lets [`encode`](Self::encode) cut texts off, so that they have up to so many tokens with
    /// those that their ends get.
    ///
    /// # Errors
    ///
    /// [`ModelError::Tokenizer`], also if no token of a text would be left.
    pub fn cut_at(mut self, most: usize) -> Result<Self, ModelError> {
        let ends = self.tokenizer.get_post_processor().map_or(0, |ends| ends.added_tokens(false));
        if most <= ends {
            return Err(ModelError::Tokenizer(format!("{most} tokens are no more than a text's ends get")));
        }
        let truncation = TruncationParams { max_length: most, ..Default::default() };
        self.tokenizer.with_truncation(Some(truncation)).map_err(failed)?;
        Ok(self)
    }

    /// Returns the tokens of a text, with those that its beginning gets.
    ///
    /// # Errors
    ///
    /// [`ModelError::Tokenizer`].
    pub fn encode(&self, text: &str) -> Result<Vec<u32>, ModelError> {
        Ok(self.tokenizer.encode(text, true).map_err(failed)?.get_ids().to_vec())
    }

    /// Returns the text that a token adds to others. A token that is no text of its own, such as a
    /// part of a character, has its name in the vocabulary.
    ///
    /// # Errors
    ///
    /// [`ModelError::Tokenizer`].
    pub fn of_token(&self, token: u32) -> Result<String, ModelError> {
        // Some tokenizers drop the space before a first token, which the second one has.
        let added = rest(&self.decode(&[token])?, &self.decode(&[token, token])?);
        if added.is_empty() || added.contains(char::REPLACEMENT_CHARACTER) {
            return Ok(self.tokenizer.id_to_token(token).unwrap_or(added));
        }
        Ok(added)
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

/// Tokens of which a character consists at most; with more, they are no text.
const LONGEST_CHARACTER: usize = 8;

/// Tokens before a text on which that of its first token may depend.
const TOKENS_BEFORE: usize = 8;

impl TextStream {
    /// Returns a stream of the text after a prompt. Some tokenizers drop the space before a first
    /// token, which must not happen there.
    pub fn after(prompt: &[u32]) -> Self {
        let tokens = prompt[prompt.len().saturating_sub(TOKENS_BEFORE)..].to_vec();
        Self { returned: tokens.len(), tokens }
    }

    /// Returns the text that a token completes, which may be empty.
    ///
    /// # Errors
    ///
    /// [`ModelError::Tokenizer`].
    pub fn push(&mut self, text: &Text, token: u32) -> Result<String, ModelError> {
        self.tokens.push(token);
        let all = text.decode(&self.tokens)?;
        // A part of a character is decoded as U+FFFD.
        if all.ends_with(char::REPLACEMENT_CHARACTER) && self.tokens.len() - self.returned < LONGEST_CHARACTER
        {
            return Ok(String::new());
        }
        let new = rest(&text.decode(&self.tokens[..self.returned])?, &all);
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
        Ok(rest(&text.decode(&self.tokens[..self.returned])?, &text.decode(&self.tokens)?))
    }
}

/// Returns what a text has beyond the beginning that it shares with another one.
fn rest(before: &str, all: &str) -> String {
    let shared = before.chars().zip(all.chars()).take_while(|(x, y)| x == y).count();
    all.chars().skip(shared).collect()
}
