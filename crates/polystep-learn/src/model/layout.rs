//! Where each parameter lives in the flat buffer, under its Hugging Face name.
//!
//! Parameters that one matrix product reads are neighbours. Query, key and value of a self-attention form one `[3d, d]` matrix.
//! The keys and values of *all* cross-attentions form one `[decoder layers·2d, d]` matrix, since they all read the same memory. The names
//! are views into these matrices.

use super::ModelConfig;
use polystep_engine::{Norm, NormOrder, Param};

/// A parameter as Hugging Face names it.
#[derive(Clone, Debug, PartialEq)]
pub struct NamedParam {
    /// For example `model.encoder.layers.0.fc1.weight`.
    pub name: String,
    /// First element in the flat buffer.
    pub offset: usize,
    /// One or two dimensions, row-major.
    pub shape: Vec<usize>,
}

impl NamedParam {
    /// Number of elements.
    pub fn len(&self) -> usize {
        self.shape.iter().product()
    }

    /// Whether it has no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Weight and bias of a linear layer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LinearParams {
    pub w: Param,
    pub b: Param,
}

/// One sub-layer's parameters.
#[derive(Clone, Copy, Debug)]
pub(crate) enum SubParams {
    SelfAttention { qkv: LinearParams, out: LinearParams },
    CrossAttention { layer: usize, q: LinearParams, out: LinearParams },
    FeedForward { fc1: LinearParams, fc2: LinearParams },
}

/// The encoder's or the decoder's parameters.
#[derive(Clone, Debug)]
pub(crate) struct StackParams {
    pub position: Param,
    pub embedding_norm: Norm,
    pub subs: Vec<SubParams>,
    /// One per sub-layer, and for pre-norm one more at the end.
    pub norms: Vec<Norm>,
}

/// Every parameter of a model.
#[derive(Clone, Debug)]
pub struct ParamLayout {
    pub(crate) token: Param,
    pub(crate) encoder: StackParams,
    pub(crate) decoder: StackParams,
    pub(crate) cross_kv: LinearParams,
    names: Vec<NamedParam>,
    len: usize,
}

struct Builder {
    names: Vec<NamedParam>,
    len: usize,
    d: usize,
}

impl Builder {
    fn param(&mut self, rows: usize, cols: usize) -> Param {
        let offset = self.len;
        self.len = (offset + rows * cols).next_multiple_of(64);
        Param { offset, rows, cols }
    }

    fn name(&mut self, name: String, offset: usize, shape: &[usize]) {
        self.names.push(NamedParam { name, offset, shape: shape.to_vec() });
    }

    fn matrix(&mut self, name: String, rows: usize, cols: usize) -> Param {
        let p = self.param(rows, cols);
        self.name(name, p.offset, &[rows, cols]);
        p
    }

    fn vector(&mut self, name: String, n: usize) -> Param {
        let p = self.param(1, n);
        self.name(name, p.offset, &[n]);
        p
    }

    fn norm(&mut self, name: &str) -> Norm {
        let gamma = self.vector(format!("{name}.weight"), self.d);
        Norm { gamma, beta: self.vector(format!("{name}.bias"), self.d) }
    }

    fn linear(&mut self, name: &str, out: usize, input: usize) -> LinearParams {
        let w = self.matrix(format!("{name}.weight"), out, input);
        LinearParams { w, b: self.vector(format!("{name}.bias"), out) }
    }

    /// Several `[d, d]` projections in one matrix.
    fn fused(&mut self, names: &[String]) -> LinearParams {
        let d = self.d;
        let w = self.param(names.len() * d, d);
        let b = self.param(1, names.len() * d);
        for (i, name) in names.iter().enumerate() {
            self.name(format!("{name}.weight"), w.offset + i * d * d, &[d, d]);
            self.name(format!("{name}.bias"), b.offset + i * d, &[d]);
        }
        LinearParams { w, b }
    }

    fn stack(&mut self, which: &str, layers: usize, config: &ModelConfig) -> StackParams {
        let d = self.d;
        let cross = which == "decoder";
        let position = self.matrix(format!("model.{which}.embed_positions.weight"), config.max_positions + 2, d);
        let embedding_norm = self.norm(&format!("model.{which}.layernorm_embedding"));
        let (mut subs, mut norms) = (Vec::new(), Vec::new());
        for layer in 0..layers {
            let at = format!("model.{which}.layers.{layer}");
            let qkv = ["q", "k", "v"].map(|p| format!("{at}.self_attn.{p}_proj"));
            let qkv = self.fused(&qkv);
            let out = self.linear(&format!("{at}.self_attn.out_proj"), d, d);
            subs.push(SubParams::SelfAttention { qkv, out });
            norms.push(self.norm(&format!("{at}.self_attn_layer_norm")));
            if cross {
                let q = self.linear(&format!("{at}.encoder_attn.q_proj"), d, d);
                let out = self.linear(&format!("{at}.encoder_attn.out_proj"), d, d);
                subs.push(SubParams::CrossAttention { layer, q, out });
                norms.push(self.norm(&format!("{at}.encoder_attn_layer_norm")));
            }
            let fc1 = self.linear(&format!("{at}.fc1"), config.ffn, d);
            let fc2 = self.linear(&format!("{at}.fc2"), d, config.ffn);
            subs.push(SubParams::FeedForward { fc1, fc2 });
            norms.push(self.norm(&format!("{at}.final_layer_norm")));
        }
        if config.norm == NormOrder::Pre {
            norms.push(self.norm(&format!("model.{which}.layer_norm")));
        }
        StackParams { position, embedding_norm, subs, norms }
    }
}

impl ParamLayout {
    /// The layout of a model.
    pub fn new(config: &ModelConfig) -> Self {
        let mut b = Builder { names: Vec::new(), len: 0, d: config.d };
        let token = b.matrix("model.shared.weight".into(), config.vocabulary(), config.d);
        let [encoder_layers, decoder_layers] = config.depth();
        let encoder = b.stack("encoder", encoder_layers, config);
        let decoder = b.stack("decoder", decoder_layers, config);
        let kv: Vec<String> = (0..decoder_layers)
            .flat_map(|l| ["k", "v"].map(|p| format!("model.decoder.layers.{l}.encoder_attn.{p}_proj")))
            .collect();
        let cross_kv = b.fused(&kv);
        ParamLayout { token, encoder, decoder, cross_kv, names: b.names, len: b.len }
    }

    /// Length of the flat buffer (a few elements of padding included, always zero).
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether the model has no parameters: never.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Every parameter under its Hugging Face name.
    pub fn names(&self) -> &[NamedParam] {
        &self.names
    }

    /// Number of trained parameters.
    pub fn parameters(&self) -> usize {
        self.names.iter().map(NamedParam::len).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Size;

    /// `transformers` counts so many for a vocabulary of 40; ours has 64, that is 24·256 = 6144 more.
    #[test]
    fn counts_are_those_of_bart_and_mbart() {
        let mut config = ModelConfig::of_size(Size::S);
        let layout = ParamLayout::new(&config);
        assert_eq!((layout.names().len(), layout.parameters()), (179, 7_648_256 + 6_144));
        config.norm = NormOrder::Post;
        let layout = ParamLayout::new(&config);
        assert_eq!((layout.names().len(), layout.parameters()), (175, 7_647_232 + 6_144));
    }

    /// A decoder layer has 26 tensors, an encoder layer 16; a decoder layer of width 256 has 1 315 584 + 256 numbers.
    #[test]
    fn a_deeper_decoder_has_more_tensors() {
        let same = ParamLayout::new(&ModelConfig::of_size(Size::S));
        let config = ModelConfig { encoder_layers: Some(3), decoder_layers: Some(6), ..ModelConfig::of_size(Size::S) };
        let layout = ParamLayout::new(&config);
        assert_eq!(layout.names().len(), same.names().len() - 16 + 2 * 26);
        let has = |name: &str| layout.names().iter().any(|n| n.name == name);
        assert!(has("model.decoder.layers.5.encoder_attn.k_proj.weight") && !has("model.encoder.layers.3.fc1.weight"));
        assert_eq!(layout.cross_kv.w.rows, 6 * 2 * config.d);
    }

    #[test]
    fn names_do_not_overlap() {
        let layout = ParamLayout::new(&ModelConfig::of_size(Size::L));
        let mut ranges: Vec<_> = layout.names().iter().map(|n| (n.offset, n.offset + n.len(), &n.name)).collect();
        ranges.sort();
        for w in ranges.windows(2) {
            assert!(w[0].1 <= w[1].0, "{} and {}", w[0].2, w[1].2);
        }
        assert!(ranges.last().unwrap().1 <= layout.len());
    }
}
