//! Files of JSON in a model's folder.

use std::fs;
use std::path::PathBuf;

use serde::de::DeserializeOwned;

use crate::ModelError;

/// Reads a file.
///
/// # Errors
///
/// [`ModelError::File`] and [`ModelError::Json`].
pub(crate) fn read_json<T: DeserializeOwned>(path: PathBuf) -> Result<T, ModelError> {
    match fs::read_to_string(&path) {
        Ok(text) => serde_json::from_str(&text).map_err(|source| ModelError::Json { path, source }),
        Err(source) => Err(ModelError::File { path, source }),
    }
}
