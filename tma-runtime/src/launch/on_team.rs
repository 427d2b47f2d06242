//! Launches of team kernels.

use crate::binding::grid::Grid;
use crate::binding::same_device;
use crate::device::team::{Team, check_size};
use crate::error::{Error, TeamError};
use crate::launch::args::erased::Arg;
use crate::launch::args::peers::TeamArg;
use crate::launch::team::{WithTeam, launch_team, share};
use crate::launch::{LaunchOn, launch};
use crate::spec::KernelSpec;

/// The number of parameters of a team kernel that a launch adds: its rank, and the number of ranks.
const ADDED: usize = 2;

/// The target of a launch of a team kernel: `&Team`, optionally [`with`](Team::with) options, whose
/// ranks run it at the same time.
///
/// A device or a stream is accepted, too. It runs all ranks, one after the other, with memory on
/// that device. There are as many ranks as the arguments have tensors, or one. This suits tests, and
/// kernels that do not wait for other ranks: one that does would wait for a launch that comes later.
///
/// ```compile_fail,E0277
/// # use tma_runtime::launch::LaunchOnTeam;
/// fn launch(on: impl LaunchOnTeam) {}
/// launch(3);
/// ```
#[diagnostic::on_unimplemented(
    message = "a team kernel cannot be launched on `{Self}`",
    label = "pass `&Team`, `&Device` or `&Stream`"
)]
pub trait LaunchOnTeam {
    /// Queues a kernel on each rank, with `grid` blocks. `args` has an argument for each parameter of
    /// the kernel's signature, followed by the flags of optional ones.
    ///
    /// # Errors
    ///
    /// Those of [`launch`]; [`Error::OtherDevice`] for a tensor of another device than its rank's;
    /// [`TeamError::Size`], [`TeamError::Tensors`] and [`TeamError::Unlike`].
    fn launch_on_team(
        &self,
        spec: &'static KernelSpec,
        grid: Grid,
        args: &[TeamArg<'_>],
    ) -> Result<(), Error>;
}

impl LaunchOnTeam for WithTeam<'_> {
    fn launch_on_team(
        &self,
        spec: &'static KernelSpec,
        grid: Grid,
        args: &[TeamArg<'_>],
    ) -> Result<(), Error> {
        let team = self.team();
        let ranks = ranks(spec, args, Some(team.ranks()))?;
        for (param, arg) in spec.params.iter().zip(args) {
            for (rank, device) in team.devices().enumerate() {
                let found = arg.device_of_rank(rank);
                found.map_or(Ok(()), |found| same_device(param.name, found, device.id()))?;
            }
        }
        let of_ranks = (0..ranks).map(|rank| args_of_rank(spec, args, rank, ranks));
        let of_ranks = of_ranks.collect::<Result<Vec<_>, _>>()?;
        // The argument of a `Peers` parameter has the addresses of all ranks, but not their owners.
        args.iter().for_each(|arg| share(team, arg.parts()));
        launch_team(*self, spec, grid, &of_ranks)
    }
}

/// Launches on a team without options.
macro_rules! on_team {
    ($($ty:ty)+) => { $(
        impl LaunchOnTeam for $ty {
            fn launch_on_team(
                &self,
                spec: &'static KernelSpec,
                grid: Grid,
                args: &[TeamArg<'_>],
            ) -> Result<(), Error> {
                self.with().launch_on_team(spec, grid, args)
            }
        }
    )+ };
}

on_team! { Team &Team }

impl<L: LaunchOn> LaunchOnTeam for L {
    fn launch_on_team(
        &self,
        spec: &'static KernelSpec,
        grid: Grid,
        args: &[TeamArg<'_>],
    ) -> Result<(), Error> {
        for (param, arg) in spec.params.iter().zip(args) {
            arg.devices()
                .flatten()
                .try_for_each(|found| same_device(param.name, found, self.device().id()))?;
        }
        let ranks = ranks(spec, args, None)?;
        for rank in 0..ranks {
            launch(self, spec, grid, &args_of_rank(spec, args, rank, ranks)?)?;
        }
        Ok(())
    }
}

/// Returns the number of ranks: that of the `team`, or else that of the arguments' tensors, or 1 if
/// no argument has tensors of ranks.
///
/// # Errors
///
/// [`TeamError::Tensors`] if an argument has tensors of another number of ranks, and
/// [`TeamError::Size`] if the first argument has tensors of no rank or of too many.
pub(crate) fn ranks(
    spec: &'static KernelSpec,
    args: &[TeamArg<'_>],
    team: Option<usize>,
) -> Result<usize, Error> {
    let mut ranks = team;
    for (param, arg) in spec.params.iter().zip(args) {
        let Some(found) = arg.ranks() else { continue };
        match ranks {
            None => check_size(found)?,
            Some(ranks) if ranks != found => {
                let (kernel, tensor) = (spec.name, param.name);
                return Err(TeamError::Tensors { kernel, tensor, found, ranks }.into());
            }
            Some(_) => {}
        }
        ranks = Some(found);
    }
    Ok(ranks.unwrap_or(1))
}

/// Returns the arguments of a rank, with its number and that of all ranks behind them.
pub(crate) fn args_of_rank<'a>(
    spec: &'static KernelSpec,
    args: &'a [TeamArg<'_>],
    rank: usize,
    ranks: usize,
) -> Result<Vec<Arg<'a>>, Error> {
    let wanted = spec.params.len().saturating_sub(ADDED);
    if args.len() != wanted {
        return Err(Error::ArgumentCount { kernel: spec.name, found: args.len(), wanted });
    }
    let of_rank = spec.params.iter().zip(args).map(|(param, arg)| arg.of_rank(spec.name, param, rank));
    let numbers = [rank, ranks].map(|number| Ok(Arg::scalar(number as u32)));
    of_rank.chain(numbers).collect()
}
