//! A model as a Hugging Face folder that `transformers` loads without custom code: BART for post-norm, mBART for pre-norm.
//!
//! It has five files (config.json, generation_config.json, tokenizer.json, tokenizer_config.json, model.safetensors) and a model
//! card. Weights are F32, since transformers 5 loads in the type that the config names.
//!
//! The decision a reader would get wrong: our decoder starts from `<s>` (1). `generate` reads that from the config. But mBART's
//! own shift of `labels` starts from the last label instead. So a caller who trains further must pass `decoder_input_ids`; the
//! card says so.

use std::path::Path;

use polystep_core::notation::Notation;
use polystep_core::token::{self, VOCABULARY};
use polystep_engine::{Activation, NormOrder};
use serde_json::{Value, json};

use polystep_record::RecordError;

use crate::LearnError;
use crate::model::{ModelConfig, ParamLayout};
use crate::weights::{WeightType, save_weights};
use polystep_record::write_whole;

/// Writes the folder; `card` becomes README.md. config.json comes last: with it the folder holds a model.
pub fn write_folder(
    folder: &Path,
    config: &ModelConfig,
    layout: &ParamLayout,
    params: &[f32],
    notation: Notation,
    card: &str,
) -> Result<(), LearnError> {
    std::fs::create_dir_all(folder).map_err(RecordError::file("make", folder))?;
    save_weights(&folder.join("model.safetensors"), layout, params, WeightType::F32)?;
    let pretty = |value: Value| format!("{value:#}\n");
    for (name, text) in [
        ("generation_config.json", pretty(generation_json(config))),
        ("tokenizer.json", pretty(tokenizer_json(notation))),
        ("tokenizer_config.json", pretty(tokenizer_config_json(config))),
        ("README.md", card.to_owned()),
        ("config.json", pretty(model_json(config))),
    ] {
        write_whole(&folder.join(name), text)?;
    }
    Ok(())
}

fn model_json(config: &ModelConfig) -> Value {
    let (architecture, kind, pre) = match config.norm {
        NormOrder::Post => ("BartForConditionalGeneration", "bart", false),
        NormOrder::Pre => ("MBartForConditionalGeneration", "mbart", true),
    };
    let activation = match config.activation {
        Activation::Relu => "relu",
        Activation::Gelu => "gelu",
    };
    json!({
        "architectures": [architecture], "model_type": kind, "is_encoder_decoder": true,
        "vocab_size": VOCABULARY, "d_model": config.d,
        "encoder_layers": config.layers, "decoder_layers": config.layers,
        "encoder_attention_heads": config.heads, "decoder_attention_heads": config.heads,
        "encoder_ffn_dim": config.ffn, "decoder_ffn_dim": config.ffn,
        "max_position_embeddings": config.max_positions, "activation_function": activation,
        "scale_embedding": config.scale_embedding, "dropout": config.dropout as f32,
        "attention_dropout": 0.0, "activation_dropout": 0.0, "init_std": config.init_std as f32,
        "tie_word_embeddings": true, "use_cache": true,
        "pad_token_id": token::PAD, "bos_token_id": token::BOS, "eos_token_id": token::EOS,
        "decoder_start_token_id": token::BOS, "forced_eos_token_id": null,
        "normalize_before": pre, "normalize_embedding": true, "torch_dtype": "float32",
    })
}

fn generation_json(config: &ModelConfig) -> Value {
    json!({
        "pad_token_id": token::PAD, "bos_token_id": token::BOS, "eos_token_id": token::EOS,
        "decoder_start_token_id": token::BOS, "max_new_tokens": config.max_positions - 1,
        "num_beams": 1, "do_sample": false, "use_cache": true,
    })
}

fn tokenizer_config_json(config: &ModelConfig) -> Value {
    json!({
        "tokenizer_class": "PreTrainedTokenizerFast", "pad_token": "<pad>", "bos_token": "<s>", "eos_token": "</s>",
        "unk_token": "<unk>", "model_max_length": config.max_positions, "padding_side": "right",
        "clean_up_tokenization_spaces": false, "model_input_names": ["input_ids", "attention_mask"],
    })
}

/// The tokenizer: a regular expression cuts text into our tokens, the longest first, and a vocabulary gives their numbers. `*FAC` is
/// cut into `*` and `FAC`.
fn tokenizer_json(notation: Notation) -> Value {
    let vocabulary: serde_json::Map<String, Value> =
        (0..VOCABULARY as u8).map(|id| (token::name(id).to_owned(), json!(id))).collect();
    let special: Vec<Value> = [token::PAD, token::BOS, token::EOS, token::UNK]
        .map(|id| {
            json!({"id": id, "content": token::name(id), "single_word": false, "lstrip": false, "rstrip": false,
                   "normalized": false, "special": true})
        })
        .to_vec();
    let eos = token::name(token::EOS);
    let decoder = match notation {
        Notation::Infix => json!({"type": "Fuse"}),
        Notation::Prefix => Value::Null,
    };
    json!({
        "version": "1.0", "truncation": null, "padding": null, "normalizer": null, "added_tokens": special,
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [
            {"type": "WhitespaceSplit"},
            {"type": "Split", "behavior": "Isolated", "invert": false, "pattern": {"Regex":
                r"INT[+-]|\+P|\*F(?!AC)|MARK|FAC|MUL|SUM|END|x[1-8]|<[0-9]+>|[-0-9+*^()\[\]$#]"}}]},
        "post_processor": {"type": "TemplateProcessing",
            "single": [{"Sequence": {"id": "A", "type_id": 0}}, {"SpecialToken": {"id": eos, "type_id": 0}}],
            "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 0}},
                     {"SpecialToken": {"id": eos, "type_id": 0}}],
            "special_tokens": {eos: {"id": eos, "ids": [token::EOS], "tokens": [eos]}}},
        "decoder": decoder,
        "model": {"type": "WordLevel", "unk_token": "<unk>", "vocab": vocabulary},
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Size, initial_params};
    use crate::weights::load_weights;

    #[test]
    fn the_folder_is_whole_or_holds_no_model() {
        let config =
            ModelConfig { d: 64, layers: 1, heads: 4, ffn: 128, max_positions: 32, ..ModelConfig::of_size(Size::S) };
        let layout = ParamLayout::new(&config);
        let params = initial_params(&config, &layout, 3);
        let parent = tempfile::tempdir().unwrap();
        let folder = parent.path().join("a/model");
        let write = || write_folder(&folder, &config, &layout, &params, Notation::Infix, "# A model\n");
        // A folder in the place of the weights.
        std::fs::create_dir_all(folder.join("model.safetensors/x")).unwrap();
        assert!(write().unwrap_err().to_string().contains("cannot write"));
        assert!(!folder.join("config.json").exists());
        std::fs::remove_dir_all(folder.join("model.safetensors")).unwrap();
        write().unwrap();
        assert_eq!(load_weights(&folder.join("model.safetensors"), &layout).unwrap().params, params);
        let json =
            |name: &str| -> Value { serde_json::from_slice(&std::fs::read(folder.join(name)).unwrap()).unwrap() };
        assert_eq!(json("config.json")["model_type"], "mbart");
        assert_eq!(json("tokenizer.json")["model"]["vocab"].as_object().unwrap().len(), VOCABULARY);
    }
}
