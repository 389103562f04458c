//! Divides rows into blocks of a fixed size, and the blocks among threads. Results do not depend on the number of threads, because
//! the blocks do not. A sum over rows has one partial sum for each block; these are then added in order.
#![allow(unsafe_code)] // hands disjoint parts of several buffers to threads at once

use rayon::prelude::*;

/// How much of a buffer belongs to one block of rows.
#[derive(Clone, Copy)]
pub enum Per {
    /// So many numbers per row.
    Row(usize),
    /// So many numbers per block.
    Block(usize),
}

/// A buffer that blocks write to.
#[derive(Clone, Copy)]
struct Out {
    start: *mut f32,
    per: Per,
}

// SAFETY: `for_blocks` gives each thread its own part of what `start` points to.
unsafe impl Send for Out {}
// SAFETY: as above.
unsafe impl Sync for Out {}

/// With fewer numbers than this a second thread costs more than it saves.
const WORTH_A_THREAD: usize = 16 * 1024;

/// Calls `f(first row, parts)` for each block of `block` rows out of `rows`; `parts` are the block's own pieces of `outs`.
/// An output that is not there is an empty slice with `Per::Row(0)`.
pub fn for_blocks<const N: usize>(
    rows: usize,
    block: usize,
    outs: [(&mut [f32], Per); N],
    f: impl Fn(usize, [&mut [f32]; N]) + Sync,
) {
    let blocks = rows.div_ceil(block);
    let mut work = rows;
    let outs = outs.map(|(slice, per)| {
        let need = match per {
            Per::Row(n) => rows * n,
            Per::Block(n) => blocks * n,
        };
        assert!(slice.len() >= need, "an output of a CPU op is shorter than its rows");
        work += need;
        Out { start: slice.as_mut_ptr(), per }
    });
    let one = |i: usize| {
        let first = i * block;
        let count = block.min(rows - first);
        let parts = outs.map(|out| {
            let (at, len) = match out.per {
                Per::Row(n) => (first * n, count * n),
                Per::Block(n) => (i * n, n),
            };
            // SAFETY: in bounds by the assertion above; different i give ranges that do not meet, and the slices of `outs`
            // are borrowed mutably, each from a buffer of its own, until every block is done.
            unsafe { std::slice::from_raw_parts_mut(out.start.add(at), len) }
        });
        f(first, parts);
    };
    if work < WORTH_A_THREAD || blocks == 1 {
        (0..blocks).for_each(one);
    } else {
        (0..blocks).into_par_iter().for_each(one);
    }
}

/// Adds up the rows of `partial` in order: `out = Σ rows`.
pub fn add_up(partial: &[f32], out: &mut [f32]) {
    out.fill(0.0);
    for row in partial.chunks_exact(out.len()) {
        for (o, p) in out.iter_mut().zip(row) {
            *o += p;
        }
    }
}
