//! Tokens written fast: spellings of every monomial of a basis, and pages that are written by copying whole words.
//!
//! A page is longer than what is written on it, so a copy may overshoot into the slack and be overwritten by the next one:
//! copying sixteen bytes that are always there is cheaper than copying five exactly. Nothing here is unsafe.

use crate::basis::{Basis, Cell};
use crate::expr::{Factor, Product, State, Term};
use crate::monomial::TermOrder;
use crate::notation::{Notation, Open, Style, write_tokens};
use crate::token::{self, push_digits};

/// How many bytes one copy moves.
const WORD: usize = 16;
/// Bytes that must be free behind the writing position: the longest integer and one overshoot.
const SLACK: usize = 64;
/// Coefficients below this have their digits in a table.
const SMALL: usize = 2048;
/// Terms with a coefficient below this are in a table, for bases of at most [`FEW`] monomials.
const COMMON: usize = 128;
const FEW: usize = 32;

/// A growing sheet of tokens with slack at its end.
#[derive(Debug, Default)]
pub(crate) struct Page {
    bytes: Vec<u8>,
    at: usize,
}

/// A run of tokens on a page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Seg {
    pub start: usize,
    pub len: usize,
}

impl Seg {
    /// The run without its first and last token: a factor without its parentheses.
    pub fn inner(self) -> Seg {
        Seg { start: self.start + 1, len: self.len - 2 }
    }

    pub fn end(self) -> usize {
        self.start + self.len
    }
}

impl Page {
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
    fn push_word(&mut self, word: &[u8; WORD], len: usize) {
        self.bytes[self.at..self.at + WORD].copy_from_slice(word);
        self.at += len;
    }

    /// Copies a run from another page. Room must have been reserved.
    #[inline]
    pub fn copy(&mut self, from: &Page, seg: Seg) {
        const CHUNK: usize = 2 * WORD;
        let mut i = 0;
        while i < seg.len {
            let (to, src) = (self.at + i, seg.start + i);
            self.bytes[to..to + CHUNK].copy_from_slice(&from.bytes[src..src + CHUNK]);
            i += CHUNK;
        }
        self.at += seg.len;
    }

    /// The run from `start` to here.
    #[inline]
    pub fn since(&self, start: usize) -> Seg {
        Seg { start, len: self.at - start }
    }
}

/// The spelling of numbers and of a basis' monomials in one notation.
#[derive(Debug)]
pub(crate) struct Letters {
    prefix: bool,
    ones: bool,
    one: u16,
    /// Monomials as simplified terms write them, then as unsimplified ones do; runs of `spellings`.
    monomials: Vec<Seg>,
    spellings: Vec<u8>,
    /// Digits, and `*` behind them; the number of digits in the last byte.
    numbers: Vec<[u8; 8]>,
    /// Whole terms with a `+` before them, by coefficient and rank, simplified and then unsimplified; the length is in the
    /// last byte, 0 where a term does not fit. Empty for a large basis: the table must stay in the cache.
    terms: Vec<[u8; WORD]>,
    ranks: usize,
    /// By rank: whether an unsimplified term is written differently.
    pub differs: Vec<bool>,
    /// No term is longer than this.
    pub longest: usize,
}

impl Letters {
    pub fn new(basis: &Basis, notation: Notation, style: Style) -> Letters {
        let spell = |rank: usize, raw: bool| {
            // A term with the coefficient 1 is spelled by its monomial alone.
            let term = Term { coeff: 1, monomial: basis.monomials[rank], raw };
            let state = State::Sum(vec![Product(vec![Factor(vec![term])]); 2]);
            let mut tokens = Vec::new();
            let plain = Style { order: TermOrder::Paper, ones: false };
            let layout = write_tokens(&state, &Open::new(), notation, plain, &mut tokens);
            tokens[layout.terms[0][0][0].clone()].to_vec()
        };
        let (mut monomials, mut spellings) = (Vec::new(), Vec::new());
        for raw in [false, true] {
            for rank in 0..basis.len() {
                let word = spell(rank, raw);
                monomials.push(Seg { start: spellings.len(), len: word.len() });
                spellings.extend(word);
            }
        }
        let longest = 24 + monomials.iter().map(|s| s.len).max().unwrap_or(0);
        spellings.resize(spellings.len() + SLACK, 0);
        let numbers = (0..SMALL as u64)
            .map(|n| {
                let mut digits = Vec::new();
                push_digits(n, &mut digits);
                let mut entry = [token::TIMES; 8];
                entry[..digits.len()].copy_from_slice(&digits);
                entry[7] = digits.len() as u8;
                entry
            })
            .collect();
        let differs = basis.monomials.iter().map(|m| m.has_first_power()).collect();
        let mut letters = Letters {
            prefix: notation == Notation::Prefix,
            ones: style.ones,
            one: basis.one(),
            monomials,
            spellings,
            numbers,
            terms: Vec::new(),
            ranks: basis.len(),
            differs,
            longest,
        };
        if basis.len() <= FEW {
            letters.terms = letters.common_terms();
        }
        letters
    }

    fn common_terms(&self) -> Vec<[u8; WORD]> {
        let mut terms = Vec::with_capacity(2 * COMMON * self.ranks);
        let mut page = Page::default();
        page.reserve(self.longest);
        for raw in [false, true] {
            for coeff in 0..COMMON as u64 {
                for rank in 0..self.ranks as u16 {
                    page.clear();
                    page.push(token::PLUS);
                    let cell = Cell { coeff, rank };
                    self.term(cell, raw && self.is_raw(cell), &mut page);
                    let mut entry = [0; WORD];
                    if page.len() < WORD {
                        entry[..page.len()].copy_from_slice(page.written());
                        entry[WORD - 1] = page.len() as u8;
                    }
                    terms.push(entry);
                }
            }
        }
        terms
    }

    /// The tabled spelling of `+` and a term.
    #[inline(always)]
    fn common(&self, cell: Cell, raw: bool) -> Option<&[u8; WORD]> {
        if cell.coeff >= COMMON as u64 {
            return None;
        }
        let row = cell.coeff as usize + if raw { COMMON } else { 0 };
        let entry = self.terms.get(row * self.ranks + usize::from(cell.rank))?;
        (entry[WORD - 1] != 0).then_some(entry)
    }

    /// Whether a term is written differently when it is simplified.
    #[inline]
    pub fn is_raw(&self, cell: Cell) -> bool {
        self.differs[usize::from(cell.rank)] || (self.ones && cell.coeff == 1 && cell.rank != self.one)
    }

    /// Digits; with `times`, a `*` behind them.
    #[inline]
    fn digits(&self, n: u64, times: bool, page: &mut Page) {
        if let Some(entry) = self.numbers.get(n as usize) {
            page.bytes[page.at..page.at + 8].copy_from_slice(entry);
            page.at += usize::from(entry[7]) + usize::from(times);
            return;
        }
        let mut digits = Vec::with_capacity(20);
        push_digits(n, &mut digits);
        for d in digits {
            page.push(d);
        }
        if times {
            page.push(token::TIMES);
        }
    }

    /// An integer in this notation.
    #[inline]
    pub fn integer(&self, n: u64, page: &mut Page) {
        if self.prefix {
            page.push(token::INT);
        }
        self.digits(n, false, page);
    }

    /// The monomial alone; the constant monomial is not written.
    #[inline]
    pub fn monomial(&self, rank: u16, raw: bool, page: &mut Page) {
        if rank == self.one {
            return;
        }
        let seg = self.monomials[usize::from(rank) + if raw { self.monomials.len() / 2 } else { 0 }];
        let word: &[u8; WORD] = self.spellings[seg.start..].first_chunk().expect("the slack is longer than a word");
        if seg.len <= WORD {
            page.push_word(word, seg.len);
            return;
        }
        page.reserve(seg.len);
        for i in (0..seg.len).step_by(WORD) {
            let word: &[u8; WORD] = self.spellings[seg.start + i..].first_chunk().expect("as above");
            page.push_word(word, WORD.min(seg.len - i));
        }
    }

    /// A term.
    #[inline]
    pub fn term(&self, cell: Cell, raw: bool, page: &mut Page) {
        if cell.rank == self.one {
            self.integer(cell.coeff, page);
            return;
        }
        if cell.coeff != 1 || (raw && self.ones) {
            if self.prefix {
                page.push(token::TIMES);
                page.push(token::INT);
                self.digits(cell.coeff, false, page);
            } else {
                self.digits(cell.coeff, true, page);
            }
        }
        self.monomial(cell.rank, raw, page);
    }

    /// What stands before term i of n.
    #[inline]
    pub fn between_terms(&self, i: usize, n: usize, page: &mut Page) {
        if if self.prefix { i + 1 < n } else { i > 0 } {
            page.push(token::PLUS);
        }
    }

    /// What stands before a coefficient that is left open, and before its monomial.
    #[inline]
    pub fn open_times(&self, rank: u16, before: bool, page: &mut Page) {
        if rank != self.one && self.prefix == before {
            page.push(token::TIMES);
        }
    }

    /// A sum of terms, in parentheses in infix.
    #[inline]
    pub fn factor(&self, cells: &[Cell], raw: bool, page: &mut Page) {
        page.reserve((cells.len() + 1) * (self.longest + 1));
        let Some((&last, rest)) = cells.split_last() else {
            return;
        };
        let start = page.at;
        for &cell in rest {
            self.plus_term(cell, raw, page);
        }
        if self.prefix {
            self.term(last, raw && self.is_raw(last), page);
        } else {
            // The first `+` becomes the parenthesis.
            self.plus_term(last, raw, page);
            page.bytes[start] = token::OPEN;
            page.push(token::CLOSE);
        }
    }

    #[inline(always)]
    fn plus_term(&self, cell: Cell, raw: bool, page: &mut Page) {
        match self.common(cell, raw) {
            Some(entry) => page.push_word(entry, usize::from(entry[WORD - 1])),
            None => {
                page.push(token::PLUS);
                self.term(cell, raw && self.is_raw(cell), page);
            }
        }
    }

    #[inline]
    pub fn parenthesis(&self, parenthesis: u8, page: &mut Page) {
        if !self.prefix {
            page.push(parenthesis);
        }
    }

    /// A factor without its parentheses.
    pub fn bare(&self, seg: Seg) -> Seg {
        if self.prefix { seg } else { seg.inner() }
    }
}
