//! Settings of `config.json` in their older and newer forms.

use serde_json::{Value, json};
use tma_kernels::model::RotaryScaling;
use tma_models::ModelError;
use tma_models::config::{Config, Mixture, Positions, RotarySettings};

/// A Llama with further settings.
fn with(more: Value) -> Result<Config, ModelError> {
    let mut all = json!({
        "model_type": "llama", "vocab_size": 100, "hidden_size": 64, "intermediate_size": 96,
        "num_hidden_layers": 4, "num_attention_heads": 4, "max_position_embeddings": 256, "rms_norm_eps": 1e-5,
    });
    if let (Some(all), Some(more)) = (all.as_object_mut(), more.as_object()) {
        all.extend(more.clone());
    }
    Config::from_json(all)
}

fn rotary(more: Value) -> Result<RotarySettings, ModelError> {
    match with(more)?.positions {
        Positions::Rotary(settings) => Ok(settings),
        Positions::Learned => panic!("Llama has no learned positions"),
    }
}

#[test]
fn rotary_settings_have_two_forms() -> Result<(), ModelError> {
    let plain = |base| RotarySettings { base, scaling: RotaryScaling::None };
    assert_eq!(rotary(json!({}))?, plain(10_000.0));
    assert_eq!(rotary(json!({ "rope_theta": 5e5, "rope_scaling": null }))?, plain(5e5));
    assert_eq!(
        rotary(json!({ "rope_parameters": { "rope_theta": 1e6, "rope_type": "default" } }))?,
        plain(1e6)
    );
    let scaling = RotaryScaling::Llama3 {
        factor: 8.0,
        low_frequency_factor: 1.0,
        high_frequency_factor: 4.0,
        original_positions: 128.0,
    };
    let settings = json!({
        "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 128,
        "rope_type": "llama3",
    });
    let wanted = RotarySettings { base: 5e5, scaling };
    assert_eq!(rotary(json!({ "rope_theta": 5e5, "rope_scaling": settings }))?, wanted);
    let linear = RotarySettings { base: 10_000.0, scaling: RotaryScaling::Linear { factor: 2.0 } };
    assert_eq!(rotary(json!({ "rope_scaling": { "type": "linear", "factor": 2 } }))?, linear);
    Ok(())
}

#[test]
fn heads_have_up_to_256_elements() -> Result<(), ModelError> {
    for depth in [160, 256] {
        assert_eq!(with(json!({ "head_dim": depth }))?.depth, depth);
    }
    Ok(())
}

#[test]
fn settings_that_are_not_supported_are_named() {
    let refused = |more| with(more).expect_err("a refusal").to_string();
    assert_eq!(
        refused(json!({ "rope_scaling": { "rope_type": "longrope" } })),
        "unsupported rope_type in config.json: found longrope, wanted default, linear, llama3 or yarn"
    );
    assert_eq!(
        refused(json!({ "rope_scaling": { "rope_type": "linear" } })),
        "unsupported factor in config.json: found nothing, wanted a number"
    );
    assert_eq!(
        refused(json!({ "head_dim": 264 })),
        "unsupported head_dim in config.json: found 264, wanted a multiple of 8 up to 256"
    );
    assert_eq!(
        refused(json!({ "num_key_value_heads": 3 })),
        "unsupported num_key_value_heads in config.json: found 3, wanted a divisor of the number of heads"
    );
    assert_eq!(
        refused(json!({ "num_attention_heads": 0 })),
        "unsupported num_attention_heads in config.json: found 0, wanted a divisor of hidden_size"
    );
    assert_eq!(
        refused(json!({ "rope_parameters": { "full_attention": { "rope_theta": 1e6 } } })),
        "unsupported rope_parameters in config.json: found an object for each kind of layer, wanted one for all layers"
    );
    assert_eq!(
        refused(json!({ "partial_rotary_factor": 0.5 })),
        "unsupported partial_rotary_factor in config.json: found 0.5, wanted 1"
    );
    assert_eq!(
        refused(json!({ "num_hidden_layers": 1_000_000_000_000_000_000_u64 })),
        "unsupported num_hidden_layers in config.json: found 1000000000000000000, wanted at most 4096"
    );
    assert_eq!(
        refused(json!({ "hidden_size": 1_u64 << 60 })),
        "unsupported hidden_size in config.json: found 1152921504606846976, wanted at most 2^24"
    );
    assert_eq!(
        refused(json!({ "layer_types": ["full_attention"] })),
        "unsupported layer_types in config.json: found 1, wanted one for each layer"
    );
}

#[test]
fn windows_of_layers() -> Result<(), ModelError> {
    let windows = |more| with(more).map(|config| config.windows);
    // Hugging Face counts the query's own position.
    assert_eq!(windows(json!({ "model_type": "mistral", "sliding_window": 16 }))?, [Some(15); 4]);
    assert_eq!(windows(json!({ "model_type": "mistral", "sliding_window": null }))?, [None; 4]);
    let types = ["sliding_attention", "full_attention", "sliding_attention", "full_attention"];
    let wanted = [Some(7), None, Some(7), None];
    assert_eq!(windows(json!({ "model_type": "gemma2", "sliding_window": 8 }))?, wanted);
    let listed = json!({ "model_type": "qwen2", "sliding_window": 8, "layer_types": types });
    assert_eq!(windows(listed)?, wanted);
    let last = json!({
        "model_type": "qwen3", "sliding_window": 8, "use_sliding_window": true, "max_window_layers": 3,
    });
    assert_eq!(windows(last)?, [None, None, None, Some(7)]);
    let unused = json!({ "model_type": "qwen2", "sliding_window": 8, "use_sliding_window": false });
    assert_eq!(windows(unused)?, [None; 4]);
    Ok(())
}

/// A Qwen 3 with experts and further settings.
fn with_experts(more: Value) -> Result<Config, ModelError> {
    let mut all = json!({
        "model_type": "qwen3_moe", "num_experts": 16, "num_experts_per_tok": 4, "moe_intermediate_size": 48,
    });
    if let (Some(all), Some(more)) = (all.as_object_mut(), more.as_object()) {
        all.extend(more.clone());
    }
    with(all)
}

#[test]
fn experts_of_layers() -> Result<(), ModelError> {
    let layers = |more| with_experts(more).map(|config| config.mixture.map(|found| found.layers));
    assert_eq!(layers(json!({}))?, Some(vec![true; 4]));
    assert_eq!(layers(json!({ "decoder_sparse_step": 2 }))?, Some(vec![false, true, false, true]));
    let some = json!({ "mlp_only_layers": [0, 3] });
    assert_eq!(layers(some)?, Some(vec![false, true, true, false]));

    let qwen = with_experts(json!({ "norm_topk_prob": true }))?;
    let mixture =
        |width, normalise| Some(Mixture { experts: 16, choices: 4, width, normalise, layers: vec![true; 4] });
    assert_eq!((qwen.mixture, qwen.norms_heads), (mixture(48, true), true));
    assert_eq!(with_experts(json!({}))?.mixture, mixture(48, false));
    // transformers writes the number of experts under the name that Mixtral has.
    let renamed = json!({ "num_experts": null, "num_local_experts": 16 });
    assert_eq!(with_experts(renamed)?.mixture, mixture(48, false));
    let mixtral =
        with(json!({ "model_type": "mixtral", "num_local_experts": 16, "num_experts_per_tok": 4 }))?;
    assert_eq!((&mixtral.mixture, mixtral.has_mlp()), (&mixture(96, true), false));
    assert_eq!(
        mixtral.positions,
        Positions::Rotary(RotarySettings { base: 1e6, scaling: RotaryScaling::None })
    );
    Ok(())
}

#[test]
fn experts_that_are_not_supported_are_named() {
    let refused = |more| with_experts(more).expect_err("a refusal").to_string();
    assert_eq!(
        refused(json!({ "num_experts": 513 })),
        "unsupported num_experts in config.json: found 513, wanted 1 to 512"
    );
    assert_eq!(
        refused(json!({ "num_experts_per_tok": 17 })),
        "unsupported num_experts_per_tok in config.json: found 17, wanted 1 to 16, and no more than there are experts"
    );
    assert_eq!(
        refused(json!({ "num_experts": 3 })),
        "unsupported num_experts_per_tok in config.json: found 4, wanted 1 to 16, and no more than there are experts"
    );
    assert_eq!(
        refused(json!({ "moe_intermediate_size": 100 })),
        "unsupported moe_intermediate_size in config.json: found 100, wanted a multiple of 8"
    );
    assert_eq!(
        refused(json!({ "moe_intermediate_size": null })),
        "unsupported moe_intermediate_size in config.json: found nothing, wanted a number"
    );
    assert_eq!(
        refused(json!({ "decoder_sparse_step": 0 })),
        "unsupported decoder_sparse_step in config.json: found 0, wanted at least 1"
    );
    assert_eq!(
        refused(json!({ "shared_expert_intermediate_size": 64 })),
        "unsupported shared_expert_intermediate_size in config.json: found 64, wanted no expert that all tokens share"
    );
}
