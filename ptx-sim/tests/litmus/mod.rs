//! Litmus tests: small programs of a few threads, and the outcomes that the memory model allows,
//! each under many seeds. The names are those of the literature on memory models.

use std::collections::BTreeSet;

use ptx_sim::{Arg, Checks, FindingKind, GlobalMemory, LaunchConfig, Module, launch};

mod causality;
mod coherence;
mod overtaking;
mod proxies;
mod races;

/// The number of seeds for each program.
const SEEDS: u64 = 200;

/// The placement of a program's threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Placement {
    /// Each thread in a cluster of its own.
    SeparateClusters,
    /// Each thread in a block of its own, all in one cluster.
    Cluster,
    /// Each thread in a warp of its own, all in one block.
    Block,
    /// Pairs of threads in one block, each pair in a cluster of its own.
    Pairs,
}

/// The outcomes of a program under all seeds.
#[derive(Debug, Default)]
pub(crate) struct Outcomes {
    /// `%a`, `%b` and `%c` of each thread.
    seen: BTreeSet<Vec<[u32; 3]>>,
    /// The number of seeds under which each kind of finding was made.
    kinds: Vec<(FindingKind, u64)>,
    text: String,
}

/// Runs a program. Each thread has zeros at `%x`, `%y` and `%z`, 16 bytes of shared memory at
/// `tile`, and an mbarrier at `bar` after it.
pub(crate) fn run(placement: Placement, threads: &[&str]) -> Outcomes {
    run_with(Checks::ALL, placement, threads)
}

/// Runs a program with other checks.
pub(crate) fn run_with(checks: Checks, placement: Placement, threads: &[&str]) -> Outcomes {
    let count = threads.len() as u32;
    let mut text = String::from(
        ".version 8.6\n.target sm_90a\n.address_size 64\n.visible .entry k(.param .u64 memory, .param .u64 out) {\n\
         .reg .pred %p<4>; .reg .b32 %r<8>; .reg .b32 %a, %b, %c; .reg .b64 %d<4>; .reg .b64 %x, %y, %z;\n\
         .shared .align 16 .b8 tile[16]; .shared .align 8 .b64 bar;\n\
         ld.param.u64 %x, [memory]; add.u64 %y, %x, 256; add.u64 %z, %x, 512; ld.param.u64 %d1, [out];\n\
         mov.u32 %a, 0; mov.u32 %b, 0; mov.u32 %c, 0; mov.u32 %r1, %ctaid.x; mov.u32 %r2, %tid.x; and.b32 %r3, %r2, 31; setp.ne.u32 %p1, %r3, 0; @%p1 ret; shr.u32 %r2, %r2, 5;\n\
         mov.u32 %r3, %ntid.x; add.u32 %r3, %r3, 31; shr.u32 %r3, %r3, 5; mad.lo.u32 %r1, %r1, %r3, %r2; mul.wide.u32 %d2, %r1, 16; add.u64 %d1, %d1, %d2;\n",
    );
    for number in 0..count {
        text += &format!("setp.eq.u32 %p1, %r1, {number}; @%p1 bra T{number};\n");
    }
    text += "ret;\n";
    for (number, body) in threads.iter().enumerate() {
        text += &format!("T{number}: {body}\nbra END;\n");
    }
    text += "END: st.global.u32 [%d1], %a; st.global.u32 [%d1+4], %b; st.global.u32 [%d1+8], %c; ret;\n}\n";
    let module = Module::load(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let mut outcomes = Outcomes::default();
    for seed in 0..SEEDS {
        let mut memory = GlobalMemory::default();
        let shared = memory.allocate(1024, false).expect("there is room");
        let out = memory.allocate(u64::from(count) * 16, false).expect("there is room");
        let (grid, block, cluster) = match placement {
            Placement::SeparateClusters => (count, 1, 1),
            Placement::Cluster => (count, 1, count),
            Placement::Block => (1, 32 * (count - 1) + 1, 1),
            Placement::Pairs => (count.div_ceil(2), 33, 1),
        };
        let config = LaunchConfig {
            grid: [grid, 1, 1],
            block: [block, 1, 1],
            cluster: [cluster, 1, 1],
            cooperative: true,
            seed,
            checks,
            instruction_limit: 1 << 20,
            ..LaunchConfig::default()
        };
        let args = [Arg::Address(shared), Arg::Address(out)];
        let report = launch(&module, &mut memory, "k", &config, &args).expect("it starts");
        let mut bytes = vec![0; count as usize * 16];
        memory.read(out, &mut bytes).expect("it is there");
        let word = |at: &[u8]| u32::from_le_bytes([at[0], at[1], at[2], at[3]]);
        let of_thread = |row: &[u8]| [word(&row[0..]), word(&row[4..]), word(&row[8..])];
        outcomes.seen.insert(bytes.chunks(16).map(of_thread).collect());
        let kinds: BTreeSet<_> = report.findings.iter().map(|finding| finding.kind).collect();
        for kind in kinds {
            match outcomes.kinds.iter_mut().find(|(known, _)| *known == kind) {
                Some((_, times)) => *times += 1,
                None => outcomes.kinds.push((kind, 1)),
            }
        }
        if outcomes.text.is_empty() {
            outcomes.text = report.findings.render(&module.sources(|_| None));
        }
    }
    outcomes
}

impl Outcomes {
    fn has(&self, wanted: &[&[u32]]) -> bool {
        let fits = |row: &[u32; 3], wanted: &&[u32]| row.starts_with(wanted);
        self.seen.iter().any(|rows| rows.iter().zip(wanted).all(|(row, wanted)| fits(row, wanted)))
    }

    /// Checks that no run ends with these values in the first registers of each thread.
    pub(crate) fn never(&self, outcome: &[&[u32]]) -> &Self {
        assert!(!self.has(outcome), "{outcome:?} is forbidden: {:?}", self.seen);
        self
    }

    /// Checks that some run ends with these values.
    pub(crate) fn sometimes(&self, outcome: &[&[u32]]) -> &Self {
        assert!(self.has(outcome), "{outcome:?} is allowed: {:?}", self.seen);
        self
    }

    /// Checks that nothing is found under any seed.
    pub(crate) fn clean(&self) -> &Self {
        assert!(self.kinds.is_empty(), "{:?}\n{}", self.kinds, self.text);
        self
    }

    /// Checks that this finding, and no other kind, is made under some seed.
    pub(crate) fn found(&self, kind: FindingKind) -> &Self {
        assert!(
            self.kinds.iter().any(|(found, _)| *found == kind),
            "no {kind:?}: {:?}\n{}",
            self.kinds,
            self.text
        );
        assert!(self.kinds.iter().all(|(found, _)| *found == kind), "{:?}\n{}", self.kinds, self.text);
        self
    }

    /// Checks that this finding is made under every seed, possibly among others.
    pub(crate) fn always_found(&self, kind: FindingKind) -> &Self {
        let times = self.kinds.iter().find(|(found, _)| *found == kind).map(|(_, times)| *times);
        assert_eq!(times, Some(SEEDS), "{kind:?}: {:?}\n{}", self.kinds, self.text);
        self
    }
}

/// Reads `x` into `%b` if `%a` is 1; otherwise `%b` is 9.
pub(crate) const THEN_X: &str = "mov.u32 %b, 9; setp.eq.u32 %p2, %a, 1; @%p2 ld.global.u32 %b, [%x];";
