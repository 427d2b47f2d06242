//! Collective operations and shared resources of warpgroups.

use std::fmt::{self, Display};

use crate::diag::Code;
use crate::diag::mistake::Word;
use crate::diag::text::Text;
use crate::ir::Span;
use crate::limits::NAMED_BARRIERS;

/// A mistake in the collective operations or the shared resources of a warpgroup.
#[derive(Clone, Debug)]
pub enum Warpgroup {
    /// A collective operation at a point where threads may have diverged, and the cause.
    /// `odd_warp` is the only warp after the last warpgroup, if there is one.
    Diverged { word: Word, of_warp: bool, cause: Option<(Difference, Span)>, odd_warp: Option<u32> },
    /// A collective operation with an argument that differs among its threads, and the cause.
    NonUniformArgument { word: Word, of_warp: bool, cause: Option<(Difference, Span)> },
    /// More warpgroups to synchronise than there are free barriers. `named` and `greatest` are the
    /// count and the largest number of the barriers that the kernel names. `computed` is the
    /// location of a number that is computed.
    Barriers { warpgroups: usize, named: usize, greatest: u32, computed: Option<Span> },
    /// A change of a warpgroup's register count in the wrong direction.
    Direction { increases: bool, registers: u32, has: u32, begins: u32 },
    /// The warpgroups' final register counts exceed those they begin with. `fits` registers would
    /// fit here. `given` is a warpgroup that releases some.
    Pool { ends: Vec<u32>, begins: u32, fits: u32, given: Option<(u32, Span)> },
}

/// The cause of a difference between threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Difference {
    Thread,
    Lane,
    Warp,
    Elected,
    Atomic,
    Elements,
    Lanes,
    PollTiming,
    Ptx,
}

impl Warpgroup {
    pub(in crate::diag::mistake) fn text(&self) -> Text {
        match self {
            Self::Diverged { word, of_warp, cause, odd_warp } => {
                let threads = threads_of(*of_warp);
                let message =
                    format!("`{word}` must be reached by all {threads}, but they may have diverged");
                because(Text::new(Code::Divergent, message), "they diverge here", *cause).help(
                    match (*cause, *odd_warp) {
                        (Some((Difference::Warp, _)), Some(warp)) if !of_warp => format!(
                            "let the last warp take the other path, `warp_idx() == {warp}`: a warpgroup is four \
                             warps, the first of which has a multiple of 4 as its index"
                        ),
                        _ => format!("make the conditions around it depend only on {}", same_in(*of_warp)),
                    },
                )
            }
            Self::NonUniformArgument { word, of_warp, cause } => {
                let threads = threads_of(*of_warp);
                let message = format!("the arguments of `{word}` must be the same in all {threads}");
                because(Text::new(Code::Divergent, message), "they differ here", *cause)
                    .help(format!("compute them from {}", same_in(*of_warp)))
            }
            Self::Barriers { warpgroups, named, greatest, computed } => {
                let all = NAMED_BARRIERS - 1;
                let help =
                    "use fewer named barriers, from 1 on, or synchronise the warpgroups at named barriers";
                match computed {
                    None => {
                        let message = format!(
                            "the {warpgroups} warpgroups need one barrier each, but the kernel uses {named} \
                             of {all}"
                        );
                        Text::new(Code::WarpgroupBarriers, message).help(help)
                    }
                    Some(span) => {
                        let message = format!(
                            "the {warpgroups} warpgroups need the last of the {all} named barriers, but the \
                             kernel uses number {greatest} itself"
                        );
                        Text::new(Code::WarpgroupBarriers, message)
                            .label(*span, "this number is computed, and may be any of the others")
                            .help(help)
                    }
                }
            }
            Self::Direction { increases, registers, has, begins } => {
                let (word, other, opposite) = match increases {
                    true => ("inc", "dec", "decrease"),
                    false => ("dec", "inc", "increase"),
                };
                let message = format!(
                    "`setmaxnreg_{word}::<{registers}>` cannot {opposite} the registers of a thread, which \
                     has {has}"
                );
                Text::new(Code::RegisterPool, message)
                    .note(format!("the threads of the block start with {begins} registers each"))
                    .help(format!("use `setmaxnreg_{other}::<{registers}>()` to {opposite} them"))
            }
            Self::Pool { ends, begins, fits, given } => {
                let message = format!(
                    "this increase would wait forever: the warpgroups request {} registers, but start with \
                     {}",
                    sum(ends),
                    sum(&vec![*begins; ends.len()])
                );
                let text = Text::new(Code::RegisterPool, message)
                    .help(format!("request {fits} here, or let warpgroups that copy keep fewer"));
                match given {
                    Some((registers, span)) => {
                        text.label(*span, format!("each thread of this warpgroup keeps {registers}"))
                    }
                    None => text,
                }
            }
        }
    }
}

impl Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Thread => "the value differs between threads",
            Self::Lane => "each lane has its own index",
            Self::Warp => "each warp has its own index",
            Self::Elected => "the value is true in one thread of each warp",
            Self::Atomic => "each thread gets the value before its own access",
            Self::Elements => "each thread holds its own elements",
            Self::Lanes => "each warp has its own result",
            Self::PollTiming => "each thread polls at a different time",
            Self::Ptx => "the effects of `ptx!` may differ among threads",
        })
    }
}

fn threads_of(of_warp: bool) -> &'static str {
    if of_warp { "threads of a warp" } else { "threads of a warpgroup" }
}

/// Names values that are the same in these threads.
fn same_in(of_warp: bool) -> &'static str {
    match of_warp {
        true => "`warp_idx()` and values that are the same in all threads",
        false => "`warpgroup_idx()` and values that are the same in all threads",
    }
}

fn because(text: Text, what: &str, cause: Option<(Difference, Span)>) -> Text {
    match cause {
        Some((difference, span)) => text.label(span, format!("{what}: {difference}")),
        None => text,
    }
}

/// Formats a sum, with equal terms combined: `40 + 2 × 232 = 504`.
fn sum(numbers: &[u32]) -> String {
    let mut terms: Vec<(u32, u32)> = vec![];
    for &number in numbers {
        match terms.iter_mut().find(|(known, _)| *known == number) {
            Some((_, times)) => *times += 1,
            None => terms.push((number, 1)),
        }
    }
    let term = |(number, times): &(u32, u32)| match times {
        1 => number.to_string(),
        _ => format!("{times} × {number}"),
    };
    let written: Vec<_> = terms.iter().map(term).collect();
    match terms.as_slice() {
        [(only, 1)] => only.to_string(),
        _ => format!("{} = {}", written.join(" + "), numbers.iter().sum::<u32>()),
    }
}
