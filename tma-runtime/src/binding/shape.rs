//! Grid, clusters and start conditions of a launch, checked before it reaches a backend.

use crate::binding::grid::Grid;
use crate::error::{ClusterError, Error};
use crate::spec::{Cluster, KernelParts};
use std::time::Duration;

/// Requirements of a launch besides grid and arguments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LaunchOptions {
    /// Blocks of a cluster along x, y and z.
    pub cluster: Option<[u32; 3]>,
    /// Whether the kernel may start before the previous one has ended.
    pub dependent: bool,
    /// Whether the launch is traced (`With::trace`).
    pub trace: bool,
    /// The most time that a wait may take (`With::watched`).
    pub limit: Option<Duration>,
    /// Whether blocks wait for others of their grid (`WithTeam::resident`).
    pub resident: bool,
}

/// The grid of a launch, its clusters, and the conditions under which it starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    /// Blocks along x, y and z.
    pub(crate) grid: [u32; 3],
    /// Blocks of a cluster along x, y and z. They divide `grid`, and are 1 without clusters.
    pub(crate) cluster: [u32; 3],
    /// Whether all blocks must run at the same time.
    pub(crate) cooperative: bool,
    /// Whether the kernel may start before the previous one has ended.
    pub(crate) dependent: bool,
}

/// Returns the product of the extents, saturating.
pub(crate) fn volume(extents: [u32; 3]) -> u32 {
    extents.into_iter().fold(1, u32::saturating_mul)
}

/// Returns the shape of a launch of `spec`.
///
/// # Errors
///
/// The errors of [`Grid::checked`], [`Error::Cluster`] and [`Error::NeverWaits`].
pub(crate) fn shape(spec: &KernelParts, grid: Grid, options: LaunchOptions) -> Result<Shape, Error> {
    let kernel = spec.name;
    let grid = grid.checked(kernel)?;
    let cluster = cluster(spec, options)?;
    for (i, axis) in ['x', 'y', 'z'].into_iter().enumerate() {
        let (found, cluster) = (grid[i], cluster[i]);
        if !found.is_multiple_of(cluster) {
            return Err(Error::Cluster { kernel, why: ClusterError::Grid { axis, found, cluster } });
        }
    }
    if options.dependent && !spec.dependency_wait {
        return Err(Error::NeverWaits { kernel });
    }
    Ok(Shape { grid, cluster, cooperative: spec.cooperative, dependent: options.dependent })
}

/// Returns the blocks of a cluster along x, y and z, which are 1 without clusters.
///
/// # Errors
///
/// [`Error::Cluster`].
pub(crate) fn cluster(spec: &KernelParts, options: LaunchOptions) -> Result<[u32; 3], Error> {
    given_or_fixed(spec.cluster, options.cluster).map_err(|why| Error::Cluster { kernel: spec.name, why })
}

fn given_or_fixed(taken: Cluster, given: Option<[u32; 3]>) -> Result<[u32; 3], ClusterError> {
    match (taken, given) {
        (Cluster::None, None) => Ok([1; 3]),
        (Cluster::Fixed(extents), None) => Ok(extents),
        (Cluster::None, Some(_)) => Err(ClusterError::Given { fixed: None }),
        (Cluster::Fixed(extents), Some(_)) => Err(ClusterError::Given { fixed: Some(extents) }),
        (Cluster::AtLaunch { .. }, None) => Err(ClusterError::Missing),
        (Cluster::AtLaunch { most }, Some(found)) => {
            let blocks = found.iter().fold(1u64, |all, &extent| all.saturating_mul(u64::from(extent)));
            let fits = (1..=u64::from(most)).contains(&blocks);
            if fits { Ok(found) } else { Err(ClusterError::Size { found, most }) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shaped(taken: Cluster, grid: Grid, given: Option<[u32; 3]>) -> Result<[u32; 3], &'static str> {
        let spec = KernelParts { cluster: taken, ..KernelParts::NOTHING };
        let options = LaunchOptions { cluster: given, ..LaunchOptions::default() };
        shape(&spec, grid, options).map(|shape| shape.cluster).map_err(|error| error.code())
    }

    #[test]
    fn tma0621_grids_are_made_of_whole_clusters() {
        let fixed = Cluster::Fixed([2, 2, 1]);
        assert_eq!(shaped(fixed, Grid::new(4, 2, 3), None), Ok([2, 2, 1]));
        assert_eq!(shaped(fixed, Grid::new(3, 2, 3), None), Err("TMA0621"));
        assert_eq!(shaped(fixed, Grid::new(4, 1, 3), None), Err("TMA0621"));
        assert_eq!(shaped(Cluster::AtLaunch { most: 8 }, Grid::x(9), Some([2, 1, 1])), Err("TMA0621"));
        assert_eq!(shaped(Cluster::None, Grid::x(9), None), Ok([1; 3]));
    }

    #[test]
    fn tma0622_a_cluster_has_one_block_to_as_many_as_the_kernel_takes() {
        let at_launch = Cluster::AtLaunch { most: 8 };
        let grid = Grid::new(16, 16, 16);
        assert_eq!(shaped(at_launch, grid, Some([2, 2, 2])), Ok([2, 2, 2]));
        assert_eq!(shaped(at_launch, grid, Some([16, 1, 1])), Err("TMA0622"));
        assert_eq!(shaped(at_launch, grid, Some([0, 1, 1])), Err("TMA0622"));
        assert_eq!(shaped(at_launch, grid, Some([u32::MAX; 3])), Err("TMA0622"));
        assert_eq!(shaped(Cluster::AtLaunch { most: 16 }, grid, Some([16, 1, 1])), Ok([16, 1, 1]));
    }

    #[test]
    fn tma0623_a_kernel_that_takes_a_size_gets_one() {
        let at_launch = Cluster::AtLaunch { most: 8 };
        assert_eq!(shaped(at_launch, Grid::x(4), None), Err("TMA0623"));
        assert_eq!(shaped(at_launch, Grid::x(4), Some([1; 3])), Ok([1; 3]));
    }

    #[test]
    fn tma0624_a_kernel_that_takes_no_size_gets_none() {
        assert_eq!(shaped(Cluster::Fixed([2, 1, 1]), Grid::x(4), Some([2, 1, 1])), Err("TMA0624"));
        assert_eq!(shaped(Cluster::None, Grid::x(4), Some([1; 3])), Err("TMA0624"));
    }

    #[test]
    fn tma0626_early_launches_wait_for_the_previous_kernel() {
        let launched = |dependent, dependency_wait| {
            let options = LaunchOptions { dependent, ..LaunchOptions::default() };
            let spec = KernelParts { dependency_wait, ..KernelParts::NOTHING };
            shape(&spec, Grid::x(1), options).map(|shape| shape.dependent).map_err(|error| error.code())
        };
        assert_eq!(launched(true, false), Err("TMA0626"));
        assert_eq!(launched(true, true), Ok(true));
        assert_eq!(launched(false, true), Ok(false));
        assert_eq!(launched(false, false), Ok(false));
    }
}
