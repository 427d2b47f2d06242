//! Traces of launches: when each warp waited, for what, and when it issued copies and
//! multiplications, by the clock of the GPU.
//!
//! A traced launch runs another text: the kernel's PTX with probes, which [`ptx_probe`] adds. So
//! any kernel can be traced, including those of dependencies, and other launches are unaffected.
//! [`With::trace`](crate::launch::With::trace) asks for the trace of a launch, and [`take_traces`]
//! returns it. Without a change of the program, the variable `TMA_TRACE` names a kernel, whose
//! first launch is traced. The chapter on profiling of the book has an example.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufWriter, Write as _};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use crate::backend::Backend;
use crate::backend::properties::Properties;
use crate::binding::shape::{LaunchOptions, Shape, volume};
use crate::device::Device;
use crate::device::stream::{self, Stream};
use crate::error::{Error, TraceError};
use crate::spec::KernelSpec;
use crate::tensor::DeviceTensor;

use ptx_probe::ProbeError;
use ptx_probe::ring::Layout;
pub use ptx_probe::summary::{Summary, Total};
pub use ptx_probe::{
    Awaited, Direction, Interval, Row, Site, SiteKind, Source, SpanEdge, Trace, Warp, perfetto,
};

/// The traces that nobody has taken.
static TRACES: Mutex<Vec<Trace>> = Mutex::new(Vec::new());

/// Returns the traces of the launches that asked for one, in the order of the launches, and forgets
/// them.
pub fn take_traces() -> Vec<Trace> {
    std::mem::take(&mut *traces())
}

fn traces() -> MutexGuard<'static, Vec<Trace>> {
    TRACES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The launch that the environment asks to trace.
#[derive(Debug)]
pub(crate) struct Wanted {
    /// `TMA_TRACE`: the kernel, with or without the name of an instance.
    kernel: String,
    /// `TMA_TRACE_LAUNCH`: which of its launches, from 1.
    launch: u64,
    /// `TMA_TRACE_FILE`: the file to write.
    file: PathBuf,
    /// The launches of the kernel so far.
    launches: AtomicU64,
}

impl Wanted {
    fn read(variable: impl Fn(&str) -> Option<OsString>) -> Option<Self> {
        let kernel = variable("TMA_TRACE")?.into_string().ok().filter(|kernel| !kernel.is_empty())?;
        let given = variable("TMA_TRACE_LAUNCH");
        let number =
            given.as_ref().and_then(|number| number.to_str()?.parse().ok()).filter(|&number| number > 0);
        if let (Some(given), None) = (&given, number) {
            let wanted = "a number from 1 is wanted, so the first launch is traced";
            let _nobody_reads = writeln!(io::stderr(), "TMA_TRACE_LAUNCH={}: {wanted}", given.display());
        }
        let file = variable("TMA_TRACE_FILE").map(PathBuf::from);
        let file = file.unwrap_or_else(|| format!("{}.trace.json", kernel.replace("::", "-")).into());
        Some(Self { kernel, launch: number.unwrap_or(1), file, launches: AtomicU64::new(0) })
    }

    /// Returns whether it names the kernel `name`.
    fn names(&self, name: &str) -> bool {
        name.split("::").next() == Some(&self.kernel) || name == self.kernel
    }

    /// Returns whether the launch of the kernel `name` that is about to happen is the wanted one.
    fn is_next(&self, name: &str) -> bool {
        self.names(name) && self.launches.fetch_add(1, Ordering::Relaxed) + 1 == self.launch
    }
}

/// The reason why a launch is traced.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Request {
    /// The program asked for it.
    Program,
    /// The environment did.
    Environment(&'static Wanted),
}

/// Returns the launch that the environment asks to trace.
fn wanted() -> Option<&'static Wanted> {
    static WANTED: OnceLock<Option<Wanted>> = OnceLock::new();
    WANTED.get_or_init(|| Wanted::read(|name| std::env::var_os(name))).as_ref()
}

/// Returns whether a launch is to be traced, and for whom.
pub(crate) fn requested(spec: &KernelSpec, options: LaunchOptions) -> Option<Request> {
    if options.trace {
        return Some(Request::Program);
    }
    let wanted = wanted()?;
    wanted.is_next(spec.name).then_some(Request::Environment(wanted))
}

/// Runs a launch with probes, by `run`, on a stream of its own. It waits for earlier work of the
/// device, and until the kernel has run.
///
/// # Errors
///
/// [`Error::Trace`], and the errors of `run`, of allocations and of copies.
pub(crate) fn launch(
    device: &Device,
    spec: &'static KernelSpec,
    shape: Shape,
    request: Request,
    run: impl FnOnce(&Stream, &'static KernelSpec) -> Result<(), Error>,
) -> Result<(), Error> {
    // A kernel without PTX, or for another device, is that error.
    let properties = properties(device);
    properties.accept(spec)?;
    let refused = |why| Error::Trace { kernel: spec.name, why };
    let blocks = shape.grid.iter().map(|&extent| u64::from(extent)).product();
    let layout =
        Layout::of(blocks, volume(spec.threads)).map_err(|why| refused(TraceError::Ptx(why.to_string())))?;
    let buffer = device.zeros::<u8, 1>([layout.bytes() as usize])?;
    let mut probed = ptx_probe::instrument(spec.ptx, spec.entry, spec.shared_bytes, buffer.as_ptr(), layout)
        .map_err(|why| refused(TraceError::Ptx(why.to_string())))?;
    // SAFETY: besides what `spec` promises, the kernel writes to the buffer.
    let spec_with_probes = unsafe { spec.rewritten(std::mem::take(&mut probed.ptx), probed.shared_bytes) };
    if let Some(why) = properties.lack_of_room(spec, spec_with_probes, "probes") {
        return Err(refused(TraceError::SharedMemory(why)));
    }

    let stream = device.stream()?;
    let _scratch = warm_up(device, &stream, spec_with_probes, shape)?;
    let begin = stream.record()?;
    run(&stream, spec_with_probes)?;
    let end = stream.record()?;
    device.synchronize()?;
    let mut trace = Trace::read(spec.name, probed, shape.grid, layout, &buffer.to_vec()?);
    if let Backend::Cuda(_) = device.backend() {
        trace.launch = Some(f64::from(begin.elapsed_ms(&end)?) * 1e6);
    }
    match request {
        Request::Program => traces().push(trace),
        Request::Environment(wanted) => report(wanted, &trace).map_err(|error| {
            refused(TraceError::File { file: wanted.file.clone(), why: error.to_string() })
        })?,
    }
    Ok(())
}

fn properties(device: &Device) -> &Properties {
    match device.backend() {
        Backend::Cuda(context) => context.properties(),
        Backend::Sim(context) => context.properties(),
    }
}

/// Returns the kernel as a traced launch runs it, to count the blocks that run at the same time;
/// `None` if neither the program nor the environment asks for traces of it. It must not be
/// launched: its probes have no buffer.
///
/// # Errors
///
/// Those of a traced launch.
pub(crate) fn counted(
    device: &Device,
    spec: &'static KernelSpec,
    options: LaunchOptions,
) -> Result<Option<&'static KernelSpec>, Error> {
    static COUNTED: Mutex<Vec<(&KernelSpec, &KernelSpec)>> = Mutex::new(Vec::new());
    if !(options.trace || wanted().is_some_and(|wanted| wanted.names(spec.name))) {
        return Ok(None);
    }
    properties(device).accept(spec)?;
    let mut counted = COUNTED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, with_probes)) = counted.iter().find(|(known, _)| std::ptr::eq(*known, spec)) {
        return Ok(Some(with_probes));
    }
    let refused = |why: ProbeError| Error::Trace { kernel: spec.name, why: TraceError::Ptx(why.to_string()) };
    let layout = Layout::of(1, volume(spec.threads)).map_err(refused)?;
    let probed =
        ptx_probe::instrument(spec.ptx, spec.entry, spec.shared_bytes, 0, layout).map_err(refused)?;
    // SAFETY: it is not launched.
    let with_probes = unsafe { spec.rewritten(probed.ptx, probed.shared_bytes) };
    counted.push((spec, with_probes));
    Ok(Some(with_probes))
}

/// The memory that a stream sets to zero before a traced launch, and how often. An H200 needs some
/// 0.3 ms for all, by its memory's bandwidth (NVIDIA, "H200 Datasheet").
const SCRATCH_BYTES: usize = 64 << 20;
const FILLS: usize = 16;

/// Loads the kernel, waits for earlier work of the device, and gives the stream some work, on the
/// memory that is returned. While it lasts, the host queues the launch. The time between events
/// around the launch is then that of the kernel, without that of the host and the driver.
fn warm_up(
    device: &Device,
    stream: &Stream,
    spec: &'static KernelSpec,
    shape: Shape,
) -> Result<Option<DeviceTensor<u8, 1>>, Error> {
    let (Backend::Cuda(context), stream::Backend::Cuda(queue)) = (device.backend(), stream.backend()) else {
        return Ok(None);
    };
    // Asking for this loads the kernel.
    context.resident_blocks(spec, shape.cluster)?;
    // The trace is possible without: only its time is longer.
    let scratch = device.zeros::<u8, 1>([SCRATCH_BYTES]).ok();
    device.synchronize()?;
    if let Some(scratch) = &scratch {
        for _ in 0..FILLS {
            // SAFETY: the caller keeps the memory until the launch has run.
            unsafe { queue.fill(scratch.as_ptr(), 0, SCRATCH_BYTES as u64)? };
        }
    }
    Ok(scratch)
}

/// Writes the file that the environment asks for, and a summary to standard error.
fn report(wanted: &Wanted, trace: &Trace) -> io::Result<()> {
    let mut file = BufWriter::new(File::create(&wanted.file)?);
    perfetto::write(&mut file, trace)?;
    file.flush()?;
    let shown = perfetto::shown_blocks(trace);
    let (file, summary) = (wanted.file.display(), Summary::of(trace));
    writeln!(io::stderr(), "{summary}\ntrace of the first {shown} blocks: {file}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(variables: &[(&str, &str)]) -> Option<Wanted> {
        Wanted::read(|name| {
            let (_, value) = variables.iter().find(|(variable, _)| *variable == name)?;
            Some(OsString::from(value))
        })
    }

    #[test]
    fn the_environment_names_a_kernel_and_one_of_its_launches() {
        assert!(read(&[]).is_none());
        assert!(read(&[("TMA_TRACE", "")]).is_none());
        let first = read(&[("TMA_TRACE", "gemm::bf16")]).unwrap();
        assert_eq!(first.file, PathBuf::from("gemm-bf16.trace.json"));
        assert_eq!(
            ["gemm::f16", "gemm::bf16", "gemm::bf16"].map(|name| first.is_next(name)),
            [false, true, false]
        );
        let third = [("TMA_TRACE", "gemm"), ("TMA_TRACE_LAUNCH", "3"), ("TMA_TRACE_FILE", "a.json")];
        let third = read(&third).unwrap();
        assert_eq!(third.file, PathBuf::from("a.json"));
        let names = ["gemm::f16", "gemms", "gemm", "gemm::bf16", "gemm"];
        assert_eq!(names.map(|name| third.is_next(name)), [false, false, false, true, false]);
    }
}
