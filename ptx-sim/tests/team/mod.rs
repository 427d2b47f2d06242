//! Kernels that a team of devices runs: flags between ranks, and what is wrong without them.

use ptx_sim::{
    Arg, Checks, Error, FindingKind, GlobalMemory, LaunchConfig, Module, Rank, Report, launch_team,
};

mod flags;
mod residency;

/// The seeds of each test.
const SEEDS: std::ops::Range<u64> = 0..8;
/// Words of each rank's data in each block, and threads of a block.
const WORDS: u64 = 32;

/// The memory of a team: a table of each rank's addresses in global memory, and the memory that they
/// point to.
struct Lab {
    module: Module,
    memory: GlobalMemory,
    table: u64,
    out: Vec<u64>,
    blocks: u32,
}

/// The beginning of every kernel. Each rank gets its data, its flags, its results, and a table of
/// the data and flags of all ranks, 16 bytes for each; `%data`, `%flags` and `%out` are those of the
/// block, and `%t` is the thread.
const PROLOGUE: &str = "
.version 8.6
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 table, .param .u64 out, .param .u32 rank, .param .u32 ranks) {
    .reg .pred %p<8>; .reg .b32 %r<8>; .reg .b32 %t, %rank, %ranks, %block, %peer, %sum; .reg .b64 %d<8>;
    .reg .b64 %data, %flags, %out, %table, %row, %theirs, %at;
    .shared .align 128 .b8 tile[128]; .shared .align 8 .b64 full;
    ld.param.u64 %table, [table]; ld.param.u64 %out, [out];
    ld.param.u32 %rank, [rank]; ld.param.u32 %ranks, [ranks];
    mov.u32 %t, %tid.x; mov.u32 %block, %ctaid.x;
    mul.wide.u32 %row, %rank, 16; add.u64 %row, %row, %table;
    mul.wide.u32 %d1, %t, 4; mad.wide.u32 %d1, %block, 128, %d1; mul.wide.u32 %d2, %block, 128;
    ld.global.u64 %data, [%row]; add.u64 %data, %data, %d1;
    ld.global.u64 %flags, [%row+8]; add.u64 %flags, %flags, %d2;
    add.u64 %out, %out, %d1;
";

/// Signals all ranks: increments the flag of this block on each.
const SIGNAL: &str = "
    bar.sync 0; setp.ne.u32 %p1, %t, 0; @%p1 bra SIGNALLED$; mov.u32 %peer, 0;
SIGNAL$:
    mad.wide.u32 %theirs, %peer, 16, %table; ld.global.u64 %theirs, [%theirs+8]; add.u64 %theirs, %theirs, %d2;
    red.release.sys.global.add.u32 [%theirs], 1;
    add.u32 %peer, %peer, 1; setp.lt.u32 %p2, %peer, %ranks; @%p2 bra SIGNAL$;
SIGNALLED$:
";

/// Waits until all ranks have signalled this block.
const WAIT: &str = "
    setp.ne.u32 %p1, %t, 0; @%p1 bra ARRIVED$;
WAIT$:
    ld.acquire.sys.global.u32 %r1, [%flags]; setp.lt.u32 %p2, %r1, %ranks; @%p2 bra WAIT$;
ARRIVED$:
    bar.sync 0;
";

/// Adds the words of all ranks.
const SUM: &str = "
    mov.u32 %sum, 0; mov.u32 %peer, 0;
SUM$:
    mad.wide.u32 %theirs, %peer, 16, %table; ld.global.u64 %theirs, [%theirs]; add.u64 %theirs, %theirs, %d1;
    ld.global.u32 %r2, [%theirs]; add.u32 %sum, %sum, %r2;
    add.u32 %peer, %peer, 1; setp.lt.u32 %p2, %peer, %ranks; @%p2 bra SUM$;
    st.global.u32 [%out], %sum;
";

/// Writes 100 times the rank plus the thread.
const WRITE: &str = "mad.lo.u32 %r3, %rank, 100, %t; st.global.u32 [%data], %r3;";

/// The end of every kernel.
const END: &str = "END: ret; }";

/// Joins the parts of a kernel, each of which may be used more than once: in its labels, the number
/// of the part replaces `$`.
fn kernel(parts: &[&str]) -> String {
    let numbered = (0..).zip(parts).map(|(number, part): (u32, _)| part.replace('$', &number.to_string()));
    PROLOGUE.to_owned() + &numbered.collect::<String>() + END
}

impl Lab {
    fn new(text: &str, ranks: u32, blocks: u32) -> Self {
        let module = Module::load(text).unwrap_or_else(|error| panic!("{error}\n{text}"));
        let mut memory = GlobalMemory::default();
        let bytes = u64::from(blocks) * WORDS * 4;
        let mut new = |bytes| memory.allocate(bytes, false).expect("there is room");
        let table = new(u64::from(ranks) * 16);
        let [data, flags, out] = [(); 3].map(|()| (0..ranks).map(|_| new(bytes)).collect::<Vec<_>>());
        for (rank, (data, flags)) in (0..).zip(data.iter().zip(&flags)) {
            memory.write(table + rank * 16, &data.to_le_bytes()).expect("it fits");
            memory.write(table + rank * 16 + 8, &flags.to_le_bytes()).expect("it fits");
        }
        Self { module, memory, table, out, blocks }
    }

    fn config(&self, seed: u64) -> LaunchConfig {
        LaunchConfig {
            grid: [self.blocks, 1, 1],
            block: [WORDS as u32, 1, 1],
            seed,
            checks: Checks::ALL,
            instruction_limit: 1 << 22,
            ..LaunchConfig::default()
        }
    }

    fn launch(&mut self, config: &LaunchConfig) -> Result<Report, Error> {
        let ranks = self.out.len() as u32;
        let number = |number: u32| Arg::Bytes(number.to_le_bytes().to_vec());
        let of_rank = |(rank, out): (u32, &u64)| {
            [Arg::Address(self.table), Arg::Address(*out), number(rank), number(ranks)]
        };
        let args: Vec<_> = (0..).zip(&self.out).map(of_rank).collect();
        let ranks: Vec<_> = args.iter().map(|args| Rank { module: &self.module, args }).collect();
        launch_team(&mut self.memory, "k", config, &ranks)
    }

    fn run(&mut self, seed: u64) -> Report {
        self.launch(&self.config(seed)).expect("it starts")
    }

    fn words(&self, address: u64) -> Vec<u32> {
        let mut bytes = vec![0; (u64::from(self.blocks) * WORDS * 4) as usize];
        self.memory.read(address, &mut bytes).expect("it is there");
        bytes.as_chunks().0.iter().map(|word| u32::from_le_bytes(*word)).collect()
    }

    fn render(&self, report: &Report) -> String {
        report.findings.render(&self.module.sources(|_| None))
    }
}

/// Runs a kernel under all seeds, without a finding, and checks the results of each rank.
#[track_caller]
fn clean(text: &str, ranks: u32, blocks: u32, wanted: impl Fn(u32) -> u32) {
    for seed in SEEDS {
        let mut lab = Lab::new(text, ranks, blocks);
        let report = lab.run(seed);
        assert!(report.findings.is_empty(), "seed {seed}:\n{}", lab.render(&report));
        let block: Vec<u32> = (0..WORDS as u32).map(&wanted).collect();
        for out in &lab.out {
            assert_eq!(lab.words(*out), block.repeat(blocks as usize), "seed {seed}");
        }
    }
}

/// Runs a kernel under all seeds, with a finding of this kind under each. Returns the text of the
/// last report.
#[track_caller]
fn found(text: &str, ranks: u32, kind: FindingKind) -> String {
    let mut rendered = String::new();
    for seed in SEEDS {
        let mut lab = Lab::new(text, ranks, 1);
        let report = lab.run(seed);
        rendered = lab.render(&report);
        assert!(report.findings.iter().any(|finding| finding.kind == kind), "seed {seed}:\n{rendered}");
    }
    rendered
}

/// The sum of `WRITE` over all ranks.
fn sum(ranks: u32, thread: u32) -> u32 {
    (0..ranks).map(|rank| rank * 100 + thread).sum()
}
