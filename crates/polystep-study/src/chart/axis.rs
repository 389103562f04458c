//! Axes: from values to places, with ticks at round numbers.

use crate::number::short;

/// How values are spread over an axis.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Scale {
    /// Even.
    Linear,
    /// Even in the logarithm; values must be positive.
    Log,
}

/// One axis.
#[derive(Clone, PartialEq, Debug)]
pub struct Axis {
    /// What it shows.
    pub label: String,
    /// How values are placed.
    pub scale: Scale,
    /// From where to where.
    pub range: (f64, f64),
    /// Places with a label.
    pub ticks: Vec<(f64, String)>,
}

impl Axis {
    /// A linear axis over `range`, with ticks at round numbers.
    pub fn linear(label: &str, range: (f64, f64)) -> Axis {
        let ticks = round_ticks(range, 5).into_iter().map(|v| (v, short(v))).collect();
        Axis { label: label.to_owned(), scale: Scale::Linear, range, ticks }
    }

    /// A linear axis from 0 to 100.
    pub fn percent(label: &str) -> Axis {
        Axis::linear(label, (0.0, 100.0))
    }

    /// The horizontal axis of a learning curve.
    pub fn examples(most: f64) -> Axis {
        Axis::linear("training examples", (0.0, most))
    }

    /// A logarithmic axis over `range`. Its ticks are powers of ten, and also twice and five times these in a short range.
    pub fn log(label: &str, range: (f64, f64)) -> Axis {
        let mut ticks = Vec::new();
        for power in range.0.log10().floor() as i32..=range.1.log10().ceil() as i32 {
            let many = (range.1 / range.0).log10() > 2.5;
            for step in if many { &[1.0][..] } else { &[1.0, 2.0, 5.0][..] } {
                let value = step * 10f64.powi(power);
                if value >= range.0 * 0.999 && value <= range.1 * 1.001 {
                    ticks.push((value, short(value)));
                }
            }
        }
        Axis { label: label.to_owned(), scale: Scale::Log, range, ticks }
    }

    /// Where a value is, from 0 to 1. A value outside the range is moved to its end.
    pub fn place(&self, value: f64) -> f64 {
        let (from, to) = self.range;
        let place = match self.scale {
            Scale::Linear => (value - from) / (to - from),
            Scale::Log => (value.max(f64::MIN_POSITIVE) / from).ln() / (to / from).ln(),
        };
        if place.is_finite() { place.clamp(0.0, 1.0) } else { 0.0 }
    }
}

/// At most `count` + 1 numbers of the form {1, 2, 5}·10ⁿ inside the range.
pub fn round_ticks((from, to): (f64, f64), count: usize) -> Vec<f64> {
    let rough = (to - from) / count as f64;
    if !(rough.is_finite() && rough > 0.0) {
        return vec![from];
    }
    let power = 10f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].map(|m| m * power).into_iter().find(|s| *s >= rough * 0.999).unwrap_or(rough);
    let first = (from / step - 1e-9).ceil() as i64;
    let last = (to / step + 1e-9).floor() as i64;
    // Divided, not multiplied, by a whole number where the step is below 1: 3 · 0.1 is not 0.3.
    let value = |i: i64| {
        if step < 1.0 { i as f64 / (1.0 / step).round() } else { i as f64 * step }
    };
    (first..=last).map(value).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round() {
        assert_eq!(round_ticks((0.0, 100.0), 5), [0.0, 20.0, 40.0, 60.0, 80.0, 100.0]);
        assert_eq!(round_ticks((0.0, 0.5), 5), [0.0, 0.1, 0.2, 0.3, 0.4, 0.5]);
        assert_eq!(round_ticks((93.0, 100.0), 5), [94.0, 96.0, 98.0, 100.0]);
        assert_eq!(round_ticks((3.0, 3.0), 5), [3.0]);
    }
}
