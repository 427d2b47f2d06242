//! The report on undecided kernels: location, reason, and the numbers of an example.

use tma_codegen::protocol::{Budget, Judgement, UndecidedReason, Verdict, judge};

fn judgement(source: &str) -> Judgement {
    let accepted =
        tma_codegen::check("kernel.rs", source).unwrap_or_else(|failure| panic!("{failure}\n{source}"));
    let [checked] = accepted.kernels.as_slice() else { panic!("there is one kernel in\n{source}") };
    judge(&checked.kernel, Budget::REPORT)
}

/// Returns the reasons, with their lines.
fn reasons(judgement: &Judgement) -> Vec<(UndecidedReason, usize)> {
    let Verdict::NotDecided(undecided) = &judgement.verdict else { panic!("{judgement:?}") };
    undecided.iter().map(|case| (case.reason, case.span.start().line)).collect()
}

/// Returns the examples, as a report shows them.
fn examples(judgement: &Judgement) -> Vec<String> {
    judgement.suspects.iter().map(ToString::to_string).collect()
}

/// Returns two warps, and a barrier without arrivals.
fn waits(parameters: &str, body: &str) -> String {
    format!(
        "#[tma_kernel(threads = 64)]
fn k({parameters}) {{
    let never: Barrier = shared();
    if thread_idx().x == 0 {{ never.init(64); }}
    sync_threads();
    {body}
}}"
    )
}

#[test]
fn the_numbers_are_named_with_which_a_launch_goes_wrong() {
    let body = "for k in 0..tiles { never.arrive(); never.wait(k & 1); } if tiles == 0 { never.wait(0); }";
    let judged = judgement(&waits("tiles: u32", body));
    assert_eq!(reasons(&judged), [(UndecidedReason::Launch, 6)]);
    let [example] = &examples(&judged)[..] else { panic!("{:?}", judged.suspects) };
    let start = "TMA0701 with `tiles` = 0: deadlock: thread 0 waits forever for `never`";
    assert!(example.starts_with(start), "{example}");
    assert!(example.contains("`assume(tiles > 0)`"), "{example}");
    let assumed = waits("tiles: u32", &format!("assume(tiles > 0); {body}"));
    assert!(matches!(judgement(&assumed).verdict, Verdict::Proved), "{:?}", judgement(&assumed).verdict);
}

#[test]
fn the_data_is_named_with_which_a_kernel_goes_wrong() {
    let body = "let a = lens.get(0); let b = lens.get(1);
    for k in 0..a { never.arrive(); never.wait(k & 1); }
    for k in a..b { never.wait(k & 1); }";
    let judged = judgement(&waits("lens: Global<u32>", body));
    assert!(reasons(&judged).contains(&(UndecidedReason::Data, 8)), "{judged:?}");
    let named = examples(&judged).iter().any(|example| example.contains("`lens[1]` = "));
    assert!(named, "{:?}", examples(&judged));
}

/// The checker does not find a number with this square.
#[test]
fn what_would_be_wrong_is_named_where_no_launch_is_known() {
    let judged = judgement(&waits("n: u32", "if n * n == 1000003 { never.wait(0); }"));
    assert_eq!(reasons(&judged), [(UndecidedReason::Infeasible, 6)]);
    let [example] = &examples(&judged)[..] else { panic!("{:?}", judged.suspects) };
    assert!(example.starts_with("TMA0701: deadlock: thread 0 waits forever for `never`"), "{example}");
}

/// Each reason has the line of the access, and not that of the barrier.
#[test]
fn the_counter_of_the_grid_is_for_nothing_else() {
    for access in [
        "if block_idx().x == 0 { counter.set(0, 0); }",
        "out.set(thread_idx().x, counter.get(0));",
        "counter.atomic_add(0, 1);",
    ] {
        let source = format!(
            "#[tma_kernel(threads = 32)]
fn k(counter: Global<u32>, out: Global<u32>) {{
    sync_grid(counter);
    {access}
}}"
        );
        let reasons = reasons(&judgement(&source));
        assert!(reasons.contains(&(UndecidedReason::GridCounter, 4)), "{reasons:?}\n{source}");
    }
}
