//! Rules for clusters.

use tma_model::limits::cluster_blocks;

/// A rule for clusters that a launch breaks. Displays the rule; [`Error`](super::Error) adds kernel
/// and code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ClusterError {
    /// The grid does not consist of whole clusters.
    #[error(
        "a grid must consist of whole clusters, but {found} blocks along {axis} are not a multiple of the \
         cluster's {cluster}; launch {} and let the extra blocks do nothing, or use smaller clusters",
        .found.checked_next_multiple_of(*.cluster).unwrap_or(*.cluster)
    )]
    Grid {
        /// `x`, `y` or `z`.
        axis: char,
        /// Blocks of the grid along the axis.
        found: u32,
        /// Blocks of a cluster along the axis.
        cluster: u32,
    },

    /// A cluster without blocks, or with more blocks than the kernel may be launched with.
    #[error(
        "a cluster has 1 to {most} blocks: this one has {} × {} × {}; {}",
        .found[0], .found[1], .found[2],
        if .found.contains(&0) {
            "make each extent at least 1"
        } else if *.most < cluster_blocks(true) {
            "use fewer, or `nonportable_cluster` for up to 16, which not every device supports"
        } else {
            "use fewer"
        }
    )]
    Size {
        /// Blocks along x, y and z.
        found: [u32; 3],
        /// The maximum number of blocks.
        most: u32,
    },

    /// The cluster size of the kernel is chosen at launch, but the launch sets none.
    #[error(
        "the size of its clusters is set at launch; write `launch(device.with().cluster([2, 1, 1]), ..)`"
    )]
    Missing,

    /// A launch sets a cluster size for a kernel that does not take one.
    #[error(
        "{}; launch without `cluster(..)`, or write `cluster = launch` in its attribute",
        match .fixed {
            Some([x, y, z]) => format!("its attribute fixes the clusters to {x} × {y} × {z} blocks"),
            None => "it has no clusters".to_owned(),
        }
    )]
    Given {
        /// The size fixed by the kernel's attribute, if any.
        fixed: Option<[u32; 3]>,
    },
}
