//! Launches that prepare while the previous kernel still runs.

use tma_runtime::launch::{LaunchOn, With};

/// Returns the target of a launch like `on`, for a kernel that waits for the previous one by itself
/// (`grid_dependency_wait()`). Its blocks start, and initialise their barriers, as soon as those of
/// the previous kernel have allowed it (`grid_dependency_launch()`) or ended.
pub(crate) fn dependent(on: &impl LaunchOn) -> With<'_> {
    With::of(on).dependent()
}

/// Returns the same if `is_dependent`, and otherwise a target that waits for the previous kernel.
pub(crate) fn dependent_if(is_dependent: bool, on: &impl LaunchOn) -> With<'_> {
    if is_dependent { dependent(on) } else { With::of(on) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tma_runtime::Device;

    #[test]
    fn requested_options_are_kept() {
        let device = Device::simulator();
        let options = dependent(&device.with().cluster([2, 1, 1])).options();
        assert!(options.dependent && options.cluster == Some([2, 1, 1]));
        let stream = device.stream().expect("a stream");
        assert!(!dependent_if(false, &stream).options().dependent);
        assert!(dependent_if(false, &dependent(&stream)).options().dependent);
        assert!(dependent(&stream).stream().is_some() && dependent(&stream).options().cluster.is_none());
    }
}
