//! Kernels loaded into a context, each compiled once, with their cached descriptors.

use super::descriptor::DescriptorCache;
use super::driver::{self, Driver, Function, Module, RelaxedCaptures, Status};
use super::failure::Listener;
use super::print::Printer;
use crate::backend::properties::Properties;
use crate::error::{DriverStatus, Error};
use crate::map::Descriptor;
use crate::map::options::MapSource;
use crate::spec::{KernelSpec, MapSpec};
use ptx_probe::print::Progress;
use std::collections::HashMap;
use std::ffi::{CStr, CString};
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tma_model::limits::cluster_blocks;

/// Dynamic shared memory that a function may use without opting in, in bytes. Source: CUDA C++
/// Programming Guide, "Compute Capability 9.0", shared memory.
const DEFAULT_SHARED_BYTES: u32 = 48 * 1024;

/// The kernels of a context.
#[derive(Debug, Default)]
pub(super) struct Kernels {
    loaded: Vec<Kernel>,
    /// Maps the address of a specification to its index in `loaded`. The compiler may keep several
    /// copies of one specification, so several addresses can lead to one kernel.
    by_spec: HashMap<usize, usize>,
}

/// A kernel in a context.
#[derive(Debug)]
pub(super) struct Kernel {
    pub(super) function: Function,
    pub(super) launches: Launches,
    spec: &'static KernelSpec,
    /// One per parameter. Those of parameters other than tensor maps stay empty.
    descriptors: Vec<DescriptorCache>,
    /// The blocks that run at the same time, by the cluster's size: what the driver has counted.
    pub(super) resident: Vec<([u32; 3], u32)>,
    /// Reads which assertion failed, if the kernel records that.
    listener: Option<Listener>,
    /// Has what the kernel printed, if it prints without a call.
    printer: Option<Printer>,
    /// Keeps the function loaded.
    _module: Module,
}

/// Whether a kernel was launched since the device was last known to have run everything.
#[derive(Clone, Debug, Default)]
pub(super) struct Launches(Arc<AtomicBool>);

impl Launches {
    pub(super) fn note(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl Kernels {
    /// Returns the kernel of a specification, and loads it at its first launch. If that fails
    /// because a kernel has stopped, `reported` returns the error of one that reported its waits.
    pub(super) fn get(
        &mut self,
        driver: &'static Driver,
        properties: &Properties,
        spec: &'static KernelSpec,
        reported: impl FnOnce() -> Option<Error>,
    ) -> Result<&mut Kernel, Error> {
        let address = ptr::from_ref(spec).addr();
        let index = match self.by_spec.get(&address) {
            Some(&index) => index,
            None => {
                let index = match self.loaded.iter().position(|kernel| kernel.spec == spec) {
                    Some(index) => index,
                    None => {
                        let kernel = Kernel::load(driver, properties, spec)
                            .map_err(|error| self.fault_or(error, reported))?;
                        self.loaded.push(kernel);
                        self.loaded.len() - 1
                    }
                };
                self.by_spec.insert(address, index);
                index
            }
        };
        Ok(&mut self.loaded[index])
    }

    /// Returns the error of a kernel that has stopped: the one it recorded, or else an error with
    /// all kernels that may have stopped.
    pub(super) fn fault(&self, status: DriverStatus) -> Error {
        let failure =
            self.loaded.iter().find_map(|kernel| kernel.listener.as_ref()?.recorded_failure(kernel.spec));
        failure.unwrap_or_else(|| Error::KernelFault { kernels: self.launched(), status })
    }

    /// Returns the names of the kernels that may still be running, or have stopped.
    fn launched(&self) -> Vec<&'static str> {
        let launched = self.loaded.iter().filter(|kernel| kernel.launches.0.load(Ordering::Relaxed));
        launched.map(|kernel| kernel.spec.name).collect()
    }

    /// Replaces the error of a load that failed only because a kernel has stopped.
    fn fault_or(&self, error: Error, reported: impl FnOnce() -> Option<Error>) -> Error {
        match error {
            Error::Jit { status, .. } if status.is_fault() => {
                reported().unwrap_or_else(|| self.fault(status))
            }
            error => error,
        }
    }

    /// Records that everything launched has run, and prints what it wrote.
    pub(super) fn all_have_run(&mut self) {
        for kernel in &self.loaded {
            kernel.launches.0.store(false, Ordering::Relaxed);
        }
        self.show_printed(Progress::Ended);
    }

    /// Prints what kernels have written since the last call.
    pub(super) fn show_printed(&mut self, progress: Progress) {
        for kernel in &mut self.loaded {
            if let Some(printer) = &mut kernel.printer {
                printer.show(kernel.spec.name, progress);
            }
        }
    }

    /// Returns whether a kernel whose output this prints may still be running.
    pub(super) fn may_print(&self) -> bool {
        let mut kernels = self.loaded.iter();
        kernels.any(|kernel| kernel.printer.is_some() && kernel.launches.0.load(Ordering::Relaxed))
    }
}

impl Kernel {
    fn load(
        driver: &'static Driver,
        properties: &Properties,
        spec: &'static KernelSpec,
    ) -> Result<Self, Error> {
        properties.accept(spec)?;
        let kernel = spec.name;
        let _relaxed = RelaxedCaptures::new(driver);
        let (printer, ptx) = Printer::attach(driver, spec).unzip();
        let (module, function) = compile(driver, spec, ptx.as_deref().unwrap_or(spec.ptx))?;
        opt_in(driver, function, spec)?;
        let listener = Listener::attach(driver, &module, spec)
            .map_err(|code| Error::Launch { kernel, status: driver.status(code) })?;
        if listener.is_some() {
            // Streams of other libraries do not wait for the copy of the record's address. SAFETY:
            // the default stream is alive.
            unsafe { driver.synchronize(ptr::null_mut()) }
                .map_err(|code| Error::Launch { kernel, status: driver.status(code) })?;
        }
        let descriptors = spec.params.iter().map(|_| DescriptorCache::default()).collect();
        let launches = Launches::default();
        let resident = vec![];
        Ok(Self { function, launches, spec, descriptors, resident, listener, printer, _module: module })
    }

    /// Returns the descriptor of a tensor for the parameter with this index, encoded if it is not
    /// cached.
    pub(super) fn descriptor(
        &mut self,
        driver: &Driver,
        index: usize,
        tensor: &'static str,
        spec: &MapSpec,
        source: &MapSource,
    ) -> Result<&Descriptor, Error> {
        self.descriptors[index].get(driver, tensor, spec, source)
    }
}

/// Opts a function in to the shared memory and the clusters that its kernel needs.
pub(super) fn opt_in(
    driver: &'static Driver,
    function: Function,
    spec: &'static KernelSpec,
) -> Result<(), Error> {
    let refused = |code| Error::Launch { kernel: spec.name, status: driver.status(code) };
    if spec.shared_bytes > DEFAULT_SHARED_BYTES {
        driver.allow_shared_bytes(function, spec.shared_bytes).map_err(refused)?;
    }
    if spec.cluster.most_blocks() > cluster_blocks(false) {
        driver.allow_nonportable_clusters(function).map_err(refused)?;
    }
    Ok(())
}

/// Has the driver compile the PTX, and looks up the kernel's function.
fn compile(
    driver: &'static Driver,
    spec: &'static KernelSpec,
    ptx: &str,
) -> Result<(Module, Function), Error> {
    let missing = || Error::NoEntry { kernel: spec.name, entry: spec.entry };
    let text = CString::new(ptx).map_err(|_| missing())?;
    let entry = CString::new(spec.entry).map_err(|_| missing())?;
    let module = Module::load(driver, &text).map_err(|code| refusal(driver, spec, &text, code))?;
    // A lazily loading driver may compile only now.
    let function = module.function(&entry).map_err(|code| match code {
        driver::NOT_FOUND => missing(),
        code => refusal(driver, spec, &text, code),
    })?;
    Ok((module, function))
}

/// Returns the error for PTX that the driver rejected. The PTX is compiled again to get the log:
/// only a load accepts log buffers, and a lazily loading driver compiles only after the load.
#[cold]
pub(super) fn refusal(driver: &Driver, spec: &KernelSpec, text: &CStr, code: Status) -> Error {
    let (retried, log) = driver.jit_log(text);
    let status = if retried == driver::SUCCESS { code } else { retried };
    Error::Jit { kernel: spec.name, status: driver.status(status), log }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::DeadlockReport;
    use std::time::Duration;

    /// The code of the error of a load with this status, while a kernel has reported its waits.
    fn failed_load(code: i32) -> &'static str {
        let status = DriverStatus { code, name: String::new(), description: String::new() };
        let error = Error::Jit { kernel: "next", status, log: String::new() };
        let reported = || {
            let report = DeadlockReport::new(vec!["warp 0 waits".to_owned()], 1);
            Some(Error::Deadlock { kernel: "stopped", limit: Duration::from_secs(1), report })
        };
        Kernels::default().fault_or(error, reported).code()
    }

    #[test]
    fn a_load_that_fails_after_a_kernel_has_stopped_returns_its_report() {
        assert_eq!(failed_load(719), "TMA0632");
        assert_eq!(failed_load(218), "TMA0606");
    }
}
