//! `model.safetensors`: the weights under their Hugging Face names, so that BART or mBART of `transformers` can load them.

use std::borrow::Cow;
use std::path::Path;

use half::bf16;
use safetensors::tensor::TensorView;

use crate::LearnError;
use crate::model::{NamedParam, ParamLayout};
use crate::tensors::{Metadata, Tensor, TensorFile, floats, save};

/// How weights are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WeightType {
    /// Exactly as trained.
    #[default]
    F32,
    /// Half the size, rounded to the nearest.
    Bf16,
}

/// Writes the weights of a model, or nothing.
pub fn save_weights(path: &Path, layout: &ParamLayout, flat: &[f32], dtype: WeightType) -> Result<(), LearnError> {
    let metadata = Metadata::from([("format".into(), "pt".into())]);
    let bytes = |n: &NamedParam| {
        let values = &flat[n.offset..][..n.len()];
        match dtype {
            WeightType::F32 => Cow::Borrowed(bytemuck::cast_slice(values)),
            WeightType::Bf16 => values.iter().flat_map(|&x| bf16::from_f32(x).to_le_bytes()).collect(),
        }
    };
    let dtype = match dtype {
        WeightType::F32 => "F32",
        WeightType::Bf16 => "BF16",
    };
    let data: Vec<Cow<[u8]>> = layout.names().iter().map(bytes).collect();
    let named = layout.names().iter().zip(&data);
    let tensors: Vec<_> = named.map(|(n, bytes)| Tensor { name: &n.name, dtype, shape: &n.shape, bytes }).collect();
    save(path, metadata, &tensors)
}

/// Weights that were read.
#[derive(Clone, Debug, PartialEq)]
pub struct LoadedWeights {
    /// The flat buffer of the model.
    pub params: Vec<f32>,
    /// Whether a checksum was there and right. Files that polystep did not write have none.
    pub verified: bool,
}

/// Names under which `transformers` may write the one matrix of embeddings. All of them are tied in our model.
const TIED: [&str; 4] =
    ["model.shared.weight", "lm_head.weight", "model.encoder.embed_tokens.weight", "model.decoder.embed_tokens.weight"];

/// Reads the weights of a model into its flat buffer. Tensors that the model does not have are refused, with two exceptions that
/// Hugging Face writes. `final_logits_bias` must be zero, since our model has none. The embeddings may lie under any of their
/// [names](TIED), but under all of them must be the same.
pub fn load_weights(path: &Path, layout: &ParamLayout) -> Result<LoadedWeights, LearnError> {
    let file = TensorFile::read(path)?;
    let tensors = file.tensors();
    let mismatch = |why: String| LearnError::Mismatch { path: path.to_path_buf(), why };
    let numbers = |name: &str, t: TensorView| {
        let values = floats(t.dtype(), t.data())
            .ok_or_else(|| mismatch(format!("{name} is of type {:?}, not F32, F16 or BF16", t.dtype())))?;
        match values.iter().find(|x| !x.is_finite()) {
            Some(x) => Err(mismatch(format!("{name} holds a number that is {x}"))),
            None => Ok(values),
        }
    };
    let mut flat = vec![0.0; layout.len()];
    for NamedParam { name, offset, shape } in layout.names() {
        let names = if name == TIED[0] { &TIED[..] } else { &[name.as_str()][..] };
        let found = names.iter().find_map(|name| tensors.tensor(name).ok());
        let t = found.ok_or_else(|| mismatch(format!("it has no tensor {name}")))?;
        if t.shape() != shape {
            return Err(mismatch(format!("{name} has shape {:?} where {shape:?} was expected", t.shape())));
        }
        let values = numbers(name, t)?;
        flat[*offset..][..values.len()].copy_from_slice(&values);
    }
    let mut others = tensors.tensors();
    others.retain(|(name, _)| layout.names().iter().all(|m| m.name != *name));
    others.sort_unstable_by(|a, b| a.0.cmp(&b.0));
    for (name, t) in others {
        if TIED.contains(&name.as_str()) {
            let shared =
                layout.names().iter().find(|m| m.name == TIED[0]).map_or(&[][..], |m| &flat[m.offset..][..m.len()]);
            if numbers(&name, t)? != shared {
                return Err(mismatch(format!("{name} is not {}: in this model they are one matrix", TIED[0])));
            }
            continue;
        }
        if name != "final_logits_bias" {
            return Err(mismatch(format!("it has a tensor {name} that this model does not have")));
        }
        if numbers(&name, t)?.iter().any(|&x| x != 0.0) {
            return Err(mismatch(format!("{name} is not zero, and this model has none")));
        }
    }
    Ok(LoadedWeights { params: flat, verified: file.verified })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{ModelConfig, Size, initial_params};

    fn tiny(layers: usize) -> (ModelConfig, ParamLayout) {
        let config =
            ModelConfig { d: 64, heads: 4, ffn: 128, layers, max_positions: 32, ..ModelConfig::of_size(Size::S) };
        let layout = ParamLayout::new(&config);
        (config, layout)
    }

    #[test]
    fn weights_come_back_exactly_and_files_are_the_same_bytes() {
        let folder = tempfile::tempdir().unwrap();
        let (config, layout) = tiny(1);
        let flat = initial_params(&config, &layout, 5);
        let [a, b] = ["a", "b"].map(|n| folder.path().join(n));
        save_weights(&a, &layout, &flat, WeightType::F32).unwrap();
        save_weights(&b, &layout, &flat, WeightType::F32).unwrap();
        assert_eq!(std::fs::read(&a).unwrap(), std::fs::read(&b).unwrap());
        assert_eq!(load_weights(&a, &layout).unwrap(), LoadedWeights { params: flat, verified: true });
    }

    #[test]
    fn bf16_rounds_to_the_nearest() {
        let folder = tempfile::tempdir().unwrap();
        let (config, layout) = tiny(1);
        let flat = initial_params(&config, &layout, 5);
        let path = folder.path().join("w");
        save_weights(&path, &layout, &flat, WeightType::Bf16).unwrap();
        let back = load_weights(&path, &layout).unwrap().params;
        for (a, b) in flat.iter().zip(back) {
            assert!((a - b).abs() <= a.abs() / 256.0, "{a} {b}");
        }
    }

    #[test]
    fn another_shape_and_damage_are_one_sentence_each() {
        let folder = tempfile::tempdir().unwrap();
        let (config, layout) = tiny(1);
        let flat = initial_params(&config, &layout, 5);
        let path = folder.path().join("w");
        save_weights(&path, &layout, &flat, WeightType::F32).unwrap();
        let message = |r: Result<LoadedWeights, LearnError>| r.unwrap_err().to_string();
        let deeper = message(load_weights(&path, &tiny(2).1));
        assert!(deeper.ends_with("it has no tensor model.encoder.layers.1.self_attn.q_proj.weight"), "{deeper}");
        let mut bytes = std::fs::read(&path).unwrap();
        let at = bytes.len() - 100;
        bytes[at] ^= 1;
        std::fs::write(&path, &bytes).unwrap();
        assert!(message(load_weights(&path, &layout)).contains("is damaged (its checksum does not match)"));
        std::fs::write(&path, &bytes[..at]).unwrap();
        assert!(message(load_weights(&path, &layout)).contains("is damaged"));
    }

    #[test]
    fn exchanged_names_are_noticed() {
        let folder = tempfile::tempdir().unwrap();
        let (config, layout) = tiny(1);
        let path = folder.path().join("w");
        save_weights(&path, &layout, &initial_params(&config, &layout, 5), WeightType::F32).unwrap();
        let mut bytes = std::fs::read(&path).unwrap();
        for name in ["k_proj.weight", "v_proj.weight"].map(|n| format!("model.encoder.layers.0.self_attn.{n}")) {
            let at = bytes.windows(name.len()).position(|w| w == name.as_bytes()).unwrap();
            let letter = at + "model.encoder.layers.0.self_attn.".len();
            bytes[letter] = if bytes[letter] == b'k' { b'?' } else { b'k' };
        }
        let at = bytes.iter().position(|&b| b == b'?').unwrap();
        bytes[at] = b'v';
        std::fs::write(&path, &bytes).unwrap();
        let error = load_weights(&path, &layout).unwrap_err().to_string();
        assert!(error.contains("is damaged (the checksum of its tensors does not match)"), "{error}");
    }

    /// transformers may write the tied matrix under another of its names, or under several.
    #[test]
    fn tied_embeddings_are_read_under_any_name() {
        let folder = tempfile::tempdir().unwrap();
        let (config, layout) = tiny(1);
        let path = folder.path().join("w");
        let flat = initial_params(&config, &layout, 5);
        let shared = layout.names().iter().find(|n| n.name == TIED[0]).unwrap();
        let written = |names: &[&str], second: &[f32]| {
            let others = layout.names().iter().filter(|n| n.name != TIED[0]);
            let own = others.map(|n| (n.name.as_str(), &n.shape[..], &flat[n.offset..][..n.len()]));
            let tied = |(i, name)| {
                (name, &shared.shape[..], if i == 0 { &flat[shared.offset..][..shared.len()] } else { second })
            };
            let all = own.chain(names.iter().copied().enumerate().map(tied)).map(|(name, shape, values)| {
                (name, TensorView::new(safetensors::Dtype::F32, shape.to_vec(), bytemuck::cast_slice(values)).unwrap())
            });
            std::fs::write(&path, safetensors::serialize(all, None).unwrap()).unwrap();
            load_weights(&path, &layout).map(|read| read.params).map_err(|e| e.to_string())
        };
        let same = &flat[shared.offset..][..shared.len()];
        assert_eq!(written(&["lm_head.weight"], &[]).unwrap(), flat);
        assert_eq!(written(&["model.shared.weight", "lm_head.weight"], same).unwrap(), flat);
        let other = vec![1.0; shared.len()];
        let refused = written(&["model.shared.weight", "lm_head.weight"], &other).unwrap_err();
        assert!(refused.contains("lm_head.weight is not model.shared.weight"), "{refused}");
    }

    #[test]
    fn numbers_that_are_none_and_a_bias_of_the_logits_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let (config, layout) = tiny(1);
        let path = folder.path().join("w");
        let mut flat = initial_params(&config, &layout, 5);
        let written = |flat: &[f32], bias: f32| {
            let bias = [bias; 64];
            let own = layout.names().iter().map(|n| (n.name.as_str(), &n.shape[..], &flat[n.offset..][..n.len()]));
            let all = own.chain([("final_logits_bias", &[1, 64][..], &bias[..])]).map(|(name, shape, values)| {
                let bytes = bytemuck::cast_slice(values);
                (name, TensorView::new(safetensors::Dtype::F32, shape.to_vec(), bytes).unwrap())
            });
            std::fs::write(&path, safetensors::serialize(all, None).unwrap()).unwrap();
            load_weights(&path, &layout).map_err(|e| e.to_string())
        };
        assert_eq!(written(&flat, 0.0).unwrap(), LoadedWeights { params: flat.clone(), verified: false });
        assert!(written(&flat, 0.5).unwrap_err().contains("final_logits_bias is not zero"));
        flat[0] = f32::NAN;
        assert!(written(&flat, 0.0).unwrap_err().ends_with("model.shared.weight holds a number that is NaN"));
    }
}
