//! Requests over a connection of their own, which ends when they are dropped.

use std::net::SocketAddr;

use anyhow::{Context, Result, ensure};
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::TcpStream;
use tokio::task::JoinSet;

/// A response of which the body has not been read. The connection is closed with it.
pub(crate) struct Response {
    pub(crate) status: u16,
    body: Incoming,
    /// Bytes after the last event.
    rest: Vec<u8>,
    _connection: JoinSet<()>,
}

impl Response {
    async fn of(address: SocketAddr, request: hyper::Request<Full<Bytes>>) -> Result<Self> {
        let stream = TcpStream::connect(address).await?;
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
        let mut task = JoinSet::new();
        task.spawn(async move {
            // An error of the connection is one of the request or of the body as well.
            let _ = connection.await;
        });
        let (head, body) = sender.send_request(request).await?.into_parts();
        Ok(Self { status: head.status.as_u16(), body, rest: vec![], _connection: task })
    }

    /// Sends a body, and waits for the status.
    pub(crate) async fn post(address: SocketAddr, body: String) -> Result<Self> {
        let request = hyper::Request::post("/v1/completions").header("host", "localhost");
        Self::of(address, request.body(Full::from(body))?).await
    }

    /// Reads the whole body.
    pub(crate) async fn text(self) -> Result<String> {
        Ok(String::from_utf8(self.body.collect().await?.to_bytes().to_vec())?)
    }

    /// Reads the next server-sent event. `None` is the end of the body.
    pub(crate) async fn event(&mut self) -> Result<Option<String>> {
        loop {
            if let Some(end) = self.rest.windows(2).position(|pair| pair == b"\n\n") {
                let rest = self.rest.split_off(end + 2);
                let event = String::from_utf8(std::mem::replace(&mut self.rest, rest))?;
                let data = event.strip_prefix("data: ").context("an event without data")?;
                return Ok(Some(data.trim_end().to_owned()));
            }
            match self.body.frame().await {
                None => {
                    ensure!(self.rest.is_empty(), "the body ends within an event");
                    return Ok(None);
                }
                Some(frame) => self.rest.extend(frame?.into_data().unwrap_or_default()),
            }
        }
    }
}

/// Returns the JSON of a path.
pub(crate) async fn get(address: SocketAddr, path: &str) -> Result<Value> {
    let request = hyper::Request::get(path).header("host", "localhost").body(Full::default())?;
    let response = Response::of(address, request).await?;
    ensure!(response.status == 200, "{path} has the status {}", response.status);
    Ok(serde_json::from_str(&response.text().await?)?)
}
