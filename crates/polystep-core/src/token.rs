//! The one vocabulary of 64 tokens, for every setting, notation and number of variables.
//!
//! Integers are written digit by digit, most significant first. Text and tokens are two spellings of one thing:
//! `encode(decode(tokens)) = tokens` for every sequence of tokens, even for the nonsense that a model can emit, so a
//! prediction file keeps all that the model said.

use std::ops::Range;

use thiserror::Error;

use crate::notation::Notation;

/// How many tokens there are; 41…63 are reserved.
pub const VOCABULARY: usize = 64;
/// Padding.
pub const PAD: u8 = 0;
/// What the decoder starts from.
pub const BOS: u8 = 1;
/// The end of a sequence.
pub const EOS: u8 = 2;
/// Unknown.
pub const UNK: u8 = 3;
/// The digit 0; the digit d is `DIGIT + d`.
pub const DIGIT: u8 = 4;
/// The variable x1; x_{i+1} is `VAR + i`.
pub const VAR: u8 = 14;
/// `+`, between terms and, in infix, between products.
pub const PLUS: u8 = 22;
/// `*`, inside a term and, in infix, between factors.
pub const TIMES: u8 = 23;
/// `^`
pub const POWER: u8 = 24;
/// `(`
pub const OPEN: u8 = 25;
/// `)`
pub const CLOSE: u8 = 26;
/// `[`, opens a coefficient that is left to a calculator.
pub const BRACKET: u8 = 27;
/// `]`
pub const UNBRACKET: u8 = 28;
/// `$`, between an annotation's tag and its state.
pub const DOLLAR: u8 = 29;
/// `#`, around an annotated operand.
pub const HASH: u8 = 30;
/// `INT+`, before the digits of an integer in prefix.
pub const INT: u8 = 31;
/// `+P`, the sum of products in prefix.
pub const SUM_OF: u8 = 32;
/// `*F`, the product of factors in prefix.
pub const PRODUCT_OF: u8 = 33;
/// `MARK`: the operand is to be marked.
pub const MARK: u8 = 34;
/// `FAC`: a facstep is to be done.
pub const FAC: u8 = 35;
/// `MUL`: a mulstep is to be done.
pub const MUL: u8 = 36;
/// `SUM`: a sumstep is to be done.
pub const SUM: u8 = 37;
/// `END`: nothing is left to be done.
pub const END: u8 = 38;
/// `-`, before a negative term and, in a calculator's bracket, before a negative number. Infix only.
pub const MINUS: u8 = 39;
/// `INT-`, before the digits of a negative integer in prefix.
pub const INT_MINUS: u8 = 40;

/// The tags of annotated states.
pub const TAGS: [u8; 5] = [MARK, FAC, MUL, SUM, END];

/// Whether a token is the tag of an annotated state.
pub fn is_tag(token: u8) -> bool {
    TAGS.contains(&token)
}

/// Whether a blank follows a token in text.
fn blank_after(token: u8, notation: Notation) -> bool {
    notation == Notation::Prefix || is_tag(token) || token == DOLLAR
}

/// How each token is written. Reserved tokens have numbers, so that nothing a model says is lost.
#[rustfmt::skip]
const NAMES: [&str; VOCABULARY] = [
    "<pad>", "<s>", "</s>", "<unk>",
    "0", "1", "2", "3", "4", "5", "6", "7", "8", "9",
    "x1", "x2", "x3", "x4", "x5", "x6", "x7", "x8",
    "+", "*", "^", "(", ")", "[", "]", "$", "#", "INT+", "+P", "*F", "MARK", "FAC", "MUL", "SUM", "END",
    "-", "INT-", "<41>", "<42>", "<43>", "<44>", "<45>", "<46>", "<47>", "<48>", "<49>", "<50>", "<51>",
    "<52>", "<53>", "<54>", "<55>", "<56>", "<57>", "<58>", "<59>", "<60>", "<61>", "<62>", "<63>",
];

/// A character that begins no token.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error("`{found}` is not part of the language")]
pub struct TokenError {
    /// The character.
    pub found: char,
    /// Where it stands, in bytes.
    pub span: Range<usize>,
}

/// The spelling of a token; ids past the vocabulary read as `<unk>`.
pub fn name(token: u8) -> &'static str {
    NAMES.get(usize::from(token)).copied().unwrap_or(NAMES[usize::from(UNK)])
}

/// Writes tokens as text: infix without blanks (an annotation's tag and `$` are followed by one), prefix joined by one blank.
pub fn decode(tokens: &[u8], notation: Notation) -> String {
    let mut text = String::with_capacity(2 * tokens.len());
    for (i, &token) in tokens.iter().enumerate() {
        text.push_str(name(token));
        if blank_after(token, notation) && i + 1 < tokens.len() {
            text.push(' ');
        }
    }
    text
}

/// The byte range that each token takes up in `decode(tokens, notation)`.
pub fn decoded_spans(tokens: &[u8], notation: Notation) -> Vec<Range<usize>> {
    let mut at = 0;
    let mut spans = Vec::with_capacity(tokens.len());
    for &token in tokens {
        let end = at + name(token).len();
        spans.push(at..end);
        at = end + usize::from(blank_after(token, notation));
    }
    spans
}

/// Reads text as tokens: the inverse of [`decode`], with blanks between tokens ignored.
pub fn encode(text: &str) -> Result<Vec<u8>, TokenError> {
    let mut tokens = Vec::with_capacity(text.len());
    let mut at = 0;
    while let Some(found) = text[at..].chars().next() {
        if found.is_whitespace() {
            at += found.len_utf8();
            continue;
        }
        let (token, len) = token_at(&text[at..]).ok_or(TokenError { found, span: at..at + found.len_utf8() })?;
        tokens.push(token);
        at += len;
    }
    Ok(tokens)
}

/// The token that `text` begins with, and its length in bytes: the longest name wins, but `*FAC` is `*` and `FAC`.
pub(crate) fn token_at(text: &str) -> Option<(u8, usize)> {
    let named = |from: u8, to: u8| (from..to).find(|&id| text.starts_with(name(id))).map(|id| (id, name(id).len()));
    let bytes = text.as_bytes();
    match *bytes.first()? {
        digit @ b'0'..=b'9' => Some((DIGIT + digit - b'0', 1)),
        b'x' => match bytes.get(1)? {
            index @ b'1'..=b'8' => Some((VAR + index - b'1', 2)),
            _ => None,
        },
        b'+' if bytes.get(1) == Some(&b'P') => Some((SUM_OF, 2)),
        b'*' if bytes.get(1) == Some(&b'F') && !text.starts_with("*FAC") => Some((PRODUCT_OF, 2)),
        b'-' => Some((MINUS, 1)),
        b'A'..=b'Z' | b'<' => named(PAD, VOCABULARY as u8),
        _ => named(PLUS, INT),
    }
}

/// Appends the digits of `n`.
pub(crate) fn push_digits(n: u64, out: &mut Vec<u8>) {
    let mut digits = [0u8; 20];
    let mut at = digits.len();
    let mut rest = n;
    loop {
        at -= 1;
        digits[at] = DIGIT + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at..]);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_vocabulary_of_the_design() {
        for (id, text) in
            [(0, "<pad>"), (4, "0"), (13, "9"), (14, "x1"), (21, "x8"), (22, "+"), (30, "#"), (31, "INT+")]
        {
            assert_eq!(name(id), text);
        }
        assert_eq!(
            [SUM_OF, PRODUCT_OF, MARK, END, MINUS, INT_MINUS].map(name),
            ["+P", "*F", "MARK", "END", "-", "INT-"]
        );
        assert_eq!(encode("(2*x1^10)").unwrap(), [OPEN, DIGIT + 2, TIMES, VAR, POWER, DIGIT + 1, DIGIT, CLOSE]);
        assert_eq!(encode("2*q").unwrap_err().span, 2..3);
    }

    proptest! {
        #[test]
        fn encoding_inverts_decoding(tokens in prop::collection::vec(0u8..64, 0..60)) {
            for notation in [Notation::Infix, Notation::Prefix] {
                let text = decode(&tokens, notation);
                prop_assert_eq!(encode(&text).unwrap(), tokens.clone());
                let spans = decoded_spans(&tokens, notation);
                for (span, &token) in spans.into_iter().zip(&tokens) {
                    prop_assert_eq!(&text[span], name(token));
                }
            }
        }
    }
}
