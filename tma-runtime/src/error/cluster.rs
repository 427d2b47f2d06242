//! Rules of clusters.

/// A rule of clusters that a launch breaks. Displays the rule; [`Error`](super::Error) adds kernel
/// and code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ClusterError {
    /// The grid does not consist of whole clusters.
    #[error(
        "a grid is made of whole clusters, but {found} blocks along {axis} are no multiple of the \
         cluster's {cluster}: launch {} and let those without work do nothing, or take smaller \
         clusters",
        .found.checked_next_multiple_of(*.cluster).unwrap_or(*.cluster)
    )]
    Grid {
        /// `x`, `y` or `z`.
        axis: char,
        /// Blocks of the grid along it.
        found: u32,
        /// Blocks of a cluster along it.
        cluster: u32,
    },

    /// A cluster without blocks, or with more than the kernel may be launched with.
    #[error(
        "a cluster has 1 to {most} blocks, not {} × {} × {}: give fewer{}",
        .found[0], .found[1], .found[2],
        if *.most < 16 { "; up to 16, which not every device takes, are for kernels with `nonportable_cluster`" } else { "" }
    )]
    Size {
        /// Blocks along x, y and z.
        found: [u32; 3],
        /// The maximum number.
        most: u32,
    },

    /// The kernel takes its cluster's size at launch, but none was set.
    #[error("it takes the size of its clusters at launch: `launch(device.with().cluster([2, 1, 1]), ..)`")]
    Missing,

    /// A size was set for a kernel that does not take one.
    #[error(
        "{}: launch it without `cluster(..)`, or write `cluster = launch` in its attribute",
        match .fixed {
            Some([x, y, z]) => format!("its attribute fixes its clusters to {x} × {y} × {z} blocks"),
            None => "it has no clusters".to_owned(),
        }
    )]
    Given {
        /// The size that the attribute fixes, if any.
        fixed: Option<[u32; 3]>,
    },
}
