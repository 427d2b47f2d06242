//! The CUDA driver, for graphs of any work that is queued on a stream. The runtime's own graphs
//! hold only its own launches, and are measured against libraries.
//!
//! Source of types and values: NVIDIA, "CUDA Driver API", and `cuda.h`.

use std::ffi::{CString, c_char, c_int, c_ulonglong, c_void};
use std::ptr;

use anyhow::{Context, ensure};
use libloading::Library;
use tma_runtime::prelude::*;

use super::open_first;

/// `CU_STREAM_CAPTURE_MODE_RELAXED`.
const RELAXED: c_int = 2;
/// The number of bytes for a PCI address, such as `0000:00:00.0` and a zero, with some room.
const BUS_ID_BYTES: usize = 32;

type Handle = *mut c_void;
type BeginCapture = unsafe extern "C" fn(Handle, c_int) -> c_int;
type EndCapture = unsafe extern "C" fn(Handle, *mut Handle) -> c_int;
type Instantiate = unsafe extern "C" fn(*mut Handle, Handle, c_ulonglong) -> c_int;
type LaunchGraph = unsafe extern "C" fn(Handle, Handle) -> c_int;
type Destroy = unsafe extern "C" fn(Handle) -> c_int;
type GetDevice = unsafe extern "C" fn(*mut c_int, c_int) -> c_int;
type GetBusId = unsafe extern "C" fn(*mut c_char, c_int, c_int) -> c_int;

/// The functions of the driver that are used.
pub struct Driver {
    begin: BeginCapture,
    end: EndCapture,
    instantiate: Instantiate,
    launch: LaunchGraph,
    destroy_graph: Destroy,
    destroy_instance: Destroy,
    device: GetDevice,
    bus_id: GetBusId,
    /// Unloaded last.
    _library: Library,
}

impl Driver {
    /// Loads the driver. A [`Device`] of it must have been opened before.
    ///
    /// # Errors
    ///
    /// A driver that is not found.
    pub fn load() -> anyhow::Result<Self> {
        let library = open_first("libcuda.so", &["libcuda.so.1".into()])?;
        // SAFETY: each symbol has its type in `cuda.h`.
        unsafe {
            Ok(Self {
                begin: *library.get::<BeginCapture>(c"cuStreamBeginCapture_v2")?,
                end: *library.get::<EndCapture>(c"cuStreamEndCapture")?,
                instantiate: *library.get::<Instantiate>(c"cuGraphInstantiateWithFlags")?,
                launch: *library.get::<LaunchGraph>(c"cuGraphLaunch")?,
                destroy_graph: *library.get::<Destroy>(c"cuGraphDestroy")?,
                destroy_instance: *library.get::<Destroy>(c"cuGraphExecDestroy")?,
                device: *library.get::<GetDevice>(c"cuDeviceGet")?,
                bus_id: *library.get::<GetBusId>(c"cuDeviceGetPCIBusId")?,
                _library: library,
            })
        }
    }

    /// Returns the PCI address of the GPU with this ordinal.
    ///
    /// # Errors
    ///
    /// Errors of the driver.
    pub fn bus_id(&self, ordinal: u32) -> anyhow::Result<CString> {
        let mut device = 0;
        let mut text = [0_u8; BUS_ID_BYTES];
        // SAFETY: the call writes a number.
        succeeded("cuDeviceGet", unsafe { (self.device)(&mut device, c_int::try_from(ordinal)?) })?;
        // SAFETY: the call writes at most the number of bytes that is passed.
        let status = unsafe { (self.bus_id)(text.as_mut_ptr().cast(), BUS_ID_BYTES as c_int, device) };
        succeeded("cuDeviceGetPCIBusId", status)?;
        let text: Vec<u8> = text.into_iter().take_while(|&byte| byte != 0).collect();
        CString::new(text).context("no place on the bus")
    }

    /// Records the work that `work` queues on the stream, without running it.
    ///
    /// # Errors
    ///
    /// Errors of `work`, which must not wait for the stream, and of the driver.
    pub fn record<'a>(
        &'a self,
        stream: &'a Stream,
        work: impl FnOnce() -> anyhow::Result<()>,
    ) -> anyhow::Result<Recorded<'a>> {
        // SAFETY: the stream lives, and so does the variable for each handle that is written.
        succeeded("cuStreamBeginCapture", unsafe { (self.begin)(stream.raw(), RELAXED) })?;
        let worked = work();
        let mut recorded =
            Recorded { driver: self, stream, graph: ptr::null_mut(), instance: ptr::null_mut() };
        // SAFETY: as above. The capture must end even if `work` failed.
        let ended = unsafe { (self.end)(stream.raw(), &mut recorded.graph) };
        worked?;
        succeeded("cuStreamEndCapture", ended)?;
        // SAFETY: as above.
        let status = unsafe { (self.instantiate)(&mut recorded.instance, recorded.graph, 0) };
        succeeded("cuGraphInstantiateWithFlags", status)?;
        Ok(recorded)
    }
}

/// Work that was recorded on a stream.
///
/// The work refers to memory, but does not keep it: that memory must be alive at each launch.
pub struct Recorded<'a> {
    driver: &'a Driver,
    stream: &'a Stream,
    graph: Handle,
    instance: Handle,
}

impl Recorded<'_> {
    /// Queues all of the work.
    ///
    /// # Errors
    ///
    /// Errors of the driver.
    ///
    /// # Safety
    ///
    /// The memory that was used when the work was recorded must live until it has run.
    pub unsafe fn launch(&self) -> anyhow::Result<()> {
        // SAFETY: the caller keeps the memory alive; graph and stream live.
        let status = unsafe { (self.driver.launch)(self.instance, self.stream.raw()) };
        succeeded("cuGraphLaunch", status)
    }
}

impl Drop for Recorded<'_> {
    fn drop(&mut self) {
        // SAFETY: both were made by this value. Null is none.
        unsafe {
            if !self.instance.is_null() {
                (self.driver.destroy_instance)(self.instance);
            }
            if !self.graph.is_null() {
                (self.driver.destroy_graph)(self.graph);
            }
        }
    }
}

fn succeeded(call: &str, status: c_int) -> anyhow::Result<()> {
    ensure!(status == 0, "{call} failed with status {status}");
    Ok(())
}
