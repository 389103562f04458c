//! Packed weights of programs that do not train. A weight is packed for its products when it is first used after it was set.
#![allow(unsafe_code)] // products take matrices by address

use super::Buffer;
use super::gemm::{pack_wide, packed_len};
use super::matrix::Matrix;
use crate::{Op, Param, Program};
use std::collections::HashMap;

/// Packed weights by place and shape.
#[derive(Default)]
pub struct PackedWeights {
    /// None if a program changes the parameters.
    packed: Option<HashMap<(usize, usize, usize), Buffer>>,
}

impl PackedWeights {
    /// Keeps packed weights unless one of the programs trains.
    pub fn new(programs: &[Program]) -> PackedWeights {
        let trains = |p: &Program| p.ops.iter().any(|op| matches!(op, Op::Adam(_) | Op::LinearBack(_)));
        PackedWeights { packed: (!programs.iter().any(trains)).then(HashMap::new) }
    }

    /// The parameters were set.
    pub fn forget(&mut self) {
        if let Some(packed) = &mut self.packed {
            packed.clear();
        }
    }

    /// `w` (out × inp) of these parameters, packed for `y = x·wᵀ`; none if it would have to be packed again for every run.
    pub fn get(&mut self, w: Param, params: &[f32]) -> Option<&[f32]> {
        let (out, inp) = (w.rows, w.cols);
        let buffer = self.packed.as_mut()?.entry((w.offset, out, inp)).or_insert_with(|| {
            let mut buffer = Buffer::zeros(packed_len(out, inp));
            // SAFETY: the parameters are borrowed.
            unsafe { pack_wide(Matrix::of(&params[w.range()], (out, inp)).t(), &mut buffer, false) };
            buffer
        });
        Some(&buffer[..packed_len(out, inp)])
    }
}
