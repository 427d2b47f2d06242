//! The protocol of barriers: who waits for whom, who may use which memory when, and whether
//! anything is waited for that never comes.
//!
//! | module | what it holds |
//! | --- | --- |
//! | `slice`, `code` | what of a kernel matters, as steps with jumps |
//! | `term`, `facts`, `launch` | what a launch brings, what was decided of it, examples |
//! | `lanes`, `value` | what expressions are, for groups of threads |
//! | `run`, `state`, `choices` | one world: groups that take turns, and what was decided |
//! | `history` | what a world remembers for its messages |
//! | `effects`, `accesses`, `atomics`, `barriers`, `copies`, `meetings` | what statements do in it |
//! | `memory` | accesses to shared and global memory, and which of them nothing orders |
//! | `banks` | bank conflicts of accesses whose addresses are known |
//! | `deadlock`, `finding`, `explain` | what is wrong, and what is said of it |
//! | `explore` | all worlds and elections of a kernel, how much is looked at, and what follows |
//! | `repair` | the step that a wrong kernel lacks |
//! | `outline` | what instances have in common that are right together |
//!
//! `docs/protocol.md` says what is proved, how, and what is not.

mod accesses;
mod atomics;
mod banks;
mod barriers;
mod choices;
mod code;
mod copies;
mod deadlock;
mod decide;
mod effects;
mod explain;
mod explore;
mod facts;
mod finding;
mod groups;
mod history;
mod lanes;
mod launch;
mod meetings;
mod memory;
mod outline;
mod proof;
mod repair;
mod run;
mod slice;
mod state;
mod term;
mod value;

pub use banks::SharedAccess;
pub use explore::{Budget, Judgement, Report, Verdict, judge, report};
pub use finding::{Doubt, Why};
pub use outline::outline;
pub use repair::with_missing_step;
