//! Blocks that wait for each other. Only a cooperative launch runs all of them at once.

use ptx_sim::{Arg, Error, GlobalMemory, LaunchConfig, Module, Report, launch};

/// Each block increments a counter, waits until all have, and writes the value that it then sees.
const GRID_BARRIER: &str = "
.version 8.0
.target sm_90a
.address_size 64
.visible .entry meet(.param .u64 counter, .param .u64 out) {
    .reg .pred %p<3>; .reg .b32 %r<6>; .reg .b64 %d<6>;
    ld.param.u64 %d1, [counter];
    ld.param.u64 %d2, [out];
    mov.u32 %r1, %nctaid.x;
    mov.u32 %r2, %ctaid.x;
    atom.add.release.gpu.global.u32 %r3, [%d1], 1;
wait:
    ld.acquire.gpu.global.u32 %r3, [%d1];
    setp.lt.u32 %p1, %r3, %r1;
    @%p1 bra wait;
    mul.wide.u32 %d3, %r2, 4;
    add.u64 %d4, %d2, %d3;
    st.global.u32 [%d4], %r3;
    ret;
}
";

fn run_grid_barrier(blocks: u32, cooperative: bool, seed: u64) -> (Report, Vec<u8>) {
    let module = Module::load(GRID_BARRIER).expect("it loads");
    let mut memory = GlobalMemory::default();
    let counter = memory.allocate(4, false).expect("there is room");
    let out = memory.allocate(u64::from(blocks) * 4, false).expect("there is room");
    let config = LaunchConfig {
        grid: [blocks, 1, 1],
        cooperative,
        seed,
        instruction_limit: 1_000_000,
        ..LaunchConfig::default()
    };
    let args = [Arg::Address(counter), Arg::Address(out)];
    let report = launch(&module, &mut memory, "meet", &config, &args).expect("it starts");
    let mut bytes = vec![0; blocks as usize * 4];
    memory.read(out, &mut bytes).expect("it is there");
    (report, bytes)
}

#[test]
fn blocks_of_a_cooperative_launch_synchronise() {
    for seed in 0..8 {
        let (report, bytes) = run_grid_barrier(7, true, seed);
        assert!(report.findings.is_empty(), "seed {seed}: {:?}", report.findings);
        assert_eq!(bytes, 7u32.to_le_bytes().repeat(7), "seed {seed}");
    }
}

#[test]
fn blocks_of_another_launch_may_not() {
    let (report, _) = run_grid_barrier(7, false, 0);
    assert!(
        report
            .findings
            .iter()
            .any(|finding| finding.help.iter().any(|help| help.in_ptx().contains("cooperative launch"))),
        "{report:?}"
    );
}

/// Returns the numbers that blocks draw from a counter, for a seed.
fn tickets(seed: u64) -> Vec<u32> {
    let text = GRID_BARRIER.replace("    setp.lt.u32 %p1, %r3, %r1;\n    @%p1 bra wait;\n", "");
    let text = text.replace("    ld.acquire.gpu.global.u32 %r3, [%d1];\n", "");
    let module = Module::load(&text).expect("it loads");
    let mut memory = GlobalMemory::default();
    let args = [4, 16 * 4].map(|bytes| Arg::Address(memory.allocate(bytes, false).expect("there is room")));
    let Arg::Address(out) = args[1] else { unreachable!("it was made one") };
    let config = LaunchConfig { grid: [16, 1, 1], seed, ..LaunchConfig::default() };
    let report = launch(&module, &mut memory, "meet", &config, &args).expect("it starts");
    assert!(report.findings.is_empty(), "seed {seed}: {:?}", report.findings);
    let mut bytes = [0; 16 * 4];
    memory.read(out, &mut bytes).expect("it is there");
    bytes.as_chunks().0.iter().map(|word| u32::from_le_bytes(*word)).collect()
}

#[test]
fn seeds_pick_how_many_blocks_run_at_a_time() {
    let in_order: Vec<u32> = (0..16).collect();
    for seed in 0..16 {
        let mut tickets = tickets(seed);
        let is_in_order = tickets == in_order;
        assert!(is_in_order || seed % 2 == 1, "seed {seed}: {tickets:?}");
        tickets.sort_unstable();
        assert_eq!(tickets, in_order, "seed {seed}");
    }
    assert!((0..16).any(|seed| tickets(seed) != in_order));
    // Blocks that wait for later ones are found under all even seeds, although all of them may be
    // resident.
    let found = (0..32).filter(|seed| !run_grid_barrier(4, false, *seed).0.findings.is_empty());
    let found: Vec<u64> = found.collect();
    assert!((0..32).step_by(2).all(|seed| found.contains(&seed)), "{found:?}");
    assert!(found.len() < 32, "some seed has room for all");
}

#[test]
fn more_blocks_than_fit_on_a_gpu_are_rejected() {
    let module = Module::load(GRID_BARRIER).expect("it loads");
    let mut memory = GlobalMemory::default();
    let args = [Arg::Address(memory.allocate(4, false).expect("there is room")), Arg::Address(0)];
    let mut refused = |grid: u32, threads: u32| {
        let (grid, block) = ([grid, 1, 1], [threads, 1, 1]);
        // Blocks that do run are stopped at once.
        let config =
            LaunchConfig { grid, block, cooperative: true, instruction_limit: 1, ..LaunchConfig::default() };
        launch(&module, &mut memory, "meet", &config, &args).err()
    };
    assert_eq!(refused(144, 1024), None);
    let Some(Error::Shape(why)) = refused(i32::MAX as u32, 1) else { panic!("all of these blocks at once") };
    assert_eq!(why, "at most 4608 blocks of this kernel run at once, not 2147483647");
    let Some(Error::Shape(why)) = refused(289, 1000) else {
        panic!("two blocks are the most of a multiprocessor")
    };
    assert!(why.contains("at most 288 blocks"), "{why}");
}
