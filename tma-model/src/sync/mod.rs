//! The arithmetic of synchronisation: happens-before, and the counts of barriers and groups.
//!
//! | module | contents |
//! | --- | --- |
//! | [`clock`] | vector clocks over numbered agents |
//! | [`view`] | an agent's knowledge of the others, and how it is released and acquired |
//! | [`access`] | conflicting accesses, and the ordering that they require |
//! | [`mbarrier`] | the counts of an mbarrier: arrivals, bytes, phases |
//! | [`phase`] | the ordering that the completion of an mbarrier's phase establishes |
//! | [`group`] | groups of asynchronous copies |
//! | [`state`] | the parts of a state, for the comparison of states |
//! | [`fence`] | fences, scopes and memory orders, with their names in PTX |
//!
//! Nothing here depends on threads, addresses or diagnostics. The user numbers the agents (threads,
//! groups of threads, barriers' phases, bulk groups) and turns faults, which are plain data, into
//! messages.

pub mod access;
pub mod clock;
pub mod fence;
pub mod group;
pub mod mbarrier;
pub mod phase;
pub mod state;
pub mod view;

pub use access::{Access, AccessKind, Hazard, Proxy, Requirement};
pub use clock::{Clock, Component, Epoch};
pub use fence::{Fence, FencedMemory, Memory, MemoryScope, Order, Scope, Semantics};
pub use group::{BulkGroups, CopyGroups, GroupEnd, GroupWait};
pub use mbarrier::{Arrival, AwaitedPhase, MbarrierCount, MbarrierFault};
pub use phase::{Issue, Issues, PhaseOrder, Wait};
pub use state::StatePart;
pub use view::{Acquirer, ByMemory, Knowledge, Releases, View};
