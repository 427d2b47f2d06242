//! Slices: many launches of one contestant in sequence. The first are not measured, so that clock
//! and cache are in the state that this contestant alone brings about. The launches are recorded as
//! graphs, so that none waits for the host.

use std::thread;
use std::time::Duration;

use anyhow::anyhow;
use serde::Serialize;
use tma_runtime::layout::DeviceId;
use tma_runtime::prelude::*;

use super::libraries::driver::{Driver, Recorded};
use super::libraries::nvml::{Nvml, State};

/// The largest number of launches in a graph.
const PER_GRAPH: usize = 50;

/// The instruments besides events. A simulated device has neither.
#[derive(Default)]
pub struct Instruments {
    /// Records graphs.
    pub driver: Option<Driver>,
    /// Reads clock and power.
    pub nvml: Option<Nvml>,
}

impl Instruments {
    /// Loads the instruments for a device. Prints a note on the standard error if there is no NVML.
    ///
    /// # Errors
    ///
    /// Errors of the driver.
    pub fn load(device: &Device) -> anyhow::Result<Self> {
        let ordinal = match device.id() {
            DeviceId::Cuda(ordinal) => ordinal,
            DeviceId::Context(_) | DeviceId::Simulator(_) => return Ok(Self::default()),
        };
        let driver = Driver::load()?;
        let nvml = driver.bus_id(ordinal).and_then(|bus_id| Nvml::load(&bus_id));
        let nvml = nvml.inspect_err(|error| eprintln!("without NVML: {error:#}")).ok();
        Ok(Self { driver: Some(driver), nvml })
    }
}

/// The stream of slices, their instruments and their length.
#[derive(Clone, Copy)]
pub struct Slices<'a> {
    /// The stream.
    pub stream: &'a Stream,
    /// See [`Instruments`].
    pub instruments: &'a Instruments,
    /// The milliseconds of a slice.
    pub slice_ms: f64,
}

/// The launches of a slice.
pub struct Slice<'a> {
    launches: usize,
    /// A graph of `launches` launches.
    graph: Option<Recorded<'a>>,
    repetitions: usize,
}

/// The measurements of a slice.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Measured {
    /// The speed in TFLOP/s.
    pub tflops: f64,
    /// The state of the GPU in the middle of the slice, if it is known.
    #[serde(flatten)]
    pub state: Option<State>,
}

/// Queues one launch.
pub type Queue<'q> = dyn FnMut() -> anyhow::Result<()> + 'q;

impl<'a> Slices<'a> {
    /// Finds the number of launches that make a slice, and records them if possible.
    ///
    /// # Errors
    ///
    /// Errors of the launches.
    pub fn prepare(&self, queue: &mut Queue<'_>) -> anyhow::Result<Slice<'a>> {
        self.milliseconds(2, queue)?;
        let one = self.milliseconds(4, queue)? / 4.0;
        let wanted = (self.slice_ms / one).ceil().clamp(1.0, 1e5) as usize;
        let launches = wanted.min(PER_GRAPH);
        let record =
            |driver: &'a Driver| driver.record(self.stream, || (0..launches).try_for_each(|_| queue()));
        let graph = self.instruments.driver.as_ref().map(record).transpose()?;
        Ok(Slice { launches, graph, repetitions: wanted.div_ceil(launches) })
    }

    fn milliseconds(&self, launches: usize, queue: &mut Queue<'_>) -> anyhow::Result<f64> {
        let start = self.stream.record()?;
        (0..launches).try_for_each(|_| queue())?;
        Ok(f64::from(start.elapsed_ms(&self.stream.record()?)?))
    }

    /// Runs a slice of launches, each of which performs `operations` operations.
    ///
    /// # Safety
    ///
    /// The memory that `queue` used when the slice was prepared must live.
    ///
    /// # Errors
    ///
    /// Errors of the launches and of the instruments.
    pub unsafe fn run(
        &self,
        slice: &Slice<'_>,
        operations: f64,
        queue: &mut Queue<'_>,
    ) -> anyhow::Result<Measured> {
        let mut repeat = |repetitions: usize| {
            (0..repetitions).try_for_each(|_| match &slice.graph {
                // SAFETY: the caller keeps the memory alive.
                Some(graph) => unsafe { graph.launch() },
                None => (0..slice.launches).try_for_each(|_| queue()),
            })
        };
        // The unmeasured quarter, and half of the measured launches.
        let middle = Duration::from_secs_f64(self.slice_ms * 0.75 / 1e3);
        let (start, end, state) = thread::scope(|scope| {
            // In another thread: this one may wait for room in the queue until the slice is nearly
            // over. Only then could it read the state, and by then the GPU would idle and cool.
            let reading = self.instruments.nvml.as_ref().map(|nvml| {
                scope.spawn(move || {
                    thread::sleep(middle);
                    nvml.state()
                })
            });
            repeat(slice.repetitions.div_ceil(4))?;
            let start = self.stream.record()?;
            repeat(slice.repetitions)?;
            let end = self.stream.record()?;
            let state = reading.map(|thread| thread.join().map_err(|_| anyhow!("reading NVML panicked"))?);
            anyhow::Ok((start, end, state.transpose()?))
        })?;
        let milliseconds = f64::from(start.elapsed_ms(&end)?);
        let launches = (slice.launches * slice.repetitions) as f64;
        Ok(Measured { tflops: operations * launches / milliseconds / 1e9, state })
    }
}
