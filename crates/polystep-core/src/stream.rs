//! Random streams keyed by (seed, purpose, index): the n-th example of a seed is the same at any number of threads, on any
//! machine and in any later version.
//!
//! ChaCha8 with a 32-byte key derived from (seed, purpose, key) by BLAKE3 and the index as its stream number. The bounded
//! uniforms are ours, not `rand`'s, so that an upgrade cannot move them: a 64-bit word is read as a fraction, and each
//! `below(n)` takes one digit in base n off its front. A new word is drawn when the bases used so far would exceed 2^32, so
//! no digit is biased by more than 2^-32.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use serde::{Deserialize, Serialize};

use crate::named;

/// What a stream is for. Streams of different purposes are independent. The name is part of a stream's key.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Purpose {
    /// Training polynomials.
    Train,
    /// The validation sets.
    Valid,
    /// The test sets.
    Test,
    /// The beam-search sets.
    Beam,
    /// A curriculum's sub-tasks.
    Curriculum,
    /// The exams of a stream that follows the errors.
    Focus,
    /// The arithmetic probe.
    Arithmetic,
    /// The order of training examples.
    Shuffle,
    /// Dropout masks.
    Dropout,
    /// Initial weights.
    Init,
}
named!(
    Purpose, "purpose":
    Train "train", Valid "valid", Test "test", Beam "beam", Curriculum "curriculum", Focus "focus", Arithmetic "arithmetic",
    Shuffle "shuffle", Dropout "dropout", Init "init"
);

/// All streams of one (seed, purpose, key).
#[derive(Clone, Debug)]
pub struct Streams {
    origin: ChaCha8Rng,
}

impl Streams {
    /// The key says what is drawn, e.g. a space's [`stream_key`](crate::space::Space::stream_key); it may be empty.
    pub fn new(seed: u64, purpose: Purpose, key: &str) -> Streams {
        let mut hasher = blake3::Hasher::new_derive_key("polystep streams, version 1");
        hasher.update(&seed.to_le_bytes());
        hasher.update(purpose.name().as_bytes());
        hasher.update(&[0]);
        hasher.update(key.as_bytes());
        Streams { origin: ChaCha8Rng::from_seed(*hasher.finalize().as_bytes()) }
    }

    /// The stream of example `index`, at its beginning.
    #[inline]
    pub fn at(&self, index: u64) -> Stream {
        let mut rng = self.origin.clone();
        rng.set_stream(index);
        Stream { rng, fraction: 0, used: SPENT }
    }
}

/// A word is spent when its digits' bases multiply to this. No further digit, in base 2 or more, is taken from it.
const SPENT: u64 = 1 << 32;

/// One stream of uniform numbers.
#[derive(Clone, Debug)]
pub struct Stream {
    rng: ChaCha8Rng,
    fraction: u64,
    used: u64,
}

impl Stream {
    /// A uniform integer in 0..n, for 1 ≤ n ≤ 2^32. For n = 1 nothing is drawn.
    #[inline]
    pub fn below(&mut self, n: u64) -> u64 {
        debug_assert!((1..=1 << 32).contains(&n));
        if n == 1 {
            return 0;
        }
        // Both are at most 2^32; a product of 2^64 wraps to 0, and less one is large as it should be.
        if self.used.wrapping_mul(n).wrapping_sub(1) >= SPENT {
            self.renew();
        }
        self.used *= n;
        let wide = u128::from(self.fraction) * u128::from(n);
        self.fraction = wide as u64;
        (wide >> 64) as u64
    }

    /// Reads the next word. Out of line, so that the many places that draw stay small.
    #[inline(never)]
    fn renew(&mut self) {
        self.fraction = self.rng.next_u64();
        self.used = 1;
    }

    /// A uniform integer in lo..=hi.
    #[inline]
    pub fn between(&mut self, lo: u64, hi: u64) -> u64 {
        lo + self.below(hi - lo + 1)
    }

    /// A fresh 64-bit word.
    #[inline]
    pub fn word(&mut self) -> u64 {
        self.used = SPENT;
        self.rng.next_u64()
    }

    /// A uniform permutation (Fisher–Yates from the end).
    #[inline]
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for i in (1..items.len()).rev() {
            items.swap(i, self.below(i as u64 + 1) as usize);
        }
    }

    /// Moves a uniform choice of k items to the front (a partial Fisher–Yates from the front).
    #[inline]
    pub fn choose<T>(&mut self, items: &mut [T], k: usize) {
        for i in 0..k.min(items.len()) {
            let j = i + self.below((items.len() - i) as u64) as usize;
            items.swap(i, j);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_do_not_depend_on_what_was_drawn_before() {
        let streams = Streams::new(1, Purpose::Train, "a");
        let mut first = streams.at(5);
        let a: Vec<u64> = (0..200).map(|_| first.below(10)).collect();
        let _ = streams.at(4).below(3);
        let mut again = streams.at(5);
        assert_eq!(a, (0..200).map(|_| again.below(10)).collect::<Vec<_>>());
        for other in [
            Streams::new(2, Purpose::Train, "a"),
            Streams::new(1, Purpose::Valid, "a"),
            Streams::new(1, Purpose::Train, "b"),
        ] {
            let mut other = other.at(5);
            assert_ne!(a, (0..200).map(|_| other.below(10)).collect::<Vec<_>>());
        }
    }

    #[test]
    fn digits_are_uniform() {
        let mut stream = Streams::new(7, Purpose::Train, "").at(0);
        let mut counts = [0u32; 10];
        for _ in 0..100_000 {
            counts[stream.below(10) as usize] += 1;
        }
        // 10 000 ± 5 standard deviations of 95
        assert!(counts.iter().all(|&c| (9_525..10_475).contains(&c)), "{counts:?}");
    }

    #[test]
    fn golden_words() {
        let mut stream = Streams::new(1, Purpose::Train, "").at(0);
        let digits: Vec<u64> = (0..16).map(|_| stream.below(10)).collect();
        assert_eq!((digits, stream.word()), golden());
    }

    fn golden() -> (Vec<u64>, u64) {
        (vec![7, 1, 1, 2, 1, 2, 6, 2, 3, 7, 8, 8, 2, 9, 3, 0], 893313188721624054)
    }
}
