//! The actions of a client.

use std::net::SocketAddr;
use std::ops::AddAssign;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use fastrand::Rng;
use serde_json::{Value, json};

use crate::client::Response;
use crate::requests::{Answer, Known, refused};

/// The answers that clients received.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counts {
    /// Whole answers.
    pub whole: u64,
    /// Streams that were read to their end.
    pub streams: u64,
    /// Requests that clients left.
    pub left: u64,
    /// Requests that must be refused.
    pub refused: u64,
    /// Requests that found the queue full.
    pub full: u64,
    /// The greatest time of an answer.
    pub longest: Duration,
}

impl AddAssign for Counts {
    fn add_assign(&mut self, other: Self) {
        self.whole += other.whole;
        self.streams += other.streams;
        self.left += other.left;
        self.refused += other.refused;
        self.full += other.full;
        self.longest = self.longest.max(other.longest);
    }
}

/// The least number of requests of a client.
const LEAST_REQUESTS: usize = 3;

/// A client, which sends one request after the other.
pub(crate) struct Client {
    pub(crate) address: SocketAddr,
    pub(crate) known: Arc<[Known]>,
    /// The greatest number of tokens of a sequence.
    pub(crate) context: usize,
    pub(crate) random: Rng,
}

impl Client {
    /// Sends requests until the deadline, and a few on any machine.
    pub(crate) async fn run(mut self, deadline: Instant) -> Result<Counts> {
        let mut counts = Counts::default();
        let mut sent = 0;
        while sent < LEAST_REQUESTS || Instant::now() < deadline {
            sent += 1;
            match self.random.u8(0..10) {
                0..=2 => self.whole(&mut counts).await?,
                3..=5 => self.stream(&mut counts).await?,
                6 => self.leave_stream(&mut counts).await?,
                7 => self.leave_silently(&mut counts).await?,
                _ => self.refused(&mut counts).await?,
            }
        }
        Ok(counts)
    }

    /// Sends a request, and returns its response unless the queue is full.
    async fn send(&mut self, is_stream: bool, counts: &mut Counts) -> Result<Option<(Response, usize)>> {
        let index = self.random.usize(0..self.known.len());
        let mut body = self.known[index].body.clone();
        body["stream"] = json!(is_stream);
        let response = Response::post(self.address, body.to_string()).await?;
        match response.status {
            200 => Ok(Some((response, index))),
            429 => {
                counts.full += 1;
                response.text().await?;
                tokio::time::sleep(Duration::from_millis(self.random.u64(1..50))).await;
                Ok(None)
            }
            status => anyhow::bail!("{body}: status {status}, {}", response.text().await?),
        }
    }

    async fn whole(&mut self, counts: &mut Counts) -> Result<()> {
        let start = Instant::now();
        let Some((response, index)) = self.send(false, counts).await? else { return Ok(()) };
        self.known[index].compare(&Answer::parse(&response.text().await?)?)?;
        counts.whole += 1;
        counts.longest = counts.longest.max(start.elapsed());
        Ok(())
    }

    async fn stream(&mut self, counts: &mut Counts) -> Result<()> {
        let start = Instant::now();
        let Some((mut response, index)) = self.send(true, counts).await? else { return Ok(()) };
        let known = &self.known[index];
        let mut found = Answer { usage: known.answer.usage.clone(), ..Answer::default() };
        loop {
            let event = response.event().await?.context("a stream without an end")?;
            if event == "[DONE]" {
                break;
            }
            ensure!(found.reason.is_null(), "a piece after finish_reason: {event}");
            found.reason = piece(&event, &mut found.text, Some(&mut found.logprobs))?;
        }
        ensure!(response.event().await?.is_none(), "an event after [DONE]");
        known.compare(&found)?;
        counts.streams += 1;
        counts.longest = counts.longest.max(start.elapsed());
        Ok(())
    }

    /// Leaves after some pieces, which must be the beginning of the text.
    async fn leave_stream(&mut self, counts: &mut Counts) -> Result<()> {
        let Some((mut response, index)) = self.send(true, counts).await? else { return Ok(()) };
        let mut text = String::new();
        for _ in 0..self.random.u8(0..4) {
            match response.event().await? {
                Some(event) if event != "[DONE]" => piece(&event, &mut text, None)?,
                _ => break,
            };
        }
        let known = &self.known[index];
        ensure!(known.answer.text.starts_with(&text), "{}: {text:?}, {:?}", known.body, known.answer);
        counts.left += 1;
        Ok(())
    }

    /// Leaves before there is an answer, or just after.
    async fn leave_silently(&mut self, counts: &mut Counts) -> Result<()> {
        let time = Duration::from_millis(self.random.u64(0..200));
        if let Ok(sent) = tokio::time::timeout(time, self.send(false, counts)).await {
            sent?;
        }
        counts.left += 1;
        Ok(())
    }

    async fn refused(&mut self, counts: &mut Counts) -> Result<()> {
        let (body, wanted) = refused(&mut self.random, self.context);
        let response = Response::post(self.address, body).await?;
        let (status, text) = (response.status, response.text().await?);
        // Prompts are checked where they are queued, if there is room.
        if status == 429 {
            counts.full += 1;
            return Ok(());
        }
        ensure!(status == wanted, "status {status} instead of {wanted}: {text}");
        let error = serde_json::from_str::<Value>(&text)?;
        ensure!(error["error"]["message"].is_string(), "no message: {text}");
        counts.refused += 1;
        Ok(())
    }
}

/// Appends the text of a piece, and its log-probabilities. Returns its `finish_reason`.
fn piece(event: &str, text: &mut String, logprobs: Option<&mut Value>) -> Result<Value> {
    let mut event: Value = serde_json::from_str(event)?;
    let choice = &mut event["choices"][0];
    text.push_str(choice["text"].as_str().with_context(|| format!("a piece without text: {choice}"))?);
    let more = choice["logprobs"].take();
    match (logprobs, more) {
        (Some(all @ Value::Null), more) => *all = more,
        (Some(Value::Object(all)), Value::Object(more)) => {
            for (name, more) in more {
                let all = all.get_mut(&name).and_then(Value::as_array_mut);
                let (Some(all), Value::Array(more)) = (all, more) else { anyhow::bail!("{name}: {event}") };
                all.extend(more);
            }
        }
        (None, _) => {}
        (Some(_), more) => anyhow::bail!("log-probabilities of some pieces only: {more}"),
    }
    Ok(choice["finish_reason"].take())
}
