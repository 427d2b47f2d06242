//! The trials of a tuning as a table for users.

use std::fmt;

use super::{Cache, Outcome, Trial, Tuned, Unit};

impl fmt::Display for Tuned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let origin = if self.cache == Cache::Hit { "cached" } else { "measured" };
        writeln!(f, "{}, {origin}", self.title)?;
        if let Some(problem) = problem(&self.cache) {
            writeln!(f, "{problem}")?;
        }
        let width = self.trials.iter().map(|trial| trial.name.chars().count()).max().unwrap_or(0);
        let unit = match self.unit {
            Unit::Microseconds => "µs",
            Unit::Instructions => "instructions",
        };
        writeln!(f, "  {:width$}  {unit:>12}  spread  of best", "candidate")?;
        let best = match self.trials.get(self.best).map(|trial| &trial.outcome) {
            Some(Outcome::Measured { cost, .. }) => *cost,
            Some(Outcome::Refused { .. }) | None => f64::NAN,
        };
        for (index, Trial { name, outcome }) in self.trials.iter().enumerate() {
            let mark = if index == self.best { '>' } else { ' ' };
            write!(f, "{mark} {name:width$}  ")?;
            match outcome {
                Outcome::Measured { cost, spread } => {
                    let digits = if self.unit == Unit::Instructions { 0 } else { 2 };
                    writeln!(f, "{cost:12.digits$}  {spread:6.3}  {:7.3}", cost / best)?;
                }
                Outcome::Refused { why } => writeln!(f, "rejected: {why}")?,
            }
        }
        Ok(())
    }
}

/// Describes the failure of the cache, if there was one.
pub(super) fn problem(state: &Cache) -> Option<String> {
    match state {
        Cache::Off | Cache::Hit | Cache::Miss => None,
        Cache::Damaged { path, why } => {
            Some(format!("the cached result in {} is damaged, measuring again: {why}", path.display()))
        }
        Cache::Unwritable { path, why } => {
            Some(format!("cannot write the result to {}: {why}", path.display()))
        }
    }
}
