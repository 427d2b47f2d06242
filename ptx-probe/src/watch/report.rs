//! Reports of waits that took too long, and how they read.

use std::collections::{BTreeMap, BTreeSet};

use super::{REPORT_WORDS, Watched, value};
use crate::label;
use crate::site::{Awaited, Site, SiteKind};

/// The wait of a warp whose time was over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Report {
    /// The index of the instruction among the sites.
    pub site: u32,
    /// The number of the block in the grid, counted along x first.
    pub block: u32,
    /// The number of the warp in the block.
    pub warp: u32,
    /// The address of an mbarrier less that of the dynamic shared memory, or a barrier's number.
    pub operand: u32,
    /// The parity of the phase that was waited for, the arrivals that a barrier lacked, or the value
    /// of 32 bits that was polled.
    pub phase: u32,
    /// The arrivals that the phase of an mbarrier lacks. One warp of a block asks each mbarrier.
    pub pending: Option<u32>,
}

impl Report {
    /// Returns the reports in the host's memory, by block and warp.
    pub fn read(words: &[u32]) -> Vec<Self> {
        let (slots, _) = words.as_chunks::<REPORT_WORDS>();
        // A slot that is claimed but not written has all bits of its first word.
        let written = slots.iter().filter(|slot| slot[0] != 0 && slot[0] != u32::MAX);
        let mut reports: Vec<_> = written
            .map(|&[site, block, warp, _, operand, phase, pending, _]| Self {
                site: site - 1,
                block,
                warp,
                operand,
                phase,
                pending: pending.checked_sub(1),
            })
            .collect();
        reports.sort_by_key(|report| (report.block, report.warp));
        reports
    }
}

/// Says which warps waited for what, in the words of the simulator's report of a deadlock. Each
/// wait is two lines, unless its line in the source is unknown. `code` returns a line of a source
/// file, if it has the file.
pub fn describe(
    watched: &Watched,
    reports: &[Report],
    code: impl Fn(&str, u32) -> Option<String>,
) -> Vec<String> {
    let mut waits: BTreeMap<[u32; 3], Vec<&Report>> = BTreeMap::new();
    for report in reports {
        waits.entry([report.site, report.operand, report.phase]).or_default().push(report);
    }
    let mut lines = Vec::new();
    for ([site, operand, phase], reports) in waits {
        let Some(site) = watched.sites.get(site as usize) else { continue };
        let subject = subject(watched, site, operand, phase) + &lacking(&reports);
        let place = site.source.as_ref().map_or_else(String::new, |source| {
            let code = code(&source.file, source.line).map_or_else(String::new, |code| format!(": {code}"));
            format!("\n  from {}:{}{code}", source.file, source.line)
        });
        let verb = if reports.len() == 1 { "waits" } else { "wait" };
        lines.push(format!("{} {verb} {subject}{place}", warps(&reports)));
    }
    lines
}

/// Says what a warp waits for or at.
fn subject(watched: &Watched, site: &Site, operand: u32, phase: u32) -> String {
    let SiteKind::Wait(awaited) = site.kind else { return format!("for `{}`", site.instruction) };
    match awaited {
        Awaited::Mbarrier => {
            let mbarrier = match label::variable(&watched.names, operand) {
                Some(variable) => format!("the mbarrier `{}`", variable.object_at(operand).0),
                None => format!("the mbarrier at {operand:#x}"),
            };
            if super::phase(&site.instruction).is_some() {
                format!("for the phase with parity {phase} of {mbarrier}")
            } else {
                format!("for the phase of its token of {mbarrier}")
            }
        }
        Awaited::Barrier if phase == 1 => format!("at barrier {operand}, where 1 thread is missing"),
        Awaited::Barrier => format!("at barrier {operand}, where {phase} threads are missing"),
        Awaited::Cluster => "at the cluster's barrier".to_owned(),
        Awaited::Memory => {
            let space = if site.instruction.contains(".shared") { "shared" } else { "global" };
            match value(&site.instruction) {
                Some(_) => format!("for a value in {space} memory other than {phase}"),
                None => format!("in a loop until {space} memory changes"),
            }
        }
        Awaited::BulkGroups { pending, read } => {
            format!("for all but {pending} bulk groups{}", if read { " to be read" } else { "" })
        }
        Awaited::MultiplyGroups(pending) => format!("for all but {pending} groups of multiplications"),
        Awaited::Registers => "for registers".to_owned(),
        Awaited::Grids => "for the previous grids".to_owned(),
    }
}

/// Says what the mbarriers of these reports lack, if all that were asked lack the same.
fn lacking(reports: &[&Report]) -> String {
    let known: BTreeSet<u32> = reports.iter().filter_map(|report| report.pending).collect();
    match known.into_iter().collect::<Vec<_>>()[..] {
        [0] => ", where all have arrived, but bytes of copies are pending".to_owned(),
        [1] => ", where 1 arrival is pending".to_owned(),
        [pending] => format!(", where {pending} arrivals are pending"),
        _ => String::new(),
    }
}

/// Lists warps: those of one block by number, else how many of how many blocks.
fn warps(reports: &[&Report]) -> String {
    let blocks: BTreeSet<u32> = reports.iter().map(|report| report.block).collect();
    let numbers: BTreeSet<u32> = reports.iter().map(|report| report.warp).collect();
    let numbers: Vec<_> = numbers.iter().map(u32::to_string).collect();
    let (first, count) = (blocks.first().copied().unwrap_or_default(), blocks.len());
    let of = if count == 1 {
        format!("block {first}")
    } else {
        format!("{count} blocks (the first is block {first})")
    };
    let (noun, numbers) = (if numbers.len() == 1 { "warp" } else { "warps" }, numbers.join(", "));
    format!("{noun} {numbers} of {of}")
}
