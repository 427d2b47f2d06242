//! The metrics of each line of the source.

use std::collections::{BTreeMap, BTreeSet};

use super::stalls::{ISSUES, Stall, Stalls, UNNAMED};
use super::table;

/// The size of a sector, in which global memory is accessed. Source: CUDA C++ Best Practices Guide,
/// "Coalesced Access to Global Memory".
const SECTOR: u64 = 32;

/// The prefix of columns with samples by reason. Those of samples in which no warp issued have the
/// suffix.
const STALL: &str = "stall_";
const NOT_ISSUED: &str = " (Not Issued)";

/// The metrics of a line, summed up over its instructions.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct LineMetrics {
    pub(super) file: String,
    /// The line, from 1.
    pub(super) line: u32,
    /// The text of the line, if the report has it.
    pub(super) code: Option<String>,
    /// Instructions that warps have executed.
    pub(super) instructions: u64,
    /// Wavefronts of shared memory beyond those that are needed, if `ncu` counts them.
    pub(super) conflicts: Option<u64>,
    /// Bytes of global memory that threads access. Those of copies are not counted by line.
    pub(super) global_bytes: Option<u64>,
    /// Samples of warps that do not issue, by reason.
    pub(super) stalls: BTreeMap<Stall, u64>,
    /// Samples of warps that issue.
    issues: u64,
}

impl LineMetrics {
    pub(super) fn place(&self) -> String {
        format!("{}:{}", self.file, self.line)
    }

    /// Returns the samples of warps at this line.
    pub(super) fn samples(&self) -> u64 {
        self.issues + self.stalls.values().sum::<u64>()
    }

    /// Returns the reasons, the one with the most samples first.
    pub(super) fn reasons(&self) -> Vec<(&Stall, u64)> {
        let mut reasons: Vec<_> = self.stalls.iter().map(|(stall, samples)| (stall, *samples)).collect();
        reasons.sort_by_key(|(stall, samples)| (std::cmp::Reverse(*samples), stall.words()));
        reasons
    }

    /// Returns whether the text shows the line: it has conflicts, or at least one of two hundred
    /// samples.
    pub(super) fn is_of_interest(&self, all: u64) -> bool {
        self.conflicts.is_some_and(|conflicts| conflicts > 0) || 200 * self.samples() >= all.max(1)
    }
}

/// An instruction, in the row of the page.
#[derive(Debug)]
struct InstructionRow {
    address: u64,
    text: String,
    /// The index of its line.
    line: usize,
    values: Vec<String>,
}

/// Reads the page with instructions under their lines, of the first launch of a kernel. A part of
/// the page begins with the path of a file and the entry point.
pub(super) fn read(page: &str, is_wanted: impl Fn(&str) -> bool) -> Vec<LineMetrics> {
    let (mut lines, mut rows, mut columns) = (Vec::<LineMetrics>::new(), vec![], Columns::default());
    let (mut file, mut is_read, mut seen) = (String::new(), false, BTreeSet::new());
    for row in table::rows(page) {
        match row.first().map(String::as_str) {
            Some("File Path" | "File Name") => row.get(1).unwrap_or(&String::new()).clone_into(&mut file),
            Some("Function Name" | "Kernel Name") => {
                let entry = row.get(1).cloned().unwrap_or_default();
                // A second part of the same file and kernel is of another launch.
                is_read = is_wanted(&entry) && seen.insert((file.clone(), entry));
            }
            Some("Line No") => columns = Columns::read(row),
            Some(_) if !is_read => {}
            Some("") => {
                let line = lines.len().checked_sub(1);
                rows.extend(line.and_then(|line| columns.instruction(row, line)));
            }
            Some(number) => {
                if let Some(number) = table::count(number) {
                    let code = row.get(1).filter(|code| !code.starts_with("<Unable")).cloned();
                    let line = u32::try_from(number).unwrap_or(u32::MAX);
                    lines.push(LineMetrics { file: file.clone(), line, code, ..LineMetrics::default() });
                }
            }
            None => {}
        }
    }
    rows.sort_by_key(|row| row.address);
    let mut stalls = Stalls::default();
    for row in &rows {
        columns.add(row, &mut stalls, &mut lines[row.line]);
    }
    lines
}

/// The columns that are read. A version of `ncu` may have more, or lack some.
#[derive(Debug, Default)]
struct Columns {
    address: Option<usize>,
    text: Option<usize>,
    instructions: Option<usize>,
    conflicts: Option<usize>,
    sectors: Option<usize>,
    samples: Option<usize>,
    /// The reasons, by name.
    stalls: Vec<(usize, String)>,
}

impl Columns {
    fn read(names: Vec<String>) -> Self {
        let at = |wanted: &str| names.iter().position(|name| name == wanted);
        let reason = |(at, name): (usize, &String)| {
            let reason = name.strip_prefix(STALL).filter(|reason| !reason.ends_with(NOT_ISSUED))?;
            Some((at, reason.to_owned()))
        };
        let address = at("Address");
        Self {
            address,
            // "Source" is a column of the source, and one of the instructions behind the address.
            text: address.map(|address| address + 1),
            instructions: at("Instructions Executed"),
            conflicts: at("L1 Wavefronts Shared Excessive"),
            sectors: at("L2 Theoretical Sectors Global"),
            samples: at("# Samples"),
            stalls: names.iter().enumerate().filter_map(reason).collect(),
        }
    }

    /// Returns the instruction of a row. Rows of dots stand for instructions of other lines.
    fn instruction(&self, values: Vec<String>, line: usize) -> Option<InstructionRow> {
        let digits = values.get(self.address?)?.strip_prefix("0x")?;
        let address = u64::from_str_radix(digits, 16).ok()?;
        let text = values.get(self.text?)?.clone();
        Some(InstructionRow { address, text, line, values })
    }

    /// Adds an instruction to its line.
    fn add(&self, row: &InstructionRow, stalls: &mut Stalls, line: &mut LineMetrics) {
        let count = |at: usize| row.values.get(at).and_then(|value| table::count(value)).unwrap_or(0);
        line.instructions += self.instructions.map_or(0, count);
        if let Some(conflicts) = self.conflicts.map(count) {
            *line.conflicts.get_or_insert(0) += conflicts;
        }
        if let Some(sectors) = self.sectors.map(count) {
            *line.global_bytes.get_or_insert(0) += SECTOR * sectors;
        }
        let named = self.stalls.iter().map(|(at, reason)| (reason.as_str(), count(*at)));
        let mut reasons: Vec<_> = named.filter(|(_, samples)| *samples > 0).collect();
        let known = reasons.iter().map(|(_, samples)| samples).sum();
        let unnamed = self.samples.map_or(0, count).saturating_sub(known);
        if unnamed > 0 {
            reasons.push((UNNAMED, unnamed));
        }
        for (stall, samples) in stalls.at(&row.text, reasons.into_iter()) {
            match stall {
                Stall::Named(name) if name == ISSUES => line.issues += samples,
                stall => *line.stalls.entry(stall).or_default() += samples,
            }
        }
    }
}
