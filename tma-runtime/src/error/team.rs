//! Rules for teams of devices.

use super::DriverStatus;
use crate::layout::DeviceId;
use tma_model::limits::TEAM_RANKS;

/// A rule for teams that a call breaks. Displays the rule; [`Error`](super::Error) adds the code.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TeamError {
    /// A team would have no ranks, or too many.
    #[error(
        "a team has 1 to {TEAM_RANKS} ranks: {found} were requested; use the GPUs that NVLink joins in one \
         host, at most {TEAM_RANKS}"
    )]
    Size {
        /// The requested number of ranks.
        found: usize,
    },

    /// A GPU of a team cannot access the memory of another.
    #[error(
        "the devices of a team must access each other's memory: {from} cannot access {to}{}; choose GPUs \
         that NVLink or a common PCIe switch joins (`nvidia-smi topo -p2p r` lists them)",
        .status.as_ref().map_or_else(String::new, |status| format!(": {status}"))
    )]
    NoPeerAccess {
        /// The GPU that would access the memory.
        from: DeviceId,
        /// The GPU whose memory it is.
        to: DeviceId,
        /// The driver's status; `None` if the driver says that there is no access.
        status: Option<DriverStatus>,
    },

    /// A team has no rank of this number.
    #[error("the team has no rank {rank}: it has {}, numbered from 0", counted(*.ranks))]
    NoRank {
        /// The requested rank, from 0.
        rank: usize,
        /// The number of ranks.
        ranks: usize,
    },

    /// A call with something for each rank of a team has another number of them.
    #[error(
        "wrong number of {what}: {found} were passed, but the team has {}; pass one for each rank",
        counted(*.ranks)
    )]
    Count {
        /// The name of the things that were passed, in the plural.
        what: &'static str,
        /// The number that was passed.
        found: usize,
        /// The number of ranks.
        ranks: usize,
    },

    /// A launch on a team has another number of tensors for a parameter than ranks.
    #[error(
        "wrong number of tensors: kernel `{kernel}` got {found} for `{tensor}`, but the team has {}; pass one \
         for each rank",
        counted(*.ranks)
    )]
    Tensors {
        /// The kernel's name.
        kernel: &'static str,
        /// The name of the kernel's parameter.
        tensor: &'static str,
        /// The number of tensors that were passed.
        found: usize,
        /// The number of ranks.
        ranks: usize,
    },

    /// The tensors of two ranks for a parameter differ in shape, strides, element type or options.
    #[error(
        "the tensors of all ranks must be alike: `{tensor}` of rank {rank} has another shape, strides, \
         element type or options than that of rank 0; pass tensors of one shape"
    )]
    Unlike {
        /// The name of the kernel's parameter.
        tensor: &'static str,
        /// The first rank whose tensor differs from that of rank 0.
        rank: usize,
    },
}

fn counted(ranks: usize) -> String {
    format!("{ranks} rank{}", if ranks == 1 { "" } else { "s" })
}
