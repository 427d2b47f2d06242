//! Text in a terminal is what transformers generates.

use anyhow::Result;
use tma_generate::{load, terminal};
use tma_models::engine::Sampling;
use tma_models::text::Text;
use tma_models_reference::Reference;
use tma_runtime::Device;

#[test]
fn the_text_of_transformers() -> Result<()> {
    let reference = Reference::open("llama3")?;
    let folder = tempfile::tempdir()?;
    reference.write(folder.path())?;
    let wanted = Text::open(folder.path())?.decode(&reference.greedy)?;

    let model = load::model(folder.path(), &Device::simulator(), None)?;
    let mut out = vec![];
    let summary = terminal::generate(model, &reference.prompt, 12, Sampling::default(), &mut out)?;
    assert_eq!(String::from_utf8(out)?, wanted + "\n");
    assert_eq!((summary.prompt, summary.tokens), (reference.tokens.len(), 12));
    assert!(summary.tokens_per_second().is_some_and(|rate| rate > 0.0));
    Ok(())
}

#[test]
fn errors_say_what_is_wrong() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let device = Device::simulator();
    let message = |folder: &std::path::Path| match load::model(folder, &device, None) {
        Ok(_) => "loaded".to_owned(),
        Err(error) => format!("{error:#}"),
    };
    let missing = message(&folder.path().join("absent"));
    assert!(missing.contains("is no folder: give --model the folder with config.json"), "{missing}");
    let empty = message(folder.path());
    assert!(empty.contains("cannot read") && empty.contains("config.json"), "{empty}");

    let mut reference = Reference::open("llama2")?;
    let config = reference.config.clone();
    let mut with = |name: &str, value: serde_json::Value| -> Result<String> {
        reference.config = config.clone();
        reference.config[name] = value;
        reference.write(folder.path())?;
        Ok(message(folder.path()))
    };
    assert_eq!(with("hidden_size", 64.into())?, "loaded");
    assert_eq!(
        with("model_type", "mamba".into())?,
        "unknown model_type `mamba` in config.json: supported are llama, mistral, qwen2, qwen3, \
         qwen3_moe, mixtral, gemma2, gpt2"
    );
    assert_eq!(
        with("hidden_act", "relu".into())?,
        "unsupported hidden_act in config.json: found relu, wanted silu or gelu_pytorch_tanh"
    );
    assert_eq!(
        with("intermediate_size", 104.into())?,
        "tensor `model.layers.0.mlp.gate_proj.weight` has the shape [96, 64], config.json implies [104, 64]: do \
         they belong together?"
    );
    let layers = with("num_hidden_layers", 3.into())?;
    assert!(layers.starts_with("missing tensor `model.layers.2.input_layernorm.weight` in "), "{layers}");
    let settings = with("vocab_size", serde_json::Value::Null)?;
    assert!(settings.contains("vocab_size") || settings.contains("null"), "{settings}");

    with("hidden_size", 64.into())?;
    std::fs::write(folder.path().join("model.safetensors"), [7; 20])?;
    let damaged = message(folder.path());
    assert!(damaged.contains("model.safetensors is not a safetensors file"), "{damaged}");
    std::fs::remove_file(folder.path().join("model.safetensors"))?;
    assert!(message(folder.path()).starts_with("cannot read "), "{}", message(folder.path()));
    Ok(())
}
