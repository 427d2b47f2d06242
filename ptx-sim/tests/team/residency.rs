//! The clusters of a team that run at a time, and the teams that are refused.

use super::{Lab, SEEDS, SIGNAL, SUM, WAIT, WRITE, kernel, sum};
use ptx_sim::{Error, FindingKind, Module, Rank, launch_team};

#[test]
fn each_rank_has_a_running_cluster() {
    // Block 0 of each rank waits for block 0 of the others, then block 1, and so on.
    let text = kernel(&[WRITE, SIGNAL, WAIT, SUM]);
    for seed in SEEDS {
        let mut lab = Lab::new(&text, 4, 9);
        let report = lab.run(seed);
        assert!(report.findings.is_empty(), "seed {seed}:\n{}", lab.render(&report));
    }
}

#[test]
fn blocks_that_wait_for_later_ones_need_a_cooperative_launch() {
    // The last block of each rank is waited for by its first.
    let flip = "mov.u32 %r6, %nctaid.x; sub.u32 %r6, %r6, 1; sub.u32 %r6, %r6, %block; \
                ld.global.u64 %flags, [%row+8]; mad.wide.u32 %flags, %r6, 128, %flags;";
    let text = kernel(&[SIGNAL, flip, WAIT]);
    let mut lab = Lab::new(&text, 2, 4);
    let report = lab.run(0);
    let rendered = lab.render(&report);
    assert!(report.findings.iter().any(|finding| finding.kind == FindingKind::Deadlock), "{rendered}");
    assert!(rendered.contains("3 clusters of rank 1 cannot begin before another ends"), "{rendered}");
    assert!(rendered.contains("cooperative launch"), "{rendered}");
    for seed in SEEDS {
        let mut lab = Lab::new(&text, 2, 4);
        let config = ptx_sim::LaunchConfig { cooperative: true, ..lab.config(seed) };
        let report = lab.launch(&config).expect("it starts");
        assert!(report.findings.is_empty(), "seed {seed}:\n{}", lab.render(&report));
    }
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let text = kernel(&[WRITE, SIGNAL, WAIT, SUM]);
    let instructions = |seed| {
        let mut lab = Lab::new(&text, 3, 2);
        (lab.run(seed).warp_instructions, lab.words(lab.out[1]))
    };
    for seed in SEEDS {
        assert_eq!(instructions(seed), instructions(seed));
    }
    assert!(SEEDS.map(instructions).any(|run| run != instructions(0)), "the seed picks the order");
    assert_eq!(instructions(0).1[3], sum(3, 3));
}

#[test]
fn events_and_findings_name_their_rank() {
    let mut lab = Lab::new(&kernel(&["setp.eq.u32 %p3, %rank, 1; @%p3 trap;"]), 2, 1);
    let config = ptx_sim::LaunchConfig { trace_events: 100, profile: true, ..lab.config(0) };
    let report = lab.launch(&config).expect("it starts");
    let ranks: Vec<_> =
        report.findings.iter().flat_map(|finding| &finding.parties).map(|party| party.rank).collect();
    assert_eq!(ranks, [Some(1)], "{}", lab.render(&report));
    assert!(report.trace.events.iter().all(|event| event.rank.is_some_and(|rank| rank < 2)));
    let mut alone = Lab::new(&kernel(&["trap;"]), 1, 1);
    let report = alone.run(0);
    assert!(report.findings.iter().all(|finding| finding.parties.iter().all(|party| party.rank.is_none())));
    assert!(!alone.render(&report).contains("of rank"));
}

#[test]
fn ranks_have_variables_of_their_own() {
    let text = ".version 8.0\n.target sm_90a\n.address_size 64\n.visible .global .align 4 .u32 count = 5;\n\
                .visible .entry k() { .reg .b32 %r<2>; atom.global.add.u32 %r1, [count], 1; \
                .reg .pred %p; setp.ne.u32 %p, %r1, 5; @%p trap; ret; }";
    let modules = [(); 3].map(|()| Module::load(text).expect("it loads"));
    let ranks: Vec<_> = modules.iter().map(|module| Rank { module, args: &[] }).collect();
    let mut memory = ptx_sim::GlobalMemory::default();
    let config = ptx_sim::LaunchConfig::default();
    let report = launch_team(&mut memory, "k", &config, &ranks).expect("it starts");
    assert!(report.findings.is_empty(), "{:?}", report.findings);
}

#[test]
fn teams_have_1_to_8_ranks_of_one_text() {
    let text = kernel(&[]);
    let code = |ranks| {
        let mut lab = Lab::new(&text, ranks, 2);
        lab.launch(&lab.config(0)).map(drop)
    };
    assert_eq!(code(8), Ok(()));
    let Err(Error::Team(why)) = code(9) else { panic!("nine ranks") };
    assert_eq!(why, "a team has 1 to 8 ranks, not 9");
    assert!(matches!(code(0), Err(Error::Team(_))));
    let (lab, other) = (Lab::new(&text, 1, 1), Lab::new(&kernel(&[WRITE]), 1, 1));
    let ranks = [&lab, &other].map(|lab| Rank { module: &lab.module, args: &[] });
    let refused = launch_team(&mut lab.memory.clone(), "k", &lab.config(0), &ranks);
    assert_eq!(
        refused.map(drop),
        Err(Error::Team("the modules of a team must have the same text".to_owned()))
    );
}

#[test]
fn the_block_limit_counts_all_ranks() {
    let mut lab = Lab::new(&kernel(&[]), 3, 2);
    let config = ptx_sim::LaunchConfig { block_limit: 5, ..lab.config(0) };
    assert_eq!(lab.launch(&config).map(drop), Err(Error::Blocks { found: 6, limit: 5 }));
}
