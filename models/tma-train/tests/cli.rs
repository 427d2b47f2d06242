//! The program itself, on the simulator.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use safetensors::SafeTensors;
use serde_json::Value;
use tempfile::TempDir;
use tma_generate::{load, terminal};
use tma_models::engine::Sampling;
use tma_models_reference::Reference;
use tma_runtime::Device;

/// The options of a run of four small steps.
const OPTIONS: &str = "--device sim --steps 4 --batch 2 --sequences 1 --length 8 --learning-rate 0.01 \
                       --validation 0.1 --evaluate-every 2 --evaluations 1 --save-every 3";

/// A folder with a text.
struct Case {
    folder: TempDir,
}

impl Case {
    fn new() -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let line = |i: u32| format!("{i} times {i} is {}.\n", i * i);
        fs::write(folder.path().join("text.txt"), (0..300).map(line).collect::<String>())?;
        Ok(Self { folder })
    }

    fn output(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Returns the command of a run of four small steps, with more arguments.
    fn command(&self, output: &str, more: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tma-train"));
        command.env("RUST_BACKTRACE", "0");
        command.args(OPTIONS.split_whitespace());
        command.arg("--text").arg(self.folder.path().join("text.txt"));
        command.arg("--output").arg(self.output(output)).args(more);
        command
    }

    /// Runs to the end.
    fn run(&self, output: &str, more: &[&str]) -> Result<Output> {
        Ok(self.command(output, more).output()?)
    }

    /// Returns the message of a run that fails.
    fn message(&self, more: &[&str]) -> Result<String> {
        let done = self.run("output", more)?;
        ensure!(done.status.code() == Some(1), "{done:?}");
        Ok(String::from_utf8(done.stderr)?)
    }
}

/// Returns the lines of a run without the times of steps.
fn lines(output: &Path) -> Result<Vec<Value>> {
    let text = fs::read_to_string(output.join("losses.jsonl"))?;
    let parsed = text.lines().map(|line| {
        let mut line: Value = serde_json::from_str(line)?;
        for name in ["seconds", "tokens_per_second"] {
            line.as_object_mut().context("a line is an object")?.remove(name);
        }
        Ok(line)
    });
    parsed.collect()
}

/// Waits until a run has so many lines or this checkpoint.
fn wait_for(child: &mut Child, is_done: impl Fn() -> bool) -> Result<()> {
    let start = Instant::now();
    while !is_done() {
        ensure!(child.try_wait()?.is_none() || is_done(), "the run has ended");
        ensure!(start.elapsed() < Duration::from_secs(120), "the run takes too long");
        std::thread::sleep(Duration::from_millis(5));
    }
    Ok(())
}

/// Interrupts a run after a step, kills it after another one, and lets it finish.
#[cfg(unix)]
fn interrupted(case: &Case, model: &[&str]) -> Result<PathBuf> {
    let output = case.output("interrupted");
    let mut child = case.command("interrupted", model).stderr(Stdio::piped()).spawn()?;
    wait_for(&mut child, || lines(&output).is_ok_and(|lines| !lines.is_empty()))?;
    ensure!(Command::new("kill").args(["-INT", &child.id().to_string()]).status()?.success());
    let done = child.wait_with_output()?;
    let text = String::from_utf8(done.stderr)?;
    assert_eq!(done.status.code(), Some(130), "{text}");
    assert!(
        text.contains("Finishing the step and saving it") && text.contains("interrupted after "),
        "{text}"
    );

    let mut child = case.command("interrupted", model).stderr(Stdio::null()).spawn()?;
    wait_for(&mut child, || output.join("checkpoint-000003").exists())?;
    child.kill()?;
    child.wait()?;
    // The process was in the middle of the next checkpoint.
    fs::create_dir_all(output.join(".checkpoint-000004.partial"))?;
    let done = case.run("interrupted", model)?;
    let text = String::from_utf8(done.stderr)?;
    ensure!(done.status.success(), "{text}");
    ensure!(text.contains("continuing from "), "{text}");
    ensure!(!output.join(".checkpoint-000004.partial").exists());
    Ok(output)
}

#[cfg(unix)]
#[test]
fn a_run_that_was_interrupted_and_killed_ends_with_the_same_bits() -> Result<()> {
    let case = Case::new()?;
    let model = ["--model", "tiny-llama"];
    let whole = case.run("whole", &[&model[..], &["--json"]].concat())?;
    let text = String::from_utf8(whole.stderr)?;
    assert!(whole.status.success(), "{text}");
    assert!(
        text.contains("step 4 of 4: loss ")
            && text.contains("step 4 of 4: validation loss ")
            && text.contains("checkpoint-000004 in "),
        "{text}"
    );
    let output = case.output("whole");
    assert_eq!(String::from_utf8(whole.stdout)?, fs::read_to_string(output.join("losses.jsonl"))?);
    let all = lines(&output)?;
    let steps: Vec<_> = all.iter().map(|line| line["step"].as_u64()).collect();
    assert_eq!(steps, [1, 2, 2, 3, 4, 4].map(Some));
    let last = |name: &str| all.iter().rev().find_map(|line| line[name].as_f64()).context("there is one");
    let (loss, validation) = (last("loss")?, last("validation_loss")?);
    let end =
        format!("finished after 4 steps: loss {loss:.4}, validation {validation:.4}; the last checkpoint");
    assert!(text.contains(&end), "{text}");
    let losses: Vec<_> = all.iter().filter_map(|line| line["loss"].as_f64()).collect();
    assert!(losses[0] > 5.0 && losses[3] < losses[0] - 0.3, "{losses:?}");

    let resumed = interrupted(&case, &model)?;
    assert_eq!(lines(&resumed)?, all);
    assert_same_tensors(&output, &resumed)?;
    damaged(&case, &model, &resumed)?;
    assert_eq!(lines(&resumed)?, all);
    assert_same_tensors(&output, &resumed)?;
    other_options(&case)?;
    generates(&resumed.join("checkpoint-000004"), "llama3")
}

/// Checks that the last checkpoints of two runs have the same tensors, bit for bit.
fn assert_same_tensors(one: &Path, other: &Path) -> Result<()> {
    for file in ["model.safetensors", "optimizer.safetensors"] {
        let of = |output: &Path| fs::read(output.join("checkpoint-000004").join(file));
        assert!(of(one)? == of(other)?, "{file} differs");
    }
    Ok(())
}

/// Damages the last checkpoint, and lets the run do its steps again from the one before.
fn damaged(case: &Case, model: &[&str], output: &Path) -> Result<()> {
    let path = output.join("checkpoint-000004").join("model.safetensors");
    let mut bytes = fs::read(&path)?;
    *bytes.last_mut().context("the file is not empty")? ^= 1;
    fs::write(&path, bytes)?;
    let done = case.run("interrupted", model)?;
    let text = String::from_utf8(done.stderr)?;
    assert!(done.status.success(), "{text}");
    let aside = output.join("damaged-1-checkpoint-000004");
    let warning = format!(
        "warning: {} has other bytes than were written: its checksum differs; the checkpoint is now {}",
        path.display(),
        aside.display()
    );
    assert!(text.contains(&warning), "{text}");
    assert!(text.contains("checkpoint-000003\n") && aside.exists(), "{text}");
    Ok(())
}

/// Checks that a run with other options is refused, and begins again by `--restart`.
fn other_options(case: &Case) -> Result<()> {
    let folder = case.output("whole").join("checkpoint-000004");
    let other = case.run("whole", &["--model", "tiny-llama", "--seed", "3"])?;
    let text = String::from_utf8(other.stderr)?;
    let wanted = format!(
        "Error: {} was made with other options: --seed was 0, now it is 3. Give the same options, another \
         --output, or --restart\n",
        folder.display()
    );
    assert!(text.ends_with(&wanted), "{text}");
    // Nothing is moved by a run that cannot begin.
    let failing = "--model tiny-llama --restart --length 128 --validation 0.99";
    let failed = case.run("whole", &failing.split_whitespace().collect::<Vec<_>>())?;
    assert_eq!(failed.status.code(), Some(1));
    assert!(folder.exists() && !case.output("whole").join("before-1").exists());
    let restart = "--model tiny-llama --seed 3 --restart --steps 1 --batch 1 --validation 0";
    let restarted = case.run("whole", &restart.split_whitespace().collect::<Vec<_>>())?;
    let text = String::from_utf8(restarted.stderr)?;
    assert!(restarted.status.success(), "{text}");
    assert!(text.contains("moved the checkpoints and losses before to "), "{text}");
    let output = case.output("whole");
    assert!(output.join("before-1/checkpoint-000004/model.safetensors").exists());
    assert_eq!(lines(&output)?.len(), 1);
    Ok(())
}

/// Checks that a checkpoint has the tensors that transformers has in a model of the same family, with
/// as many layers, and that the program that generates text loads it.
fn generates(checkpoint: &Path, reference: &str) -> Result<()> {
    let bytes = fs::read(checkpoint.join("model.safetensors"))?;
    let tensors = SafeTensors::deserialize(&bytes)?;
    let found: BTreeSet<_> = tensors.names().into_iter().collect();
    let reference = Reference::open(reference)?;
    assert_eq!(found, reference.tensors.iter().map(|(name, _)| name.as_str()).collect());

    let model = load::model(checkpoint, &Device::simulator(), None)?;
    let mut out = vec![];
    let summary = terminal::generate(model, "3 times", 4, Sampling::default(), &mut out)?;
    assert_eq!((summary.prompt, summary.tokens), (7, 4));
    assert!(!out.is_empty());
    Ok(())
}

#[test]
fn a_checkpoint_of_gpt2_generates_text() -> Result<()> {
    let case = Case::new()?;
    let one_step = "--model tiny-gpt2 --steps 1 --batch 1 --validation 0";
    let done = case.run("output", &one_step.split_whitespace().collect::<Vec<_>>())?;
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    generates(&case.output("output").join("checkpoint-000001"), "gpt2")
}

#[test]
fn errors_say_what_is_wrong() -> Result<()> {
    let case = Case::new()?;
    let llama = |more: &[&str]| case.message(&[&["--model", "tiny-llama"], more].concat());
    let cases = [
        (case.message(&["--model", "gpt3"])?, "Error: --model gpt3 is neither a shape (gpt2, "),
        (llama(&["--tokenizer", "absent.json"])?, "Error: cannot read absent.json"),
        (
            llama(&["--batch", "3", "--sequences", "2"])?,
            "Error: --batch is 3: give a multiple of --sequences",
        ),
        (llama(&["--length", "129"])?, "Error: --length is 129: give at most 128, the model's context"),
    ];
    for (found, wanted) in cases {
        assert!(found.starts_with(wanted), "{found}");
    }
    // Nothing is created before the arguments are known to be good.
    assert!(!case.output("output").exists());
    let llama = |more: &str| {
        let more: Vec<_> = more.split_whitespace().collect();
        case.message(&[&["--model", "tiny-llama"], &more[..]].concat())
    };
    let cases = [
        (
            llama("--length 128 --validation 0.99")?,
            "\nError: the text to train on is shorter than one window: it",
        ),
        (
            llama("--length 128 --validation 0.01")?,
            "\nError: the text that --validation holds out is shorter",
        ),
        (
            llama("--device tpu")?,
            "\nError: --device is tpu: give sim, or the number of a GPU, as 0 or cuda:0",
        ),
        (llama("--device cudacuda::3")?, "\nError: --device is cudacuda::3: give sim"),
    ];
    for (found, wanted) in cases {
        assert!(found.contains(wanted), "{found}");
    }
    assert!(!case.output("output").join("losses.jsonl").exists());
    Ok(())
}

#[test]
fn arguments_are_checked() -> Result<()> {
    let case = Case::new()?;
    for (more, wanted) in [
        (&["--keep", "0"][..], "invalid value '0' for '--keep <N>'"),
        (&["--print-every", "0"], "invalid value '0' for '--print-every <PRINT_EVERY>'"),
        (&["--schedule", "square"], "[possible values: cosine, linear, constant]"),
        (&[], "--model <SHAPE|FOLDER>"),
    ] {
        let done = case.run("output", more)?;
        let text = String::from_utf8(done.stderr)?;
        assert_eq!(done.status.code(), Some(2), "{text}");
        assert!(text.contains(wanted), "{text}");
    }
    let help = Command::new(env!("CARGO_BIN_EXE_tma-train")).arg("--help").output()?;
    let text = String::from_utf8(help.stdout)?;
    assert!(help.status.success() && text.contains("Exit codes: 0 when all steps are done"), "{text}");
    Ok(())
}

#[cfg(unix)]
#[test]
fn a_signal_before_the_first_step_leaves_nothing() -> Result<()> {
    let case = Case::new()?;
    // Long enough that the signal comes while bytes become tokens.
    fs::write(case.folder.path().join("text.txt"), "some words\n".repeat(1 << 22))?;
    let mut child = case.command("output", &["--model", "tiny-llama"]).stderr(Stdio::piped()).spawn()?;
    let output = case.output("output");
    wait_for(&mut child, || output.join(".tokens.bin.partial").exists())?;
    // Not SIGHUP, which is ignored if the tests run under `nohup`.
    ensure!(Command::new("kill").args(["-TERM", &child.id().to_string()]).status()?.success());
    let done = child.wait_with_output()?;
    let text = String::from_utf8(done.stderr)?;
    assert_eq!(done.status.code(), Some(143), "{text}");
    assert!(
        text.contains("Ending before the first step") && text.contains("interrupted before the first step; "),
        "{text}"
    );
    let left: Vec<_> = fs::read_dir(&output)?.map(|entry| Ok(entry?.file_name())).collect::<Result<_>>()?;
    assert_eq!(left, [".lock"]);
    Ok(())
}

#[test]
fn a_run_without_a_gpu_is_an_error() -> Result<()> {
    let case = Case::new()?;
    let mut command = Command::new(env!("CARGO_BIN_EXE_tma-train"));
    command.args(["--model", "tiny-llama", "--length", "8", "--text"]).arg(case.output("text.txt"));
    // No driver has a device of this name.
    command.env("CUDA_VISIBLE_DEVICES", "-1").env_remove("TMA_DEVICE").env("RUST_BACKTRACE", "0");
    let done = command.arg("--output").arg(case.output("output")).output()?;
    let text = String::from_utf8(done.stderr)?;
    assert_eq!(done.status.code(), Some(1), "{text}");
    assert!(
        text.contains("Error: no GPU was found (") && text.contains("give --device sim to simulate"),
        "{text}"
    );
    Ok(())
}
