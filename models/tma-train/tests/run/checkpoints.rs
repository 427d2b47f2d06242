//! Checkpoints survive a kill at each change of the file system, and a full disk; damage is found.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use tma_models::checkpoint::Checkpoint;
use tma_runtime::prelude::bf16;
use tma_train::TrainError;
use tma_train::checkpoint::{self, Contents, Disk, Storage};
use tma_train::steps::State;
use tma_train::tokenizer::TextTokenizer;

use crate::fixture::{names, record, state};
use crate::storage::{Fault, Faulty, Recorder};

/// Saves a state after so many steps.
fn save(storage: &mut impl Storage, output: &Path, step: u32, state: &State) -> Result<PathBuf, TrainError> {
    let kept = Path::new("checkpoint-000010");
    let tokenizer = TextTokenizer::Bytes.json();
    let contents = Contents { record: record(step), state, tokenizer: &tokenizer, kept: Some(kept) };
    checkpoint::save(storage, output, &contents)
}

/// Returns the step and the state of the newest good checkpoint.
fn newest(output: &Path) -> Result<(u32, State)> {
    let (folder, record) = checkpoint::newest(output)?.found.context("there is a checkpoint")?;
    Ok((record.step, checkpoint::state(&folder, &record)?))
}

#[test]
fn a_state_comes_back_with_all_its_bits() -> Result<()> {
    let output = tempfile::tempdir()?;
    let mut saved = state(9, -0.25);
    saved.tensors[0].master[0] = -0.0;
    saved.tensors[1].second[0] = f32::from_bits(1);
    let folder = save(&mut Disk, output.path(), 9, &saved)?;
    assert_eq!(folder, output.path().join("checkpoint-000009"));
    let all =
        ["config.json", "model.safetensors", "optimizer.safetensors", "tokenizer.json", "training.json"];
    assert_eq!(names(&folder)?, all);

    let found = checkpoint::verify(&folder)?;
    let bits = |state: &State| {
        let numbers = state.tensors.iter().flat_map(|x| x.master.iter().chain(&x.first).chain(&x.second));
        numbers.map(|x| x.to_bits()).collect::<Vec<_>>()
    };
    let loaded = checkpoint::state(&folder, &found)?;
    assert_eq!(bits(&loaded), bits(&saved));
    assert_eq!(loaded, saved);
    let files = found.files.clone();
    assert_eq!(found, checkpoint::Record { files, ..record(9) });
    Ok(())
}

#[test]
fn weights_are_those_of_the_model() -> Result<()> {
    let output = tempfile::tempdir()?;
    let saved = state(3, 0.7);
    let folder = save(&mut Disk, output.path(), 3, &saved)?;
    let weights = Checkpoint::open(&folder)?;
    for tensor in &saved.tensors {
        let mut found = vec![];
        weights.append(&tensor.name, &tensor.shape, &mut found)?;
        let rounded: Vec<_> = tensor.master.iter().map(|x| bf16::from_f32(*x)).collect();
        assert_eq!(found, rounded, "{}", tensor.name);
    }
    let config: serde_json::Value = serde_json::from_slice(&fs::read(folder.join("config.json"))?)?;
    assert_eq!((&config["model_type"], &config["dtype"]), (&"llama".into(), &"bfloat16".into()));
    Ok(())
}

#[test]
fn a_kill_leaves_the_last_or_the_new_checkpoint() -> Result<()> {
    let states = [state(10, 1.0), state(20, 2.0)];
    let mut found = vec![];
    for changes in 0.. {
        let output = tempfile::tempdir()?;
        save(&mut Disk, output.path(), 10, &states[0])?;
        let mut storage = Faulty::after(changes, Fault::Kill);
        let saved = save(&mut storage, output.path(), 20, &states[1]);
        let pruned = saved.and_then(|_| checkpoint::prune(&mut storage, output.path(), 1));
        assert_eq!(pruned.is_err(), storage.has_failed);

        // The next start of the program.
        checkpoint::clean(&mut Disk, output.path())?;
        let (step, state) = newest(output.path())?;
        assert_eq!(state, states[usize::from(step == 20)], "killed after {changes} changes");
        let left = names(output.path())?;
        assert!(left.iter().all(|name| !name.starts_with('.')), "{left:?}");
        found.push(step);
        // What was interrupted can be done again.
        if step == 10 {
            save(&mut Disk, output.path(), 20, &states[1])?;
            assert_eq!(newest(output.path())?.0, 20);
        }
        if !storage.has_failed {
            break;
        }
    }
    // The folder and its five files, of which two are written in parts, are before the rename.
    assert!(found.is_sorted() && found.len() > 25, "{found:?}");
    assert_eq!((found.first(), found.last()), (Some(&10), Some(&20)));
    assert!(found.iter().filter(|step| **step == 20).count() >= 3, "{found:?}");
    Ok(())
}

#[test]
fn a_full_disk_is_an_error_with_the_bytes_needed() -> Result<()> {
    let (first, second) = (state(10, 1.0), state(20, 2.0));
    for changes in 0.. {
        let output = tempfile::tempdir()?;
        save(&mut Disk, output.path(), 10, &first)?;
        let mut storage = Faulty::after(changes, Fault::Full);
        let Err(error) = save(&mut storage, output.path(), 20, &second) else {
            assert!(changes > 20, "{changes}");
            return Ok(());
        };
        let text = error.to_string();
        let TrainError::Checkpoint { needed, source, .. } = error else { panic!("{text}") };
        assert_eq!(source.kind(), std::io::ErrorKind::StorageFull);
        assert!(text.contains(&format!("the checkpoint needs {needed} bytes")), "{text}");
        assert!(text.ends_with("The last good checkpoint is kept: checkpoint-000010"), "{text}");
        let renamed = output.path().join("checkpoint-000020");
        if !renamed.exists() {
            assert_eq!(names(output.path())?, ["checkpoint-000010"]);
        }
        // The bytes are those of the files, but for the sums in the record.
        let whole = tempfile::tempdir()?;
        let folder = save(&mut Disk, whole.path(), 20, &second)?;
        let sizes = names(&folder)?.into_iter().map(|name| Ok(fs::metadata(folder.join(name))?.len()));
        let bytes = sizes.sum::<Result<u64>>()?;
        assert!((needed..needed + 1000).contains(&bytes), "{needed} of {bytes}");
    }
    Ok(())
}

#[test]
fn damage_is_found_and_the_checkpoint_before_is_used() -> Result<()> {
    let damages: [fn(&mut Vec<u8>); 3] = [
        |bytes| bytes[0] ^= 1,
        |bytes| *bytes.last_mut().expect("no file is empty") ^= 0x10,
        // The last byte of the record ends its last line, and is not part of the JSON.
        |bytes| bytes.truncate(bytes.len() - 2),
    ];
    let output = tempfile::tempdir()?;
    save(&mut Disk, output.path(), 10, &state(10, 1.0))?;
    let folder = save(&mut Disk, output.path(), 20, &state(20, 2.0))?;
    for name in names(&folder)? {
        let path = folder.join(&name);
        let whole = fs::read(&path)?;
        for damage in damages {
            let mut bytes = whole.clone();
            damage(&mut bytes);
            fs::write(&path, bytes)?;
            assert_damaged(output.path(), &name, &["checksum differs", "bytes, ", "is not a record"])?;
        }
        fs::remove_file(&path)?;
        assert_damaged(output.path(), &name, &["is missing"])?;
        fs::write(&path, whole)?;
        assert_eq!(newest(output.path())?.0, 20);
    }
    Ok(())
}

/// Checks that the newest checkpoint has a damaged file, and that the one before is used.
fn assert_damaged(output: &Path, name: &str, reasons: &[&str]) -> Result<()> {
    let search = checkpoint::newest(output)?;
    let [(folder, damage)] = &search.damaged[..] else { panic!("{name}: {:?}", search.damaged) };
    assert_eq!(*folder, output.join("checkpoint-000020"));
    let text = damage.to_string();
    assert!(text.starts_with(&format!("{} ", folder.join(name).display())), "{text}");
    assert!(reasons.iter().any(|reason| text.contains(reason)), "{text}");
    assert_eq!(newest(output)?, (10, state(10, 1.0)));
    Ok(())
}

#[test]
fn a_changed_number_of_the_record_is_found() -> Result<()> {
    let output = tempfile::tempdir()?;
    let folder = save(&mut Disk, output.path(), 20, &state(20, 2.0))?;
    let path = folder.join("training.json");
    let text = fs::read_to_string(&path)?;
    assert!(text.contains("\"step\": 20"), "{text}");
    fs::write(&path, text.replace("\"step\": 20", "\"step\": 21"))?;
    let error = checkpoint::verify(&folder).expect_err("the record was changed");
    let TrainError::Damaged(damage) = error else { panic!("{error}") };
    assert_eq!(damage.reason, "has other contents than were written: its checksum differs", "{damage}");
    Ok(())
}

#[test]
fn another_version_is_an_error_and_no_damage() -> Result<()> {
    let output = tempfile::tempdir()?;
    let folder = save(&mut Disk, output.path(), 20, &state(20, 2.0))?;
    let path = folder.join("training.json");
    // What else a later version has is not known: this one has nothing.
    fs::write(&path, "{\"crc32\": 0, \"training\": {\"version\": 3}}")?;
    let text = checkpoint::newest(output.path()).expect_err("the version is another one").to_string();
    assert!(text.contains("training.json has version 3, and this program reads version 2: "), "{text}");
    assert!(folder.exists());
    Ok(())
}

#[test]
fn a_file_that_cannot_be_opened_is_no_damage() -> Result<()> {
    let output = tempfile::tempdir()?;
    save(&mut Disk, output.path(), 10, &state(10, 1.0))?;
    let folder = save(&mut Disk, output.path(), 20, &state(20, 2.0))?;
    for name in names(&folder)? {
        // Folders are opened, and not read, also by those who may read all files.
        let path = folder.join(&name);
        let bytes = fs::read(&path)?;
        fs::remove_file(&path)?;
        fs::create_dir(&path)?;
        let error = checkpoint::newest(output.path()).expect_err("it is a folder");
        assert!(matches!(&error, TrainError::Read { path: found, .. } if *found == path), "{error}");
        fs::remove_dir(&path)?;
        fs::write(&path, bytes)?;
    }
    Ok(())
}

#[test]
fn a_copy_under_another_name_is_an_error() -> Result<()> {
    let output = tempfile::tempdir()?;
    let folder = save(&mut Disk, output.path(), 20, &state(20, 2.0))?;
    let copy = output.path().join("checkpoint-000300");
    fs::rename(&folder, &copy)?;
    let text = checkpoint::newest(output.path()).expect_err("the name is another one").to_string();
    assert_eq!(
        text,
        format!(
            "{} has the state after step 20: rename it to checkpoint-000020, or move it out of the output folder",
            copy.display()
        )
    );
    // Names that the program does not give are not those of checkpoints.
    fs::rename(&copy, output.path().join("checkpoint-300"))?;
    assert!(checkpoint::list(output.path())?.is_empty());
    Ok(())
}

#[test]
fn files_and_folders_are_synced_before_the_rename() -> Result<()> {
    let output = tempfile::tempdir()?;
    let mut storage = Recorder::default();
    save(&mut storage, output.path(), 20, &state(20, 2.0))?;
    let partial = ".checkpoint-000020.partial";
    let files =
        ["model.safetensors", "optimizer.safetensors", "config.json", "tokenizer.json", "training.json"];
    let mut wanted = vec![format!("create {partial}")];
    for file in files {
        wanted.extend(["create", "sync"].map(|change| format!("{change} {partial}/{file}")));
    }
    // Only Unix syncs folders.
    if cfg!(unix) {
        wanted.push(format!("sync {partial}"));
    }
    wanted.push(format!("rename {partial} to checkpoint-000020"));
    if cfg!(unix) {
        wanted.push("sync ".into());
    }
    assert_eq!(storage.changes(output.path()), wanted);
    Ok(())
}

#[test]
fn only_damaged_checkpoints_are_an_error() -> Result<()> {
    let output = tempfile::tempdir()?;
    assert!(checkpoint::newest(output.path())?.found.is_none());
    let folder = save(&mut Disk, output.path(), 10, &state(10, 1.0))?;
    fs::remove_file(folder.join("optimizer.safetensors"))?;
    let text = checkpoint::newest(output.path()).expect_err("it is damaged").to_string();
    assert!(text.contains("optimizer.safetensors is missing. Repair one, or begin"), "{text}");
    Ok(())
}

#[test]
fn a_damaged_checkpoint_makes_room_for_a_new_one() -> Result<()> {
    let output = tempfile::tempdir()?;
    for number in 1..3 {
        let folder = save(&mut Disk, output.path(), 20, &state(20, 2.0))?;
        let aside = checkpoint::set_aside(&mut Disk, output.path(), &folder)?;
        assert_eq!(aside, output.path().join(format!("damaged-{number}-checkpoint-000020")));
    }
    assert!(checkpoint::list(output.path())?.is_empty());
    Ok(())
}

#[test]
fn a_state_of_nans_is_not_saved() -> Result<()> {
    let output = tempfile::tempdir()?;
    save(&mut Disk, output.path(), 10, &state(10, 1.0))?;
    let mut bad = state(20, 2.0);
    bad.tensors[1].second[4] = f32::NAN;
    let text = save(&mut Disk, output.path(), 20, &bad).expect_err("it has a NaN").to_string();
    assert_eq!(
        text,
        "tensor `layers.0.bias` is not finite after step 20: it is not saved. The last good checkpoint is \
         kept: checkpoint-000010"
    );
    assert_eq!(names(output.path())?, ["checkpoint-000010"]);
    Ok(())
}

#[test]
fn the_newest_checkpoints_are_kept() -> Result<()> {
    let output = tempfile::tempdir()?;
    for step in [999_999, 3, 20, 1_000_000] {
        save(&mut Disk, output.path(), step, &state(step, 1.0))?;
    }
    checkpoint::prune(&mut Disk, output.path(), 2)?;
    assert_eq!(names(output.path())?, ["checkpoint-1000000", "checkpoint-999999"]);
    Ok(())
}
