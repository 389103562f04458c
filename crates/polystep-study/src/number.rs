//! How numbers are written for people: percents, fractions, counts and intervals.

use crate::columns::Unit;

/// How counts are written. Each kind of table has its own way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CountFormat {
    /// At most three digits: 7000064 as `7M`.
    Short,
    /// Millions with one decimal: 7000064 as `7.0M`.
    Millions,
    /// All digits.
    Full,
}

/// A number as tables show it.
pub fn number(value: f64, unit: Unit, counts: CountFormat) -> String {
    match (unit, counts) {
        (Unit::Percent, _) => format!("{value:.2}"),
        (Unit::Fraction, _) => format!("{value:.3}"),
        (Unit::Count, CountFormat::Short) => short(value),
        (Unit::Count, CountFormat::Millions) if value >= 99.5e6 => format!("{:.0}M", value / 1e6),
        (Unit::Count, CountFormat::Millions) if value >= 1e5 => format!("{:.1}M", value / 1e6),
        (Unit::Count, _) => format!("{value:.0}"),
    }
}

/// The two ends of an interval in percent: `97.1–98.6`.
pub fn interval((lo, hi): (f64, f64)) -> String {
    format!("{lo:.1}–{hi:.1}")
}

/// `1 variable`, `2 variables`
pub fn counted(n: usize, noun: &str) -> String {
    format!("{n} {noun}{}", if n == 1 { "" } else { "s" })
}

/// 7100000 as `7.1M`, 0.05 as `0.05`.
pub fn short(value: f64) -> String {
    let (scaled, unit) = match value.abs() {
        v if v >= 1e9 => (value / 1e9, "B"),
        v if v >= 1e6 => (value / 1e6, "M"),
        v if v >= 1e4 => (value / 1e3, "k"),
        _ => (value, ""),
    };
    format!("{}{unit}", precise(scaled))
}

/// Three significant digits, no trailing zeros.
pub fn precise(value: f64) -> String {
    if value == 0.0 {
        return "0".to_owned();
    }
    let digits = (2 - value.abs().log10().floor() as i32).clamp(0, 9) as usize;
    let text = format!("{value:.digits$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        assert_eq!(
            [7.1e6, 16_384.0, 9000.0, 0.05, 0.0, 99.79].map(short),
            ["7.1M", "16.4k", "9000", "0.05", "0", "99.8"]
        );
    }

    #[test]
    fn counts_are_written_in_three_ways() {
        let count = |value, counts| number(value, Unit::Count, counts);
        assert_eq!(
            [CountFormat::Short, CountFormat::Millions, CountFormat::Full].map(|c| count(7_000_064.0, c)),
            ["7M", "7.0M", "7000064"]
        );
        assert_eq!(
            (count(9.95e7, CountFormat::Millions), count(99_999.0, CountFormat::Millions)),
            ("100M".into(), "99999".into())
        );
        assert_eq!(number(97.256, Unit::Percent, CountFormat::Full), "97.26");
        assert_eq!(number(0.98765, Unit::Fraction, CountFormat::Short), "0.988");
    }
}
