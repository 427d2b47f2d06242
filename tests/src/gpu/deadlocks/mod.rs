//! Mutants that deadlock, each run with limited waits in a process of its own.
//!
//! [`list`] finds them: it runs the mutants of [`crate::mutation`] on the simulator, and keeps those
//! that it reports as deadlocks, with the [barriers](awaited) that their threads wait for. [`trial`]
//! is what a child process does: it launches one mutant, on a GPU or on the simulator, and says how
//! the launch ended. [`run`] starts the children and stops those that hang, and [`table`] counts how
//! they ended.

pub mod awaited;
pub mod list;
pub mod run;
pub mod table;
pub mod trial;

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

/// A mutant that deadlocks on the simulator.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeadlockMutant {
    /// The check that launches the kernel.
    pub test: String,
    /// The kernel's name, with that of its instance.
    pub kernel: String,
    /// The symbol of the kernel's entry.
    pub entry: String,
    /// The change of the step: a [`Change`](crate::mutation::steps::Change) as text.
    pub step: String,
    /// The line of the kernel's PTX, counted from 1.
    pub line: usize,
    /// The barriers and other things that threads wait for, under any of the simulator's seeds.
    pub awaited: BTreeSet<String>,
    /// The kinds of the simulator's other findings.
    pub also: BTreeSet<String>,
}

impl DeadlockMutant {
    /// Returns whether the deadlock is the only finding. If the simulator finds something else as
    /// well, such as a race, the order of threads decides what happens, and a GPU has one of its own.
    pub fn is_certain(&self) -> bool {
        self.also.is_empty()
    }
}

/// How the launch of a mutant ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "ended")]
pub enum Ending {
    /// With the report of a deadlock.
    Deadlock {
        /// The barriers and other things that warps waited for.
        named: BTreeSet<String>,
        /// The whole report.
        text: String,
    },
    /// With another error.
    Error {
        /// The error's code, if it is one of the runtime's.
        code: Option<String>,
        /// The error.
        text: String,
    },
    /// Without an error, and with the right result.
    Right,
    /// Without an error of the runtime, and with a wrong result.
    Wrong,
    /// Not within the time of a process, which was killed.
    Hang,
}

/// The verdict on how a mutant ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// A report of a deadlock that names a barrier that the simulator names as well.
    Named,
    /// A report of a deadlock that names others.
    Misnamed,
    /// Another error.
    OtherError,
    /// The right result.
    Right,
    /// A wrong result.
    Wrong,
    /// No end.
    Hang,
}

impl Verdict {
    /// All verdicts, in the order of the table's columns.
    pub const ALL: [Self; 6] =
        [Self::Named, Self::Misnamed, Self::OtherError, Self::Right, Self::Wrong, Self::Hang];

    /// Returns the verdict on a mutant that ended like this.
    pub fn of(mutant: &DeadlockMutant, ending: &Ending) -> Self {
        match ending {
            Ending::Deadlock { named, .. } if named.is_disjoint(&mutant.awaited) => Self::Misnamed,
            Ending::Deadlock { .. } => Self::Named,
            Ending::Error { .. } => Self::OtherError,
            Ending::Right => Self::Right,
            Ending::Wrong => Self::Wrong,
            Ending::Hang => Self::Hang,
        }
    }

    /// Returns the verdict in words.
    pub const fn text(self) -> &'static str {
        match self {
            Self::Named => "named",
            Self::Misnamed => "misnamed",
            Self::OtherError => "other error",
            Self::Right => "right result",
            Self::Wrong => "wrong result",
            Self::Hang => "hang",
        }
    }
}

/// A launch of a mutant, as its process reports it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Launched {
    /// How it ended.
    pub ending: Ending,
    /// The time of the whole check, in seconds.
    pub seconds: f64,
}

/// A mutant that has run: a line of the output.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DeadlockTrial {
    /// The mutant.
    pub mutant: DeadlockMutant,
    /// The verdict on it.
    pub verdict: Verdict,
    /// Its launch.
    pub launched: Launched,
    /// The time of its whole process in seconds.
    pub process_seconds: f64,
}
