//! Memory of the CPU device: fp32 numbers. A buffer starts on a cache line, so that no vector load crosses from one line to the
//! next. Large buffers lie on huge pages, because a product touches more small pages than the processor's page cache (TLB) holds.
#![allow(unsafe_code)] // allocates with an alignment of its own

use super::matrix::Matrix;
use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::ptr::NonNull;

const HUGE: usize = 2 << 20;

/// Numbers in whole cache lines. A buffer that grows keeps its numbers and adds zeros. It never shrinks.
pub struct Buffer {
    start: NonNull<f32>,
    len: usize,
}

// SAFETY: a `Buffer` owns its memory as a `Vec` does.
unsafe impl Send for Buffer {}
// SAFETY: as above.
unsafe impl Sync for Buffer {}

impl Default for Buffer {
    fn default() -> Self {
        Buffer { start: NonNull::<Line>::dangling().cast(), len: 0 }
    }
}

/// What a buffer is aligned to.
#[repr(align(64))]
struct Line;

fn layout(len: usize) -> Layout {
    let bytes = len * size_of::<f32>();
    let align = if bytes >= HUGE { HUGE } else { align_of::<Line>() };
    Layout::from_size_align(bytes, align).expect("a buffer fits the address space")
}

/// Asks for huge pages. If the system refuses, only speed is lost.
fn ask_for_huge_pages(_start: NonNull<f32>, _bytes: usize) {
    #[cfg(target_os = "linux")]
    {
        unsafe extern "C" {
            fn madvise(start: *mut std::ffi::c_void, bytes: usize, advice: std::ffi::c_int) -> std::ffi::c_int;
        }
        const MADV_HUGEPAGE: std::ffi::c_int = 14;
        // SAFETY: the range was just allocated; the advice does not change what it holds.
        unsafe { madvise(_start.as_ptr().cast(), _bytes, MADV_HUGEPAGE) };
    }
}

impl Buffer {
    /// n zeros.
    pub fn zeros(n: usize) -> Buffer {
        let mut buffer = Buffer::default();
        buffer.reserve(n);
        buffer
    }

    /// Makes room for at least n numbers.
    pub fn reserve(&mut self, n: usize) {
        if n <= self.len {
            return;
        }
        // A quarter more than asked: batches of packed text differ in length, and not every longer one should allocate.
        let room = if self.len == 0 { n } else { n + n / 4 };
        let len = room.next_multiple_of(16);
        let layout = layout(len);
        // SAFETY: the layout is not empty; the first `self.len` numbers are copied, the others zeroed, so all are initialised
        // before anyone sees them.
        let grown = unsafe {
            let Some(start) = NonNull::new(alloc(layout).cast::<f32>()) else { handle_alloc_error(layout) };
            if layout.align() == HUGE {
                ask_for_huge_pages(start, layout.size());
            }
            start.copy_from_nonoverlapping(self.start, self.len);
            start.add(self.len).write_bytes(0, len - self.len);
            Buffer { start, len }
        };
        *self = grown;
    }

    /// `shape` (rows, columns) of it, in rows of `stride`, from column `first` on. All matrices of a buffer come from one
    /// pointer, so that they may be used beside each other.
    pub fn matrix(&mut self, shape: (usize, usize), stride: usize, first: usize) -> Matrix {
        Matrix::new(self.start.as_ptr(), self.len, shape, stride, first)
    }

    /// The first n numbers, with room made for them.
    pub fn first(&mut self, n: usize) -> &mut [f32] {
        self.reserve(n);
        &mut self[..n]
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        if self.len > 0 {
            // SAFETY: allocated in `reserve` with this layout.
            unsafe { dealloc(self.start.as_ptr().cast(), layout(self.len)) };
        }
    }
}

impl std::ops::Deref for Buffer {
    type Target = [f32];

    fn deref(&self) -> &[f32] {
        // SAFETY: `len` initialised numbers (or none, at an aligned address).
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }
}

impl std::ops::DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut [f32] {
        // SAFETY: as `deref`; borrowed mutably.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.len) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grows_and_keeps() {
        let mut buffer = Buffer::default();
        assert!(buffer.is_empty());
        buffer.first(5).copy_from_slice(&[1.0, 2.0, 3.0, 4.0, 5.0]);
        assert_eq!(buffer.len(), 16);
        assert!(buffer.first(3 << 20)[5..].iter().all(|&x| x == 0.0));
        assert_eq!(buffer[..5], [1.0, 2.0, 3.0, 4.0, 5.0]);
        assert_eq!(buffer.as_ptr() as usize % HUGE, 0);
    }
}
