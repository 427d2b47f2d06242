//! Mistakes with the slots of a pipeline, in the words of pipelines.

use tma_model::rule::Rule;

use super::{Counts, Protocol, StageRole, ThreadAct};
use crate::diag::wording::either;
use crate::ir::Span;

/// The tiles of a slot that no copy fills.
#[derive(Clone, Debug)]
pub struct UnloadedTiles {
    /// The variable with the slot.
    pub slot: String,
    /// The indices of the tiles.
    pub tiles: Vec<usize>,
    /// For each of the tiles, the parameter that could load it.
    pub maps: Vec<Option<String>>,
    /// The last load of another tile of the slot.
    pub after: Option<Span>,
    /// A load of one of the tiles, which is not always executed.
    pub sometimes: Option<Span>,
}

impl UnloadedTiles {
    /// Returns the tiles, as the source names them.
    fn names(&self) -> String {
        let names: Vec<_> = self.tiles.iter().map(|tile| format!("{}.{tile}", self.slot)).collect();
        either(names)
    }

    /// Describes the bytes that the slot, a `stage` of a pipeline, lacks.
    pub(super) fn text(&self, stage: &str, counts: Option<Counts>) -> String {
        let bytes = counts.map_or(String::new(), |counts| {
            format!(", which gets {} of its {} bytes", counts.received_bytes, counts.expected_bytes)
        });
        format!("wrong transaction bytes: no copy fills {} in {stage}{bytes}", self.names())
    }

    fn help(&self) -> String {
        if let Some(load) = self.sometimes {
            return format!("execute the load on line {} for each slot that is acquired", load.first_line());
        }
        let slot = &self.slot;
        let loads: Vec<_> = self
            .tiles
            .iter()
            .zip(&self.maps)
            .map(|(tile, map)| {
                let map = map.as_deref().unwrap_or("map");
                format!("{map}.load({slot}.{tile}, [..], {slot}.barrier());")
            })
            .collect();
        let place = self
            .after
            .map_or("after `acquire()`".to_owned(), |after| format!("after line {}", after.last_line()));
        format!("insert `{}` {place}, or remove the tile from the type of the pipeline", loads.join(" "))
    }
}

impl Protocol {
    /// Returns advice on how to follow the rule in a pipeline, if this is about one of its slots.
    pub(super) fn help_for_slot(&self) -> Option<String> {
        let role = self.subject.as_ref()?.role?;
        if let Some(unloaded) = &self.unloaded {
            return Some(unloaded.help());
        }
        let expected = self.counts.map_or(0, |counts| counts.expected);
        let arrivals = self.counts.map_or(0, |counts| counts.expected.saturating_sub(counts.pending));
        Some(match (self.rule, role) {
            (Rule::Deadlock, StageRole::Empty) if arrivals == 0 => {
                "call `release()` on each slot that a consumer waits for, after the last use of its tiles"
                    .to_owned()
            }
            (Rule::Deadlock, StageRole::Empty) => format!(
                "release each slot {expected} times, as `init({expected})` counts, or initialise the \
                 pipeline with the number of threads that release"
            ),
            (Rule::Deadlock, StageRole::Full) => {
                "acquire and load as many slots as consumers wait for; after \
                                                  a producer's `wait()`, call `announce()`"
                    .to_owned()
            }
            (Rule::Bytes, StageRole::Full) if self.without.is_empty() => {
                "load each tile of a slot once after `acquire()`, which announces the bytes of all of them"
                    .to_owned()
            }
            (Rule::Count, StageRole::Empty) if self.is_release() => {
                let times = if expected == 1 { "once".to_owned() } else { format!("{expected} times") };
                format!("release each slot {times}, as `init({expected})` counts, after waiting for it")
            }
            (Rule::Leak, StageRole::Full) if self.step.does == ThreadAct::IssueLoad => {
                "make a consumer wait for each slot that is loaded, before the kernel ends".to_owned()
            }
            (_, StageRole::Tile | StageRole::Full | StageRole::Empty) => return None,
        })
    }

    /// Whether threads release a slot.
    fn is_release(&self) -> bool {
        matches!(self.step.does, ThreadAct::Arrive | ThreadAct::ArriveTooOften | ThreadAct::ArriveEarly)
    }
}
