//! The start of the residual stream: the sum of token and position embedding, normed. And its gradient.
//!
//! The gradient of a table row is a sum over the batch, in the order of its tokens. Each task has a block of table rows and looks
//! for their tokens in the whole batch. So no two threads write to one row, and no order depends on threads.

use super::Buffer;
use super::dropout::Mask;
use super::norm::{BLOCK, norm_back, normalise, stat};
use super::rows::{Per, add_up, for_blocks};
use crate::{Embed, Packed, Param};

/// Row of the position table that belongs to position 0 (BART's offset).
const FIRST_POSITION: usize = 2;

/// The tables and the norm, as slices of the flat parameters, and the dropout behind them.
pub struct Tables<'a> {
    pub token: &'a [f32],
    pub position: &'a [f32],
    pub gamma: &'a [f32],
    pub beta: &'a [f32],
    pub scale: f32,
    pub mask: Option<Mask>,
}

impl<'a> Tables<'a> {
    /// The tables of an op, in the step with this seed.
    pub fn new(op: &Embed, params: &'a [f32], seed: u64) -> Self {
        let of = |param: Param| &params[param.range()];
        let (gamma, beta) = (of(op.norm.gamma), of(op.norm.beta));
        let mask = Mask::new(op.dropout, seed);
        Tables { token: of(op.token), position: of(op.position), gamma, beta, scale: op.scale, mask }
    }

    /// The sum that is normed.
    #[inline(always)]
    fn sum(&self, id: i32, pos: i32, out: &mut [f32]) {
        let d = out.len();
        let token = &self.token[id as usize * d..][..d];
        let position = &self.position[(pos as usize + FIRST_POSITION) * d..][..d];
        for ((o, t), p) in out.iter_mut().zip(token).zip(position) {
            *o = t.mul_add(self.scale, *p);
        }
    }
}

/// `out = drop(LN(token·scale + position))`; `out_act` is a copy of it, or empty.
pub fn forward(packed: &Packed, it: &Tables, [stats, out, out_act]: [&mut Buffer; 3]) {
    let (rows, d) = (packed.tokens(), it.gamma.len());
    let copy = if out_act.is_empty() { 0 } else { d };
    let (stats, out, out_act) = (&mut stats[..], &mut out[..], &mut out_act[..]);
    let outs = [(stats, Per::Row(2)), (out, Per::Row(d)), (out_act, Per::Row(copy))];
    for_blocks(rows, BLOCK, outs, |first, [stats, out, out_act]| {
        for r in 0..stats.len() / 2 {
            let out = &mut out[r * d..(r + 1) * d];
            it.sum(packed.ids[first + r], packed.pos[first + r], out);
            let now = stat(out);
            stats[2 * r..2 * r + 2].copy_from_slice(&now);
            normalise(out, now, it.gamma, it.beta);
            if let Some(mask) = it.mask {
                mask.row(first + r, d, |i, keep| out[i] *= keep);
            }
            if copy > 0 {
                out_act[r * d..(r + 1) * d].copy_from_slice(out);
            }
        }
    });
}

/// The gradient of [`forward`]. That of the token table is added to `grads[0]`; those of position, gamma and beta overwrite
/// the others.
pub fn backward(
    packed: &Packed,
    it: &Tables,
    stats: &[f32],
    g: &[f32],
    dy: Option<&[f32]>,
    scratch: &mut Buffer,
    grads: [&mut [f32]; 4],
) {
    let (rows, d) = (packed.tokens(), it.gamma.len());
    let blocks = rows.div_ceil(BLOCK);
    let (dx, rest) = scratch.first(rows * d + blocks * 4 * d).split_at_mut(rows * d);
    let (gamma, rest) = rest.split_at_mut(blocks * d);
    let (beta, work) = rest.split_at_mut(blocks * d);
    let outs =
        [(&mut *dx, Per::Row(d)), (&mut *gamma, Per::Block(d)), (&mut *beta, Per::Block(d)), (work, Per::Block(2 * d))];
    for_blocks(rows, BLOCK, outs, |first, [dx, gamma, beta, work]| {
        gamma.fill(0.0);
        beta.fill(0.0);
        let (s, total) = work.split_at_mut(d);
        for r in 0..dx.len() / d {
            let row = first + r;
            it.sum(packed.ids[row], packed.pos[row], s);
            total.copy_from_slice(&g[row * d..(row + 1) * d]);
            if let Some(dy) = dy {
                total.iter_mut().zip(&dy[row * d..(row + 1) * d]).for_each(|(t, dy)| *t += dy);
            }
            if let Some(mask) = it.mask {
                mask.row(row, d, |i, keep| total[i] *= keep);
            }
            let stat = [stats[2 * row], stats[2 * row + 1]];
            norm_back(s, stat, it.gamma, total, &mut dx[r * d..(r + 1) * d], gamma, beta);
        }
    });
    let [dtoken, dposition, dgamma, dbeta] = grads;
    add_up(gamma, dgamma);
    add_up(beta, dbeta);
    let dx = &*dx;
    scatter(dx, d, dtoken, 8, it.scale, packed.ids.iter().map(|&id| id as usize));
    dposition.fill(0.0);
    scatter(dx, d, dposition, 32, 1.0, packed.pos.iter().map(|&pos| pos as usize + FIRST_POSITION));
}

/// `table[at] += scale·dx` for each row of dx, `block` table rows at a time.
fn scatter(
    dx: &[f32],
    d: usize,
    table: &mut [f32],
    block: usize,
    scale: f32,
    at: impl Iterator<Item = usize> + Clone + Sync,
) {
    for_blocks(table.len() / d, block, [(table, Per::Row(d))], |first, [table]| {
        let mine = first..first + table.len() / d;
        for (row, at) in at.clone().enumerate().filter(|(_, at)| mine.contains(at)) {
            let table = &mut table[(at - first) * d..][..d];
            for (t, dx) in table.iter_mut().zip(&dx[row * d..(row + 1) * d]) {
                *t = dx.mul_add(scale, *t);
            }
        }
    });
}
