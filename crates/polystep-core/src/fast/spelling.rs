//! How numbers, monomials and terms are spelled in one notation, prepared in tables.
//!
//! A space has few monomials and mostly small coefficients. So the tokens of each monomial, of each small number and (for
//! small spaces) of each common term are looked up and copied, not made.

use super::operator_before;
use super::tokens::{Run, SLACK, TokenBuffer, WORD};
use crate::expr::{Factor, Product, State, Term};
use crate::monomial::TermOrder;
use crate::notation::{Notation, Style, laid_out};
use crate::sample::{Basis, Cell};
use crate::token::{self, push_digits};

/// Coefficients below this have their digits in a table.
const SMALL: usize = 2048;
/// Terms with a coefficient below this are in a table, for bases of at most [`FEW`] monomials.
const COMMON: usize = 128;
const FEW: usize = 32;

/// The spelling of numbers and of a basis' monomials in one notation.
#[derive(Debug)]
pub(crate) struct Spelling {
    prefix: bool,
    ones: bool,
    one: u16,
    /// Monomials as simplified terms write them, then as unsimplified ones do; runs of `spellings`.
    monomials: Vec<Run>,
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

impl Spelling {
    pub fn new(basis: &Basis, notation: Notation, style: Style) -> Spelling {
        let spell = |rank: usize, raw: bool| {
            // A term with the coefficient 1 is spelled by its monomial alone.
            let term = Term { coeff: 1, monomial: basis.monomials[rank], raw };
            let state = State::Sum(vec![Product(vec![Factor(vec![term])]); 2]);
            let (tokens, layout) = laid_out(&state, notation, Style { order: TermOrder::Paper, ones: false });
            tokens[layout.terms[0][0][0].clone()].to_vec()
        };
        let (mut monomials, mut spellings) = (Vec::new(), Vec::new());
        for raw in [false, true] {
            for rank in 0..basis.len() {
                let word = spell(rank, raw);
                monomials.push(Run { start: spellings.len(), len: word.len() });
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
        let mut spelling = Spelling {
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
            spelling.terms = spelling.common_terms();
        }
        spelling
    }

    fn common_terms(&self) -> Vec<[u8; WORD]> {
        let mut terms = Vec::with_capacity(2 * COMMON * self.ranks);
        let mut out = TokenBuffer::default();
        out.reserve(self.longest);
        for raw in [false, true] {
            for coeff in 0..COMMON as i64 {
                for rank in 0..self.ranks as u16 {
                    out.clear();
                    out.push(token::PLUS);
                    let cell = Cell { coeff, rank };
                    self.term(cell, raw && self.is_raw(cell), &mut out);
                    let mut entry = [0; WORD];
                    if out.len() < WORD {
                        entry[..out.len()].copy_from_slice(out.written());
                        entry[WORD - 1] = out.len() as u8;
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
        // A negative coefficient is a large unsigned number.
        if cell.coeff.cast_unsigned() >= COMMON as u64 {
            return None;
        }
        let row = cell.coeff as usize + if raw { COMMON } else { 0 };
        let entry = self.terms.get(row * self.ranks + usize::from(cell.rank))?;
        (entry[WORD - 1] != 0).then_some(entry)
    }

    /// Whether a term is written differently when it is simplified.
    #[inline]
    pub fn is_raw(&self, cell: Cell) -> bool {
        self.differs[usize::from(cell.rank)] || (self.ones && self.is_one(cell.coeff) && cell.rank != self.one)
    }

    /// Whether a simplified term leaves its coefficient out.
    #[inline]
    fn is_one(&self, coeff: i64) -> bool {
        coeff == 1 || (coeff == -1 && !self.prefix)
    }

    /// Digits; with `times`, a `*` behind them.
    #[inline]
    fn digits(&self, n: u64, times: bool, out: &mut TokenBuffer) {
        if let Some(entry) = self.numbers.get(n as usize) {
            out.push_number(entry, usize::from(entry[7]) + usize::from(times));
            return;
        }
        let mut digits = Vec::with_capacity(20);
        push_digits(n, &mut digits);
        for d in digits {
            out.push(d);
        }
        if times {
            out.push(token::TIMES);
        }
    }

    /// An integer in this notation.
    #[inline]
    pub fn integer(&self, n: i64, out: &mut TokenBuffer) {
        if self.prefix {
            out.push(if n < 0 { token::INT_MINUS } else { token::INT });
        } else if n < 0 {
            out.push(token::MINUS);
        }
        self.digits(n.unsigned_abs(), false, out);
    }

    /// The monomial alone; the constant monomial is not written.
    #[inline]
    pub fn monomial(&self, rank: u16, raw: bool, out: &mut TokenBuffer) {
        if rank == self.one {
            return;
        }
        let run = self.monomials[usize::from(rank) + if raw { self.monomials.len() / 2 } else { 0 }];
        let word: &[u8; WORD] = self.spellings[run.start..].first_chunk().expect("the slack is longer than a word");
        if run.len <= WORD {
            out.push_word(word, run.len);
            return;
        }
        out.reserve(run.len);
        for i in (0..run.len).step_by(WORD) {
            let word: &[u8; WORD] = self.spellings[run.start + i..].first_chunk().expect("as above");
            out.push_word(word, WORD.min(run.len - i));
        }
    }

    /// A term; in infix without its sign.
    #[inline]
    fn term(&self, cell: Cell, raw: bool, out: &mut TokenBuffer) {
        if cell.rank == self.one {
            self.integer(if self.prefix { cell.coeff } else { cell.coeff.abs() }, out);
            return;
        }
        if !self.is_one(cell.coeff) || (raw && self.ones) {
            if self.prefix {
                out.push(token::TIMES);
                self.integer(cell.coeff, out);
            } else {
                self.digits(cell.coeff.unsigned_abs(), true, out);
            }
        }
        self.monomial(cell.rank, raw, out);
    }

    /// Term i of n behind what joins it to the one before. Returns where it begins: a minus is part of it, a `+` is not.
    #[inline]
    pub fn joined(&self, (i, n): (usize, usize), cell: Cell, raw: bool, out: &mut TokenBuffer) -> usize {
        let minus = !self.prefix && cell.coeff < 0;
        if !minus {
            self.between_terms(i, n, out);
        }
        let at = out.len();
        if minus {
            out.push(token::MINUS);
        }
        self.term(cell, raw, out);
        at
    }

    /// What stands before term i of n, unless it is negative.
    #[inline]
    pub fn between_terms(&self, i: usize, n: usize, out: &mut TokenBuffer) {
        if operator_before(i, n, self.prefix) {
            out.push(token::PLUS);
        }
    }

    /// What stands before a coefficient that is left open, and before its monomial.
    #[inline]
    pub fn open_times(&self, rank: u16, before: bool, out: &mut TokenBuffer) {
        if rank != self.one && self.prefix == before {
            out.push(token::TIMES);
        }
    }

    /// A sum of terms, in parentheses in infix.
    #[inline]
    pub fn factor(&self, cells: &[Cell], raw: bool, out: &mut TokenBuffer) {
        out.reserve((cells.len() + 1) * (self.longest + 1));
        let Some((&last, rest)) = cells.split_last() else {
            return self.zero(out);
        };
        let start = out.len();
        let minus = cells[0].coeff < 0;
        if minus {
            self.parenthesis(token::OPEN, out);
        }
        for &cell in rest {
            self.plus_term(cell, raw, out);
        }
        if self.prefix {
            self.term(last, raw && self.is_raw(last), out);
        } else {
            self.plus_term(last, raw, out);
            if !minus {
                // The first `+` becomes the parenthesis.
                out.set(start, token::OPEN);
            }
            out.push(token::CLOSE);
        }
    }

    /// The factor 0.
    #[cold]
    fn zero(&self, out: &mut TokenBuffer) {
        self.parenthesis(token::OPEN, out);
        self.integer(0, out);
        self.parenthesis(token::CLOSE, out);
    }

    #[inline(always)]
    fn plus_term(&self, cell: Cell, raw: bool, out: &mut TokenBuffer) {
        match self.common(cell, raw) {
            Some(entry) => out.push_word(entry, usize::from(entry[WORD - 1])),
            None => self.rare_term(cell, raw, out),
        }
    }

    /// A term that is in no table: a large coefficient, a negative one or a long monomial.
    #[inline(never)]
    fn rare_term(&self, cell: Cell, raw: bool, out: &mut TokenBuffer) {
        out.push(if cell.coeff < 0 && !self.prefix { token::MINUS } else { token::PLUS });
        self.term(cell, raw && self.is_raw(cell), out);
    }

    #[inline]
    pub fn parenthesis(&self, parenthesis: u8, out: &mut TokenBuffer) {
        if !self.prefix {
            out.push(parenthesis);
        }
    }

    /// A factor without its parentheses.
    pub fn bare(&self, run: Run) -> Run {
        if self.prefix { run } else { run.inner() }
    }
}
