//! The limit of the waits of a launch.

use std::io::{self, Write as _};
use std::sync::OnceLock;
use std::time::Duration;

use crate::backend::Backend;
use crate::device::Device;
use crate::error::Error;
use crate::launch::replace::replaced;
use crate::spec::KernelSpec;

/// Returns the kernel that runs for `spec`: with limited waits, if the launch or the environment asks
/// for it, or the build has checks.
pub(super) fn watched(
    device: &Device,
    limit: Option<Duration>,
    spec: &'static KernelSpec,
) -> Result<&'static KernelSpec, Error> {
    static OF_ALL: OnceLock<LimitOfAll> = OnceLock::new();
    let spec = replaced(device, spec);
    let Backend::Cuda(context) = device.backend() else { return Ok(spec) };
    let of_all = || LimitOfAll::of(std::env::var("TMA_WATCH").ok().as_deref(), cfg!(debug_assertions));
    match limit.map_or_else(|| *OF_ALL.get_or_init(of_all), LimitOfAll::Wanted) {
        LimitOfAll::Wanted(limit) => context.watched(spec, limit),
        // Nobody asked for it, so a kernel that cannot have it runs without.
        LimitOfAll::OfChecks => match context.watched(spec, LIMIT_OF_CHECKS) {
            Err(Error::Unwatched { .. }) => Ok(spec),
            known => known,
        },
        LimitOfAll::No => Ok(spec),
    }
}

/// The limit of each wait in builds with debug assertions.
const LIMIT_OF_CHECKS: Duration = Duration::from_secs(2);

/// The limit of the waits of all launches that set none of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LimitOfAll {
    /// The environment sets it.
    Wanted(Duration),
    /// The build has checks: [`LIMIT_OF_CHECKS`].
    OfChecks,
    No,
}

impl LimitOfAll {
    /// Reads `TMA_WATCH`, a number of seconds, of which 0 stands for no limit.
    fn of(variable: Option<&str>, has_checks: bool) -> Self {
        let without = if has_checks { Self::OfChecks } else { Self::No };
        let Some(value) = variable else { return without };
        match value.parse().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()) {
            Some(limit) if limit.is_zero() => Self::No,
            Some(limit) => Self::Wanted(limit),
            None => {
                let wanted = "it must be a number of seconds, or 0 for no limit; it is ignored";
                let _nobody_reads = writeln!(io::stderr(), "TMA_WATCH={value}: {wanted}");
                without
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::LimitOfAll;
    use std::time::Duration;

    #[test]
    fn the_environment_decides_before_the_build() {
        let half = LimitOfAll::Wanted(Duration::from_millis(500));
        for (variable, with_checks, without) in [
            (None, LimitOfAll::OfChecks, LimitOfAll::No),
            (Some("0"), LimitOfAll::No, LimitOfAll::No),
            (Some("0.5"), half, half),
            (Some("-1"), LimitOfAll::OfChecks, LimitOfAll::No),
            (Some("soon"), LimitOfAll::OfChecks, LimitOfAll::No),
        ] {
            assert_eq!(LimitOfAll::of(variable, true), with_checks, "{variable:?}");
            assert_eq!(LimitOfAll::of(variable, false), without, "{variable:?}");
        }
    }
}
