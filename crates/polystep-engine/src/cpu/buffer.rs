//! Memory of the CPU device: fp32 numbers that start on a cache line, so that no vector load straddles two.

use bytemuck::{Pod, Zeroable};

/// One cache line.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C, align(64))]
struct Line([f32; 16]);

/// Numbers in whole cache lines. Growing keeps what it holds and adds zeros; it never shrinks.
#[derive(Default)]
pub struct Buffer(Vec<Line>);

impl Buffer {
    /// n zeros.
    pub fn zeros(n: usize) -> Buffer {
        let mut buffer = Buffer::default();
        buffer.reserve(n);
        buffer
    }

    /// Makes room for at least n numbers.
    pub fn reserve(&mut self, n: usize) {
        let lines = n.div_ceil(16);
        if lines > self.0.len() {
            // A quarter more than asked: batches of packed text differ in length, and steps shall not allocate.
            let room = if self.0.is_empty() {
                lines
            } else {
                lines + lines / 4
            };
            self.0.resize(room, Line::zeroed());
        }
    }

    /// The first n numbers, with room made for them.
    pub fn first(&mut self, n: usize) -> &mut [f32] {
        self.reserve(n);
        &mut self[..n]
    }
}

impl std::ops::Deref for Buffer {
    type Target = [f32];

    fn deref(&self) -> &[f32] {
        bytemuck::cast_slice(&self.0)
    }
}

impl std::ops::DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut [f32] {
        bytemuck::cast_slice_mut(&mut self.0)
    }
}
