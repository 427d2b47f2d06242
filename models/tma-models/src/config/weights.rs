//! The elements of weights, from `quantization_config`.

use serde_json::Value;

use super::{WeightFormat, setting};
use crate::ModelError;
use crate::quantized::BLOCK;

/// Returns the format of a configuration's matrices. Supported is that of `fp8` with a scale for
/// each 128 × 128 elements, as of DeepSeek's models and Qwen's.
pub(super) fn format(config: &Value) -> Result<WeightFormat, ModelError> {
    let Some(found) = config.get("quantization_config").filter(|found| !found.is_null()) else {
        return Ok(WeightFormat::Bf16);
    };
    let method = found.get("quant_method").and_then(Value::as_str).unwrap_or("nothing");
    if method != "fp8" {
        return Err(setting("quantization_config.quant_method", method, "fp8"));
    }
    let block = found.get("weight_block_size").unwrap_or(&Value::Null);
    if *block != Value::from([BLOCK, BLOCK].as_slice()) {
        return Err(setting("quantization_config.weight_block_size", block.to_string(), "[128,128]"));
    }
    match found.get("activation_scheme").and_then(Value::as_str).unwrap_or("dynamic") {
        "dynamic" => Ok(WeightFormat::Stored),
        other => Err(setting("quantization_config.activation_scheme", other, "dynamic")),
    }
}
