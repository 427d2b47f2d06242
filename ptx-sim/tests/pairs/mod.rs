//! Small kernels in PTX as flipped pairs: a correct one in which nothing may be found under any
//! seed, and one with a step left out or changed, in which the mistake must be found under every
//! seed.

use ptx_sim::{Arg, Checks, FindingKind, GlobalMemory, LaunchConfig, Module, Report, launch};

/// Words of the input. Word `i` is [`input`]`(i)`.
const WORDS: u32 = 1024;

/// Returns word `i` of the input.
pub(crate) fn input(i: u32) -> u32 {
    i.wrapping_mul(2_654_435_761) ^ 0x5bd1_e995
}

/// A kernel whose threads each output one word, `%r9`.
///
/// The body has in `%r1` the thread's number in its block, in `%r2` the block's rank in the
/// cluster, in `%d1` the address of the thread's output word, in `%d2` the input, and at `dyn` 4096
/// bytes of shared memory, aligned to 128.
#[derive(Clone, Copy)]
pub(crate) struct Kernel<'k> {
    /// In the wrong kernel `[[a]]` is left out and `[[a||b]]` becomes `b`; the right one has `a`.
    pub(crate) body: &'k str,
    /// Threads of a block.
    pub(crate) threads: u32,
    /// Blocks, which form one cluster.
    pub(crate) blocks: u32,
}

/// Returns the right or the wrong body.
fn variant(body: &str, right: bool) -> String {
    let mut text = String::new();
    for (index, part) in body.split("[[").enumerate() {
        if index == 0 {
            text.push_str(part);
            continue;
        }
        let (choice, rest) = part.split_once("]]").expect("brackets are closed");
        let (correct, wrong) = choice.split_once("||").unwrap_or((choice, ""));
        text.push_str(if right { correct } else { wrong });
        text.push_str(rest);
    }
    text
}

impl Kernel<'_> {
    /// Returns the text of the module.
    pub(crate) fn text(&self, right: bool) -> String {
        format!(
            ".version 8.6\n.target sm_90a\n.address_size 64\n.extern .shared .align 128 .b8 dyn[];\n\
             .visible .entry k(.param .u64 out, .param .u64 in)\n{{\n\
             .reg .pred %p<10>; .reg .b16 %h<20>; .reg .b32 %r<40>; .reg .b64 %d<20>; .reg .f32 %f<20>; .reg .f64 %g<9>;\n\
             ld.param.u64 %d1, [out]; ld.param.u64 %d2, [in];\n\
             mov.u32 %r1, %tid.x; mov.u32 %r2, %cluster_ctarank; mov.u32 %r3, %ntid.x;\n\
             mad.lo.u32 %r4, %r2, %r3, %r1; mul.wide.u32 %d3, %r4, 4; add.u64 %d1, %d1, %d3; mov.u32 %r9, 0;\n\
             {}\nst.global.u32 [%d1], %r9;\nret;\n}}\n",
            variant(self.body, right)
        )
    }

    /// Runs the kernel, and returns the words of all threads.
    pub(crate) fn run(&self, right: bool, seed: u64) -> (Report, Module, Vec<u32>) {
        let text = self.text(right);
        let module = Module::load(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
        let mut memory = GlobalMemory::default();
        let size = u64::from(self.threads * self.blocks) * 4;
        let out = memory.allocate(size, false).expect("there is room");
        let source = memory.allocate(u64::from(WORDS) * 4, true).expect("there is room");
        let words: Vec<u8> = (0..WORDS).flat_map(|i| input(i).to_le_bytes()).collect();
        memory.write(source, &words).expect("it fits");
        let config = LaunchConfig {
            grid: [self.blocks, 1, 1],
            block: [self.threads, 1, 1],
            cluster: [self.blocks, 1, 1],
            dynamic_shared_bytes: 4096,
            seed,
            checks: Checks::ALL,
            instruction_limit: 1 << 22,
            ..LaunchConfig::default()
        };
        let args = [Arg::Address(out), Arg::Address(source)];
        let report = launch(&module, &mut memory, "k", &config, &args).expect("it starts");
        let mut bytes = vec![0; size as usize];
        memory.read(out, &mut bytes).expect("it is there");
        let words = bytes.chunks(4).map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]]));
        (report, module, words.collect())
    }

    /// Checks that the right kernel outputs `wanted` (by block and thread), with no findings, under
    /// 24 seeds.
    pub(crate) fn returns(&self, wanted: impl Fn(u32, u32) -> u32) {
        let wanted: Vec<u32> = (0..self.blocks)
            .flat_map(|block| (0..self.threads).map(move |thread| (block, thread)))
            .map(|(block, thread)| wanted(block, thread))
            .collect();
        for seed in 0..24 {
            let (report, module, found) = self.run(true, seed);
            let text = report.findings.render(&module.sources(|_| None));
            assert!(report.findings.is_empty(), "seed {seed}:\n{text}");
            assert_eq!(found, wanted, "seed {seed}");
        }
    }

    /// Checks that the wrong kernel has a finding of `kind` under each of 16 seeds, and returns the
    /// last report as text.
    pub(crate) fn lacks(&self, kind: FindingKind) -> String {
        self.lacks_one_of(&[kind])
    }

    /// Checks likewise for a finding of any of `kinds`, if chance decides which one it is.
    pub(crate) fn lacks_one_of(&self, kinds: &[FindingKind]) -> String {
        let mut text = String::new();
        for seed in 0..16 {
            let (report, module, _) = self.run(false, seed);
            text = report.findings.render(&module.sources(|_| None));
            let found = report.findings.iter().any(|finding| kinds.contains(&finding.kind));
            assert!(found, "seed {seed}: none of {kinds:?} but\n{text}");
        }
        text
    }
}

/// Returns a kernel of one block.
pub(crate) fn block(threads: u32, body: &str) -> Kernel<'_> {
    Kernel { body, threads, blocks: 1 }
}

/// Returns a kernel of one cluster.
#[allow(dead_code, reason = "not every test has clusters")]
pub(crate) fn cluster(blocks: u32, threads: u32, body: &str) -> Kernel<'_> {
    Kernel { body, threads, blocks }
}

/// Returns whether ptxas accepts the body, if `TMA_PTXAS` names one.
fn judged(body: &str) -> Option<bool> {
    let ptxas = std::env::var_os("TMA_PTXAS")?;
    static CASES: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
    let case = CASES.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    let file = std::env::temp_dir().join(format!("pair-{}-{case}.ptx", std::process::id()));
    std::fs::write(&file, block(1, body).text(true)).expect("the folder for temporary files can be written");
    let command =
        std::process::Command::new(ptxas).args(["-arch=sm_90a", "-o", "/dev/null"]).arg(&file).output();
    std::fs::remove_file(&file).expect("it was just written");
    Some(command.expect("TMA_PTXAS can be run").status.success())
}

/// Checks that each body is refused with its line and with words that say why, and that ptxas
/// refuses it too.
#[allow(dead_code, reason = "not every test refuses something")]
pub(crate) fn refused(cases: &[(&str, &str)]) {
    for (body, wanted) in cases {
        let text = block(1, body).text(true);
        let error = Module::load(&text).expect_err(body);
        assert_eq!(error.line, 11, "{body}: {error}");
        assert!(error.message.contains(wanted), "{body}: {error}");
        assert_ne!(judged(body), Some(true), "ptxas takes {body}");
    }
}

/// Checks that each body loads, and that ptxas accepts it.
#[allow(dead_code, reason = "not every test has forms that only load")]
pub(crate) fn accepted(bodies: &[&str]) {
    for body in bodies {
        let loaded = Module::load(&block(1, body).text(true));
        assert!(loaded.is_ok(), "{body}: {}", loaded.expect_err("it was refused"));
        assert_ne!(judged(body), Some(false), "ptxas refuses {body}");
    }
}
