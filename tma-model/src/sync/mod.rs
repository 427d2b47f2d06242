//! The arithmetic of synchronisation: what comes before what, and how barriers and groups count.
//!
//! | module | what it holds |
//! | --- | --- |
//! | [`clock`] | vector clocks over numbered agents |
//! | [`view`] | what an agent knows of the others, and how it releases and acquires that |
//! | [`access`] | which two accesses conflict, and what has to lie between them |
//! | [`mbarrier`] | the counts of an mbarrier: arrivals, bytes, phases |
//! | [`phase`] | what the completion of an mbarrier's phase orders |
//! | [`group`] | groups of asynchronous copies |
//! | [`parts`] | what a state consists of, for who compares states |
//! | [`fence`] | fences, scopes and memory orders, with their names in PTX |
//!
//! Nothing here knows threads, addresses or findings. Whoever uses it numbers its agents (threads,
//! groups of threads, barriers' phases, bulk groups), and makes messages of the faults, which are
//! plain data.

pub mod access;
pub mod clock;
pub mod fence;
pub mod group;
pub mod mbarrier;
pub mod parts;
pub mod phase;
pub mod view;

pub use access::{Access, AccessKind, Hazard, Proxy, Requirement};
pub use clock::{Clock, Component, Epoch};
pub use fence::{Fence, FencedMemory, Memory, MemoryScope, Order, Scope, Semantics};
pub use group::{BulkGroups, CopyGroups, GroupEnd, GroupWait};
pub use mbarrier::{Arrival, Awaited, MbarrierCount, MbarrierFault};
pub use parts::Part;
pub use phase::{Issue, Issues, PhaseOrder, Wait};
pub use view::{Acquirer, ByMemory, Knowledge, Releases, View};
