//! The thread that owns the engine: it takes requests, runs steps, and sends tokens to clients.

use std::collections::HashMap;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use tma_models::engine::{Engine, EngineStatus, Event, Request, RequestId};
use tma_models::{ModelError, RequestError};
use tokio::sync::{mpsc, oneshot};

/// The tokens of a request, each with the end of the text if that is reached. An error is the last
/// thing that is received.
pub(super) type Tokens = mpsc::Receiver<Result<Event, String>>;

/// A request with the channel of its response.
struct Submission {
    request: Request,
    accepted: oneshot::Sender<Result<Tokens, RequestError>>,
}

/// The way to the thread.
#[derive(Clone)]
pub(super) struct Worker {
    submissions: SyncSender<Submission>,
    /// The submissions that wait for the next step at most.
    most: usize,
    status: Arc<Mutex<EngineStatus>>,
}

impl Worker {
    /// Starts the thread. It ends when the last worker has been dropped, or when the device fails.
    /// Up to `most` submissions wait for the next step.
    pub(super) fn start(engine: Engine, most: usize) -> Self {
        let most = most.max(1);
        let (submissions, receiver) = sync_channel(most);
        let status = Arc::new(Mutex::new(engine.status()));
        let shown = status.clone();
        thread::spawn(move || {
            let mut clients = HashMap::new();
            if let Err(error) = work(engine, &receiver, &mut clients, &shown) {
                for client in clients.into_values() {
                    // A client that left does not want to know.
                    let _ = client.try_send(Err(error.to_string()));
                }
            }
        });
        Self { submissions, most, status }
    }

    /// Returns the requests and pages of the engine after its last step.
    pub(super) fn status(&self) -> EngineStatus {
        *self.status.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Submits a request. `None` if the device has failed.
    pub(super) async fn submit(&self, request: Request) -> Option<Result<Tokens, RequestError>> {
        let (accepted, response) = oneshot::channel();
        match self.submissions.try_send(Submission { request, accepted }) {
            Ok(()) => {}
            Err(TrySendError::Full(_)) => return Some(Err(RequestError::QueueFull { waiting: self.most })),
            Err(TrySendError::Disconnected(_)) => return None,
        }
        response.await.ok()
    }
}

type Clients = HashMap<RequestId, mpsc::Sender<Result<Event, String>>>;

fn work(
    mut engine: Engine,
    submissions: &Receiver<Submission>,
    clients: &mut Clients,
    status: &Mutex<EngineStatus>,
) -> Result<(), ModelError> {
    loop {
        *status.lock().unwrap_or_else(PoisonError::into_inner) = engine.status();
        if engine.is_idle() {
            match submissions.recv() {
                Ok(submission) => submit(&mut engine, submission, clients),
                Err(_) => return Ok(()),
            }
        }
        while let Ok(submission) = submissions.try_recv() {
            submit(&mut engine, submission, clients);
        }
        clients.retain(|id, client| {
            let has_left = client.is_closed();
            if has_left {
                engine.cancel(*id);
            }
            !has_left
        });
        for event in engine.step()? {
            let Some(client) = clients.get(&event.request) else { continue };
            // The channel has room for all tokens, so this fails only if the client has left, which
            // is noticed before the next step.
            let (id, is_last) = (event.request, event.end.is_some());
            let _ = client.try_send(Ok(event));
            if is_last {
                clients.remove(&id);
            }
        }
    }
}

fn submit(engine: &mut Engine, Submission { request, accepted }: Submission, clients: &mut Clients) {
    // A token each, and the end; a sequence has no room for more.
    let most = request.limit.min(engine.context()) + 1;
    let response = engine.submit(request).map(|id| {
        let (sender, receiver) = mpsc::channel(most);
        clients.insert(id, sender);
        receiver
    });
    // If nobody waits for it any more, the receiver is dropped with it.
    let _ = accepted.send(response);
}
