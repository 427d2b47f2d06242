//! The checker of synchronisation protocols: mbarriers, asynchronous copies, proxy fences, and the
//! barriers of warps, warpgroups, blocks and clusters.
//!
//! The executions of a kernel are explored one by one. Everything that a launch brings (parameters,
//! block indices, loaded numbers) is a symbol, and happens-before is kept as vector clocks. The
//! clocks and the counts of mbarriers are those of the simulator (`tma_model::sync`).
//!
//! ```
//! use tma_front::diag::Sink;
//! use tma_front::parse::item::template::Elsewhere;
//! use tma_front::parse::{item::file, parse};
//! use tma_protocol::{Budget, Verdict, judge};
//!
//! let text = "
//!     #[tma_kernel(threads = 64)]
//!     fn k(out: Global<u32>) {
//!         let row: SharedArray<u32, 64> = shared();
//!         row.set(thread_idx().x, 7);
//!         sync_threads();
//!         out.set(thread_idx().x, row.get(63 - thread_idx().x));
//!     }";
//! let verdict = |text: &str| {
//!     let found = file::kernels_in(text, &Elsewhere::UNKNOWN);
//!     let (item, shared) = &found[0];
//!     let mut sink = Sink::default();
//!     let kernel = parse(item, shared, &mut sink).kernels.remove(0);
//!     let checked = tma_front::check::check(kernel, &mut sink).expect("it breaks no rule");
//!     judge(&checked, Budget::REPORT).verdict
//! };
//! assert!(matches!(verdict(text), Verdict::Proved));
//! assert!(matches!(verdict(&text.replace("sync_threads();", "")), Verdict::Broken(_)));
//! ```
//!
//! # Rules
//!
//! * TMA0701: every wait ends.
//! * TMA0702: each phase of an mbarrier expects exactly the bytes that are copied.
//! * TMA0703: an mbarrier is initialised once, by one thread. Arrivals and announcements of bytes
//!   count for the phase that they are meant for. Nothing uses an invalidated mbarrier.
//! * TMA0704: conflicting accesses of threads to shared memory are ordered, and so are accesses of
//!   threads and copies to global memory.
//! * TMA0705: a read of loaded data comes after a wait for the load.
//! * TMA0706: memory is refilled only after all reads of it are complete.
//! * TMA0707: a proxy fence separates accesses of threads from accesses of copies and tensor cores.
//! * TMA0708: the initialisation of an mbarrier is visible to the threads and copies that use it.
//! * TMA0709: no wait is overrun, i.e. the phase after the awaited one cannot complete before the
//!   wait.
//! * TMA0710: copies are complete before their thread or block ends, or their mbarrier is
//!   invalidated.
//! * TMA0711: a block does not end while other blocks may use its shared memory.
//! * TMA0712: all threads that a barrier is for reach it, at one statement where PTX asks for that.
//!
//! TMA0713 is in `plain_polls`, and TMA0714 in `global`.
//!
//! # Why one schedule suffices
//!
//! Each execution is followed in one schedule only. All its schedules have the same events, phases
//! and order if it meets six conditions, each of which is checked:
//!
//! * D1: what counts for a phase of an mbarrier, or for a round of a named barrier, comes after the
//!   previous phase or round.
//! * D2: no wait is overrun.
//! * D3: no decision depends on the schedule.
//! * D4: each announcement of bytes comes before some arrival of its phase.
//! * D5: registers suffice in any order of `setmaxnreg`.
//! * D6: no thread waits for a block that may not have started.
//!
//! A kernel that breaks D2 or D4 is wrong. One that breaks another condition is never proved.
//!
//! The argument is that of Kahn's process networks (1974), and of Weft for named barriers (Sharma,
//! Bauer, Aiken: *Verification of producer-consumer synchronization in GPU programs*, PLDI 2015).
//! Races follow from the order, as in FastTrack (Flanagan, Freund, PLDI 2009). `proof` extends the
//! result from the iterations that were followed to any number of them.
//!
//! # Not checked
//!
//! * Iterations beyond those that were followed, if `proof` fails. The verdict is then *checked up
//!   to n*.
//! * Order that only fences and atomics establish. Accesses that they may order are not decided.
//! * Whether threads of different blocks write the same elements of global memory, or read elements
//!   that other blocks write, except as far as `global` judges it.
//! * Findings that depend on several loaded numbers. Only the host knows which values occur
//!   together.
//! * Copies through tensor maps that the kernel edits in memory, and clusters of more than 16
//!   blocks.
//! * Statements that the kernel declares `#[trusted]`.
//! * The contents of memory: only which bytes are accessed and when, not whether the data is right.
//!
//! Numbers from a launch are assumed to be below half the range of their 32- or 64-bit type,
//! indices to be in bounds, and different parameters to be different memory. `docs/protocol.md` has
//! all assumptions, the proofs, and how they are tested.
//!
//! # Modules
//!
//! | module | contents |
//! | --- | --- |
//! | `slice`, `code` | the parts of a kernel that matter, as steps with jumps |
//! | `term`, `facts`, `launch` | symbols of a launch, facts decided about them, example launches |
//! | `groups`, `lanes`, `value` | groups of threads, and the values of expressions in them |
//! | `state`, `history` | one execution, and its records that no later step reads |
//! | `run`, `choices`, `decide` | following an execution: its schedule, its policy, its decisions |
//! | `effects`, `accesses`, `barriers` | effects of statements |
//! | `copies`, `multiplications`, `rendezvous` | effects of copies, tensor cores and barriers |
//! | `memory` | accesses to shared and global memory, and pairs that nothing orders |
//! | `banks` | bank conflicts of accesses whose addresses are known |
//! | `deadlock`, `finding`, `explain` | violations, and their diagnostics |
//! | `explore` | all executions and elections of a kernel, the budget, and the verdict |
//! | `proof` | proofs for any number of iterations |
//! | `repair` | the step that a wrong kernel lacks |
//! | `outline` | a text that instances share if they are right or wrong together |

#![warn(clippy::wildcard_enum_match_arm)]

mod accesses;
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
mod global;
mod groups;
mod history;
mod lanes;
mod launch;
mod memory;
mod multiplications;
mod outline;
mod proof;
mod rendezvous;
mod repair;
mod run;
mod slice;
mod slots;
mod state;
mod term;
mod value;

pub use banks::SharedAccess;
pub use explore::{Budget, Judgement, Report, Verdict, judge, report};
pub use finding::{Undecided, UndecidedReason};
pub use outline::outline;
pub use repair::with_missing_step;

/// Converts the number of something that is few: groups, terms and components, which have to fit in
/// the memory of a check, or threads and bytes, which the limits of a kernel bound. It saturates,
/// so that a mistake in a bound shows as a limit that is exceeded.
fn to_u32(number: impl TryInto<u32>) -> u32 {
    number.try_into().unwrap_or(u32::MAX)
}
