//! Buffers of tokens that are written by copying whole words.
//!
//! A buffer is longer than what is written in it. A copy may overshoot into that slack, and the next copy overwrites it:
//! copying sixteen bytes that are always there is cheaper than copying five exactly. Nothing here is unsafe.

/// How many bytes one copy moves.
pub(super) const WORD: usize = 16;
/// Bytes that must be free behind the writing position: the longest integer and one overshoot.
pub(super) const SLACK: usize = 64;

/// Growing tokens, with slack at their end.
#[derive(Debug, Default)]
pub(crate) struct TokenBuffer {
    bytes: Vec<u8>,
    at: usize,
}

/// Some consecutive tokens of a buffer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Run {
    pub start: usize,
    pub len: usize,
}

impl Run {
    /// The run without its first and last token: a factor without its parentheses.
    pub fn inner(self) -> Run {
        Run { start: self.start + 1, len: self.len - 2 }
    }

    pub fn end(self) -> usize {
        self.start + self.len
    }
}

impl TokenBuffer {
    pub fn clear(&mut self) {
        self.at = 0;
    }

    #[inline]
    pub fn len(&self) -> usize {
        self.at
    }

    pub fn written(&self) -> &[u8] {
        &self.bytes[..self.at]
    }

    /// Makes room for `n` more tokens and the overshoot.
    #[inline]
    pub fn reserve(&mut self, n: usize) {
        let needed = self.at + n + SLACK;
        if self.bytes.len() < needed {
            self.bytes.resize(2 * needed, 0);
        }
    }

    /// Appends one token. Room must have been reserved.
    #[inline]
    pub fn push(&mut self, token: u8) {
        self.bytes[self.at] = token;
        self.at += 1;
    }

    #[inline]
    pub fn push_word(&mut self, word: &[u8; WORD], len: usize) {
        self.bytes[self.at..self.at + WORD].copy_from_slice(word);
        self.at += len;
    }

    #[inline]
    pub fn push_number(&mut self, digits: &[u8; 8], len: usize) {
        self.bytes[self.at..self.at + 8].copy_from_slice(digits);
        self.at += len;
    }

    /// Copies a run from another buffer. Room must have been reserved.
    #[inline]
    pub fn copy(&mut self, from: &TokenBuffer, run: Run) {
        const CHUNK: usize = 2 * WORD;
        let mut i = 0;
        while i < run.len {
            let (to, src) = (self.at + i, run.start + i);
            self.bytes[to..to + CHUNK].copy_from_slice(&from.bytes[src..src + CHUNK]);
            i += CHUNK;
        }
        self.at += run.len;
    }

    /// Writes over a token.
    #[inline]
    pub fn set(&mut self, at: usize, token: u8) {
        self.bytes[at] = token;
    }

    /// The run from `start` to here.
    #[inline]
    pub fn since(&self, start: usize) -> Run {
        Run { start, len: self.at - start }
    }
}
