//! Counts of the copies of the asynchronous engines.

use std::fmt;

/// The kind of an asynchronous copy: its engine, source and destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum CopyKind {
    /// `cp.async.bulk.tensor`, from global memory to the shared memory of one block.
    TensorLoad,
    /// `cp.async.bulk.tensor` with `.multicast::cluster`.
    TensorMulticast,
    /// `cp.async.bulk.tensor`, from shared to global memory.
    TensorStore,
    /// `cp.reduce.async.bulk.tensor`.
    TensorReduce,
    /// `cp.async.bulk.prefetch.tensor`.
    TensorPrefetch,
    /// `cp.async.bulk`, from global memory to the shared memory of one block.
    BulkLoad,
    /// `cp.async.bulk` with `.multicast::cluster`.
    BulkMulticast,
    /// `cp.async.bulk`, from shared to global memory.
    BulkStore,
    /// `cp.async.bulk`, from shared memory to that of another block of the cluster.
    BulkBetweenBlocks,
    /// `cp.async.bulk.prefetch`.
    BulkPrefetch,
}

impl CopyKind {
    /// All kinds, in the order in which they are shown.
    pub const ALL: [Self; 10] = [
        Self::TensorLoad,
        Self::TensorMulticast,
        Self::TensorStore,
        Self::TensorReduce,
        Self::TensorPrefetch,
        Self::BulkLoad,
        Self::BulkMulticast,
        Self::BulkStore,
        Self::BulkBetweenBlocks,
        Self::BulkPrefetch,
    ];

    /// Whether the kind copies from global to shared memory.
    pub fn is_load(self) -> bool {
        match self {
            Self::TensorLoad | Self::TensorMulticast | Self::BulkLoad | Self::BulkMulticast => true,
            Self::TensorStore
            | Self::TensorReduce
            | Self::TensorPrefetch
            | Self::BulkStore
            | Self::BulkBetweenBlocks
            | Self::BulkPrefetch => false,
        }
    }

    /// Whether the kind writes global memory.
    pub fn is_store(self) -> bool {
        match self {
            Self::TensorStore | Self::TensorReduce | Self::BulkStore => true,
            Self::TensorLoad
            | Self::TensorMulticast
            | Self::TensorPrefetch
            | Self::BulkLoad
            | Self::BulkMulticast
            | Self::BulkBetweenBlocks
            | Self::BulkPrefetch => false,
        }
    }
}

impl fmt::Display for CopyKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::TensorLoad => "tensor loads",
            Self::TensorMulticast => "multicast tensor loads",
            Self::TensorStore => "tensor stores",
            Self::TensorReduce => "tensor reductions",
            Self::TensorPrefetch => "tensor prefetches",
            Self::BulkLoad => "bulk loads",
            Self::BulkMulticast => "multicast bulk loads",
            Self::BulkStore => "bulk stores",
            Self::BulkBetweenBlocks => "bulk copies in the cluster",
            Self::BulkPrefetch => "bulk prefetches",
        })
    }
}

/// The number of copies, and the bytes that they moved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moved {
    /// Instructions, counted once for each thread that issues them.
    pub copies: u64,
    /// Bytes of shared memory that the copies write or read: whole boxes, including the part
    /// outside the tensor, and once for each block that a multicast writes to. For a prefetch, the
    /// bytes that it requests.
    pub bytes: u64,
}

/// The copies of the asynchronous engines, by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    moved: [Moved; CopyKind::ALL.len()],
}

impl Counters {
    /// Returns the counts of copies of one kind.
    pub fn of(&self, kind: CopyKind) -> Moved {
        self.moved[kind as usize]
    }

    /// Returns the counts of all kinds, including those without copies.
    pub fn iter(&self) -> impl Iterator<Item = (CopyKind, Moved)> + '_ {
        CopyKind::ALL.into_iter().map(|kind| (kind, self.of(kind)))
    }

    /// Returns the counts of copies from global to shared memory, of all kinds.
    pub fn loads(&self) -> Moved {
        self.total(CopyKind::is_load)
    }

    /// Returns the counts of copies from shared to global memory, of all kinds, reductions
    /// included.
    pub fn stores(&self) -> Moved {
        self.total(CopyKind::is_store)
    }

    fn total(&self, which: fn(CopyKind) -> bool) -> Moved {
        self.iter().filter(|(kind, _)| which(*kind)).fold(Moved::default(), |sum, (_, moved)| Moved {
            copies: sum.copies + moved.copies,
            bytes: sum.bytes + moved.bytes,
        })
    }

    /// Counts one copy.
    pub(in crate::machine) fn count(&mut self, kind: CopyKind, bytes: u64) {
        let moved = &mut self.moved[kind as usize];
        moved.copies += 1;
        moved.bytes += bytes;
    }

    /// Adds the counts of another cluster.
    pub(crate) fn add(&mut self, other: &Self) {
        for (moved, other) in self.moved.iter_mut().zip(&other.moved) {
            moved.copies += other.copies;
            moved.bytes += other.bytes;
        }
    }
}
