//! `[model]` of a run's TOML: every number that shapes the network.

use polystep_core::token::VOCABULARY;
use polystep_engine::{Activation, NormOrder};
use serde::{Deserialize, Serialize};

use crate::ConfigError;

/// The paper's two sizes. `S` = 4+4 layers, 4 heads; `L` = 6+6 layers, 8 heads; both with d 256.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Size {
    /// Transformer-S.
    #[serde(alias = "s")]
    S,
    /// Transformer-L.
    #[serde(alias = "l")]
    L,
}

/// `[model]`: the shape of the network. Fractions are f64, though the engine computes in f32: a TOML must show `0.02`, not
/// `0.019999999552965164`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ModelConfig {
    /// `S` (4+4 layers, 4 heads) or `L` (6+6 layers, 8 heads); the other keys change single numbers of it.
    pub size: Size,
    /// Width.
    pub d: usize,
    /// Layers of the encoder and of the decoder, unless the next two keys say otherwise.
    pub layers: usize,
    /// Layers of the encoder alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub encoder_layers: Option<usize>,
    /// Layers of the decoder alone: a deeper decoder has more steps in which to form a sum.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decoder_layers: Option<usize>,
    /// Attention heads; must divide `d`.
    pub heads: usize,
    /// Width of the feed-forward layers; 4·d unless given.
    pub ffn: usize,
    /// `post` (BART) or `pre` (mBART).
    #[serde(with = "NormName")]
    pub norm: NormOrder,
    /// `relu` or `gelu`.
    #[serde(with = "ActivationName")]
    pub activation: Activation,
    /// Probability of dropping, after the embeddings and each sub-layer.
    pub dropout: f64,
    /// Longest sequence, `</s>` included. Longer training examples are skipped, longer test examples are wrong.
    pub max_positions: usize,
    /// Whether token embeddings are multiplied by √d (`scale_embedding` of BART).
    pub scale_embedding: bool,
    /// Standard deviation of the first weights.
    pub init_std: f64,
}

/// [`NormOrder`] as it is written.
#[derive(Serialize, Deserialize)]
#[serde(remote = "NormOrder", rename_all = "lowercase")]
enum NormName {
    Pre,
    Post,
}

/// [`Activation`] as it is written.
#[derive(Serialize, Deserialize)]
#[serde(remote = "Activation", rename_all = "lowercase")]
enum ActivationName {
    Relu,
    Gelu,
}

impl Default for ModelConfig {
    fn default() -> Self {
        ModelConfig::of_size(Size::S)
    }
}

impl ModelConfig {
    /// Every key of `[model]` that has a value in every run.
    pub const KEYS: [&str; 11] = [
        "size",
        "d",
        "layers",
        "heads",
        "ffn",
        "norm",
        "activation",
        "dropout",
        "max_positions",
        "scale_embedding",
        "init_std",
    ];

    /// One of the paper's sizes with the shape of recipe `fast` (pre-norm, GELU).
    pub fn of_size(size: Size) -> Self {
        let (layers, heads) = match size {
            Size::S => (4, 4),
            Size::L => (6, 8),
        };
        ModelConfig {
            size,
            d: 256,
            layers,
            encoder_layers: None,
            decoder_layers: None,
            heads,
            ffn: 1024,
            norm: NormOrder::Pre,
            activation: Activation::Gelu,
            dropout: 0.0,
            max_positions: 512,
            scale_embedding: false,
            init_std: 0.02,
        }
    }

    /// Layers of the encoder and of the decoder.
    pub fn depth(&self) -> [usize; 2] {
        [self.encoder_layers, self.decoder_layers].map(|own| own.unwrap_or(self.layers))
    }

    /// Width of one head.
    pub fn head_dim(&self) -> usize {
        self.d / self.heads
    }

    /// Tokens in the vocabulary: the same for every setting.
    pub fn vocabulary(&self) -> usize {
        VOCABULARY
    }

    /// If the model cannot be built, one sentence that says why.
    pub fn check(&self) -> Result<(), ConfigError> {
        let wrong = |why: String| Err(ConfigError::new(why));
        // d: one block of the norm's kernel must hold a row. The others: larger models fit into no memory.
        let bounds = [
            ("d", self.d, 1..=1024),
            ("layers", self.layers, 1..=128),
            ("encoder_layers", self.depth()[0], 1..=128),
            ("decoder_layers", self.depth()[1], 1..=128),
            ("heads", self.heads, 1..=self.d),
            ("ffn", self.ffn, 1..=65_536),
            ("max_positions", self.max_positions, 8..=65_536),
        ];
        if let Some((name, n, range)) = bounds.into_iter().find(|(_, n, range)| !range.contains(n)) {
            return wrong(format!("model.{name} = {n} must be between {} and {}", range.start(), range.end()));
        }
        if !self.d.is_multiple_of(self.heads) {
            return wrong(format!("model.heads = {} does not divide model.d = {}", self.heads, self.d));
        }
        if ![16, 32, 64, 128].contains(&self.head_dim()) {
            return wrong(format!(
                "model.d / model.heads = {} is no head width we can compute: choose 16, 32, 64 or 128",
                self.head_dim()
            ));
        }
        if !self.d.is_multiple_of(64) || !self.ffn.is_multiple_of(64) {
            return wrong("model.d and model.ffn must be multiples of 64".into());
        }
        if !(0.0..1.0).contains(&(self.dropout as f32)) {
            return wrong(format!("model.dropout = {} must be at least 0 and below 1", self.dropout));
        }
        let init_std = self.init_std as f32;
        if !(init_std > 0.0 && init_std.is_finite()) {
            return wrong("model.init_std must be positive".into());
        }
        Ok(())
    }
}
