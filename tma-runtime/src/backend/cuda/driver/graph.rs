//! Stream capture, and the graphs that it produces.

use super::stream::{NON_BLOCKING, OwnedStream};
use super::{Driver, Status, checked};
use std::ffi::{c_uint, c_void};
use std::ptr;

/// `CU_STREAM_CAPTURE_MODE_RELAXED`.
const CAPTURE_MODE_RELAXED: c_uint = 2;

/// A stream whose work is recorded rather than run.
///
/// The stream is a separate one, so that nothing else is recorded. It does not wait for the default
/// stream, which would otherwise be unusable for the whole process during the recording. The
/// capture mode is the relaxed one: calls that a stricter mode rejects, such as loading a kernel,
/// remain possible. Source: CUDA C++ Programming Guide, "Stream Capture", "Prohibited and Unhandled
/// Operations".
#[derive(Debug)]
pub(in crate::backend::cuda) struct Recording {
    driver: &'static Driver,
    stream: OwnedStream,
    open: bool,
}

/// A graph that is ready to be launched.
#[derive(Debug)]
pub(in crate::backend::cuda) struct ExecutableGraph {
    driver: &'static Driver,
    raw: *mut c_void,
}

// SAFETY: the driver's handles may be used from any thread, one at a time.
unsafe impl Send for ExecutableGraph {}

impl Recording {
    /// Begins recording in the current context.
    pub(in crate::backend::cuda) fn begin(driver: &'static Driver) -> Result<Self, Status> {
        let stream = OwnedStream::new(driver, NON_BLOCKING)?;
        // SAFETY: the stream is alive.
        checked(unsafe { (driver.stream_begin_capture)(stream.raw(), CAPTURE_MODE_RELAXED) })?;
        Ok(Self { driver, stream, open: true })
    }

    pub(in crate::backend::cuda) fn stream(&self) -> *mut c_void {
        self.stream.raw()
    }

    /// Ends the recording and makes a graph from it, in the current context.
    pub(in crate::backend::cuda) fn finish(mut self) -> Result<ExecutableGraph, Status> {
        let (driver, graph) = (self.driver, self.end()?);
        let mut raw = ptr::null_mut();
        // SAFETY: the graph is alive until it is destroyed, and the executable graph does not need
        // it.
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
        // SAFETY: the stream is alive and recording.
        checked(unsafe { (self.driver.stream_end_capture)(self.stream.raw(), &mut graph) })?;
        Ok(graph)
    }
}

/// Discards an unfinished recording. A failure here cannot be reported.
impl Drop for Recording {
    fn drop(&mut self) {
        if self.open
            && let Ok(graph) = self.end()
        {
            // SAFETY: the graph is not shared.
            unsafe { (self.driver.graph_destroy)(graph) };
        }
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

/// The driver frees a running graph once it has completed. Source: CUDA driver API,
/// `cuGraphExecDestroy`.
impl Drop for ExecutableGraph {
    fn drop(&mut self) {
        // SAFETY: the handle is not shared.
        unsafe { (self.driver.graph_exec_destroy)(self.raw) };
    }
}
/// Permits this thread to load modules while another library captures a stream, until it is
/// dropped. Captures of PyTorch forbid that to all threads, since what a module's load does is no
/// part of the graph. Source: CUDA driver API, `cuThreadExchangeStreamCaptureMode`.
#[derive(Debug)]
#[must_use = "captures forbid loads again when this is dropped"]
pub(in crate::backend::cuda) struct RelaxedCaptures {
    driver: &'static Driver,
    before: c_uint,
}

impl RelaxedCaptures {
    pub(in crate::backend::cuda) fn new(driver: &'static Driver) -> Self {
        let mut mode = CAPTURE_MODE_RELAXED;
        // SAFETY: the driver replaces the mode by the thread's. It refuses no valid mode.
        unsafe { (driver.thread_exchange_capture_mode)(&mut mode) };
        Self { driver, before: mode }
    }
}

impl Drop for RelaxedCaptures {
    fn drop(&mut self) {
        // SAFETY: as above.
        unsafe { (self.driver.thread_exchange_capture_mode)(&mut self.before) };
    }
}
