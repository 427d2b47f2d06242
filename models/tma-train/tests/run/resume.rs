//! A run that was interrupted or killed ends with the same bits as one that was not.

use std::cell::Cell;
use std::fs;

use anyhow::{Context, Result};
use tma_train::checkpoint::{self, Disk};
use tma_train::losses::{self, Line, StepLine};
use tma_train::train::Outcome;

use crate::fixture::{Fixture, Quadratic, names};
use crate::storage::{Fault, Faulty};

/// Returns the lines without the times of steps.
fn lines(fixture: &Fixture) -> Result<Vec<Line>> {
    let untimed = |line| match line {
        Line::Step(line) => Line::Step(StepLine { seconds: 0.0, tokens_per_second: 0.0, ..line }),
        Line::Validation(line) => Line::Validation(line),
    };
    Ok(losses::read(&fixture.output)?.into_iter().map(untimed).collect())
}

/// Runs a model without interruption, and returns the last state and the lines.
fn uninterrupted(model: Quadratic) -> Result<(Quadratic, Vec<Line>)> {
    let fixture = Fixture::new()?;
    let end = fixture.finish(model)?;
    assert_eq!(end.result?, Outcome::Finished);
    assert_eq!(end.position.step, 20);
    Ok((end.model, lines(&fixture)?))
}

#[test]
fn steps_and_losses_of_a_run() -> Result<()> {
    let (model, lines) = uninterrupted(Quadratic::new())?;
    assert_eq!((model.calls, model.state.steps), (20, 20));
    let steps: Vec<_> = lines.iter().filter(|line| matches!(line, Line::Step(_))).map(Line::step).collect();
    assert_eq!(steps, (1..=20).collect::<Vec<_>>());
    let validations: Vec<_> =
        lines.iter().filter(|line| matches!(line, Line::Validation(_))).map(Line::step).collect();
    assert_eq!(validations, [5, 10, 15, 20]);
    let Line::Step(last) = lines[lines.len() - 2] else { panic!("{lines:?}") };
    assert_eq!((last.step, last.tokens, last.share_of_peak), (20, 20 * 4 * 8, None));
    assert!((last.learning_rate - 0.002).abs() < 1e-9, "{}", last.learning_rate);
    Ok(())
}

#[test]
fn an_interruption_after_any_step_changes_nothing() -> Result<()> {
    // Steps that are skipped are not those of the optimiser.
    let start = Quadratic { skipped: vec![2, 6, 7], ..Quadratic::new() };
    let (model, wanted) = uninterrupted(start.clone())?;
    for first in 1..20 {
        let fixture = Fixture::new()?;
        let asked = Cell::new(0);
        let interrupted = || {
            asked.set(asked.get() + 1);
            asked.get() == first
        };
        let end = fixture.run(start.clone(), &mut Disk, &interrupted)?;
        assert_eq!(end.result?, Outcome::Interrupted);
        // A state is not saved after a step that was skipped.
        let saved = end.position.checkpoint == Some(fixture.output.join(checkpoint::name_of(first)));
        assert_eq!(saved, !start.skipped.contains(&first), "{:?}", end.position);
        let end = fixture.finish(start.clone())?;
        assert_eq!(end.model, model, "interrupted after step {first}");
        assert_eq!(lines(&fixture)?, wanted, "interrupted after step {first}");
    }
    Ok(())
}

#[test]
fn a_kill_at_any_change_of_the_file_system_changes_nothing() -> Result<()> {
    let (model, wanted) = uninterrupted(Quadratic::new())?;
    // A save is about 30 changes, of five saves in all: each one of the first save, and others.
    for changes in (0..35).chain((35..).step_by(7)) {
        let fixture = Fixture::new()?;
        let mut storage = Faulty::after(changes, Fault::Kill);
        let end = fixture.run(Quadratic::new(), &mut storage, &|| false)?;
        if !storage.has_failed {
            assert!(changes > 140, "{changes}");
            break;
        }
        // The removal of an old checkpoint may fail: the run goes on, up to the next save.
        assert!(end.result.is_err() || end.position.step == 20, "{changes}");
        let end = fixture.finish(Quadratic::new())?;
        assert_eq!(end.model, model, "killed after {changes} changes");
        assert_eq!(lines(&fixture)?, wanted, "killed after {changes} changes");
    }
    Ok(())
}

#[test]
fn a_kill_between_checkpoints_changes_nothing() -> Result<()> {
    let (model, wanted) = uninterrupted(Quadratic::new())?;
    for step in 1..=20 {
        let fixture = Fixture::new()?;
        let failing = Quadratic { fails_at: Some(step), ..Quadratic::new() };
        let end = fixture.finish(failing)?;
        assert_eq!(
            end.result.expect_err("a step fails").to_string().split(':').next(),
            Some("wrong number of tokens")
        );
        // The process ended in the middle of a line.
        let path = fixture.output.join(losses::NAME);
        let text = fs::read_to_string(&path)? + "{\"step\":1,\"lo";
        fs::write(&path, text)?;
        let end = fixture.finish(Quadratic::new())?;
        assert_eq!(end.model, model, "killed in step {step}");
        assert_eq!(lines(&fixture)?, wanted, "killed in step {step}");
    }
    Ok(())
}

#[test]
fn the_first_weights_are_saved_before_the_first_step() -> Result<()> {
    let (model, wanted) = uninterrupted(Quadratic::new())?;
    let mut fixture = Fixture::new()?;
    fixture.intervals.save_initial = true;
    fixture.finish(Quadratic { fails_at: Some(1), ..Quadratic::new() })?;
    let (folder, record) = checkpoint::newest(&fixture.output)?.found.context("a checkpoint was saved")?;
    assert_eq!((record.step, record.loss), (0, None));
    assert_eq!(folder, fixture.output.join("checkpoint-000000"));
    assert_eq!(checkpoint::state(&folder, &record)?, Quadratic::new().state);
    let end = fixture.finish(Quadratic::new())?;
    assert_eq!(end.model, model);
    assert_eq!(lines(&fixture)?, wanted);
    Ok(())
}

#[test]
fn a_damaged_checkpoint_costs_the_steps_since_the_one_before() -> Result<()> {
    let (model, wanted) = uninterrupted(Quadratic::new())?;
    let fixture = Fixture::new()?;
    let failing = Quadratic { fails_at: Some(15), ..Quadratic::new() };
    fixture.finish(failing)?;
    let newest = fixture.output.join("checkpoint-000012");
    fs::write(newest.join("optimizer.safetensors"), "short")?;
    let end = fixture.finish(Quadratic::new())?;
    assert_eq!(end.model, model);
    assert_eq!(lines(&fixture)?, wanted);
    assert!(names(&fixture.output)?.contains(&"damaged-1-checkpoint-000012".to_owned()));
    Ok(())
}

#[test]
fn a_line_that_cannot_be_read_is_an_error_and_the_file_is_kept() -> Result<()> {
    let fixture = Fixture::new()?;
    fixture.finish(Quadratic { fails_at: Some(11), ..Quadratic::new() })?;
    let path = fixture.output.join(losses::NAME);
    let text = fs::read_to_string(&path)?;
    let others =
        ["{\"step\":2,\"comment\":\"of others\"}", "{\"step\":2}", "", "{\"step\":1,\"validation_loss\":1}"];
    for other in others {
        let mut all: Vec<_> = text.lines().collect();
        all.insert(2, other);
        let changed = all.join("\n") + "\n";
        fs::write(&path, &changed)?;
        let error = fixture.finish(Quadratic::new()).err().context("a line is wrong")?;
        let text = format!("{error:#}");
        assert!(text.contains("losses.jsonl: line 3 is "), "{text}");
        assert_eq!(fs::read_to_string(&path)?, changed);
    }
    Ok(())
}

#[test]
fn losses_without_a_checkpoint_are_moved_away() -> Result<()> {
    let fixture = Fixture::new()?;
    let path = fixture.output.join(losses::NAME);
    fs::write(&path, "a file of others\n")?;
    fixture.finish(Quadratic::new())?;
    assert_eq!(fs::read_to_string(fixture.output.join("before-1/losses.jsonl"))?, "a file of others\n");
    assert_eq!(lines(&fixture)?.len(), 24);
    Ok(())
}

#[test]
fn a_checkpoint_that_cannot_be_removed_does_not_end_the_run() -> Result<()> {
    let (model, wanted) = uninterrupted(Quadratic::new())?;
    let fixture = Fixture::new()?;
    let mut storage = Faulty::after(0, Fault::Remove);
    let end = fixture.run(Quadratic::new(), &mut storage, &|| false)?;
    assert_eq!((end.result?, storage.has_failed), (Outcome::Finished, true));
    assert_eq!((end.model, lines(&fixture)?), (model, wanted));
    Ok(())
}

#[test]
fn a_full_disk_ends_the_run_and_the_last_checkpoint_is_kept() -> Result<()> {
    let fixture = Fixture::new()?;
    let mut storage = Faulty::after(40, Fault::Full);
    let end = fixture.run(Quadratic::new(), &mut storage, &|| false)?;
    let text = end.result.expect_err("the disk is full").to_string();
    assert!(text.contains("the checkpoint needs "), "{text}");
    assert!(text.ends_with("checkpoint-000004"), "{text}");
    assert_eq!(end.position.checkpoint, Some(fixture.output.join("checkpoint-000004")));
    let left = names(&fixture.output)?;
    assert_eq!(left, ["checkpoint-000004", "losses.jsonl", "losses.svg", "tokens.bin"]);
    Ok(())
}

#[test]
fn a_run_keeps_its_newest_checkpoints() -> Result<()> {
    let fixture = Fixture::new()?;
    fixture.finish(Quadratic::new())?;
    let left: Vec<_> = names(&fixture.output)?;
    assert_eq!(left, ["checkpoint-000016", "checkpoint-000020", "losses.jsonl", "losses.svg", "tokens.bin"]);
    // A run that is done does nothing more.
    let end = fixture.finish(Quadratic::new())?;
    assert_eq!((end.result?, end.position.step, end.model.calls), (Outcome::Finished, 20, 20));
    assert_eq!(names(&fixture.output)?, left);
    Ok(())
}
