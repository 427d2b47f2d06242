//! Recorded launches, and the graphs made from them.

use super::context::Context;
use super::driver::{ExecutableGraph, Recording};
use super::kernel::Launches;
use super::launch::Prepared;
use super::stream::Stream;
use crate::binding::Argument;
use crate::binding::shape::Shape;
use crate::error::Error;
use crate::spec::KernelSpec;
use std::cell::RefCell;
use std::sync::Arc;

/// A recording of launches in progress.
#[derive(Debug)]
pub(crate) struct Capture {
    context: &'static Context,
    recording: Recording,
    /// One entry per launch: the launch flag of its kernel.
    launches: RefCell<Vec<Launches>>,
}

/// A graph in its context.
#[derive(Debug)]
pub(crate) struct Graph {
    context: &'static Context,
    graph: ExecutableGraph,
    launches: Vec<Launches>,
}

impl Context {
    pub(crate) fn capture(&'static self) -> Result<Capture, Error> {
        let _current = self.make_current()?;
        let recording =
            Recording::begin(self.driver).map_err(|code| self.failure("begin a capture", code))?;
        Ok(Capture { context: self, recording, launches: RefCell::default() })
    }
}

impl Capture {
    /// Records a launch. The driver copies the arguments, including descriptors, into the
    /// recording.
    pub(crate) fn launch(
        &self,
        spec: &'static KernelSpec,
        shape: Shape,
        args: &[impl AsRef<Argument>],
    ) -> Result<(), Error> {
        // SAFETY: the recording's stream is alive.
        unsafe {
            self.context.queue(self.recording.stream(), spec, shape, args, |launches| {
                self.launches.borrow_mut().push(launches.clone());
            })
        }
    }

    /// Records launches that are prepared.
    pub(crate) fn launch_prepared(&self, launches: &[Arc<Prepared>]) -> Result<(), Error> {
        let _current = self.context.make_current()?;
        launches.iter().try_for_each(|launch| {
            // SAFETY: the recording's stream is alive.
            unsafe { launch.queue(self.recording.stream())? };
            self.launches.borrow_mut().push(launch.launches().clone());
            Ok(())
        })
    }

    pub(crate) fn finish(self) -> Result<Graph, Error> {
        let Self { context, recording, launches } = self;
        let _current = context.make_current()?;
        let graph =
            recording.finish().map_err(|code| context.failure("create a graph from a capture", code))?;
        Ok(Graph { context, graph, launches: launches.into_inner() })
    }
}

impl Graph {
    pub(crate) fn launch(&self, stream: &Stream) -> Result<(), Error> {
        let _current = self.context.make_current()?;
        // SAFETY: the stream is borrowed. The owner of this graph keeps the memory, and freeing the
        // memory waits for all queued work.
        let launch = || unsafe { self.graph.launch(stream.raw()) };
        self.context
            .in_order(stream.raw(), launch)
            .map_err(|code| self.context.failure("launch a graph", code))?;
        self.launches.iter().for_each(Launches::note);
        Ok(())
    }
}
