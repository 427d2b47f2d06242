//! The CUDA driver, for graphs of whatever is queued on a stream: the runtime's own graphs hold
//! only its own launches, and libraries are measured against them.
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
/// Characters of a place on the bus, as `0000:00:00.0`, with the last zero and some room.
const BUS_ID_BYTES: usize = 32;

type Handle = *mut c_void;
type BeginCapture = unsafe extern "C" fn(Handle, c_int) -> c_int;
type EndCapture = unsafe extern "C" fn(Handle, *mut Handle) -> c_int;
type Instantiate = unsafe extern "C" fn(*mut Handle, Handle, c_ulonglong) -> c_int;
type LaunchGraph = unsafe extern "C" fn(Handle, Handle) -> c_int;
type Destroy = unsafe extern "C" fn(Handle) -> c_int;
type GetDevice = unsafe extern "C" fn(*mut c_int, c_int) -> c_int;
type GetBusId = unsafe extern "C" fn(*mut c_char, c_int, c_int) -> c_int;

/// The driver's functions that are used.
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
    /// Loads it. A [`Device`] of the driver has been opened before.
    ///
    /// # Errors
    ///
    /// That there is none.
    pub fn load() -> anyhow::Result<Self> {
        let library = open_first("libcuda.so", &["libcuda.so.1".into()])?;
        // SAFETY: each symbol has the type that `cuda.h` gives.
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

    /// The place on the bus of the GPU with this ordinal.
    ///
    /// # Errors
    ///
    /// The driver's.
    pub fn bus_id(&self, ordinal: u32) -> anyhow::Result<CString> {
        let mut device = 0;
        let mut text = [0_u8; BUS_ID_BYTES];
        // SAFETY: writes a number.
        succeeded("cuDeviceGet", unsafe { (self.device)(&mut device, c_int::try_from(ordinal)?) })?;
        // SAFETY: writes as many bytes as are passed, at most.
        let status = unsafe { (self.bus_id)(text.as_mut_ptr().cast(), BUS_ID_BYTES as c_int, device) };
        succeeded("cuDeviceGetPCIBusId", status)?;
        let text: Vec<u8> = text.into_iter().take_while(|&byte| byte != 0).collect();
        CString::new(text).context("no place on the bus")
    }

    /// Records what `work` queues on the stream, and runs none of it.
    ///
    /// # Errors
    ///
    /// Those of `work`, which may not wait for the stream; the driver's.
    pub fn record<'a>(
        &'a self,
        stream: &'a Stream,
        work: impl FnOnce() -> anyhow::Result<()>,
    ) -> anyhow::Result<Recorded<'a>> {
        // SAFETY: the stream lives, and so does each handle that is written.
        succeeded("cuStreamBeginCapture", unsafe { (self.begin)(stream.raw(), RELAXED) })?;
        let worked = work();
        let mut recorded =
            Recorded { driver: self, stream, graph: ptr::null_mut(), instance: ptr::null_mut() };
        // SAFETY: as above. The capture ends also when the work failed.
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
/// It names memory, but does not keep it: what it works on must live when it is launched.
pub struct Recorded<'a> {
    driver: &'a Driver,
    stream: &'a Stream,
    graph: Handle,
    instance: Handle,
}

impl Recorded<'_> {
    /// Queues all of it.
    ///
    /// # Errors
    ///
    /// The driver's.
    ///
    /// # Safety
    ///
    /// The memory that was named when it was recorded lives until it has run.
    pub unsafe fn launch(&self) -> anyhow::Result<()> {
        // SAFETY: as the caller promises; graph and stream live.
        let status = unsafe { (self.driver.launch)(self.instance, self.stream.raw()) };
        succeeded("cuGraphLaunch", status)
    }
}

impl Drop for Recorded<'_> {
    fn drop(&mut self) {
        // SAFETY: each was made by this value; null stands for none.
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
