//! Launches that prepare while the kernel before them still runs.

use tma_runtime::launch::{LaunchOn, With};

/// Where `on` launches, for a kernel that waits for the one before it by itself
/// (`grid_dependency_wait()`): its blocks start, and initialise their barriers, as soon as those of
/// the one before have let it (`grid_dependency_launch()`) or ended.
pub(crate) fn dependent(on: &impl LaunchOn) -> With<'_> {
    let with = match (on.capture(), on.stream()) {
        (Some(capture), _) => capture.with(),
        (None, Some(stream)) => stream.with(),
        (None, None) => on.device().with(),
    };
    match on.options().cluster {
        Some(extents) => with.cluster(extents).dependent(),
        None => with.dependent(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tma_runtime::Device;

    #[test]
    fn what_was_asked_for_is_kept() {
        let device = Device::simulator();
        let options = dependent(&device.with().cluster([2, 1, 1])).options();
        assert!(options.dependent && options.cluster == Some([2, 1, 1]));
        let stream = device.stream().expect("a stream");
        assert!(dependent(&stream).stream().is_some() && dependent(&stream).options().cluster.is_none());
    }
}
