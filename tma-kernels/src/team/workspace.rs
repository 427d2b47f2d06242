//! The memory in which the ranks of a team synchronise, and exchange small tensors.

use tma_runtime::prelude::*;
use tma_runtime::{Error, Scalar, TeamError};

use super::CollectiveError;
use super::barrier::FLAGS_PER_BLOCK;
use crate::workspace::bytes_of;

/// The most blocks of a collective on each rank. The number of slots follows from it, and a block of
/// an all-reduce of 1 MiB then has one vector for each of its threads.
const MOST_BLOCKS: usize = 128;

/// The multiple of bytes of a slot: the size of a vector.
const VECTOR_BYTES: usize = 16;

/// The slots of a block, which it uses in turns.
const SLOTS: usize = 2;

/// The memory of a team's collectives on each rank: the flags of barriers, which begin as zeros, and
/// slots for tensors that are exchanged at once.
///
/// It belongs to a team, and any collective of that team may use it. Those that are queued on the
/// streams of the team run in order. A collective that runs at the same time as another one, such as in
/// a graph of its own, needs a workspace of its own.
///
/// It never grows. A call that fails before it is queued leaves it as it was. A process whose ranks do
/// not all run a call must make a new one.
#[derive(Debug)]
pub struct TeamWorkspace {
    /// The memory of each rank: flags, and slots after them.
    ranks: Vec<DeviceTensor<u32, 1>>,
    /// The most blocks of a grid.
    blocks: usize,
    /// The bytes of a slot.
    slot_bytes: usize,
}

impl TeamWorkspace {
    /// Allocates [`bytes`](Self::bytes) on each rank.
    ///
    /// # Errors
    ///
    /// The errors of [`Team::zeros`].
    pub fn new(team: &Team) -> Result<Self, Error> {
        let words = Self::bytes(team) / size_of::<u32>();
        let ranks = team.devices().map(|device| device.zeros([words])).collect::<Result<_, _>>()?;
        Ok(Self { ranks, blocks: blocks(team), slot_bytes: usual_slot_bytes(team) })
    }

    /// Returns the bytes of a workspace on each rank, with which every all-reduce of at most
    /// [`one_shot_bytes`](super::one_shot_bytes) exchanges its elements at once.
    pub fn bytes(team: &Team) -> usize {
        let blocks = blocks(team);
        flag_bytes(blocks) + SLOTS * blocks * usual_slot_bytes(team)
    }

    /// Makes a workspace of memory that another library has allocated: `bytes` bytes on each rank, from
    /// an address on that is a multiple of 128. With fewer than [`bytes`](Self::bytes), all-reduces use
    /// the method for large tensors earlier. The flags are filled with zeros now.
    ///
    /// ```
    /// use tma_kernels::team::{AllReduceOptions, TeamWorkspace, all_reduce};
    /// use tma_runtime::prelude::*;
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let team = Team::open()?;
    /// let memory = team.zeros::<u8, 1>([TeamWorkspace::bytes(&team)])?; // or another library's
    /// let addresses: Vec<_> = memory.views().map(|view| view.as_ptr()).collect();
    /// // SAFETY: the memory outlives the workspace, and is used for nothing else.
    /// let mut workspace = unsafe { TeamWorkspace::from_raw(&team, &addresses, memory.shape()[0])? };
    /// let mut x = team.zeros::<f32, 1>([100])?;
    /// all_reduce(&team, &mut x, &mut workspace, AllReduceOptions::default())?;
    /// # drop(workspace);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Safety
    ///
    /// The conditions of [`DeviceTensor::from_raw`] for `bytes` bytes of each rank's device, which the
    /// devices of all ranks can access. They are used by nothing else as long as the workspace is.
    ///
    /// # Errors
    ///
    /// `TMA0636` if there is not one address for each rank, `TMA0570` for fewer bytes than the flags
    /// take, and the errors of [`DeviceTensor::from_raw`].
    pub unsafe fn from_raw(team: &Team, addresses: &[u64], bytes: usize) -> Result<Self, CollectiveError> {
        if addresses.len() != team.ranks() {
            let (found, ranks) = (addresses.len(), team.ranks());
            return Err(Error::from(TeamError::Count { what: "addresses", found, ranks }).into());
        }
        let blocks = blocks(team);
        let Some(of_slots) = bytes.checked_sub(flag_bytes(blocks)) else {
            return Err(CollectiveError::Workspace { found: bytes, wanted: flag_bytes(blocks) });
        };
        let mut ranks = vec![];
        for (device, address) in team.devices().zip(addresses) {
            // SAFETY: as the caller promises, for no more bytes than are given.
            let (memory, mut flags) = unsafe {
                (
                    DeviceTensor::from_raw(device, *address, [bytes / size_of::<u32>()])?,
                    DeviceTensor::<u32, 1>::from_raw(device, *address, [blocks * FLAGS_PER_BLOCK as usize])?,
                )
            };
            flags.fill_bytes(0)?;
            ranks.push(memory);
        }
        let slot_bytes = of_slots / (SLOTS * blocks) / VECTOR_BYTES * VECTOR_BYTES;
        Ok(Self { ranks, blocks, slot_bytes })
    }

    /// Returns the most blocks of a grid.
    pub(super) fn blocks(&self) -> usize {
        self.blocks
    }

    /// Returns the bytes of a slot.
    pub(super) fn slot_bytes(&self) -> usize {
        self.slot_bytes
    }

    /// Returns the error that slots are smaller than so many bytes.
    pub(super) fn too_small(&self, slot_bytes: usize) -> CollectiveError {
        let slot_bytes = slot_bytes.next_multiple_of(VECTOR_BYTES);
        let wanted = flag_bytes(self.blocks) + SLOTS * self.blocks * slot_bytes;
        let found = self.ranks.first().map_or(0, DeviceTensor::bytes);
        CollectiveError::Workspace { found: found as usize, wanted }
    }

    /// Returns the memory of each rank, for the flags of barriers.
    pub(super) fn flags(&mut self) -> Vec<TensorViewMut<'_, u32, 1>> {
        self.ranks.iter_mut().map(DeviceTensor::view_mut).collect()
    }

    /// Returns the memory of each rank for the flags of barriers, and its slots as elements of `T`.
    pub(super) fn flags_and_slots<T: Scalar>(
        &mut self,
    ) -> (Vec<TensorViewMut<'_, u32, 1>>, Vec<TensorViewMut<'_, T, 1>>) {
        let len = SLOTS * self.blocks * self.slot_bytes / size_of::<T>();
        let first = flag_bytes(self.blocks) as u64;
        let slots = self.ranks.iter().map(|memory| {
            // SAFETY: the slots lie behind the flags, in the memory of this workspace, which the launch
            // borrows mutably with them. Flags and slots do not overlap, as kernels use them. All bits are
            // elements of these types.
            unsafe { TensorViewMut::from_raw(memory.device(), memory.as_ptr() + first, [len], [1]) }
        });
        let slots = slots.collect();
        (self.flags(), slots)
    }
}

/// Returns the most blocks of a team's collectives on each rank: all of them must run at the same time,
/// also if ranks share a GPU. One block fits on each multiprocessor.
fn blocks(team: &Team) -> usize {
    let of_device = |device: &Device| {
        let sharing = team.devices().filter(|other| other.id() == device.id()).count();
        device.multiprocessors() as usize / sharing.max(1)
    };
    team.devices().map(of_device).min().unwrap_or(1).clamp(1, MOST_BLOCKS)
}

/// Returns the bytes of the flags of so many blocks.
const fn flag_bytes(blocks: usize) -> usize {
    bytes_of::<u32>(blocks * FLAGS_PER_BLOCK as usize)
}

/// Returns the bytes of a slot in a workspace that is large enough by default. The elements after the
/// last vector take one more.
fn usual_slot_bytes(team: &Team) -> usize {
    let of_block = super::one_shot_bytes(team.ranks()).div_ceil(blocks(team));
    of_block.next_multiple_of(VECTOR_BYTES) + VECTOR_BYTES
}
