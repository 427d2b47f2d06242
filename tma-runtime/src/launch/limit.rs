//! The limit of the waits of a launch.

use std::io::{self, Write as _};
use std::sync::OnceLock;
use std::time::Duration;

use crate::backend::Backend;
use crate::device::Device;
use crate::error::Error;
use crate::spec::KernelSpec;

/// Returns the kernel with limited waits, if the launch or the environment asks for it, or the build
/// has debug assertions.
pub(super) fn limited(
    device: &Device,
    limit: Option<Duration>,
    spec: &'static KernelSpec,
) -> Result<&'static KernelSpec, Error> {
    static OF_ALL: OnceLock<LimitOfAll> = OnceLock::new();
    let Backend::Cuda(context) = device.backend() else { return Ok(spec) };
    let of_all = || LimitOfAll::of(std::env::var("TMA_WATCH").ok().as_deref(), cfg!(debug_assertions));
    match limit.map_or_else(|| *OF_ALL.get_or_init(of_all), LimitOfAll::Wanted) {
        LimitOfAll::Wanted(limit) => context.watched(spec, limit),
        // Nobody asked for it, so a kernel that cannot have it runs without.
        LimitOfAll::Debug => match context.watched(spec, DEBUG_LIMIT) {
            Err(Error::Unwatched { .. }) => Ok(spec),
            known => known,
        },
        LimitOfAll::No => Ok(spec),
    }
}

/// The limit of each wait in builds with debug assertions.
const DEBUG_LIMIT: Duration = Duration::from_secs(2);

/// The limit of the waits of all launches that set none of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LimitOfAll {
    /// The environment sets it.
    Wanted(Duration),
    /// The build has debug assertions: [`DEBUG_LIMIT`].
    Debug,
    No,
}

impl LimitOfAll {
    /// Reads `TMA_WATCH`, a number of seconds, of which 0 stands for no limit.
    fn of(variable: Option<&str>, is_debug: bool) -> Self {
        let without = if is_debug { Self::Debug } else { Self::No };
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
        for (variable, in_debug, in_release) in [
            (None, LimitOfAll::Debug, LimitOfAll::No),
            (Some("0"), LimitOfAll::No, LimitOfAll::No),
            (Some("0.5"), half, half),
            (Some("-1"), LimitOfAll::Debug, LimitOfAll::No),
            (Some("soon"), LimitOfAll::Debug, LimitOfAll::No),
        ] {
            assert_eq!(LimitOfAll::of(variable, true), in_debug, "{variable:?}");
            assert_eq!(LimitOfAll::of(variable, false), in_release, "{variable:?}");
        }
    }
}
