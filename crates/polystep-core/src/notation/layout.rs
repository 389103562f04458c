//! Where the parts of a state stand in its tokens.

use std::ops::Range;

/// Where the parts of a state stand in its tokens.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Layout {
    /// The range of each product.
    pub products: Vec<Range<usize>>,
    /// The range of each factor with its parentheses.
    pub factors: Vec<Vec<Range<usize>>>,
    /// The range of each term.
    pub terms: Vec<Vec<Vec<Range<usize>>>>,
}

/// What a writer of states tells about the parts that it has written: each part after the smaller parts in it.
pub(super) trait Places {
    fn term(&mut self, range: Range<usize>);
    fn factor(&mut self, range: Range<usize>);
    fn product(&mut self, range: Range<usize>);
}

/// Nobody asks for the places. Most states are only written.
pub(super) struct Nowhere;

impl Places for Nowhere {
    fn term(&mut self, _: Range<usize>) {}
    fn factor(&mut self, _: Range<usize>) {}
    fn product(&mut self, _: Range<usize>) {}
}

/// A layout while its parts come in, with the parts of the factor and of the product that are not finished.
#[derive(Default)]
pub(super) struct LayoutBuilder {
    layout: Layout,
    terms: Vec<Range<usize>>,
    factors: Vec<Range<usize>>,
    terms_of_factors: Vec<Vec<Range<usize>>>,
}

impl LayoutBuilder {
    /// The layout. A bare polynomial has terms, but neither factors nor products.
    pub fn finish(mut self) -> Layout {
        if !self.terms.is_empty() {
            self.layout.terms.push(vec![self.terms]);
        }
        self.layout
    }
}

impl Places for LayoutBuilder {
    fn term(&mut self, range: Range<usize>) {
        self.terms.push(range);
    }

    fn factor(&mut self, range: Range<usize>) {
        self.factors.push(range);
        self.terms_of_factors.push(std::mem::take(&mut self.terms));
    }

    fn product(&mut self, range: Range<usize>) {
        self.layout.products.push(range);
        self.layout.factors.push(std::mem::take(&mut self.factors));
        self.layout.terms.push(std::mem::take(&mut self.terms_of_factors));
    }
}
