//! The findings of a run: like with like, causes before what comes of them.

use super::{Finding, Role, Sources};

/// The kernel cannot go on, and the reason is among the findings: nothing but [`Findings::stop`]
/// makes one. So a launch cannot end early and read as clean.
///
/// ```compile_fail
/// let stop = ptx_sim::report::Stop(());
/// ```
#[derive(Debug, PartialEq, Eq)]
#[must_use = "what stops is told to whoever runs the kernel"]
pub struct Stop(());

/// All that is wrong: each rule once for a line of the source, and causes before what comes of
/// them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Findings {
    list: Vec<Finding>,
    /// Findings that differ from those kept, and are not.
    left_out: u64,
}

/// How many findings are kept that differ. More say nothing new.
const KEPT: usize = 256;

impl Findings {
    /// Adds a finding, or counts it if there is one of the same rule at the same line.
    pub fn add(&mut self, finding: Finding) {
        self.put(finding, KEPT);
    }

    /// Adds the finding for which a kernel cannot go on.
    pub fn stop(&mut self, finding: Finding) -> Stop {
        // However many there are.
        self.put(finding, usize::MAX);
        Stop(())
    }

    fn put(&mut self, finding: Finding, most: usize) {
        if let Some(known) = self.list.iter_mut().find(|known| known.is_like(&finding)) {
            known.absorb(finding);
        } else if self.list.len() < most {
            let role = |known: &Finding| -> Role { known.kind.role() };
            let place = self.list.partition_point(|known| role(known) <= role(&finding));
            self.list.insert(place, finding);
        } else {
            self.left_out += finding.times;
        }
    }

    /// Adds those of another run.
    pub fn extend(&mut self, other: Self) {
        self.left_out += other.left_out;
        for finding in other.list {
            self.add(finding);
        }
    }

    /// Whether nothing is wrong.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// How many there are that differ.
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// Each of them: causes before what comes of them, and otherwise in the order they were met.
    pub fn iter(&self) -> std::slice::Iter<'_, Finding> {
        self.list.iter()
    }

    /// All of them as text, with the lines of PTX and Rust that `sources` has.
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
