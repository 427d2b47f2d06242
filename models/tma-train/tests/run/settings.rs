//! Options: their ranges, and the differences from those of a checkpoint.

use tma_train::schedule::Decay;
use tma_train::settings::{Settings, differences};

use std::fs;

use anyhow::Result;
use clap::Parser;
use tma_train::arguments::Arguments;
use tma_train::checkpoint::Search;
use tma_train::stream::SourceText;
use tma_train::{checkpoint, model, resume};

use crate::fixture::{record, settings};

#[test]
fn differences_are_named_like_options() {
    assert!(differences(&settings(), &settings()).is_empty());
    let changed = Settings {
        learning_rate: 0.1 + 0.2,
        batch: 8,
        schedule: Decay::Linear,
        text: "01".into(),
        tokenizer: "12".into(),
        model: serde_json::json!({ "model_type": "llama", "hidden_size": 128, "extra": true }),
        ..settings()
    };
    let mut found = differences(&settings(), &changed);
    found.sort();
    assert_eq!(
        found,
        [
            "--batch was 4, now it is 8",
            "--learning-rate was 0.02, now it is 0.30000000000000004",
            "--model: hidden_size of config.json was 64, now it is 128",
            "--schedule was \"cosine\", now it is \"linear\"",
            "--text has other contents",
            "--tokenizer has other contents"
        ]
    );
}

#[test]
fn a_run_with_a_constant_rate_may_become_longer() {
    let constant = |steps| Settings { steps, schedule: Decay::Constant, ..settings() };
    assert!(differences(&constant(20), &constant(30)).is_empty());
    let longer = Settings { steps: 30, ..settings() };
    assert_eq!(differences(&settings(), &longer), ["--steps was 20, now it is 30"]);
}

#[test]
fn options_out_of_their_ranges_are_errors() {
    let message =
        |settings: Settings| settings.check().map_or_else(|error| error.to_string(), |()| "good".into());
    assert_eq!(message(settings()), "good");
    let cases = [
        (Settings { batch: 5, ..settings() }, "--batch is 5: give a multiple of --sequences, which is 2"),
        (Settings { sequences: 0, ..settings() }, "--sequences is 0: give at least 1"),
        (Settings { batch: 0, ..settings() }, "--batch is 0: give a multiple of --sequences, which is 2"),
        (Settings { steps: 0, ..settings() }, "--steps is 0: give at least 1"),
        (Settings { length: 0, ..settings() }, "--length is 0: give at least 1"),
        (Settings { warmup: 20, ..settings() }, "--warmup is 20: give less than --steps"),
        (
            Settings { learning_rate: 0.0, ..settings() },
            "--learning-rate is 0: give a number above 0 that f32 has",
        ),
        (
            Settings { learning_rate: f64::NAN, ..settings() },
            "--learning-rate is NaN: give a number above 0 that f32 has",
        ),
        (Settings { clip: -1.0, ..settings() }, "--clip is -1: give 0, or a number above 0 that f32 has"),
        // These are above 0 and below 1 as `f64` alone.
        (Settings { clip: 1e-50, ..settings() }, "--clip is 1e-50: give 0, or a number above 0 that f32 has"),
        (
            Settings { beta1: 0.99999999, ..settings() },
            "--beta1 is 0.99999999: give a number from 0 up to 1, and below 1 as f32",
        ),
        (
            Settings { learning_rate: 1e40, ..settings() },
            "--learning-rate is 1e40: give a number above 0 that f32 has",
        ),
        (
            Settings { beta2: 1.0, ..settings() },
            "--beta2 is 1: give a number from 0 up to 1, and below 1 as f32",
        ),
        (Settings { validation: 1.0, ..settings() }, "--validation is 1: give a share from 0 up to 1"),
        (
            Settings { weight_decay: f64::INFINITY, ..settings() },
            "--weight-decay is inf: give a number of at least 0",
        ),
    ];
    for (settings, wanted) in cases {
        assert_eq!(message(settings), wanted);
    }
}

/// Returns the message of continuing a run of 20 steps, of which 10 are done, with other options.
fn continued(before: &str, now: &str) -> Result<String> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("text");
    fs::write(&path, "some text")?;
    let text = SourceText::open(&path, &tma_train::tokenizer::TextTokenizer::Bytes)?;
    let model = model::open("tiny-llama", None)?;
    let common = "tma-train --model tiny-llama --text text --output output --schedule constant";
    let parsed = |options: &str| Arguments::try_parse_from(format!("{common} {options}").split_whitespace());
    let before = parsed(before)?.settings(&model, &text, None);
    let record = checkpoint::Record { settings: before, ..record(10) };
    let settings = parsed(now)?.settings(&model, &text, Some(&record));
    settings.check()?;
    let search = Search { found: Some(("checkpoint-000010".into(), record)), damaged: vec![] };
    Ok(resume::check(&search, &settings).map_or_else(|error| error.to_string(), |()| "good".into()))
}

#[test]
fn a_run_becomes_longer_by_its_steps_alone() -> Result<()> {
    assert_eq!(continued("--steps 20", "--steps 500")?, "good");
    assert_eq!(continued("--steps 20 --warmup 5", "--steps 30")?, "good");
    assert_eq!(continued("--steps 20", "--steps 10")?, "good");
    assert_eq!(
        continued("--steps 20", "--steps 9")?,
        "--steps is 9: 10 steps are done, give at least as many"
    );
    assert_eq!(
        continued("--steps 20", "--steps 500 --warmup 50")?,
        "checkpoint-000010 was made with other options: --warmup was 2, now it is 50. Give the same options, \
         another --output, or --restart"
    );
    Ok(())
}
