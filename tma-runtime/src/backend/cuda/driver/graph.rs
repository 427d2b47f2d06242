//! Streams that record, and the graphs that come of it.

use super::{Driver, Status, checked};
use std::ffi::{c_uint, c_void};
use std::ptr;

/// `CU_STREAM_NON_BLOCKING`.
const NON_BLOCKING: c_uint = 1;
/// `CU_STREAM_CAPTURE_MODE_RELAXED`.
const CAPTURE_MODE_RELAXED: c_uint = 2;

/// A stream whose work is recorded in place of being done.
///
/// It is one of its own, so that nothing else gets into the record, and does not wait for the default stream, whose use
/// would else be refused to the whole process meanwhile; calls that a stricter mode refuses, such as loading a kernel, are
/// no danger to it. Source: CUDA C++ Programming Guide, "Stream Capture", "Prohibited and Unhandled Operations".
#[derive(Debug)]
pub(in crate::backend::cuda) struct Recording {
    driver: &'static Driver,
    stream: *mut c_void,
    open: bool,
}

/// A graph, ready to be launched.
#[derive(Debug)]
pub(in crate::backend::cuda) struct ExecutableGraph {
    driver: &'static Driver,
    raw: *mut c_void,
}

// SAFETY: the driver's handles may be used from any thread, one at a time.
unsafe impl Send for ExecutableGraph {}

impl Recording {
    /// Begins to record, in the current context.
    pub(in crate::backend::cuda) fn begin(driver: &'static Driver) -> Result<Self, Status> {
        let mut stream = ptr::null_mut();
        // SAFETY: the driver writes the stream's handle.
        checked(unsafe { (driver.stream_create)(&mut stream, NON_BLOCKING) })?;
        let mut recording = Self { driver, stream, open: false };
        // SAFETY: the stream is alive.
        checked(unsafe { (driver.stream_begin_capture)(stream, CAPTURE_MODE_RELAXED) })?;
        recording.open = true;
        Ok(recording)
    }

    pub(in crate::backend::cuda) fn stream(&self) -> *mut c_void {
        self.stream
    }

    /// Ends the record and makes a graph of it, in the current context.
    pub(in crate::backend::cuda) fn finish(mut self) -> Result<ExecutableGraph, Status> {
        let (driver, graph) = (self.driver, self.end()?);
        let mut raw = ptr::null_mut();
        // SAFETY: the graph is alive until it is destroyed, which what is made of it does not need.
        unsafe {
            let made = checked((driver.graph_instantiate)(&mut raw, graph, 0));
            (driver.graph_destroy)(graph);
            made?;
        }
        Ok(ExecutableGraph { driver, raw })
    }

    fn end(&mut self) -> Result<*mut c_void, Status> {
        self.open = false;
        let mut graph = ptr::null_mut();
        // SAFETY: the stream is alive and records.
        checked(unsafe { (self.driver.stream_end_capture)(self.stream, &mut graph) })?;
        Ok(graph)
    }
}

/// What was recorded and not finished is thrown away; a failure has nobody to be told to.
impl Drop for Recording {
    fn drop(&mut self) {
        if self.open
            && let Ok(graph) = self.end()
        {
            // SAFETY: nobody else has the graph.
            unsafe { (self.driver.graph_destroy)(graph) };
        }
        // SAFETY: the stream is alive, and nothing was ever run on it.
        unsafe { (self.driver.stream_destroy)(self.stream) };
    }
}

impl ExecutableGraph {
    /// Queues the graph.
    ///
    /// # Safety
    ///
    /// The stream is alive, as is the memory that the graph's kernels use until they have run.
    pub(in crate::backend::cuda) unsafe fn launch(&self, stream: *mut c_void) -> Result<(), Status> {
        // SAFETY: as the caller promises.
        checked(unsafe { (self.driver.graph_launch)(self.raw, stream) })
    }
}

/// A graph that still runs is freed by the driver when it has. Source: CUDA driver API, `cuGraphExecDestroy`.
impl Drop for ExecutableGraph {
    fn drop(&mut self) {
        // SAFETY: nobody else has the handle.
        unsafe { (self.driver.graph_exec_destroy)(self.raw) };
    }
}
