//! Many clients of the server at the same time.
//!
//! First, each of some random requests is answered alone. Then all clients send such requests, as
//! streams or not, leave in the middle of texts, and send requests that must be refused. Answers
//! must be those of the requests alone, and in the end no request may have a page of the cache.

mod client;
mod clients;
mod requests;
mod resident;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use serde_json::Value;
use tma_generate::load::Model;
use tma_generate::server;
use tma_models::engine::EngineOptions;
use tokio::net::TcpListener;
use tokio::task::JoinSet;

use self::client::get;
use self::clients::{Client, Counts};
use self::requests::{Known, Vocabulary};
pub use self::resident::Resident;

/// The extents of a load test.
#[derive(Clone, Copy, Debug)]
pub struct LoadOptions {
    /// Clients that send requests at the same time.
    pub clients: usize,
    /// The time after which clients send no new requests.
    pub duration: Duration,
    /// The number of different requests.
    pub requests: usize,
    /// The greatest number of tokens of a text that a request asks for.
    pub most_tokens: usize,
    /// The seed of all random choices.
    pub seed: u64,
    /// The extents of the server's engine.
    pub engine: EngineOptions,
}

/// The outcome of a load test.
#[derive(Debug)]
pub struct Report {
    /// The answers that clients received.
    pub counts: Counts,
    /// The memory of the process during the test.
    pub resident: Resident,
    /// The time of the test.
    pub time: Duration,
    /// The pages of the cache, and those that are free in the end.
    pub pages: [u64; 2],
}

/// The time that the server has to notice that the last clients have left.
const PATIENCE: Duration = Duration::from_secs(120);

/// Serves a model to many clients.
///
/// # Errors
///
/// An answer that differs from that of the same request alone, a status other than expected, pages
/// that are not free in the end, and errors of the device and of the network.
pub async fn run(model: Model, options: LoadOptions) -> Result<Report> {
    let vocabulary = Vocabulary { tokens: model.decoder.config().vocabulary as u32 };
    let router = server::router(model, options.engine)?;
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let mut servers = JoinSet::new();
    servers.spawn(async move { axum::serve(listener, router).await });

    let mut random = fastrand::Rng::with_seed(options.seed);
    let mut known = vec![];
    for _ in 0..options.requests.max(1) {
        known.push(Known::answered(address, vocabulary.request(&mut random, &options)).await?);
    }
    let known: Arc<[Known]> = known.into();

    let start = Instant::now();
    let mut resident = Resident::default();
    let mut clients = JoinSet::new();
    for _ in 0..options.clients.max(1) {
        let known = known.clone();
        let client = Client { address, known, context: options.engine.context, random: random.fork() };
        clients.spawn(client.run(start + options.duration));
    }
    let mut counts = Counts::default();
    let mut clock = tokio::time::interval(Duration::from_millis(100));
    loop {
        tokio::select! {
            _ = clock.tick() => resident.measure(),
            ended = clients.join_next() => match ended {
                None => break,
                Some(of_client) => counts += of_client??,
            },
        }
    }
    let pages = free_pages(address).await?;
    let time = start.elapsed();
    // The server still answers.
    known[0].compare(&Known::answered(address, known[0].body.clone()).await?.answer)?;
    resident.measure();
    Ok(Report { counts, resident, time, pages })
}

/// Waits until no request is left. Returns the number of pages, and of those that are free.
async fn free_pages(address: SocketAddr) -> Result<[u64; 2]> {
    let start = Instant::now();
    loop {
        let status = get(address, "/status").await?;
        let number = |name: &str| status.get(name).and_then(Value::as_u64).unwrap_or(u64::MAX);
        if number("waiting") == 0 && number("running") == 0 {
            let [all, free] = [number("pages"), number("free_pages")];
            ensure!(all == free, "of {all} pages, {free} are free when no request is left");
            return Ok([all, free]);
        }
        ensure!(start.elapsed() < PATIENCE, "clients have left, but not their requests: {status}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
