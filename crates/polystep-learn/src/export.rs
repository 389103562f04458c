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
use serde_json::{Value, json};

use polystep_record::{RecordError, RunFolder, write_whole};

use crate::LearnError;
use crate::config::RunConfig;
use crate::model::{ENTRY, ModelConfig, ParamLayout};
use crate::weights::{WeightType, save_weights};

/// Writes the folder of a run's model; `card` becomes README.md. config.json comes last: with it the folder holds a model. What
/// the model learned is a part of config.json, so that [`RunConfig::stored`] reads the folder back.
pub fn write_folder(
    folder: &Path,
    run: &RunConfig,
    layout: &ParamLayout,
    params: &[f32],
    card: &str,
) -> Result<(), LearnError> {
    let (config, notation) = (&run.model, run.data.notation);
    let mut config_json = config.to_transformers();
    config_json[ENTRY] = serde_json::to_value(run).map_err(|e| LearnError::Data(e.to_string()))?;
    std::fs::create_dir_all(folder).map_err(RecordError::file("make", folder))?;
    let place = RunFolder::new(folder);
    save_weights(&place.model(), layout, params, WeightType::F32)?;
    let pretty = |value: Value| format!("{value:#}\n");
    for (path, text) in [
        (folder.join("generation_config.json"), pretty(generation_json(config))),
        (folder.join("tokenizer.json"), pretty(tokenizer_json(notation))),
        (folder.join("tokenizer_config.json"), pretty(tokenizer_config_json(config))),
        (folder.join("README.md"), card.to_owned()),
        (place.exported(), pretty(config_json)),
    ] {
        write_whole(&path, text)?;
    }
    Ok(())
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
    use crate::model::initial_params;
    use crate::weights::load_weights;

    const RUN: &str = "[data]\nconfig = \"own\"\nguard = [\"own:2\"]\n[space]\nkey = \"own\"\nmax.products = 4\n\
                       [model]\nd = 64\nlayers = 1\nheads = 4\nffn = 128\nmax_positions = 32\ndropout = 0.1\n";

    #[test]
    fn the_folder_is_whole_or_holds_no_model_and_is_read_back() {
        let run = RunConfig::from_toml(RUN, &[]).unwrap();
        let layout = ParamLayout::new(&run.model);
        let params = initial_params(&run.model, &layout, 3);
        let parent = tempfile::tempdir().unwrap();
        let folder = parent.path().join("a/model");
        let write = || write_folder(&folder, &run, &layout, &params, "# A model\n");
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
        assert_eq!(RunConfig::stored(&folder).unwrap(), run);
    }

    /// Both keys are BART's own. Read back, the encoder's depth is `layers`.
    #[test]
    fn a_deeper_decoder_is_exported_and_read_back() {
        let run = RunConfig::from_toml(&format!("{RUN}decoder_layers = 3\n"), &[]).unwrap();
        let layout = ParamLayout::new(&run.model);
        let params = initial_params(&run.model, &layout, 3);
        let folder = tempfile::tempdir().unwrap();
        write_folder(folder.path(), &run, &layout, &params, "# A model\n").unwrap();
        let text = std::fs::read_to_string(folder.path().join("config.json")).unwrap();
        let document: Value = serde_json::from_str(&text).unwrap();
        assert_eq!((&document["encoder_layers"], &document["decoder_layers"]), (&json!(1), &json!(3)));
        assert_eq!(RunConfig::stored(folder.path()).unwrap(), run);
        assert_eq!(load_weights(&folder.path().join("model.safetensors"), &layout).unwrap().params, params);
    }

    #[test]
    fn a_folder_from_elsewhere_is_refused_in_one_sentence() {
        let run = RunConfig::from_toml(RUN, &[]).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let refused = |key: &str, value: Value| {
            let mut document = run.model.to_transformers();
            document[ENTRY] = serde_json::to_value(&run).unwrap();
            document[key] = value;
            std::fs::write(folder.path().join("config.json"), document.to_string()).unwrap();
            RunConfig::stored(folder.path()).unwrap_err().to_string()
        };
        assert!(refused("model_type", json!("t5")).ends_with("model_type is \"t5\", not bart or mbart"));
        assert!(refused("vocab_size", json!(50265)).ends_with("vocab_size is 50265, and our vocabulary has 64 tokens"));
        assert!(refused("decoder_ffn_dim", json!(2)).ends_with("decoder_ffn_dim is 2, not 128 as encoder_ffn_dim"));
        assert!(refused("activation_function", json!("gelu_new")).contains("activation_function is \"gelu_new\""));
        assert!(refused(ENTRY, Value::Null).contains("polystep: "));
        let none = RunConfig::stored(&folder.path().join("none")).unwrap_err().to_string();
        assert!(
            none.ends_with("holds no run: there is no config.toml in it, and no config.json of an export"),
            "{none}"
        );
    }
}
