//! Fresh weights as BART draws them. Matrices and tables are normal(0, init_std), biases 0, norms 1 and 0. The rows of `<pad>`
//! in the token table and of the two unused positions are zero.
//!
//! Each tensor has a stream of its own, keyed by its Hugging Face name, so that adding a layer does not change the others.

use super::{ModelConfig, ParamLayout};
use polystep_core::stream::{Purpose, Streams};
use polystep_core::token;

/// The flat buffer of a fresh model.
pub fn initial_params(config: &ModelConfig, layout: &ParamLayout, seed: u64) -> Vec<f32> {
    let mut flat = vec![0.0; layout.len()];
    for named in layout.names() {
        let values = &mut flat[named.offset..][..named.len()];
        if named.shape.len() == 2 {
            let mut stream = Streams::new(seed, Purpose::Init, &named.name).at(0);
            for pair in values.chunks_mut(2) {
                let (a, b) = normal_pair(|| (stream.word() >> 11) as f64 / (1u64 << 53) as f64);
                pair[0] = a as f32 * config.init_std as f32;
                if let Some(second) = pair.get_mut(1) {
                    *second = b as f32 * config.init_std as f32;
                }
            }
            let zero_rows: &[usize] = match named.name.as_str() {
                "model.shared.weight" => &[token::PAD as usize],
                name if name.ends_with("embed_positions.weight") => &[0, 1],
                _ => &[],
            };
            for &row in zero_rows {
                values[row * named.shape[1]..][..named.shape[1]].fill(0.0);
            }
        } else if named.name.contains("norm") && named.name.ends_with(".weight") {
            values.fill(1.0);
        }
    }
    flat
}

/// Box and Muller's two independent standard normals from two uniforms in [0, 1).
fn normal_pair(mut uniform: impl FnMut() -> f64) -> (f64, f64) {
    let radius = (-2.0 * (1.0 - uniform()).ln()).sqrt();
    let angle = std::f64::consts::TAU * uniform();
    (radius * angle.cos(), radius * angle.sin())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Size;

    #[test]
    fn fresh_weights_have_the_right_moments() {
        let config = ModelConfig::of_size(Size::S);
        let layout = ParamLayout::new(&config);
        let flat = initial_params(&config, &layout, 1);
        for named in layout.names().iter().filter(|n| n.shape.len() == 2) {
            let v = &flat[named.offset..][..named.len()];
            let mean = v.iter().sum::<f32>() / v.len() as f32;
            let std = (v.iter().map(|x| x * x).sum::<f32>() / v.len() as f32).sqrt();
            assert!(mean.abs() < 6e-4 && (std - 0.02).abs() < 6e-4, "{}: {mean} {std}", named.name);
        }
        assert!(flat.iter().all(|x| x.is_finite()));
        assert_ne!(flat, initial_params(&config, &layout, 2));
    }
}
