//! The shape of a model in the words of Hugging Face: the keys of `config.json`, written and read.

use polystep_core::token::{self, VOCABULARY};
use polystep_engine::{Activation, NormOrder};
use serde_json::{Value, json};

use super::{ModelConfig, Size};
use crate::ConfigError;

/// The key of `config.json` under which a run's configuration lies. `transformers` keeps it.
pub const ENTRY: &str = "polystep";

impl ModelConfig {
    /// `config.json`: BART for post-norm, mBART for pre-norm.
    pub fn to_transformers(&self) -> Value {
        let (architecture, kind, pre) = match self.norm {
            NormOrder::Post => ("BartForConditionalGeneration", "bart", false),
            NormOrder::Pre => ("MBartForConditionalGeneration", "mbart", true),
        };
        let activation = match self.activation {
            Activation::Relu => "relu",
            Activation::Gelu => "gelu",
        };
        let [encoder_layers, decoder_layers] = self.depth();
        json!({
            "architectures": [architecture], "model_type": kind, "is_encoder_decoder": true,
            "vocab_size": VOCABULARY, "d_model": self.d,
            "encoder_layers": encoder_layers, "decoder_layers": decoder_layers,
            "encoder_attention_heads": self.heads, "decoder_attention_heads": self.heads,
            "encoder_ffn_dim": self.ffn, "decoder_ffn_dim": self.ffn,
            "max_position_embeddings": self.max_positions, "activation_function": activation,
            "scale_embedding": self.scale_embedding, "dropout": self.dropout as f32,
            "attention_dropout": 0.0, "activation_dropout": 0.0, "init_std": self.init_std as f32,
            "tie_word_embeddings": true, "use_cache": true,
            "pad_token_id": token::PAD, "bos_token_id": token::BOS, "eos_token_id": token::EOS,
            "decoder_start_token_id": token::BOS, "forced_eos_token_id": null,
            "normalize_before": pre, "normalize_embedding": true, "torch_dtype": "float32",
        })
    }

    /// The shape that a `config.json` describes, or the key that no model of ours can have. A key that is left out has the
    /// default of `transformers`, where ours is another one it must be there.
    pub fn of_transformers(document: &Value) -> Result<ModelConfig, ConfigError> {
        let wrong = |why: String| ConfigError::new(why);
        let find = |key: &str| document.get(key).filter(|value| !value.is_null());
        let count = |key: &str| -> Result<usize, ConfigError> {
            let value = find(key).ok_or_else(|| wrong(format!("it has no {key}")))?;
            let number = value.as_u64().and_then(|n| usize::try_from(n).ok());
            number.ok_or_else(|| wrong(format!("{key} is {value}, not a whole number")))
        };
        // Both sides of our model have one shape; only their depths may differ.
        let both = |part: &str| {
            let [encoder, decoder] = ["encoder", "decoder"].map(|side| format!("{side}_{part}"));
            match (count(&encoder)?, count(&decoder)?) {
                (a, b) if a == b => Ok(a),
                (a, b) => Err(wrong(format!("{decoder} is {b}, not {a} as {encoder}"))),
            }
        };
        let number = |key: &str, default: f64| match find(key) {
            None => Ok(default),
            // Written as f32: the shortest number that reads back as the same one.
            Some(value) => value
                .as_f64()
                .and_then(|x| (x as f32).to_string().parse().ok())
                .ok_or_else(|| wrong(format!("{key} is {value}, not a number"))),
        };
        let word = |key: &str| find(key).map_or(String::new(), Value::to_string);
        let norm = match word("model_type").as_str() {
            "\"bart\"" => NormOrder::Post,
            "\"mbart\"" => NormOrder::Pre,
            other => return Err(wrong(format!("model_type is {other}, not bart or mbart"))),
        };
        let activation = match word("activation_function").as_str() {
            "\"relu\"" => Activation::Relu,
            "\"gelu\"" | "" => Activation::Gelu,
            other => return Err(wrong(format!("activation_function is {other}, not relu or gelu"))),
        };
        let vocabulary = count("vocab_size")?;
        if vocabulary != VOCABULARY {
            return Err(wrong(format!("vocab_size is {vocabulary}, and our vocabulary has {VOCABULARY} tokens")));
        }
        for (key, ours) in
            [("pad_token_id", token::PAD), ("eos_token_id", token::EOS), ("decoder_start_token_id", token::BOS)]
        {
            let theirs = count(key)?;
            if theirs != usize::from(ours) {
                return Err(wrong(format!("{key} is {theirs}, not {ours}")));
            }
        }
        if find("tie_word_embeddings") == Some(&Value::Bool(false)) {
            return Err(wrong("tie_word_embeddings is false, and our model has one matrix for both".into()));
        }
        let (layers, decoder_layers) = (count("encoder_layers")?, count("decoder_layers")?);
        let heads = both("attention_heads")?;
        let model = ModelConfig {
            size: if (layers, heads) == (6, 8) { Size::L } else { Size::S },
            d: count("d_model")?,
            layers,
            encoder_layers: None,
            decoder_layers: Some(decoder_layers).filter(|&n| n != layers),
            heads,
            ffn: both("ffn_dim")?,
            norm,
            activation,
            dropout: number("dropout", 0.1)?,
            max_positions: count("max_position_embeddings")?,
            scale_embedding: find("scale_embedding") == Some(&Value::Bool(true)),
            init_std: number("init_std", 0.02)?,
        };
        model.check()?;
        Ok(model)
    }
}
