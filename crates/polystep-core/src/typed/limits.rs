//! How large an expression may become, counted before any of it is built.
//!
//! A count describes the sum of products that an expression will be rewritten to. Multiplying two expressions multiplies
//! their numbers of products, and a power raises that number to the power. All arithmetic saturates, because
//! `((x+1)^9999)^9999` has more factors than a machine word can hold.

use std::ops::Range;

use super::error::{TypedError, TypedProblem};

/// The most products in a state that was typed.
pub const MAX_PRODUCTS: u64 = 32;
/// The most factors in one product.
pub const MAX_FACTORS: u64 = 32;
/// The most tokens in the strict infix text. With the end token it fills the 512 positions of a model.
pub const MAX_TOKENS: u64 = 511;
/// The most parentheses around one place. Deeper expressions could overflow the stack.
pub const MAX_DEPTH: usize = 64;
/// The most symbols (numbers, names, signs, parentheses) that are typed.
pub const MAX_SYMBOLS: usize = 4096;

/// The size of a sum of products of factors.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Count {
    products: u64,
    /// The factors of all products together.
    factors: u64,
    /// The factors of the longest product.
    longest: u64,
    /// The tokens of all factors with their parentheses, without the signs between them.
    tokens: u64,
}

impl Count {
    /// No products.
    pub const ZERO: Count = Count { products: 0, factors: 0, longest: 0, tokens: 0 };
    /// One product without factors.
    pub const ONE: Count = Count { products: 1, factors: 0, longest: 0, tokens: 0 };

    /// One factor that takes this many tokens with its parentheses.
    pub fn factor(tokens: u64) -> Count {
        Count { products: 1, factors: 1, longest: 1, tokens }
    }

    pub fn plus(self, other: Count) -> Count {
        Count {
            products: self.products.saturating_add(other.products),
            factors: self.factors.saturating_add(other.factors),
            longest: self.longest.max(other.longest),
            tokens: self.tokens.saturating_add(other.tokens),
        }
    }

    pub fn times(self, other: Count) -> Count {
        let both = |a: u64, b: u64| {
            let left = a.saturating_mul(other.products);
            left.saturating_add(b.saturating_mul(self.products))
        };
        Count {
            products: self.products.saturating_mul(other.products),
            factors: both(self.factors, other.factors),
            longest: self.longest.saturating_add(other.longest),
            tokens: both(self.tokens, other.tokens),
        }
    }

    pub fn power(self, exponent: u64) -> Count {
        let small = u32::try_from(exponent).unwrap_or(u32::MAX);
        // Each factor occurs once for every place in the power and every choice of the other places.
        let copies = exponent.saturating_mul(self.products.saturating_pow(small.saturating_sub(1)));
        Count {
            products: self.products.saturating_pow(small),
            factors: self.factors.saturating_mul(copies),
            longest: self.longest.saturating_mul(exponent),
            tokens: self.tokens.saturating_mul(copies),
        }
    }

    /// The tokens of the strict infix text: one sign stands between any two factors.
    fn text_tokens(self) -> u64 {
        self.tokens.saturating_add(self.factors).saturating_sub(1)
    }

    /// The count itself if it is within every limit; else the limit that it breaks, at `span`.
    pub fn within_limits(self, span: &Range<usize>) -> Result<Count, TypedError> {
        let problem = if self.longest > MAX_FACTORS {
            TypedProblem::Factors(self.longest)
        } else if self.products > MAX_PRODUCTS {
            TypedProblem::Products(self.products)
        } else if self.text_tokens() > MAX_TOKENS {
            TypedProblem::Tokens(self.text_tokens())
        } else {
            return Ok(self);
        };
        Err(TypedError::new(problem, span.clone()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_power_counts_like_repeated_multiplication() {
        let sum = Count::factor(3).plus(Count::factor(1).times(Count::factor(4)));
        let mut product = Count::ONE;
        for exponent in 0..6 {
            assert_eq!(sum.power(exponent), product, "{exponent}");
            product = product.times(sum);
        }
    }

    #[test]
    fn huge_counts_saturate() {
        let sum = Count::factor(3).plus(Count::factor(1));
        let tower = sum.power(u64::MAX).power(u64::MAX).times(sum);
        assert_eq!((tower.products, tower.longest), (u64::MAX, u64::MAX));
        assert!(tower.within_limits(&(0..1)).is_err());
    }
}
