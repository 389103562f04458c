//! A matrix somewhere in memory: an address, a shape and two strides.
//!
//! Why an address and not a slice: queries, keys and values of one attention are columns of the same slot, and tasks on
//! several threads write disjoint tiles of one matrix. A `&mut [f32]` for each of them would alias the others, which Rust
//! forbids even if no element is touched twice.
//!
//! Why this is sound: a [`Matrix`] borrows nothing and gives no access by itself. Making one checks that every element lies
//! in the memory that it was made from, and a tile lies in its matrix. Reading or writing through one is unsafe: the caller
//! promises that the memory is still there and that nobody else uses these elements meanwhile. Matrices of one buffer come
//! from the buffer's own pointer ([`super::Buffer::matrix`]), so making one does not invalidate another.
#![allow(unsafe_code)] // access to elements by address

use super::tile::Ahead;

/// Element (i, j) lies `i·row + j·col` numbers behind the start.
#[derive(Clone, Copy)]
pub struct Matrix {
    start: *mut f32,
    pub rows: usize,
    pub cols: usize,
    pub row: usize,
    pub col: usize,
}

// SAFETY: a `Matrix` is only an address; whoever reads or writes through it (unsafe) answers for the memory behind it.
unsafe impl Send for Matrix {}
// SAFETY: as above.
unsafe impl Sync for Matrix {}

impl Matrix {
    /// `shape` (rows, columns) of `len` numbers that begin at `start`, in rows of `stride`, from column `first` on.
    pub fn new(start: *mut f32, len: usize, shape: (usize, usize), stride: usize, first: usize) -> Matrix {
        let (rows, cols) = shape;
        assert!(rows * stride <= len && first + cols <= stride, "a matrix leaves its memory");
        Matrix { start: start.wrapping_add(first), rows, cols, row: stride, col: 1 }
    }

    /// Whole rows, to be read only, and for no longer than `data` is borrowed.
    pub fn of(data: &[f32], shape: (usize, usize)) -> Matrix {
        Matrix::new(data.as_ptr().cast_mut(), data.len(), shape, shape.1, 0)
    }

    /// Whole rows, for no longer than `data` is borrowed and not used by itself.
    pub fn of_mut(data: &mut [f32], shape: (usize, usize)) -> Matrix {
        Matrix::new(data.as_mut_ptr(), data.len(), shape, shape.1, 0)
    }

    /// Rows and columns exchanged.
    pub fn t(self) -> Matrix {
        Matrix { rows: self.cols, cols: self.rows, row: self.col, col: self.row, ..self }
    }

    /// `shape` of it from row i, column j on.
    #[inline]
    pub fn tile(self, (i, j): (usize, usize), (rows, cols): (usize, usize)) -> Matrix {
        assert!(i + rows <= self.rows && j + cols <= self.cols, "a tile leaves its matrix");
        Matrix { start: self.at(i, j), rows, cols, ..self }
    }

    /// Its memory as a matrix of another shape with whole rows. It must be large enough.
    pub fn packed(self, rows: usize, cols: usize) -> Matrix {
        assert!(self.col == 1 && self.row == self.cols);
        Matrix::new(self.start, self.rows * self.cols, (rows, cols), cols, 0)
    }

    /// Where an element lies.
    #[inline(always)]
    pub fn at(self, i: usize, j: usize) -> *mut f32 {
        self.start.wrapping_add(i * self.row + j * self.col)
    }

    /// All of its memory, to be fetched before it is needed.
    pub fn ahead(self) -> Ahead {
        let lying = if self.col == 1 { self } else { self.t() };
        Ahead::new(lying.start, lying.row, lying.rows, lying.cols)
    }

    /// One row, to read.
    ///
    /// # Safety
    /// The memory is there, and nobody writes to the row as long as the slice lives.
    #[inline(always)]
    pub unsafe fn row<'a>(self, i: usize) -> &'a [f32] {
        assert!(i < self.rows && self.col == 1);
        // SAFETY: inside the matrix; the rest is the caller's promise.
        unsafe { std::slice::from_raw_parts(self.at(i, 0), self.cols) }
    }

    /// One row, to write.
    ///
    /// # Safety
    /// The memory is there and may be written, and nobody else uses the row as long as the slice lives.
    #[inline(always)]
    pub unsafe fn row_mut<'a>(self, i: usize) -> &'a mut [f32] {
        assert!(i < self.rows && self.col == 1);
        // SAFETY: inside the matrix; the rest is the caller's promise.
        unsafe { std::slice::from_raw_parts_mut(self.at(i, 0), self.cols) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Matrices of one buffer stay valid beside each other: sibling columns are written in turn.
    #[test]
    fn columns_of_one_buffer() {
        let mut buffer = super::super::Buffer::zeros(24);
        let [left, right] = [0, 3].map(|col| buffer.matrix((4, 3), 6, col));
        for i in 0..4 {
            // SAFETY: the buffer is there, and the two rows do not meet.
            let (a, b) = unsafe { (left.row_mut(i), right.row_mut(i)) };
            a.fill(i as f32);
            b.copy_from_slice(a);
        }
        // SAFETY: as above.
        assert_eq!(unsafe { *left.t().tile((1, 2), (1, 1)).at(0, 0) }, 2.0);
        assert_eq!(buffer[6..12], [1.0; 6]);
    }

    #[test]
    #[should_panic(expected = "a matrix leaves its memory")]
    fn too_wide() {
        super::super::Buffer::zeros(64).matrix((4, 3), 6, 4);
    }

    #[test]
    #[should_panic(expected = "a tile leaves its matrix")]
    fn too_far() {
        Matrix::of(&[0.0; 12], (4, 3)).tile((2, 0), (3, 3));
    }
}
