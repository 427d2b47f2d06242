//! An editor session on the package's one source file.

use std::path::Path;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::{
    fixture,
    server::{Server, uri},
};

/// An open file. The text that is typed is not saved.
pub(super) struct Session {
    server: Server,
    uri: String,
    text: String,
    version: u64,
}

impl Session {
    /// Starts the server on the package in `folder`, and opens its file.
    pub(super) fn open(program: &Path, folder: &Path) -> Result<Self> {
        let mut server = Server::start(program, folder)?;
        let uri = uri(&fixture::file(folder));
        let text = fixture::SOURCE.to_owned();
        let item = json!({ "uri": uri, "languageId": "rust", "version": 0, "text": text });
        server.notify("textDocument/didOpen", &json!({ "textDocument": item }))?;
        Ok(Self { server, uri, text, version: 0 })
    }

    /// Undoes all typing.
    pub(super) fn restore(&mut self) -> Result<()> {
        self.replace(fixture::SOURCE.to_owned())
    }

    /// Types `typed` in place of `// HERE place`, and returns the byte offset of its end.
    pub(super) fn type_at(&mut self, definition: &str, typed: &str) -> Result<usize> {
        let mark = format!("// HERE {definition}\n");
        let split = fixture::SOURCE.split_once(&mark);
        let (before, after) = split.with_context(|| format!("the fixture has no marker `{definition}`"))?;
        self.replace(format!("{before}{typed}\n{after}"))?;
        Ok(before.len() + typed.len())
    }

    fn replace(&mut self, text: String) -> Result<()> {
        self.version += 1;
        self.text = text;
        let document = json!({ "uri": self.uri, "version": self.version });
        let changes = json!([{ "text": self.text }]);
        self.server
            .notify("textDocument/didChange", &json!({ "textDocument": document, "contentChanges": changes }))
    }

    /// Returns the diagnostics, each with its line, from 1, and message.
    pub(super) fn diagnostics(&mut self) -> Result<Vec<String>> {
        let parameters = json!({ "textDocument": { "uri": self.uri } });
        let report = self.server.request("textDocument/diagnostic", &parameters)?;
        let items = report["items"].as_array().context("the response has no list of diagnostics")?;
        let line = |item: &Value| item["range"]["start"]["line"].as_u64().unwrap_or_default() + 1;
        let message = |item: &Value| item["message"].as_str().unwrap_or_default().to_owned();
        Ok(items.iter().map(|item| format!("{}: {}", line(item), message(item))).collect())
    }

    /// Returns the methods and fields that completion offers after `typed`.
    pub(super) fn members(&mut self, definition: &str, typed: &str) -> Result<Vec<String>> {
        let end = self.type_at(definition, typed)?;
        let parameters = self.position(end);
        let response = self.server.request("textDocument/completion", &parameters)?;
        let items = response["items"].as_array().or(response.as_array()).cloned().unwrap_or_default();
        // Source: the protocol's `CompletionItemKind`: 2 is a method, 5 a field.
        let members = items.iter().filter(|item| item["kind"] == 2 || item["kind"] == 5);
        let names = members.filter_map(|item| item["label"].as_str());
        // The label of a method is `name(…)`.
        Ok(names.map(|label| label.split('(').next().unwrap_or(label).to_owned()).collect())
    }

    /// Returns the hover text of the word at the start of the first occurrence of `text`.
    pub(super) fn hover(&mut self, text: &str) -> Result<String> {
        let parameters = self.position(self.find(text)?);
        let response = self.server.request("textDocument/hover", &parameters)?;
        Ok(response["contents"]["value"].as_str().unwrap_or_default().to_owned())
    }

    /// Returns the definition of the word at the start of the first occurrence of `text`: file and
    /// line, from 1.
    pub(super) fn definition(&mut self, text: &str) -> Result<(String, u64)> {
        let parameters = self.position(self.find(text)?);
        let response = self.server.request("textDocument/definition", &parameters)?;
        let definition = response.get(0).unwrap_or(&response);
        let file = definition["uri"].as_str().with_context(|| format!("`{text}` has no definition"))?;
        let line = definition["range"]["start"]["line"].as_u64().context("the definition has no line")?;
        Ok((file.to_owned(), line + 1))
    }

    /// Returns the line, from 1, of the first occurrence of `text`.
    pub(super) fn line(&self, text: &str) -> Result<u64> {
        let before = &self.text[..self.find(text)?];
        Ok(before.matches('\n').count() as u64 + 1)
    }

    fn find(&self, text: &str) -> Result<usize> {
        self.text.find(text).with_context(|| format!("`{text}` is not in the file"))
    }

    /// Formats a position in the file for the protocol. The file is ASCII, so a byte is a column.
    fn position(&self, at: usize) -> Value {
        let before = &self.text[..at];
        let line = before.matches('\n').count();
        let column = before.len() - before.rfind('\n').map_or(0, |end| end + 1);
        json!({ "textDocument": { "uri": self.uri }, "position": { "line": line, "character": column } })
    }
}
