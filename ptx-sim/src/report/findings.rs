//! The findings of a run, with duplicates merged, and causes before their consequences.

use super::{Finding, Role, Sources};

/// Proof that the kernel cannot go on and that the reason is among the findings. Only
/// [`Findings::stop`] creates one, so a launch cannot end early and look clean.
///
/// ```compile_fail
/// let stop = ptx_sim::report::Stop(());
/// ```
#[derive(Debug, PartialEq, Eq)]
#[must_use = "what stops is told to whoever runs the kernel"]
pub struct Stop(());

/// All findings of a run. Each rule is reported once for a line of the source, and causes come
/// before their consequences.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Findings {
    list: Vec<Finding>,
    /// The number of distinct findings that were not kept.
    left_out: u64,
}

/// The most distinct findings that are kept. More add no information.
const MAX_FINDINGS: usize = 256;

impl Findings {
    /// Adds a finding, or counts it if there already is one for the same rule at the same line.
    pub fn add(&mut self, finding: Finding) {
        self.put(finding, MAX_FINDINGS);
    }

    /// Adds the finding that stops a kernel.
    pub fn stop(&mut self, finding: Finding) -> Stop {
        // This finding is always kept, however many there are.
        self.put(finding, usize::MAX);
        Stop(())
    }

    fn put(&mut self, finding: Finding, most: usize) {
        if let Some(known) = self.list.iter_mut().find(|known| known.is_like(&finding)) {
            known.absorb(finding);
        } else if self.list.len() < most {
            let role = |known: &Finding| -> Role { known.kind.role() };
            let index = self.list.partition_point(|known| role(known) <= role(&finding));
            self.list.insert(index, finding);
        } else {
            self.left_out += finding.times;
        }
    }

    /// Adds the findings of another run.
    pub fn extend(&mut self, other: Self) {
        self.left_out += other.left_out;
        for finding in other.list {
            self.add(finding);
        }
    }

    /// Returns whether there are no findings.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Returns the number of distinct findings.
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// Returns the findings: causes before their consequences, and otherwise in the order in which
    /// they were found.
    pub fn iter(&self) -> std::slice::Iter<'_, Finding> {
        self.list.iter()
    }

    /// Formats all findings, with the lines of PTX and Rust that `sources` has.
    pub fn render(&self, sources: &Sources<'_>) -> String {
        let mut texts: Vec<_> = self.list.iter().map(|finding| finding.render(sources)).collect();
        if self.left_out > 0 {
            texts.push(format!("and {} more, at other lines\n", self.left_out));
        }
        texts.join("\n")
    }
}

impl<'f> IntoIterator for &'f Findings {
    type Item = &'f Finding;
    type IntoIter = std::slice::Iter<'f, Finding>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}
