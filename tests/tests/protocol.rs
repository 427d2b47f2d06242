#![cfg(feature = "llvm")]
use tma_tests::mutation::judged::{Compiler, Simulator, judge_all};
use tma_tests::mutation::subjects::{first_instances, subjects};

#[test]
fn scratch() -> anyhow::Result<()> {
    let nth = std::env::var("NTH").map_or(40, |n| n.parse().unwrap());
    let seeds = std::env::var("SEEDS").map_or(4, |n| n.parse().unwrap());
    let mut subjects = first_instances(&subjects()?, 1);
    if let Ok(name) = std::env::var("KERNEL") {
        subjects.retain(|subject| subject.kernel.name.starts_with(&name));
    }
    let begin = std::time::Instant::now();
    let all = judge_all(&subjects, nth, seeds)?;
    for j in &all {
        let compiler = match &j.compiler {
            Compiler::OtherRule(c) => format!("other {c}"),
            Compiler::Refused(c, l) => format!("refused {c} {l:?}"),
            Compiler::Undecided => "undecided".into(),
            Compiler::Checked => "checked".into(),
            Compiler::Proved => "proved".into(),
        };
        let simulator = match &j.simulator {
            Simulator::Found { kind, seed, lines } => {
                let mut lines = lines.clone();
                lines.sort();
                lines.dedup();
                format!("found {kind:?} {seed} {lines:?}")
            }
            other => format!("{other:?}"),
        };
        println!(
            "M|{}|{}|{} {}|{compiler}|{simulator}|{}",
            j.kernel,
            j.line,
            j.step,
            j.change,
            if matches!(j.compiler, Compiler::Refused(..)) && j.is_wrong() {
                if j.has_right_line() { "right" } else { "WRONGLINE" }
            } else {
                ""
            }
        );
    }
    println!("{} in {:?}", all.len(), begin.elapsed());
    Ok(())
}
