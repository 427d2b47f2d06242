//! The output folder.

use std::fs;

use anyhow::Result;
use tma_train::output;

use crate::fixture::{Fixture, Quadratic, names};

#[test]
fn two_processes_do_not_share_a_folder() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("new").join("output");
    let lock = output::lock(&path)?;
    let text = output::lock(&path).expect_err("it is locked").to_string();
    assert_eq!(
        text,
        format!("another process trains in {}: end it, or give another --output", path.display())
    );
    drop(lock);
    output::lock(&path)?;
    Ok(())
}

#[test]
fn an_earlier_run_is_moved_away_whole() -> Result<()> {
    let fixture = Fixture::new()?;
    assert_eq!(output::move_away(&fixture.output)?, None);
    for number in 1..3 {
        let end = fixture.finish(Quadratic::new())?;
        assert_eq!(end.model.calls, 20);
        let losses = fs::read(fixture.output.join("losses.jsonl"))?;
        let folder = fixture.output.join(format!("before-{number}"));
        assert_eq!(output::move_away(&fixture.output)?, Some(folder.clone()));
        assert_eq!(names(&folder)?, ["checkpoint-000016", "checkpoint-000020", "losses.jsonl", "losses.svg"]);
        assert_eq!(fs::read(folder.join("losses.jsonl"))?, losses);
    }
    assert_eq!(names(&fixture.output)?, ["before-1", "before-2", "tokens.bin"]);
    Ok(())
}
