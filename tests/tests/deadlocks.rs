//! `tma-gpu-mutants` on the simulator: kernels that deadlock, each with limited waits in a process of
//! its own, report the barriers that the simulator names. The program is made for GPUs; here a
//! sample shows that its parts fit together.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use tma_tests::gpu::deadlocks::{DeadlockTrial, Verdict};

/// Checks whose kernels wait at mbarriers, at barriers of the block and of the cluster, and for values
/// in global memory, each with the step between the mutants that run.
const SAMPLES: [(&str, &str); 2] = [("barriers::", "6"), ("teams::", "3")];

/// Runs the program.
fn program(arguments: &[&str]) -> Output {
    let program = env!("CARGO_BIN_EXE_tma-gpu-mutants");
    Command::new(program).args(arguments).output().expect("the program of this package starts")
}

#[test]
fn deadlocks_are_reported_with_their_barriers() {
    for (filter, every) in SAMPLES {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let name = filter.replace(':', "");
        let [list, out] = ["list", "out"].map(|kind| folder.join(format!("deadlocks-{name}-{kind}.jsonl")));
        let [list, out] = [&list, &out].map(|path| path.to_str().expect("it is of ASCII"));
        // A run would continue after what an earlier one has written.
        let _it_may_not_be_there = fs::remove_file(out);
        let listed = program(&["list", list, "--filter", filter, "--every", every, "--instances", "1"]);
        assert!(listed.status.success(), "{listed:?}");
        let ran = program(&["run", list, "--out", out, "--device", "sim", "--processes", "2"]);
        let (stdout, stderr) = (String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
        assert!(ran.status.success(), "{filter}: {stdout}{stderr}");
        let lines = fs::read_to_string(out).expect("it has been written");
        let trials: Vec<DeadlockTrial> =
            lines.lines().map(|line| serde_json::from_str(line).expect("a trial")).collect();
        assert_eq!(fs::read_to_string(list).expect("it has been written").lines().count(), trials.len());
        // The program itself fails if one hangs or fewer than 95 % of the certain deadlocks are named.
        let named = |trial: &&DeadlockTrial| trial.mutant.is_certain() && trial.verdict == Verdict::Named;
        assert!(trials.iter().filter(named).count() >= 3, "{filter}: {stdout}");

        // The program was killed while it wrote the last line.
        fs::write(out, &lines[..lines.len() - 10]).expect("it was there");
        let ran = program(&["run", list, "--out", out, "--device", "sim"]);
        let stdout = String::from_utf8_lossy(&ran.stdout);
        let kept = format!("{} mutants, {} of which", trials.len(), trials.len() - 1);
        assert!(ran.status.success() && stdout.contains(&kept), "{filter}: {stdout}");
        assert_eq!(fs::read_to_string(out).expect("it has been written").lines().count(), trials.len());
        let table = program(&["table", out]);
        assert!(table.status.success() && String::from_utf8_lossy(&table.stdout).contains("named: "));
    }
}

#[test]
fn a_list_that_is_none_is_an_error() {
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join("deadlocks-none.jsonl");
    fs::write(&file, "{}\n").expect("the folder is there");
    let path = file.to_str().expect("it is of ASCII");
    let ran = program(&["run", path, "--out", path, "--device", "sim"]);
    let error = String::from_utf8_lossy(&ran.stderr).into_owned();
    assert!(!ran.status.success() && error.contains("cannot parse line 1 of"), "{error}");
}
