//! Selection among instances of a kernel, and options of its launch, by measurement.
//!
//! The fastest tile, number of stages and order of tiles depend on the device and on the shape of
//! the problem. [`tune`] launches all [`Candidate`]s in alternation, picks the fastest, and caches
//! the choice on disk, so that the next run of the program measures nothing.
//!
//! ```
//! # mod double {
//! #     use tma_runtime::launch::{KernelParts, KernelSpec, ParamKind, ParamSpec};
//! #     use tma_runtime::spec::{Cluster, Scalar};
//! #     const PARTS: KernelParts = KernelParts {
//! #         name: "double::narrow",
//! #         entry: "double",
//! #         ptx: ".version 8.0\n.target sm_90a\n.address_size 64\n
//! #             .visible .entry double(.param .u64 data, .param .u64 len) .reqntid 32, 1, 1 {
//! #                 .reg .b32 %r<5>; .reg .b64 %d<3>;
//! #                 ld.param.b64 %d1, [data]; mov.u32 %r1, %tid.x; mov.u32 %r3, %ctaid.x; mad.lo.u32 %r1, %r3, 32, %r1;
//! #                 mad.wide.u32 %d1, %r1, 4, %d1;
//! #                 ld.global.b32 %r2, [%d1]; add.u32 %r2, %r2, %r2; st.global.b32 [%d1], %r2; ret; }",
//! #         threads: [32, 1, 1],
//! #         cluster: Cluster::None,
//! #         cooperative: false,
//! #         dependency_wait: false,
//! #         team: false,
//! #         shared_bytes: 0,
//! #         params: &[ParamSpec { name: "data", kind: ParamKind::Global { element: Scalar::U32, written: true, alignment: 4 } }],
//! #     };
//! #     const WIDE: KernelParts = KernelParts { name: "double::wide", threads: [64, 1, 1], ptx:
//! #         ".version 8.0\n.target sm_90a\n.address_size 64\n
//! #             .visible .entry double(.param .u64 data, .param .u64 len) .reqntid 64, 1, 1 {
//! #                 .reg .b32 %r<5>; .reg .b64 %d<3>;
//! #                 ld.param.b64 %d1, [data]; mov.u32 %r1, %tid.x; mov.u32 %r3, %ctaid.x; mad.lo.u32 %r1, %r3, 64, %r1;
//! #                 mov.u32 %r4, %r1; mad.wide.u32 %d1, %r1, 4, %d1;
//! #                 ld.global.b32 %r2, [%d1]; add.u32 %r2, %r2, %r2; st.global.b32 [%d1], %r2; ret; }",
//! #         ..PARTS };
//! #     // SAFETY: they are launched with as many numbers as they have threads.
//! #     pub static INSTANCES: [KernelSpec; 2] =
//! #         unsafe { [KernelSpec::from_parts(PARTS), KernelSpec::from_parts(WIDE)] };
//! # }
//! use tma_runtime::launch::{Arg, launch};
//! use tma_runtime::prelude::*;
//! use tma_runtime::tune::{Tuner, candidates};
//!
//! let device = Device::simulator();
//! let stream = device.stream()?;
//! let mut data = device.zeros::<u32, 1>([256])?;
//!
//! // `double` has the instances `narrow` and `wide`, of 32 and 64 threads.
//! let candidates = candidates(&double::INSTANCES, &[()]);
//! let tuned = Tuner::new(&stream).no_cache().tune("double", &data.shape(), &candidates, |candidate, stream| {
//!     let blocks = 256 / candidate.kernel.threads[0];
//!     launch(stream, candidate.kernel, Grid::x(blocks), &[Arg::global_mut(data.slice_mut())])
//! })?;
//! let fastest = &candidates[tuned.best];
//! assert_eq!(fastest.kernel.name, "double::narrow");
//! println!("{tuned}"); // a table of all that was tried
//! # Ok::<(), Error>(())
//! ```
//!
//! # Measurement
//!
//! On a GPU, time is measured. Each candidate is launched once, to see whether it can be launched.
//! It is then launched repeatedly, in rounds of changing order, timed by events. The median of the
//! rounds decides. Consecutive launches use the same data, so whatever fits in the L2 cache is read
//! from there.
//!
//! On a simulated device, the instructions that warps execute in one launch are counted. This is
//! not a speed, but it is reproducible, so programs that tune can be run and tested without a GPU.
//! Choices made there are cached for simulated devices only.
//!
//! A candidate that the device or the hardware refuses to launch is skipped, and the table states
//! the reason: its shared memory, its clusters or the rules of its tensor maps. A kernel that
//! faults, or in which the simulator finds a mistake, ends the tuning with that error.

mod cache;
mod contest;
mod rounds;
mod table;

pub use rounds::turns;

use std::fmt::Debug;
use std::path::PathBuf;

use self::cache::{Identity, Key};
use crate::device::stream::Stream;
use crate::error::{Error, TuneError};
use crate::progress::Progress;
use crate::spec::KernelSpec;

/// A kernel to try, with options that its launch understands, such as the number of blocks or the
/// size of clusters.
#[derive(Clone, Copy, Debug)]
pub struct Candidate<O> {
    /// The kernel's specification.
    pub kernel: &'static KernelSpec,
    /// The options. Their debug output names them in the table and in the cache.
    pub options: O,
}

impl<O: Debug> Candidate<O> {
    /// Returns the name in tables: the kernel's, followed by the options if there are any.
    pub fn name(&self) -> String {
        let Self { kernel, options } = self;
        if size_of::<O>() == 0 { kernel.name.to_owned() } else { format!("{} {options:?}", kernel.name) }
    }
}

/// Combines each kernel with each of the options. For kernels without options, pass `&[()]`.
pub fn candidates<O: Clone>(
    kernels: impl IntoIterator<Item = &'static KernelSpec>,
    options: &[O],
) -> Vec<Candidate<O>> {
    let with = |kernel| options.iter().map(move |options| Candidate { kernel, options: options.clone() });
    kernels.into_iter().flat_map(with).collect()
}

/// The result of tuning. It displays as a table of all candidates.
#[derive(Clone, Debug, PartialEq)]
pub struct Tuned {
    /// The index of the fastest candidate.
    pub best: usize,
    /// All candidates, in the order in which they were passed.
    pub trials: Vec<Trial>,
    /// The unit of measurement.
    pub unit: Unit,
    /// The origin of the result: the cache or a measurement.
    pub cache: Cache,
    /// The task, its shape and the device, for the table.
    title: String,
}

/// A candidate that was tried.
#[derive(Clone, Debug, PartialEq)]
pub struct Trial {
    /// The candidate's [name](Candidate::name).
    pub name: String,
    /// The candidate's outcome.
    pub outcome: Outcome,
}

/// The outcome of a candidate.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// The candidate ran.
    Measured {
        /// The cost of a launch: the median of the rounds.
        cost: f64,
        /// The difference between the greatest and the least round, relative to the median.
        spread: f64,
    },
    /// The candidate could not be launched.
    Refused {
        /// The error's message.
        why: String,
    },
}

/// The unit of a measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// The time of a launch in microseconds.
    Microseconds,
    /// The instructions of all warps in a launch, on a simulated device.
    Instructions,
}

/// The role of the disk cache in a result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cache {
    /// No cache is in use.
    Off,
    /// The result is from the cache.
    Hit,
    /// The cache had no result for this device, task and shape, or one for other kernels. The
    /// result was measured, and is now cached.
    Miss,
    /// The cache's file was damaged. The result was measured again, and the file replaced.
    Damaged {
        /// The file.
        path: PathBuf,
        /// A description of the damage.
        why: String,
    },
    /// The result was measured, but could not be written.
    Unwritable {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        why: String,
    },
}

/// The configuration of a measurement.
#[derive(Clone, Debug)]
pub struct Tuner<'a> {
    stream: &'a Stream,
    folder: Option<PathBuf>,
    rounds: usize,
    slice_ms: f64,
    quiet: bool,
}

/// Tunes with the defaults of a [`Tuner`].
///
/// # Errors
///
/// The errors of [`Tuner::tune`].
pub fn tune<O: Debug>(
    stream: &Stream,
    task: &str,
    shape: &[usize],
    candidates: &[Candidate<O>],
    launch: impl FnMut(&Candidate<O>, &Stream) -> Result<(), Error>,
) -> Result<Tuned, Error> {
    Tuner::new(stream).tune(task, shape, candidates, launch)
}

impl<'a> Tuner<'a> {
    /// Creates a tuner that launches on `stream`. Results are cached in the folder named by the
    /// environment variable `TMA_TUNE_CACHE`, or not at all if it is empty. If the variable is not
    /// set, they are cached in `tma-tune` in the user's cache folder (`XDG_CACHE_HOME`, or else
    /// `.cache` in `HOME`).
    pub fn new(stream: &'a Stream) -> Self {
        let folder = cache::folder(|variable| std::env::var_os(variable));
        Self { stream, folder, rounds: 7, slice_ms: 5.0, quiet: false }
    }

    /// Caches results in this folder, which is created if it is missing.
    #[must_use]
    pub fn cache(mut self, folder: impl Into<PathBuf>) -> Self {
        self.folder = Some(folder.into());
        self
    }

    /// Measures every time, and caches nothing.
    #[must_use]
    pub fn no_cache(mut self) -> Self {
        self.folder = None;
        self
    }

    /// Sets the number of rounds of a measurement. The default is 7. It has no effect on a
    /// simulated device.
    #[must_use]
    pub fn rounds(mut self, rounds: usize) -> Self {
        self.rounds = rounds.max(1);
        self
    }

    /// Sets for how many milliseconds a candidate is repeated in a round. The default is 5. It has
    /// no effect on a simulated device.
    #[must_use]
    pub fn slice_ms(mut self, milliseconds: f64) -> Self {
        self.slice_ms = milliseconds;
        self
    }

    /// Disables output to standard error: the progress bar, which otherwise appears on a terminal
    /// after a second, and the notice that the cache was damaged or could not be written.
    #[must_use]
    pub fn quiet(mut self) -> Self {
        self.quiet = true;
        self
    }

    /// Returns the fastest of the candidates for a task of this shape, from the cache if it has a
    /// result, or else by measurement.
    ///
    /// `launch` queues a candidate once on the stream that it is passed. It is called many times,
    /// so each launch must be possible after any other. Memory is left as the last launched
    /// candidate leaves it, which may be any of them. A result is cached for the device, the task,
    /// the shape, and exactly these candidates: another kernel, or another list, is measured again.
    ///
    /// # Errors
    ///
    /// [`TuneError`] if there are no candidates, two candidates have the same name, or no candidate
    /// can be launched. Also the errors of a launch, except those for which a candidate is skipped.
    pub fn tune<O: Debug>(
        &self,
        task: &str,
        shape: &[usize],
        candidates: &[Candidate<O>],
        mut launch: impl FnMut(&Candidate<O>, &Stream) -> Result<(), Error>,
    ) -> Result<Tuned, Error> {
        let identities = identities(task, candidates)?;
        let device = self.stream.device();
        let key = Key::new(device, task, shape);
        let mut state = Cache::Off;
        if let Some(folder) = &self.folder {
            match cache::read(folder, &key, &identities) {
                Ok(Some(outcomes)) => return tuned(task, &key, identities, outcomes, Cache::Hit),
                Ok(None) => state = Cache::Miss,
                Err(why) => state = Cache::Damaged { path: key.path(folder), why },
            }
        }
        self.report_cache(&state);
        let queue = |index: usize| launch(&candidates[index], self.stream);
        // One first launch, which may take long to compile, and on a GPU the rounds.
        let launches = match key.unit {
            Unit::Microseconds => 1 + self.rounds,
            Unit::Instructions => 1,
        };
        let progress =
            Progress::new(format!("tuning {task}"), (candidates.len() * launches) as u64, self.quiet);
        let outcomes = contest::run(self, candidates.len(), progress, queue)?;
        if let Some(folder) = &self.folder
            && let Err(error) = cache::write(folder, &key, &identities, &outcomes)
        {
            state = Cache::Unwritable { path: key.path(folder), why: error.to_string() };
            self.report_cache(&state);
        }
        tuned(task, &key, identities, outcomes, state)
    }

    /// Reports on standard error if the cache failed.
    fn report_cache(&self, state: &Cache) {
        if let (false, Some(text)) = (self.quiet, table::problem(state)) {
            eprintln!("{text}");
        }
    }
}

/// Returns the candidates as the cache identifies them.
fn identities<O: Debug>(task: &str, candidates: &[Candidate<O>]) -> Result<Vec<Identity>, TuneError> {
    if candidates.is_empty() {
        return Err(TuneError::NoCandidates { task: task.to_owned() });
    }
    let mut identities: Vec<Identity> = vec![];
    for candidate in candidates {
        let name = candidate.name();
        if identities.iter().any(|other| other.name == name) {
            return Err(TuneError::SameName { task: task.to_owned(), name });
        }
        identities.push(Identity { hash: cache::hash_of(candidate.kernel), name });
    }
    Ok(identities)
}

fn tuned(
    task: &str,
    key: &Key,
    identities: Vec<Identity>,
    outcomes: Vec<Outcome>,
    cache: Cache,
) -> Result<Tuned, Error> {
    let cost = |outcome: &Outcome| match outcome {
        Outcome::Measured { cost, .. } => Some(*cost),
        Outcome::Refused { .. } => None,
    };
    let costs = outcomes.iter().enumerate().filter_map(|(index, outcome)| Some((index, cost(outcome)?)));
    let best = costs.min_by(|(_, a), (_, b)| a.total_cmp(b)).map(|(index, _)| index);
    let names = identities.into_iter().map(|identity| identity.name);
    let trials: Vec<Trial> = names.zip(outcomes).map(|(name, outcome)| Trial { name, outcome }).collect();
    let Some(best) = best else {
        let why = trials.into_iter().find_map(|trial| match trial.outcome {
            Outcome::Refused { why } => Some(why),
            Outcome::Measured { .. } => None,
        });
        let why = why.unwrap_or_default();
        return Err(TuneError::NoneRuns { task: task.to_owned(), why }.into());
    };
    Ok(Tuned { best, trials, unit: key.unit, cache, title: key.title() })
}

#[cfg(test)]
mod tests;
