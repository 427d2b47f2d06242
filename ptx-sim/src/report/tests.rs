use tma_model::sync::Memory;

use super::*;

const PTX: &str = ".version 8.0\n  st.shared.f32 [%r1], %f1;\n  ld.shared.f32 %f2, [%r1];\n";

fn party(thread: u32, ptx_line: u32, does: &'static str) -> Party {
    let site = Site { ptx_line, source: Some((1, ptx_line - 1)) };
    Party { rank: None, block: [4, 0, 0], thread: ThreadId::new(0, thread), site, does }
}

fn race(reader: u32) -> Finding {
    Finding::new(FindingKind::Race, "shared memory at 0x10 is read while another thread may still write it")
        .with(party(reader, 3, "reads"))
        .with(party(2, 2, "wrote"))
        .help(Help::Order(Memory::Shared))
}

/// Returns a finding at `site`.
fn at(kind: FindingKind, site: Site) -> Finding {
    Finding::new(kind, "").with(Party { site, ..party(0, 1, "reads") })
}

fn kinds(findings: &Findings) -> Vec<FindingKind> {
    findings.iter().map(|finding| finding.kind).collect()
}

#[test]
fn a_finding_shows_both_sides_with_their_lines() {
    let files =
        vec![(1, "src/kernel.rs".to_owned(), Some("tile.set(at, x);\nlet y = tile.get(at);".to_owned()))];
    let text = race(33).render(&Sources { ptx: PTX, files });
    let wanted = "\
race: shared memory at 0x10 is read while another thread may still write it
  thread 33 (warp 1, lane 1) of block (4, 0, 0) reads
    at PTX line 3: ld.shared.f32 %f2, [%r1];
    from src/kernel.rs:2: let y = tile.get(at);
  thread 2 (warp 0, lane 2) of block (4, 0, 0) wrote
    at PTX line 2: st.shared.f32 [%r1], %f1;
    from src/kernel.rs:1: tile.set(at, x);
  help: insert a barrier of both threads between the two accesses: `sync_threads()` (`bar.sync`) within a \
        block, `sync_cluster()` (`barrier.cluster.arrive` and `.wait`) between blocks
  rule: if one thread writes to memory and another accesses the same place, something must order the two \
        accesses (`cargo tma explain TMA0704`)
";
    assert_eq!(text, wanted);
}

#[test]
fn like_findings_are_one() {
    let mut findings = Findings::default();
    findings.add(race(33));
    findings.add(race(34));
    findings.add(race(35));
    findings.add(Finding::new(FindingKind::Trap, "trap"));
    assert_eq!(findings.len(), 2);
    let text = findings.render(&Sources::default());
    assert!(text.contains("\n  and 2 more, of threads 34 to 35 of block (4, 0, 0)\n"), "{text}");
    let mut twice = findings.clone();
    twice.extend(findings);
    assert_eq!(twice.iter().map(|finding| finding.times).collect::<Vec<_>>(), [6, 2]);
}

#[test]
fn a_rule_is_reported_once_for_a_line_of_the_source() {
    let of_rust = |ptx_line, line| Site { ptx_line, source: Some((1, line)) };
    let of_ptx = |ptx_line| Site { ptx_line, source: None };
    let mut findings = Findings::default();
    for site in [of_rust(10, 7), of_rust(11, 7), of_rust(12, 8), of_ptx(20), of_ptx(20), of_ptx(21)] {
        findings.add(at(FindingKind::Race, site));
    }
    findings.add(at(FindingKind::InFlight, of_rust(10, 7)));
    let times: Vec<_> = findings.iter().map(|finding| finding.times).collect();
    assert_eq!(times, [2, 1, 2, 1, 1]);
}

#[test]
fn those_of_one_line_name_each_line_that_they_conflict_with() {
    let mut findings = Findings::default();
    for line in [2, 1, 2] {
        findings.add(at(FindingKind::Race, Site { ptx_line: 3, source: None }).with(party(2, line, "wrote")));
    }
    let lines = findings
        .iter()
        .next()
        .map(|finding| finding.parties.iter().map(|party| party.site.ptx_line).collect::<Vec<_>>());
    assert_eq!(lines, Some(vec![3, 2, 1]));
}

#[test]
fn a_race_is_one_whichever_of_its_lines_came_first() {
    use FindingKind::{InFlight, Race};
    let (mut findings, of_ptx) = (Findings::default(), |ptx_line| Site { ptx_line, source: None });
    for (first, second) in [(2, 3), (3, 2)] {
        for kind in [Race, InFlight] {
            findings
                .add(at(kind, of_ptx(first)).with(Party { site: of_ptx(second), ..party(2, 1, "wrote") }));
        }
    }
    let found: Vec<_> = findings.iter().map(|finding| (finding.kind, finding.times)).collect();
    assert_eq!(found, [(Race, 2), (InFlight, 1), (InFlight, 1)]);
}

#[test]
fn causes_precede_consequences() {
    use FindingKind::{Deadlock, Internal, Race, ReadBeforeWait, Uninitialised};
    let mut findings = Findings::default();
    for kind in [Deadlock, Uninitialised, Race, ReadBeforeWait] {
        findings.add(Finding::new(kind, ""));
    }
    assert_eq!(kinds(&findings), [ReadBeforeWait, Race, Uninitialised, Deadlock]);
    // This includes the findings of other clusters.
    let mut later = Findings::default();
    later.add(Finding::new(Internal, ""));
    later.add(Finding::new(ReadBeforeWait, ""));
    findings.extend(later);
    assert_eq!(kinds(&findings), [Internal, ReadBeforeWait, Race, Uninitialised, Deadlock]);
}

#[test]
fn dropped_findings_are_counted_and_stops_are_kept() {
    let mut findings = Findings::default();
    for line in 0..300 {
        findings.add(at(FindingKind::Race, Site { ptx_line: line, source: None }));
    }
    let _stop = findings.stop(Finding::new(FindingKind::Trap, "trap"));
    assert!(kinds(&findings).contains(&FindingKind::Trap));
    let text = findings.render(&Sources::default());
    assert!(text.ends_with("\nand 44 more, at other lines\n"), "{text}");
}

#[test]
fn internal_errors_request_a_report() {
    let text = Finding::internal("a warp is beyond the end of its code").with(party(0, 3, "was here"));
    let text = text.render(&Sources { ptx: PTX, files: Vec::new() });
    assert!(text.starts_with("internal error: a warp is beyond the end of its code: "), "{text}");
    assert!(text.contains("at PTX line 3: ld.shared.f32"), "{text}");
    assert!(text.contains("please report this"), "{text}");
}

#[test]
fn no_text_is_needed_to_show_a_finding() {
    let text = race(0).render(&Sources::default());
    assert!(text.contains("at PTX line 3\n    from file 1:2\n"), "{text}");
    assert!(text.contains("accesses: `bar.sync` within a block, "), "{text}");
}
