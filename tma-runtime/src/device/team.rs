//! Teams: devices that run one kernel together.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tma_model::limits::TEAM_RANKS;

use crate::backend::{Backend, cuda, sim};
use crate::device::stream::Stream;
use crate::device::{Device, Requested};
use crate::error::{Error, TeamError};

/// The number of simulated devices of [`Team::open`].
const SIMULATED: usize = 2;

/// Devices that run one kernel together, each of which can access the memory of the others: 1 to 8
/// GPUs of one host, or simulated devices. A device is identified by its *rank*, from 0.
///
/// A team is cheap to clone and may be shared between threads. Launches of several threads are
/// queued in the same order on all ranks.
///
/// Launches on the team are queued on a stream of each rank, [`stream`](Self::stream), and run in
/// order there. Ranks are not ordered with each other, except as their kernels synchronise: a rank
/// may begin the next launch while another still runs the previous one. Call
/// [`synchronize`](Self::synchronize) before another launch, on the team or on one of its devices,
/// uses memory that a peer may still access. Copies from and to the host wait for all devices on
/// which a launch may have accessed the memory, and memory is not freed before.
///
/// ```
/// use tma_runtime::prelude::*;
///
/// # fn main() -> Result<(), Error> {
/// let team = Team::simulator(2)?;
/// let flags = team.zeros::<u32, 1>([32])?;
/// assert_eq!(team.ranks(), 2);
/// assert_eq!(flags.rank(1)?.device().id(), team.device(1)?.id());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Team {
    ranks: Arc<Ranks>,
}

#[derive(Debug)]
struct Ranks {
    /// The stream of each rank.
    streams: Vec<Stream>,
    /// Held while a launch is queued on all streams.
    queueing: Mutex<()>,
}

/// Asserts that teams may be used from any thread.
const _: () = {
    const fn any_thread<T: Send + Sync>() {}
    any_thread::<Team>();
};

impl Team {
    /// Opens all GPUs, up to 8, if there are any and the program was built with the feature `cuda`.
    /// Otherwise it makes two simulated devices, if the program was built with the feature
    /// `ptx-sim`.
    ///
    /// The environment variable `TMA_DEVICE` overrides the choice, as for [`Device::open`]: `sim`,
    /// `cuda` for all GPUs, or `cuda:1` for a team of the second GPU alone.
    ///
    /// # Errors
    ///
    /// [`Error::UnknownDevice`] for any other value of the variable, [`Error::NoSimulator`], and
    /// the errors of [`Team::cuda`].
    pub fn open() -> Result<Self, Error> {
        match Requested::from_environment()? {
            Requested::Any => match Self::all_cuda() {
                Err(error) if error.is_absence() => Self::simulated(SIMULATED).map_err(|_| error),
                team => team,
            },
            Requested::Simulator => Self::simulated(SIMULATED),
            Requested::AllCuda => Self::all_cuda(),
            Requested::Cuda(ordinal) => Self::cuda(&[ordinal]),
        }
    }

    fn all_cuda() -> Result<Self, Error> {
        let ordinals: Vec<u32> = (0..cuda::Context::count()?.min(TEAM_RANKS)).collect();
        if ordinals.is_empty() {
            Err(Error::NoDevice { ordinal: 0, count: 0 })
        } else {
            Self::cuda(&ordinals)
        }
    }

    /// Opens GPUs, one for each rank, and lets each access the memory of the others. Ranks may share
    /// a GPU, to test a kernel on fewer GPUs than it is made for. The blocks of all ranks that wait
    /// for each other must then fit on it together.
    ///
    /// # Errors
    ///
    /// [`TeamError::Size`], [`TeamError::NoPeerAccess`] if a GPU cannot access the memory of another,
    /// and the errors of [`Device::cuda`].
    pub fn cuda(ordinals: &[u32]) -> Result<Self, Error> {
        check_size(ordinals.len())?;
        let contexts = ordinals.iter().map(|&ordinal| cuda::Context::open(ordinal));
        let contexts = contexts.collect::<Result<Vec<_>, _>>()?;
        for from in &contexts {
            for to in contexts.iter().filter(|to| to.id() != from.id()) {
                from.enable_peer(to)?;
            }
        }
        Self::new(contexts.into_iter().map(Backend::Cuda))
    }

    /// Makes a team whose ranks share the GPU of `device`, as [`Team::cuda`] does for a GPU that it is
    /// given several times. Of a simulated device it makes simulated ranks with its settings: the
    /// seed, limits and callbacks that it has now. The team's memory is not that of `device`.
    ///
    /// It suits tests that get a device and need a team:
    ///
    /// ```
    /// use tma_runtime::prelude::*;
    ///
    /// # fn main() -> Result<(), Error> {
    /// let team = Team::on(&Device::simulator().seed(3), 2)?;
    /// assert_eq!(team.ranks(), 2);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`TeamError::Size`] and [`Error::Driver`].
    pub fn on(device: &Device, ranks: usize) -> Result<Self, Error> {
        check_size(ranks)?;
        match device.backend() {
            Backend::Cuda(context) => Self::new(std::iter::repeat_n(Backend::Cuda(context), ranks)),
            Backend::Sim(context) => Self::new(context.team_alike(ranks).into_iter().map(Backend::Sim)),
        }
    }

    /// Makes simulated devices with one address space, if this build has the simulator.
    pub(super) fn simulated(ranks: usize) -> Result<Self, Error> {
        check_size(ranks)?;
        Self::new(sim::Context::team(ranks)?.into_iter().map(Backend::Sim))
    }

    fn new(backends: impl Iterator<Item = Backend>) -> Result<Self, Error> {
        let streams = backends.map(|backend| Device { backend }.stream());
        let streams = streams.collect::<Result<_, _>>()?;
        Ok(Self { ranks: Arc::new(Ranks { streams, queueing: Mutex::default() }) })
    }

    /// Returns the number of ranks.
    pub fn ranks(&self) -> usize {
        self.ranks.streams.len()
    }

    /// Returns the device of a rank.
    ///
    /// # Errors
    ///
    /// [`TeamError::NoRank`].
    pub fn device(&self, rank: usize) -> Result<&Device, Error> {
        self.stream(rank).map(Stream::device)
    }

    /// Returns the devices of all ranks, in order.
    pub fn devices(&self) -> impl ExactSizeIterator<Item = &Device> {
        self.streams().map(Stream::device)
    }

    /// Returns the stream of a rank, on which launches of the team are queued.
    ///
    /// # Errors
    ///
    /// [`TeamError::NoRank`].
    pub fn stream(&self, rank: usize) -> Result<&Stream, Error> {
        self.ranks.streams.get(rank).ok_or_else(|| TeamError::NoRank { rank, ranks: self.ranks() }.into())
    }

    /// Returns the streams of all ranks, in order.
    pub(crate) fn streams(&self) -> impl ExactSizeIterator<Item = &Stream> {
        self.ranks.streams.iter()
    }

    /// Lets no other thread queue a launch on the team until the result is dropped: launches must
    /// have the same order on all ranks, or two of them would wait for each other.
    pub(crate) fn queue_alone(&self) -> MutexGuard<'_, ()> {
        self.ranks.queueing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until everything queued on the devices of all ranks has run, also if it fails on some.
    ///
    /// # Errors
    ///
    /// [`Error::Ranks`] with the error of each rank that failed: [`Error::KernelFault`] if a kernel
    /// stopped with a trap or a fault, [`Error::Deadlock`] if a wait took longer than its limit, and
    /// [`Error::Driver`].
    pub fn synchronize(&self) -> Result<(), Error> {
        let ended = self.devices().map(Device::synchronize).enumerate();
        let failed: Vec<_> = ended.filter_map(|(rank, ended)| Some((rank, ended.err()?))).collect();
        if failed.is_empty() { Ok(()) } else { Err(Error::Ranks { ranks: self.ranks(), failed }) }
    }
}

/// Checks that a team may have `found` ranks.
///
/// # Errors
///
/// [`TeamError::Size`].
pub(crate) fn check_size(found: usize) -> Result<(), Error> {
    if (1..=TEAM_RANKS as usize).contains(&found) { Ok(()) } else { Err(TeamError::Size { found }.into()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code<T>(result: Result<T, Error>) -> Option<&'static str> {
        result.err().map(|error| error.code())
    }

    #[test]
    fn tma0634_a_team_has_1_to_8_ranks() {
        for (ranks, wanted) in [(0, Some("TMA0634")), (1, None), (8, None), (9, Some("TMA0634"))] {
            assert_eq!(code(Team::simulator(ranks)), wanted, "{ranks}");
        }
        assert_eq!(code(Team::cuda(&[])), Some("TMA0634"));
        assert_eq!(code(Team::cuda(&[0; 9])), Some("TMA0634"));
    }

    #[test]
    fn tma0636_ranks_are_below_their_number() {
        let team = Team::simulator(3).expect("a team");
        assert_eq!((code(team.device(2)), code(team.device(3))), (None, Some("TMA0636")));
        assert_eq!(code(team.stream(usize::MAX)), Some("TMA0636"));
    }

    #[test]
    fn simulated_ranks_share_one_address_space() {
        let team = Team::simulator(3).expect("a team");
        let devices: Vec<_> = team.devices().collect();
        let tensors: Vec<_> =
            devices.iter().map(|device| device.tensor(&[1u32, 2], [2]).expect("a tensor")).collect();
        for (index, tensor) in tensors.iter().enumerate() {
            assert!(tensors[..index].iter().all(|other| other.as_ptr() != tensor.as_ptr()));
            assert!(devices[..index].iter().all(|other| other.id() != tensor.device().id()));
            assert!(devices.iter().all(|device| device.reachable(tensor.as_ptr(), 8).is_ok()));
            assert_eq!(tensor.to_vec().ok(), Some(vec![1, 2]));
        }
        let alone = Device::simulator();
        assert_eq!(code(alone.reachable(tensors[2].as_ptr(), 8)), Some("TMA0618"));
        assert_eq!(code(team.synchronize()), None);
    }

    #[cfg(not(feature = "cuda"))]
    #[test]
    fn without_gpus_a_team_is_simulated() {
        assert_eq!(Team::open().map(|team| team.ranks()).ok(), Some(2));
        assert_eq!(code(Team::cuda(&[0, 1])), Some("TMA0603"));
    }
}
