//! What is said of kernels that are not decided: where, why, and with which numbers.

use tma_codegen::check::protocol::{Budget, Judgement, Verdict, Why, judge};

fn judgement(source: &str) -> Judgement {
    let accepted =
        tma_codegen::check("kernel.rs", source).unwrap_or_else(|failure| panic!("{failure}\n{source}"));
    let [checked] = accepted.kernels.as_slice() else { panic!("there is one kernel in\n{source}") };
    judge(&checked.kernel, Budget::REPORT)
}

/// The reasons, with their lines.
fn reasons(judgement: &Judgement) -> Vec<(Why, usize)> {
    let Verdict::NotDecided(doubts) = &judgement.verdict else { panic!("{judgement:?}") };
    doubts.iter().map(|doubt| (doubt.why, doubt.span.start().line)).collect()
}

/// The examples, as a report shows them.
fn examples(judgement: &Judgement) -> Vec<String> {
    judgement.suspects.iter().map(ToString::to_string).collect()
}

/// Two warps, and a barrier at which nobody arrives.
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
    assert_eq!(reasons(&judged), [(Why::Launch, 6)]);
    let [example] = &examples(&judged)[..] else { panic!("{:?}", judged.suspects) };
    assert!(example.starts_with("TMA0701 with `tiles` = 0: thread 0 waits forever for `never`"), "{example}");
    assert!(example.contains("`assume(..)`"), "{example}");
    let assumed = waits("tiles: u32", &format!("assume(tiles > 0); {body}"));
    assert!(matches!(judgement(&assumed).verdict, Verdict::Proved), "{:?}", judgement(&assumed).verdict);
}

#[test]
fn the_data_is_named_with_which_a_kernel_goes_wrong() {
    let body = "let a = lens.get(0); let b = lens.get(1);
    for k in 0..a { never.arrive(); never.wait(k & 1); }
    for k in a..b { never.wait(k & 1); }";
    let judged = judgement(&waits("lens: Global<u32>", body));
    assert!(reasons(&judged).contains(&(Why::Data, 8)), "{judged:?}");
    let named = examples(&judged).iter().any(|example| example.contains("`lens[1]` = "));
    assert!(named, "{:?}", examples(&judged));
}

/// A number with this square is not found.
#[test]
fn what_would_be_wrong_is_named_where_no_launch_is_known() {
    let judged = judgement(&waits("n: u32", "if n * n == 1000003 { never.wait(0); }"));
    assert_eq!(reasons(&judged), [(Why::Infeasible, 6)]);
    let [example] = &examples(&judged)[..] else { panic!("{:?}", judged.suspects) };
    assert!(example.starts_with("TMA0701: thread 0 waits forever for `never`"), "{example}");
}

/// Each in the line of the access, and not of the meeting.
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
        assert!(reasons.contains(&(Why::GridCounter, 4)), "{reasons:?}\n{source}");
    }
}
