//! `model.safetensors`: the weights under their Hugging Face names, as BART or mBART of `transformers` loads them.

use std::path::Path;

use half::bf16;

use crate::LearnError;
use crate::model::Layout;
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
pub fn save_weights(path: &Path, layout: &Layout, flat: &[f32], dtype: WeightType) -> Result<(), LearnError> {
    let metadata = Metadata::from([("format".into(), "pt".into())]);
    let values = layout.names().iter().map(|n| &flat[n.offset..][..n.len()]);
    match dtype {
        WeightType::F32 => {
            let tensors: Vec<_> = layout
                .names()
                .iter()
                .zip(values)
                .map(|(n, v)| Tensor { name: &n.name, dtype: "F32", shape: &n.shape, bytes: bytemuck::cast_slice(v) })
                .collect();
            save(path, metadata, &tensors)
        }
        WeightType::Bf16 => {
            let rounded: Vec<Vec<bf16>> = values.map(|v| v.iter().map(|&x| bf16::from_f32(x)).collect()).collect();
            let tensors: Vec<_> = layout
                .names()
                .iter()
                .zip(&rounded)
                .map(|(n, v)| Tensor { name: &n.name, dtype: "BF16", shape: &n.shape, bytes: bytemuck::cast_slice(v) })
                .collect();
            save(path, metadata, &tensors)
        }
    }
}

/// Reads the weights of a model into its flat buffer. Tensors that the model does not have are refused, but for
/// `final_logits_bias`, which Hugging Face writes and which is zero.
pub fn load_weights(path: &Path, layout: &Layout) -> Result<Vec<f32>, LearnError> {
    let file = TensorFile::read(path, false)?;
    let tensors = file.tensors();
    let mismatch = |why: String| LearnError::Mismatch { path: path.to_path_buf(), why };
    let mut flat = vec![0.0; layout.len()];
    for named in layout.names() {
        let t = tensors.tensor(&named.name).map_err(|_| mismatch(format!("it has no tensor {}", named.name)))?;
        if t.shape() != named.shape {
            return Err(mismatch(format!(
                "{} has shape {:?} where {:?} was expected",
                named.name,
                t.shape(),
                named.shape
            )));
        }
        let values = floats(t.dtype(), t.data())
            .ok_or_else(|| mismatch(format!("{} is of type {:?}, not F32 or BF16", named.name, t.dtype())))?;
        flat[named.offset..][..named.len()].copy_from_slice(&values);
    }
    let mut others: Vec<_> = tensors
        .names()
        .into_iter()
        .filter(|n| *n != "final_logits_bias" && layout.names().iter().all(|m| m.name != **n))
        .collect();
    others.sort_unstable();
    match others.first() {
        Some(other) => Err(mismatch(format!("it has a tensor {other} that this model does not have"))),
        None => Ok(flat),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{ModelConfig, Size, initial_params};

    fn tiny(layers: usize) -> (ModelConfig, Layout) {
        let config =
            ModelConfig { d: 64, heads: 4, ffn: 128, layers, max_positions: 32, ..ModelConfig::of_size(Size::S) };
        let layout = Layout::new(&config);
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
        assert_eq!(load_weights(&a, &layout).unwrap(), flat);
    }

    #[test]
    fn bf16_rounds_to_the_nearest() {
        let folder = tempfile::tempdir().unwrap();
        let (config, layout) = tiny(1);
        let flat = initial_params(&config, &layout, 5);
        let path = folder.path().join("w");
        save_weights(&path, &layout, &flat, WeightType::Bf16).unwrap();
        let back = load_weights(&path, &layout).unwrap();
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
        let message = |r: Result<Vec<f32>, LearnError>| r.unwrap_err().to_string();
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
}
