//! Launches of a kernel on all ranks of a team.

use crate::backend::{Backend, cuda, sim};
use crate::binding::grid::Grid;
use crate::binding::shape::{LaunchOptions, Shape, shape};
use crate::device::Device;
use crate::device::team::Team;
use crate::error::{Error, TeamError};
use crate::launch::args::erased::Arg;
use crate::launch::occupancy::fits;
use crate::launch::{cuda_stream, to_run};
use crate::spec::KernelSpec;
use std::sync::Arc;
use std::time::Duration;

/// A team with options for a launch, made by [`Team::with`].
#[derive(Clone, Copy, Debug)]
pub struct WithTeam<'a> {
    team: &'a Team,
    options: LaunchOptions,
}

impl Team {
    /// Returns this team, with options for a launch.
    pub fn with(&self) -> WithTeam<'_> {
        self.into()
    }
}

impl<'a> From<&'a Team> for WithTeam<'a> {
    fn from(team: &'a Team) -> Self {
        Self { team, options: LaunchOptions::default() }
    }
}

impl<'a> WithTeam<'a> {
    /// Returns the team.
    pub fn team(&self) -> &'a Team {
        self.team
    }

    /// Sets the blocks per cluster along x, y and z, for kernels with `cluster = launch`.
    #[must_use]
    pub fn cluster(mut self, extents: [u32; 3]) -> Self {
        self.options.cluster = Some(extents);
        self
    }

    /// Limits each wait of the kernel on GPUs, like [`With::watched`](super::With::watched): a rank
    /// whose peer never signals it stops with a report.
    #[must_use]
    pub fn watched(mut self, limit: Duration) -> Self {
        self.options.limit = Some(limit);
        self
    }

    /// States that blocks of the kernel wait for other blocks, of their rank or of another, which are
    /// not those of the same index. The launch is rejected if the blocks of a rank cannot all run at
    /// the same time, and the simulator runs them so. Without it, it may begin a block when another
    /// has ended.
    ///
    /// The launch is not cooperative, since ranks may share a GPU: other kernels may delay a block.
    #[must_use]
    pub fn resident(mut self) -> Self {
        self.options.resident = true;
        self
    }
}

/// Queues a kernel on all ranks of a team, on each with its own arguments: `args` has a list for
/// each rank, in order, like the list of [`launch`](super::launch). The tensors of a list belong to
/// the device of its rank. Addresses of peers are the contents of tensors or of views
/// ([`TensorView::from_raw`](crate::TensorView::from_raw)).
///
/// It does not wait for the kernel to run. Before the first rank is queued, the kernel is loaded and
/// its arguments are checked and encoded on all of them, since neither can be done on a GPU where a
/// rank already waits for its peers. If the driver rejects a rank's launch nevertheless, the ranks
/// before it may wait for ever: the process must end.
///
/// On the simulator all ranks run to completion, interleaved as the seed picks
/// ([`Team::seed`]).
///
/// # Errors
///
/// [`TeamError::Count`] if there is not one list for each rank, [`Error::GridNotResident`] for
/// [`WithTeam::resident`], and the errors of [`launch`](super::launch) on each rank's device, such as [`Error::OtherDevice`] for a tensor of
/// another team or rank.
pub fn launch_team<'t>(
    on: impl Into<WithTeam<'t>>,
    spec: &'static KernelSpec,
    grid: Grid,
    args: &[Vec<Arg<'_>>],
) -> Result<(), Error> {
    let WithTeam { team, options } = on.into();
    if args.len() != team.ranks() {
        let (found, ranks) = (args.len(), team.ranks());
        return Err(TeamError::Count { what: "lists of arguments", found, ranks }.into());
    }
    let shape = shape(spec, grid, options)?;
    let together = Shape { cooperative: shape.cooperative || options.resident, ..shape };
    let launches = team.devices().zip(args).map(|(device, args)| {
        let spec = to_run(device, options.limit, spec)?;
        fits(device, spec, together)?;
        match device.backend() {
            Backend::Cuda(context) => {
                Ok(RankLaunch::Cuda(context, Arc::new(context.prepare(spec, shape, args)?)))
            }
            Backend::Sim(context) => Ok(RankLaunch::Sim(context.prepare(spec, together, args)?)),
        }
    });
    let launches = launches.collect::<Result<Vec<_>, Error>>()?;
    for args in args {
        share(team, args);
    }
    queue(team, launches)
}

/// The encoded launch of a rank.
enum RankLaunch {
    Cuda(&'static cuda::Context, Arc<cuda::Prepared>),
    Sim(sim::Launch),
}

/// Records that all ranks may access the memory of arguments, so that it is neither copied nor freed
/// before all of them have run.
pub(crate) fn share(team: &Team, args: &[Arg<'_>]) {
    for memory in args.iter().filter_map(|arg| arg.memory().ok().flatten()) {
        memory.share(team.devices().filter(|device| matches!(device.backend(), Backend::Cuda(_))).cloned());
    }
}

/// Queues the launch of each rank.
fn queue(team: &Team, launches: Vec<RankLaunch>) -> Result<(), Error> {
    let mut simulated = Vec::new();
    let alone = team.queue_alone();
    for (stream, launch) in team.streams().zip(launches) {
        match launch {
            RankLaunch::Cuda(context, launch) => {
                context.launch_prepared(cuda_stream(stream), std::slice::from_ref(&launch))?;
            }
            RankLaunch::Sim(launch) => simulated.push(launch),
        }
    }
    // The simulator calls functions of the program, which may launch on the team.
    drop(alone);
    match team.devices().next().map(Device::backend) {
        Some(Backend::Sim(context)) => context.run_team(&simulated),
        Some(Backend::Cuda(_)) | None => Ok(()),
    }
}

#[cfg(test)]
mod tests;
