//! Text for several requests at a time: requests join and leave between steps.
//!
//! A step either reads part of one prompt, or appends a token to every text that is being
//! generated. While there are both prompts and texts, steps of the two kinds alternate, so that
//! neither waits for the other. All pages of a request are reserved when it is admitted, so that it
//! never has to give way to another.

mod request;
mod rows;
mod scores;

use std::collections::{BTreeMap, VecDeque};

use tma_kernels::model::sample;
use tma_runtime::prelude::*;

pub use self::request::{End, Event, LogProbabilities, Request, RequestId, Sampling};
use self::rows::{Choices, PromptOnDevice, RowsOnDevice};
use self::scores::Scores;
use crate::activations::Activations;
use crate::cache::{Cache, FreePages, PAGE_ROWS};
use crate::decoder::{Batch, Decoder, Wanted};
use crate::views::first;
use crate::{ModelError, RequestError};

/// The extents of an [`Engine`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EngineOptions {
    /// The greatest number of texts that are generated at the same time.
    pub sequences: usize,
    /// The greatest number of tokens of a sequence: of a prompt and its continuation.
    pub context: usize,
    /// The pages of the cache, each for [`PAGE_ROWS`] tokens of a sequence. `None` stands for as
    /// many as all sequences need at their greatest length.
    pub pages: Option<usize>,
    /// The number of tokens of a prompt that are read in a step.
    pub chunk: usize,
    /// The greatest number of requests that wait.
    pub queue: usize,
    /// Whether each step has a row for each sequence, most of which may be idle, so that the same
    /// kernels run for one text as for many: then a text does not depend on others. Otherwise
    /// rounding may differ, and where two tokens are nearly as probable, so may the choice.
    pub reproducible: bool,
}

impl Default for EngineOptions {
    fn default() -> Self {
        Self { sequences: 16, context: 4096, pages: None, chunk: 1024, queue: 256, reproducible: false }
    }
}

/// The requests and pages of an engine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EngineStatus {
    /// The requests that wait.
    pub waiting: usize,
    /// The requests whose prompt is read, or whose text is generated.
    pub running: usize,
    /// The pages that no request has.
    pub free_pages: usize,
    /// All pages.
    pub pages: usize,
}

/// A request that has pages.
#[derive(Debug)]
struct Sequence {
    id: RequestId,
    request: Request,
    pages: Vec<u32>,
    /// The tokens in the cache.
    length: usize,
    /// The last token, which is not in the cache yet. 0 as long as the prompt is read.
    last: u32,
    generated: usize,
}

/// Generates texts with a decoder.
#[derive(Debug)]
pub struct Engine {
    decoder: Decoder,
    options: EngineOptions,
    stream: Stream,
    cache: Cache,
    activations: Activations,
    rows: RowsOnDevice,
    prompt: PromptOnDevice,
    scores: Scores,
    free: FreePages,
    waiting: VecDeque<(RequestId, Request)>,
    /// The request whose prompt is being read.
    reading: Option<Sequence>,
    /// Whether the last step read a prompt.
    has_read: bool,
    /// The texts that are being generated, in the order of their rows.
    running: Vec<Sequence>,
    /// A step for each number of rows that occurred.
    graphs: BTreeMap<usize, Graph>,
    next: u64,
}

impl Engine {
    /// Allocates the cache and all other memory for a decoder.
    ///
    /// # Errors
    ///
    /// Errors of the device, such as [`OutOfMemory`](tma_runtime::Error::OutOfMemory).
    pub fn new(decoder: Decoder, options: EngineOptions) -> Result<Self, ModelError> {
        let (device, config) = (decoder.device().clone(), decoder.config());
        let options = EngineOptions {
            sequences: options.sequences.max(1),
            context: options.context.clamp(2, config.context.max(2)),
            chunk: options.chunk.max(1),
            ..options
        };
        let of_sequence = options.context.div_ceil(PAGE_ROWS);
        let pages = options.pages.unwrap_or(options.sequences * of_sequence).max(1);
        let rows = options.sequences.next_power_of_two();
        let chunk = options.chunk.min(options.context);
        Ok(Self {
            stream: device.stream()?,
            cache: Cache::new(&device, config, pages)?,
            activations: Activations::new(&device, config, rows.max(chunk), rows)?,
            rows: RowsOnDevice {
                tokens: device.zeros([rows])?,
                lengths: device.zeros([rows])?,
                counts: device.zeros([rows])?,
                table: device.zeros([rows, of_sequence])?,
                choices: Choices::new(&device, rows)?,
                is_stale: true,
                is_reproducible: options.reproducible,
            },
            prompt: PromptOnDevice {
                tokens: device.zeros([chunk])?,
                positions: device.zeros([chunk])?,
                length: device.zeros([1])?,
                count: device.zeros([1])?,
                table: device.zeros([1, of_sequence])?,
                choices: Choices::new(&device, 1)?,
                chosen: device.zeros([1])?,
            },
            scores: Scores::new(&device, rows)?,
            free: FreePages::all(pages),
            waiting: VecDeque::new(),
            reading: None,
            has_read: false,
            running: vec![],
            graphs: BTreeMap::new(),
            next: 0,
            options: EngineOptions { chunk, ..options },
            decoder,
        })
    }

    /// Returns the decoder.
    pub fn decoder(&self) -> &Decoder {
        &self.decoder
    }

    /// Frees everything but the decoder.
    pub fn into_decoder(self) -> Decoder {
        self.decoder
    }

    /// Returns the greatest number of tokens of a sequence.
    pub fn context(&self) -> usize {
        self.options.context.min(self.cache.pages() * PAGE_ROWS)
    }

    /// Returns whether no request is waiting or running.
    pub fn is_idle(&self) -> bool {
        self.waiting.is_empty() && self.reading.is_none() && self.running.is_empty()
    }

    /// Returns how many requests there are, and how many pages they leave.
    pub fn status(&self) -> EngineStatus {
        EngineStatus {
            waiting: self.waiting.len(),
            running: self.running.len() + usize::from(self.reading.is_some()),
            free_pages: self.free.count(),
            pages: self.cache.pages(),
        }
    }

    /// Adds a request to the queue.
    ///
    /// # Errors
    ///
    /// The reason why it is refused.
    pub fn submit(&mut self, request: Request) -> Result<RequestId, RequestError> {
        let most = self.context() - 1;
        let vocabulary = self.decoder.config().vocabulary;
        match request.prompt.len() {
            0 => return Err(RequestError::EmptyPrompt),
            found if found > most => return Err(RequestError::PromptTooLong { found, most }),
            _ => {}
        }
        if let Some(&found) = request.prompt.iter().find(|token| **token as usize >= vocabulary) {
            return Err(RequestError::UnknownToken { found, vocabulary });
        }
        if request.limit == 0 {
            return Err(RequestError::NoTokens);
        }
        request.sampling.check()?;
        if self.waiting.len() >= self.options.queue {
            return Err(RequestError::QueueFull { waiting: self.waiting.len() });
        }
        let id = RequestId(self.next);
        self.next += 1;
        self.waiting.push_back((id, request));
        Ok(id)
    }

    /// Forgets a request. Nothing happens if it has ended.
    pub fn cancel(&mut self, id: RequestId) {
        self.waiting.retain(|(waiting, _)| *waiting != id);
        if let Some(sequence) = self.reading.take_if(|sequence| sequence.id == id) {
            self.free.give_back(sequence.pages);
        }
        if let Some(row) = self.running.iter().position(|sequence| sequence.id == id) {
            self.leave(row);
        }
    }

    /// Runs a step, waits for it, and returns the tokens that it chose. None if the engine is idle
    /// or if a prompt is not read to its end yet.
    ///
    /// # Errors
    ///
    /// Errors of the device, after which the engine cannot continue.
    pub fn step(&mut self) -> Result<Vec<Event>, ModelError> {
        self.admit();
        let is_turn_of_texts = self.has_read && !self.running.is_empty();
        match self.reading.take_if(|_| !is_turn_of_texts) {
            Some(sequence) => {
                self.has_read = true;
                self.read(sequence)
            }
            None => {
                self.has_read = false;
                if self.running.is_empty() { Ok(vec![]) } else { self.extend() }
            }
        }
    }

    /// Begins to read the first prompt that waits, if there is a row and if there are pages for it.
    fn admit(&mut self) {
        if self.reading.is_some() || self.running.len() >= self.options.sequences {
            return;
        }
        let Some((_, request)) = self.waiting.front() else { return };
        let tokens = request.prompt.len().saturating_add(request.limit).min(self.context());
        let Some(pages) = self.free.take(tokens.div_ceil(PAGE_ROWS)) else { return };
        if let Some((id, request)) = self.waiting.pop_front() {
            self.reading = Some(Sequence { id, request, pages, length: 0, last: 0, generated: 0 });
        }
    }

    /// Reads the next part of a prompt.
    fn read(&mut self, mut sequence: Sequence) -> Result<Vec<Event>, ModelError> {
        let from = sequence.length;
        let end = sequence.request.prompt.len().min(from + self.options.chunk);
        let (count, is_last) = (end - from, end == sequence.request.prompt.len());
        let padded = |mut all: Vec<u32>, length: usize| {
            all.resize(length, 0);
            all
        };
        let PromptOnDevice { tokens, positions, length, count: counts, table, choices, chosen } =
            &mut self.prompt;
        tokens.copy_from(&padded(sequence.request.prompt[from..end].to_vec(), tokens.len()))?;
        positions.copy_from(&padded((from as u32..end as u32).collect(), positions.len()))?;
        length.copy_from(&[from as u32])?;
        counts.copy_from(&[count as u32])?;
        table.copy_from(&padded(sequence.pages.clone(), table.len()))?;
        let batch = Batch {
            tokens: first(tokens, count)?,
            positions: first(positions, count)?,
            lengths: length.view(),
            counts: counts.view(),
            table: table.view(),
            is_first: from == 0,
            wanted: if is_last { Wanted::Last } else { Wanted::Nothing },
            is_reproducible: false, // there is no other sequence
        };
        self.decoder.forward(&self.stream, &batch, &mut self.cache, &mut self.activations)?;
        sequence.length = end;
        if !is_last {
            self.reading = Some(sequence);
            return Ok(vec![]);
        }
        let vocabulary = self.decoder.config().vocabulary;
        choices.set([sequence.request.sampling].into_iter(), vocabulary)?;
        // The position of the token before the new one, as in the steps that follow.
        length.copy_from(&[end as u32 - 1])?;
        let options = choices.options(1, length.view())?;
        let logits = self.activations.logits(1, vocabulary)?;
        sample(&self.stream, logits, &mut *chosen, options)?;
        let token = chosen.to_vec()?[0];
        let wanted = [scores::Wanted { token, count: sequence.request.log_probabilities }];
        let scores = self.scores.of(&self.stream, logits, chosen.view(), &wanted)?.pop().flatten();
        self.running.push(sequence);
        self.rows.is_stale = true;
        let row = self.running.len() - 1;
        Ok(vec![self.accept(row, token, scores)])
    }

    /// Appends a token to each text that is being generated.
    fn extend(&mut self) -> Result<Vec<Event>, ModelError> {
        let wanted = if self.options.reproducible { self.options.sequences } else { self.running.len() };
        let rows = wanted.next_power_of_two();
        self.copy_rows()?;
        match self.graphs.get(&rows) {
            Some(graph) => graph.launch(&self.stream)?,
            None => {
                // The first step of this many rows lets workspaces grow, which a capture cannot.
                let Self { decoder, cache, activations, rows: on_device, stream, .. } = self;
                on_device.queue_step(stream, rows, decoder, cache, activations)?;
                let mut outcome = Ok(());
                let graph = stream.capture(|capture| {
                    outcome = on_device.queue_step(capture, rows, decoder, cache, activations);
                    Ok(())
                })?;
                outcome?;
                self.graphs.insert(rows, graph);
            }
        }
        let tokens = self.rows.tokens.to_vec()?;
        let logits = self.activations.logits(rows, self.decoder.config().vocabulary)?;
        let counts = self.running.iter().map(|sequence| sequence.request.log_probabilities);
        let wanted = counts.zip(&tokens).map(|(count, &token)| scores::Wanted { token, count });
        let wanted: Vec<_> = wanted.collect();
        let chosen = first(&self.rows.tokens, rows)?;
        let mut scores = self.scores.of(&self.stream, logits, chosen, &wanted)?;
        for sequence in &mut self.running {
            sequence.length += 1;
        }
        // From the last to the first: a text that ends is replaced by the last one.
        let mut events: Vec<Event> = (0..self.running.len())
            .rev()
            .map(|row| self.accept(row, tokens[row], scores.pop().flatten()))
            .collect();
        events.reverse();
        Ok(events)
    }

    /// Copies what changed since the last step to the device.
    fn copy_rows(&mut self) -> Result<(), ModelError> {
        let RowsOnDevice { tokens, lengths, counts, table, choices, is_stale, .. } = &mut self.rows;
        let padded = |all: &mut dyn Iterator<Item = u32>| {
            let mut all: Vec<u32> = all.collect();
            all.resize(tokens.len(), 0);
            all
        };
        lengths.copy_from(&padded(&mut self.running.iter().map(|sequence| sequence.length as u32)))?;
        if !*is_stale {
            return Ok(());
        }
        counts.copy_from(&padded(&mut self.running.iter().map(|_| 1)))?;
        let last = padded(&mut self.running.iter().map(|sequence| sequence.last));
        let mut pages = vec![0; table.len()];
        let of_sequence = table.shape()[1];
        for (row, sequence) in pages.chunks_mut(of_sequence.max(1)).zip(&self.running) {
            for (page, own) in row.iter_mut().zip(&sequence.pages) {
                *page = *own;
            }
        }
        table.copy_from(&pages)?;
        tokens.copy_from(&last)?;
        let samplings = self.running.iter().map(|sequence| sequence.request.sampling);
        choices.set(samplings, self.decoder.config().vocabulary)?;
        *is_stale = false;
        Ok(())
    }

    /// Appends a chosen token to the text of a row, which may end with it.
    fn accept(&mut self, row: usize, token: u32, log_probabilities: Option<LogProbabilities>) -> Event {
        let context = self.context();
        let sequence = &mut self.running[row];
        sequence.last = token;
        let id = sequence.id;
        if sequence.request.ends.contains(&token) {
            self.leave(row);
            return Event { request: id, token: None, log_probabilities: None, end: Some(End::Token) };
        }
        sequence.generated += 1;
        let end = match () {
            () if sequence.generated >= sequence.request.limit => Some(End::Limit),
            () if sequence.length >= context => Some(End::Context),
            () => None,
        };
        if end.is_some() {
            self.leave(row);
        }
        Event { request: id, token: Some(token), log_probabilities, end }
    }

    /// Frees the row and the pages of a text. The last text takes its row.
    fn leave(&mut self, row: usize) {
        let sequence = self.running.swap_remove(row);
        self.free.give_back(sequence.pages);
        self.rows.is_stale = true;
    }
}
