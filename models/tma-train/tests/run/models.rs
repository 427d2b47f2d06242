//! Models by their names, and the rates of GPUs.

use std::fs;

use anyhow::Result;
use tma_models_reference::Reference;
use tma_train::{device, model};

/// Returns the message of the error for a model.
fn message(name: &str) -> String {
    match model::open(name, None) {
        Ok(model) => format!("{:?}", model.config),
        Err(error) => error.to_string(),
    }
}

#[test]
fn shapes_have_their_extents() -> Result<()> {
    let extents = |name| -> Result<_> {
        let config = model::open(name, None)?.config;
        let heads = [config.heads, config.key_heads, config.depth];
        Ok((config.layers(), config.width, heads, config.mlp_width, config.context))
    };
    assert_eq!(extents("gpt2")?, (12, 768, [12, 12, 64], 3072, 1024));
    assert_eq!(extents("llama-1b")?, (16, 2048, [32, 8, 64], 8192, 8192));
    assert_eq!(extents("tiny-gpt2")?, (2, 128, [2, 2, 64], 512, 128));
    assert_eq!(extents("tiny-llama")?, (2, 64, [2, 1, 64], 128, 128));
    for name in ["gpt2", "llama-1b", "tiny-gpt2", "tiny-llama"] {
        let config = model::open(name, None)?.config;
        assert_eq!((config.vocabulary, &config.ends[..], config.is_tied), (320, &[256][..], true), "{name}");
    }
    Ok(())
}

#[test]
fn vocabularies_are_those_of_tokenizers() -> Result<()> {
    let folder = tempfile::tempdir()?;
    Reference::open("llama3")?.write(folder.path())?;
    let path = folder.path().join("tokenizer.json");
    let of_file = model::open("tiny-llama", Some(&path))?;
    assert_eq!((of_file.tokenizer.tokens(), of_file.config.vocabulary), (264, 320));
    let of_folder = model::open(&folder.path().to_string_lossy(), None)?;
    assert_eq!((of_folder.tokenizer.tokens(), of_folder.config.vocabulary), (264, 264));
    assert_eq!(of_folder.tokenizer.json(), fs::read(&path)?);

    let mut config = of_folder.json;
    config["vocab_size"] = 256.into();
    fs::write(folder.path().join("config.json"), config.to_string())?;
    assert_eq!(
        message(&folder.path().to_string_lossy()),
        "the tokenizer has 264 tokens, and the model a vocabulary of 256: do they belong together?"
    );
    Ok(())
}

#[test]
fn other_models_are_errors() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let name = folder.path().to_string_lossy().into_owned();
    let known = "is neither a shape (gpt2, llama-1b, tiny-gpt2, tiny-llama) nor a folder with config.json";
    assert_eq!(message("gpt3"), format!("--model gpt3 {known}"));
    assert_eq!(message(&name), format!("--model {name} {known}"));
    fs::write(folder.path().join("config.json"), "{")?;
    assert!(message(&name).starts_with("cannot read "), "{}", message(&name));
    fs::write(folder.path().join("config.json"), "[]")?;
    assert!(message(&name).starts_with("unknown model_type ``"), "{}", message(&name));
    Ok(())
}

#[test]
fn rates_are_known_for_modules_only() {
    for name in ["NVIDIA H200", "NVIDIA H100 80GB HBM3"] {
        assert_eq!(device::peak(name), Some(989e12), "{name}");
    }
    for name in ["NVIDIA H100 PCIe", "NVIDIA H100 NVL", "NVIDIA H200 NVL", "NVIDIA A100-SXM4-80GB", "ptx-sim"]
    {
        assert_eq!(device::peak(name), None, "{name}");
    }
}
