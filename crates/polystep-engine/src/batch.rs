//! One batch on the host: token rows packed end to end, with cumulative lengths (`cu`) beside them.

use crate::Side;

/// The packed tokens of one side.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Packed {
    /// Token ids of all sequences, end to end.
    pub ids: Vec<i32>,
    /// Position of each token in its sequence, from 0.
    pub pos: Vec<i32>,
    /// Sequence i is `ids[cu[i]..cu[i+1]]`; starts with 0, one longer than the number of sequences.
    pub cu: Vec<i32>,
}

impl Packed {
    /// Empties it, keeping the memory.
    pub fn clear(&mut self) {
        self.ids.clear();
        self.pos.clear();
        self.cu.clear();
        self.cu.push(0);
    }

    /// Appends one sequence.
    pub fn push(&mut self, ids: impl IntoIterator<Item = i32>) {
        let start = self.ids.len();
        self.ids.extend(ids);
        self.pos.extend(0..(self.ids.len() - start) as i32);
        if self.cu.is_empty() {
            self.cu.push(0);
        }
        self.cu.push(self.ids.len() as i32);
    }

    /// Number of tokens.
    pub fn tokens(&self) -> usize {
        self.ids.len()
    }

    /// Number of sequences.
    pub fn sequences(&self) -> usize {
        self.cu.len().saturating_sub(1)
    }

    /// Length of each sequence.
    pub fn lengths(&self) -> impl Iterator<Item = usize> + '_ {
        self.cu.windows(2).map(|w| (w[1] - w[0]) as usize)
    }

    /// Length of the longest sequence.
    pub fn longest(&self) -> usize {
        self.lengths().max().unwrap_or(0)
    }
}

/// Decoding: which hypotheses are extended. Empty in training.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Hypotheses {
    /// Where the token of every hypothesis stands in the decoder's input, from 0.
    pub position: usize,
    /// For each hypothesis, which one of the step before it continues (ignored at position 0).
    pub parents: Vec<i32>,
    /// For each hypothesis, which source sequence it answers.
    pub sources: Vec<i32>,
}

/// What one run of a program reads.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Batch {
    /// Encoder input.
    pub src: Packed,
    /// Decoder input (begins with `<s>`).
    pub tgt: Packed,
    /// What each target position shall predict; as long as `tgt.ids`.
    pub labels: Vec<i32>,
    /// Only while decoding.
    pub hypotheses: Hypotheses,
}

impl Batch {
    /// The tokens of one side.
    pub fn side(&self, side: Side) -> &Packed {
        match side {
            Side::Src => &self.src,
            Side::Tgt => &self.tgt,
        }
    }

    /// Empties it, keeping the memory.
    pub fn clear(&mut self) {
        self.src.clear();
        self.tgt.clear();
        self.labels.clear();
        self.hypotheses.parents.clear();
        self.hypotheses.sources.clear();
    }
}
