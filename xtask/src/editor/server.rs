//! A language server in a separate process, and the part of its protocol that the checks need.
//!
//! Source: Language Server Protocol 3.17.

use std::{
    io::{BufRead, BufReader, Write},
    path::Path,
    process::{Child, ChildStdin, Command, Stdio},
    sync::mpsc::{Receiver, channel},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

/// The time limit for loading the package and building its dependencies.
const LOADING: Duration = Duration::from_secs(900);

/// The time limit for a response.
const PATIENCE: Duration = Duration::from_secs(180);

/// "The content was changed" and "the server gave up": the request must be repeated.
const RETRY_CODES: [i64; 2] = [-32801, -32802];

/// A running language server, which ends when this value is dropped.
pub(super) struct Server {
    child: Child,
    input: ChildStdin,
    messages: Receiver<Value>,
    requests: u64,
    /// The server's last status.
    status: Value,
}

impl Server {
    /// Starts `program` on the package in `folder`, and waits until the package is loaded.
    pub(super) fn start(program: &Path, folder: &Path) -> Result<Self> {
        let mut command = Command::new(program);
        command.current_dir(folder).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().with_context(|| format!("cannot start {}", program.display()))?;
        let input = child.stdin.take().context("the server has no input")?;
        let output = child.stdout.take().context("the server has no output")?;
        let (send, messages) = channel();
        thread::spawn(move || {
            let mut output = BufReader::new(output);
            while let Ok(message) = receive(&mut output) {
                if send.send(message).is_err() {
                    break;
                }
            }
        });
        let mut server = Self { child, input, messages, requests: 0, status: Value::Null };
        server.initialize(folder)?;
        Ok(server)
    }

    fn initialize(&mut self, folder: &Path) -> Result<()> {
        let capabilities = json!({
            "textDocument": { "diagnostic": {}, "hover": { "contentFormat": ["plaintext"] } },
            // Lets rust-analyzer report when it has loaded everything.
            "experimental": { "serverStatusNotification": true },
        });
        let options = json!({
            // Errors from rustc are tested elsewhere. Only those that the editor finds itself count
            // here.
            "checkOnSave": false,
            "cachePriming": { "enable": false },
            "cargo": { "buildScripts": { "enable": true } },
            "procMacro": { "enable": true, "attributes": { "enable": true } },
        });
        let parameters = json!({
            "processId": std::process::id(),
            "rootUri": uri(folder),
            "capabilities": capabilities,
            "initializationOptions": options,
        });
        self.request("initialize", &parameters)?;
        self.notify("initialized", &json!({}))?;
        let deadline = Instant::now() + LOADING;
        while self.status["quiescent"] != true {
            self.next(deadline).context("rust-analyzer did not load the package")?;
        }
        if self.status["health"] != "ok" {
            bail!("rust-analyzer reports a problem: {}", self.status["message"]);
        }
        Ok(())
    }

    /// Makes a request and returns its result.
    pub(super) fn request(&mut self, method: &str, parameters: &Value) -> Result<Value> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            self.requests += 1;
            let id = self.requests;
            self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": parameters }))?;
            let response = loop {
                let message = self.next(deadline).with_context(|| format!("no response to {method}"))?;
                if message["id"] == id && message.get("method").is_none() {
                    break message;
                }
            };
            match response["error"]["code"].as_i64() {
                None => return Ok(response["result"].clone()),
                Some(code) if RETRY_CODES.contains(&code) && Instant::now() < deadline => {}
                Some(_) => bail!("{method}: {}", response["error"]),
            }
        }
    }

    /// Sends a notification, to which the server does not respond.
    pub(super) fn notify(&mut self, method: &str, parameters: &Value) -> Result<()> {
        self.send(&json!({ "jsonrpc": "2.0", "method": method, "params": parameters }))
    }

    fn send(&mut self, message: &Value) -> Result<()> {
        let text = message.to_string();
        write!(self.input, "Content-Length: {}\r\n\r\n{text}", text.len())?;
        self.input.flush().context("the server has exited")
    }

    /// Returns the next message, after responding to requests of the server.
    fn next(&mut self, deadline: Instant) -> Result<Value> {
        let left = deadline.saturating_duration_since(Instant::now());
        let message =
            self.messages.recv_timeout(left).context("the server does not respond, or has exited")?;
        if message["method"] == "experimental/serverStatus" {
            self.status = message["params"].clone();
        }
        if message.get("method").is_some() && message.get("id").is_some() {
            // Any request, such as for permission to show progress. A null response changes
            // nothing.
            self.send(&json!({ "jsonrpc": "2.0", "id": message["id"], "result": null }))?;
        }
        Ok(message)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // The server may have exited already.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// Reads one message: header lines, an empty line, and JSON of the length that a header states.
fn receive(output: &mut impl BufRead) -> Result<Value> {
    let mut length = 0;
    loop {
        let mut line = String::new();
        if output.read_line(&mut line)? == 0 {
            bail!("the server has exited");
        }
        match line.trim().split_once(':') {
            Some((name, value)) if name.eq_ignore_ascii_case("content-length") => {
                length = value.trim().parse()?;
            }
            Some(_) => {}
            None => break,
        }
    }
    let mut text = vec![0; length];
    output.read_exact(&mut text)?;
    Ok(serde_json::from_slice(&text)?)
}

/// Formats a path as a URI.
pub(super) fn uri(path: &Path) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/-_.~".contains(&byte);
    let escaped = path.as_os_str().as_encoded_bytes().iter().map(|&byte| match plain(byte) {
        true => char::from(byte).to_string(),
        false => format!("%{byte:02X}"),
    });
    format!("file://{}", escaped.collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_as_long_as_its_header_says() {
        let mut text: &[u8] =
            b"Content-Type: x\r\ncontent-length: 8\r\n\r\n{\"a\": 1}Content-Length: 2\r\n\r\n[]";
        assert_eq!(receive(&mut text).unwrap(), json!({ "a": 1 }));
        assert_eq!(receive(&mut text).unwrap(), json!([]));
        assert!(receive(&mut text).is_err());
    }

    #[test]
    fn a_path_is_escaped() {
        assert_eq!(uri(Path::new("/a b/c.rs")), "file:///a%20b/c.rs");
    }
}
