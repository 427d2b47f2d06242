//! Launches of team kernels.

use crate::binding::grid::Grid;
use crate::binding::same_device;
use crate::error::Error;
use crate::launch::args::erased::Arg;
use crate::launch::args::peers::TeamArg;
use crate::launch::{LaunchOn, launch};
use crate::spec::KernelSpec;
use tma_model::limits::TEAM_RANKS;

/// The number of parameters of a team kernel that a launch adds: its rank, and the number of ranks.
const ADDED: usize = 2;

/// The target of a launch of a team kernel: the ranks that run it.
///
/// A device or a stream runs all ranks, one after the other, with memory on that device. There are
/// as many ranks as the arguments have tensors, or one. This suits tests, and kernels that do not
/// wait for other ranks: one that does would wait for a launch that comes later.
///
/// ```compile_fail,E0277
/// # use tma_runtime::launch::LaunchOnTeam;
/// fn launch(on: impl LaunchOnTeam) {}
/// launch(3);
/// ```
#[diagnostic::on_unimplemented(
    message = "a team kernel cannot be launched on `{Self}`",
    label = "pass a team, `&Device` or `&Stream`"
)]
pub trait LaunchOnTeam {
    /// Queues a kernel on each rank, with `grid` blocks. `args` has an argument for each parameter of
    /// the kernel's signature, followed by the flags of optional ones.
    ///
    /// # Errors
    ///
    /// Those of [`launch`], [`Error::TeamRanks`] and [`Error::UnlikeRanks`].
    fn launch_on_team(
        &self,
        spec: &'static KernelSpec,
        grid: Grid,
        args: &[TeamArg<'_>],
    ) -> Result<(), Error>;
}

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
        let ranks = ranks(spec, args)?;
        for rank in 0..ranks {
            launch(self, spec, grid, &args_of_rank(spec, args, rank, ranks)?)?;
        }
        Ok(())
    }
}

/// Returns the number of ranks that the arguments are for: 1 if none of them has tensors of ranks.
///
/// # Errors
///
/// [`Error::TeamRanks`] if an argument has tensors of no rank, of too many, or of another number of
/// ranks than an argument before it.
pub(crate) fn ranks(spec: &'static KernelSpec, args: &[TeamArg<'_>]) -> Result<usize, Error> {
    let mut ranks = None;
    for (param, arg) in spec.params.iter().zip(args) {
        let Some(found) = arg.ranks() else { continue };
        let wanted = ranks.unwrap_or(found);
        if found != wanted || found == 0 || found > TEAM_RANKS as usize {
            let (kernel, parameter) = (spec.name, param.name);
            return Err(Error::TeamRanks { kernel, parameter, found, wanted: ranks.unwrap_or(0) });
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
