//! How characters are spelled: which ones look different and mean the same, and which ones are refused, and why.

use super::error::TypedProblem;

/// The functions that are refused by name.
pub(super) const FUNCTIONS: [&str; 7] = ["sin", "cos", "tan", "exp", "log", "ln", "sqrt"];

/// The commands of Greek letters, each followed by its letter.
const GREEK: &str = "\
    alpha α beta β gamma γ delta δ epsilon ε varepsilon ε zeta ζ eta η theta θ iota ι kappa κ lambda λ \
    mu μ nu ν xi ξ rho ρ sigma σ tau τ upsilon υ phi φ varphi φ chi χ psi ψ omega ω Gamma Γ Delta Δ \
    Theta Θ Lambda Λ Sigma Σ Phi Φ Psi Ψ Omega Ω";

/// Whether a character takes room or no room, but means nothing.
pub(super) fn is_blank(c: char) -> bool {
    c.is_whitespace() || matches!(c, '\u{200b}'..='\u{200d}' | '\u{2060}'..='\u{2063}' | '\u{feff}')
}

/// The plain character for one that only looks different: dashes, dots, full-width and mathematical letters.
pub(super) fn plain(c: char) -> char {
    let shifted = |by: u32| char::from_u32(c as u32 - by).unwrap_or(c);
    match c {
        '−' | '–' | '—' | '‒' | '﹣' => '-',
        '·' | '×' | '⋅' | '∗' | '•' | '∙' | '✕' => '*',
        'ˆ' => '^',
        'ℎ' => 'h',
        'µ' => 'μ',
        '\u{ff01}'..='\u{ff5e}' => shifted(0xfee0),
        // Alphabets of 26 capitals and 26 small letters: bold, italic, and so on.
        '\u{1d400}'..='\u{1d6a3}' => {
            let place = ((c as u32 - 0x1d400) % 52) as u8;
            char::from(if place < 26 { b'A' + place } else { b'a' + place - 26 })
        }
        _ => c,
    }
}

/// Whether a character can be a name.
pub(super) fn is_letter(c: char) -> bool {
    c.is_ascii_alphabetic() || matches!(c, 'Α'..='Ω' | 'α'..='ω')
}

/// The value of a plain digit.
pub(super) fn digit(c: char) -> Option<u64> {
    c.to_digit(10).map(u64::from)
}

/// The value of a raised digit.
pub(super) fn superscript(c: char) -> Option<u64> {
    "⁰¹²³⁴⁵⁶⁷⁸⁹".chars().position(|s| s == c).map(|n| n as u64)
}

/// The value of a lowered digit.
pub(super) fn subscript(c: char) -> Option<u64> {
    "₀₁₂₃₄₅₆₇₈₉".chars().position(|s| s == c).map(|n| n as u64)
}

/// The letter of a Greek command: `α` for `alpha`.
pub(super) fn greek(command: &str) -> Option<char> {
    let mut words = GREEK.split_whitespace();
    words.find(|&word| word == command)?;
    words.next()?.chars().next()
}

/// Why a character that begins no symbol is refused.
pub(super) fn refusal(c: char) -> TypedProblem {
    match c {
        '/' | '÷' | '∕' | '⁄' | '½' | '⅓' | '⅔' | '¼' | '¾' => TypedProblem::Division,
        '.' => TypedProblem::Decimal,
        ',' => TypedProblem::Comma,
        '=' | '<' | '>' | '≤' | '≥' | '≠' | '≈' | '≡' => TypedProblem::Relation(c.to_string()),
        '±' | '∓' => TypedProblem::PlusMinus,
        '…' | '⋯' => TypedProblem::Dots,
        '!' => TypedProblem::Factorial,
        '|' => TypedProblem::AbsoluteValue,
        '{' | '}' => TypedProblem::Brace,
        '$' => TypedProblem::Dollar,
        '√' => TypedProblem::Function("sqrt"),
        '⁻' => TypedProblem::NegativeExponent,
        'ⁿ' => TypedProblem::Exponent,
        '_' => TypedProblem::Index,
        _ if subscript(c).is_some() => TypedProblem::Index,
        _ => TypedProblem::Character(c),
    }
}
