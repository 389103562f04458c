//! The optimiser as data: clipping, Adam, and an average of the weights.
//!
//! The decision a reader would get wrong: the average (EMA) is not what is trained. It follows the weights beside them, costs one
//! more flat buffer, and never flows back; [`crate::Executor::exchange`] puts it in their place while it is validated.

/// Global gradient norm, clipping to `clip` (none if 0), then Adam over the whole flat buffer with the step's learning
/// rate, eps and number from [`crate::Scalars`]; decoupled weight decay. CUDA also refreshes the bf16 copy of the weights.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Adam {
    /// Decay of the first moment.
    pub beta1: f32,
    /// Decay of the second moment.
    pub beta2: f32,
    /// Decoupled weight decay.
    pub weight_decay: f32,
    /// Largest global gradient norm; 0 for none.
    pub clip: f32,
    /// Decay of the average of the weights; 0 for no average.
    pub ema: f32,
}

impl Adam {
    /// Whether it keeps an average of the weights.
    pub fn averages(&self) -> bool {
        self.ema > 0.0
    }

    /// The share that the weights after a step have in the average after it: a ← a + share·(w − a). At first it is larger than
    /// 1 − ema, namely 9/(10 + step), so that the first weights are forgotten as fast as training leaves them.
    pub fn share_of_new(&self, step: u64) -> f32 {
        let warm_up = 9.0 / (10.0 + step as f64);
        warm_up.max(1.0 - f64::from(self.ema)) as f32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_average_warms_up_and_then_decays_as_asked() {
        let adam = Adam { beta1: 0.9, beta2: 0.98, weight_decay: 0.0, clip: 0.0, ema: 0.9995 };
        assert_eq!(adam.share_of_new(1), (9.0f64 / 11.0) as f32);
        assert!((adam.share_of_new(1_000_000) - 5e-4).abs() < 1e-7);
        // What is left of the first weights after 1000 steps.
        let left: f64 = (1..=1000).map(|step| 1.0 - f64::from(adam.share_of_new(step))).product();
        assert!(left < 1e-12, "{left}");
    }
}
