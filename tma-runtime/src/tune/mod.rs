//! Choosing among instances of a kernel, and options of its launch, by measurement.
//!
//! Which tile, how many stages and which order of tiles are fastest depends on the device and on
//! the shape of the problem. [`tune`] launches all [`Candidate`]s in turn, picks the fastest, and
//! caches the choice on disk, so that the next run of the program measures nothing.
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
//! # What is measured
//!
//! On a GPU, time: each candidate is launched once, to see whether it can be launched, and then
//! repeatedly, in rounds of changing order, timed by events. The median of the rounds decides.
//! Launches follow each other on the same data, so what fits the L2 cache is read from there.
//!
//! On a simulated device, the instructions that warps execute in one launch. That is not a speed,
//! but it is reproducible, so programs that tune can be run and tested without a GPU. Choices made
//! there are cached for simulated devices only.
//!
//! A candidate that the device or the hardware refuses to launch, for its shared memory, its
//! clusters or the rules of its tensor maps, is left out, and the table says why. A kernel that
//! faults, or in which the simulator finds a mistake, ends the tuning with that error.

mod cache;
mod contest;
mod table;
mod turns;

pub use turns::turns;

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
    /// The kernel.
    pub kernel: &'static KernelSpec,
    /// Options, whose debug output names them in the table and in the cache.
    pub options: O,
}

impl<O: Debug> Candidate<O> {
    /// The name in tables: the kernel, and options if there are any.
    pub fn name(&self) -> String {
        let Self { kernel, options } = self;
        if size_of::<O>() == 0 { kernel.name.to_owned() } else { format!("{} {options:?}", kernel.name) }
    }
}

/// Each kernel with each of the options. For kernels without options, pass `&[()]`.
pub fn candidates<O: Clone>(
    kernels: impl IntoIterator<Item = &'static KernelSpec>,
    options: &[O],
) -> Vec<Candidate<O>> {
    let with = |kernel| options.iter().map(move |options| Candidate { kernel, options: options.clone() });
    kernels.into_iter().flat_map(with).collect()
}

/// What came of tuning; its display is a table of all candidates.
#[derive(Clone, Debug, PartialEq)]
pub struct Tuned {
    /// The index of the fastest candidate.
    pub best: usize,
    /// All candidates, in the order in which they were passed.
    pub trials: Vec<Trial>,
    /// What was measured.
    pub unit: Unit,
    /// Whether it was measured now, or remembered.
    pub cache: Cache,
    /// The task, its shape and the device.
    title: String,
}

/// A candidate that was tried.
#[derive(Clone, Debug, PartialEq)]
pub struct Trial {
    /// Its [name](Candidate::name).
    pub name: String,
    /// What came of it.
    pub outcome: Outcome,
}

/// What came of a candidate.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// It ran.
    Measured {
        /// The median of the rounds, of a launch.
        cost: f64,
        /// The distance between the least and the greatest round, relative to the median.
        spread: f64,
    },
    /// It could not be launched.
    Refused {
        /// The error's message.
        why: String,
    },
}

/// What is measured of a launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Its time in microseconds.
    Microseconds,
    /// The instructions of all warps, on a simulated device.
    Instructions,
}

/// What the cache on the disk had to do with a result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cache {
    /// There is none.
    Off,
    /// The result is from it.
    Hit,
    /// It had none for this device, task and shape, or one of other kernels. It was measured, and
    /// is remembered now.
    Miss,
    /// Its file was damaged. The result was measured again, and the file replaced.
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// The result was measured, but could not be written.
    Unwritable {
        /// The file.
        path: PathBuf,
        /// The system's error.
        why: String,
    },
}

/// How to tune.
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
/// As [`Tuner::tune`].
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
    /// Launches on `stream`. Results are remembered in the folder that the environment variable
    /// `TMA_TUNE_CACHE` names, or not if it is empty; without it in `tma-tune` in the user's cache
    /// (`XDG_CACHE_HOME`, else `.cache` in `HOME`).
    pub fn new(stream: &'a Stream) -> Self {
        let folder = cache::folder(|variable| std::env::var_os(variable));
        Self { stream, folder, rounds: 7, slice_ms: 5.0, quiet: false }
    }

    /// Remembers results in this folder, which is made if it is missing.
    #[must_use]
    pub fn cache(mut self, folder: impl Into<PathBuf>) -> Self {
        self.folder = Some(folder.into());
        self
    }

    /// Measures each time, and remembers nothing.
    #[must_use]
    pub fn no_cache(mut self) -> Self {
        self.folder = None;
        self
    }

    /// Sets the rounds of a measurement; the default is 7. No effect on a simulated device.
    #[must_use]
    pub fn rounds(mut self, rounds: usize) -> Self {
        self.rounds = rounds.max(1);
        self
    }

    /// Sets for how many milliseconds a candidate is repeated in a round; the default is 5. No
    /// effect on a simulated device.
    #[must_use]
    pub fn slice_ms(mut self, milliseconds: f64) -> Self {
        self.slice_ms = milliseconds;
        self
    }

    /// Writes nothing to the standard error: neither a progress bar, which otherwise appears on a
    /// terminal after a second, nor that the cache was damaged or could not be written.
    #[must_use]
    pub fn quiet(mut self) -> Self {
        self.quiet = true;
        self
    }

    /// Returns the fastest of the candidates for a task of this shape, from the cache if it knows,
    /// else by measurement.
    ///
    /// `launch` queues a candidate once on the stream that it is passed. It is called many times,
    /// so each launch has to be possible after another; what it leaves in memory is that of any
    /// candidate. A result is remembered for the device, the task, the shape, and these very
    /// candidates: another kernel, or another list, is measured again.
    ///
    /// # Errors
    ///
    /// [`TuneError`]: that there are no candidates, two of the same name, or none that can be
    /// launched. The errors of a launch, but for those by which a candidate is left out.
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
        self.tell(&state);
        let queue = |index: usize| launch(&candidates[index], self.stream);
        // A first launch, which may take long to compile, and on a GPU the rounds.
        let turns = match key.unit {
            Unit::Microseconds => 1 + self.rounds,
            Unit::Instructions => 1,
        };
        let progress = Progress::new(format!("tuning {task}"), (candidates.len() * turns) as u64, self.quiet);
        let outcomes = contest::run(self, candidates.len(), progress, queue)?;
        if let Some(folder) = &self.folder
            && let Err(error) = cache::write(folder, &key, &identities, &outcomes)
        {
            state = Cache::Unwritable { path: key.path(folder), why: error.to_string() };
            self.tell(&state);
        }
        tuned(task, &key, identities, outcomes, state)
    }

    /// Says on the standard error what went wrong with the cache.
    fn tell(&self, state: &Cache) {
        if let (false, Some(text)) = (self.quiet, table::complaint(state)) {
            eprintln!("{text}");
        }
    }
}

/// The candidates as the cache knows them.
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
