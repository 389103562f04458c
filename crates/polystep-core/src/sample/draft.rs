//! A drawn polynomial, flat in memory: its terms as sampled and collected, its products expanded, and their sum.

use super::basis::Cell;
use crate::stream::Stream;

/// A drawn factor: ranges of its terms as sampled and collected.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FactorSpan {
    pub raw: (u32, u32),
    pub simple: (u32, u32),
}

/// A drawn product: ranges of its factors and of its expansion.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ProductSpan {
    pub factors: (u32, u32),
    pub expanded: (u32, u32),
}

/// A drawn polynomial, flat: nothing is allocated once the vectors have grown.
#[derive(Debug, Default)]
pub(crate) struct Draft {
    pub raw: Vec<Cell>,
    pub simple: Vec<Cell>,
    pub factors: Vec<FactorSpan>,
    pub expanded: Vec<Cell>,
    pub products: Vec<ProductSpan>,
    pub total: Vec<Cell>,
}

impl Draft {
    pub fn clear(&mut self) {
        self.raw.clear();
        self.simple.clear();
        self.factors.clear();
        self.expanded.clear();
        self.products.clear();
        self.total.clear();
    }

    /// Draws the signs of all terms, in the order in which the start is written.
    pub fn draw_signs(&mut self, stream: &mut Stream) {
        for f in self.products.iter().flat_map(|p| &self.factors[p.factors.0 as usize..p.factors.1 as usize]) {
            for cell in &mut self.raw[f.raw.0 as usize..f.raw.1 as usize] {
                if stream.below(2) == 1 {
                    cell.coeff = -cell.coeff;
                }
            }
        }
    }

    pub fn raw(&self, f: FactorSpan) -> &[Cell] {
        &self.raw[f.raw.0 as usize..f.raw.1 as usize]
    }

    pub fn simple(&self, f: FactorSpan) -> &[Cell] {
        &self.simple[f.simple.0 as usize..f.simple.1 as usize]
    }

    pub fn factors(&self, p: ProductSpan) -> &[FactorSpan] {
        &self.factors[p.factors.0 as usize..p.factors.1 as usize]
    }

    pub fn expanded(&self, p: ProductSpan) -> &[Cell] {
        &self.expanded[p.expanded.0 as usize..p.expanded.1 as usize]
    }
}
