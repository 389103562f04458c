//! Algorithms 1 (BuildProduct) and 2 (BuildFactor): polynomials drawn top-down, checked bottom-up.
//!
//! A product whose expansion breaks a cap is drawn again, not repaired: repairing would change the distribution. The caps
//! are checked after every factor; as coefficients are positive, later factors could not mend a broken cap. What is drawn
//! again is [`Retry`]; the degree-0 break of Algorithm 1 can leave a product with a single factor, unless a user's space asks
//! for more than two.
//!
//! Draws, in this order: the variables that take part, mdeg, the number of products; per product its variables and its
//! number of factors; per factor its variables and its number of terms; per term degree, coefficient, variables; then the
//! shuffle of the factors.
//!
//! A signed space draws the polynomial of the unsigned one, whose caps hold before there are signs. Then every term gets a
//! sign with probability ½, in the order in which the start is written, from a stream of its own.

use super::basis::{Accumulator, Basis, Cell};
use super::draft::{Draft, FactorSpan, ProductSpan};
use crate::expr::{Factor, Product, State, Term};
use crate::monomial::MAX_VARS;
use crate::notation::{Notation, Style};
use crate::poly::mix;
use crate::space::{Retry, Space, SpaceError, Variables};
use crate::stream::{Purpose, Stream, Streams};

/// A cap that a draw broke.
#[derive(Clone, Copy, Debug)]
enum Broken {
    ProductCoefficient,
    ProductTerms,
    PolynomialCoefficient,
}

/// How often a product is drawn again before the polynomial it dead-locks is given up. Only a sum that leaves no room
/// at all for another product gets here; medium_terms can, about never.
const PATIENCE: u32 = 10_000;
/// Polynomials that must be drawn before a space is believed.
const TRIALS: u64 = 64;

/// The polynomials of one (space, vars, seed, purpose): a random sequence with random access.
#[derive(Debug)]
pub struct Polynomials {
    space: Space,
    vars: usize,
    vars_fac: u64,
    vars_prod: u64,
    style: Style,
    streams: Streams,
    stream: Stream,
    /// The signs of a signed space.
    signs: Option<(Streams, Stream)>,
    pub(crate) basis: Basis,
    pub(crate) draft: Draft,
    current: Vec<Cell>,
    next: Vec<Cell>,
    product: Accumulator,
    total: Accumulator,
    broken: [u64; 3],
}

impl Polynomials {
    /// Fails if the space cannot be sampled, naming the cap that is in the way.
    pub fn new(
        space: &Space,
        vars: usize,
        style: Style,
        seed: u64,
        purpose: Purpose,
    ) -> Result<Polynomials, SpaceError> {
        space.validate(vars)?;
        let basis = Basis::new(vars, space.degree.polynomial, style.order)?;
        let key = space.stream_key(vars);
        let streams = Streams::new(seed, purpose, &key);
        let signs = space.signed.then(|| Streams::new(seed, purpose, &format!("{key} signs")));
        let (vars_fac, vars_prod) = space.variables_of(vars);
        let mut polynomials = Polynomials {
            space: space.clone(),
            vars,
            vars_fac: vars_fac as u64,
            vars_prod: vars_prod as u64,
            style,
            stream: streams.at(0),
            streams,
            signs: signs.map(|streams| (streams.clone(), streams.at(0))),
            product: Accumulator::new(&basis),
            total: Accumulator::new(&basis),
            basis,
            draft: Draft::default(),
            current: Vec::new(),
            next: Vec::new(),
            broken: [0; 3],
        };
        polynomials.try_out()?;
        Ok(polynomials)
    }

    /// Draws a few polynomials to see whether the space can be sampled at all.
    fn try_out(&mut self) -> Result<(), SpaceError> {
        self.stream = Streams::new(0, Purpose::Train, "trial").at(0);
        let mut drawn = 0;
        while drawn < TRIALS && self.broken.iter().sum::<u64>() < TRIALS * u64::from(PATIENCE) {
            drawn += u64::from(self.attempt());
        }
        let broken = std::mem::take(&mut self.broken);
        if drawn == TRIALS {
            return Ok(());
        }
        let caps = [
            ("coeff.product", self.space.coeff.product),
            ("terms.product", u64::from(self.space.terms.product)),
            ("coeff.polynomial", self.space.coeff.polynomial),
        ];
        // Where products are drawn until one fits, only the sum can be in the way once a product was found.
        let sum_is_stuck = self.space.retry != Retry::Polynomial && broken[2] > 0;
        let worst = if sum_is_stuck { 2 } else { (0..3).max_by_key(|&i| broken[i]).unwrap_or(0) };
        let (cap, value) = caps[worst];
        let reason = format!("it was broken in {} of {} draws", broken[worst], broken.iter().sum::<u64>());
        Err(SpaceError::Cap { cap, value, reason })
    }

    /// Draws polynomial `index`.
    #[inline]
    pub fn draw(&mut self, index: u64) {
        self.stream = self.streams.at(index);
        if let Some((streams, stream)) = &mut self.signs {
            *stream = streams.at(index);
        }
        self.redraw();
    }

    /// Draws again, further along the same streams: what follows when the guard refuses a polynomial.
    #[inline]
    pub fn redraw(&mut self) {
        while !self.attempt() {}
        if self.signs.is_some() {
            self.sign();
        }
    }

    /// Draws the signs. Out of line, so that a space without signs is drawn as fast as before there were any.
    #[cold]
    #[inline(never)]
    fn sign(&mut self) {
        if let Some((_, stream)) = &mut self.signs {
            self.draft.draw_signs(stream);
            self.compute();
        }
    }

    /// The polynomial just drawn, as the state that a proof in this notation starts from.
    pub fn state(&self, notation: Notation) -> State {
        let d = &self.draft;
        let term = |c: &Cell| {
            let one = self.style.writes_one(c.coeff, notation);
            Term::raw(c.coeff, self.basis.monomials[usize::from(c.rank)], one)
        };
        let factor = |&f: &FactorSpan| Factor(d.raw(f).iter().map(term).collect());
        let product = |&p: &ProductSpan| Product(d.factors(p).iter().map(factor).collect());
        State::Sum(d.products.iter().map(product).collect())
    }

    /// The fingerprint of the endpoint, [`Poly::fingerprint`](crate::poly::Poly::fingerprint).
    #[inline]
    pub fn endpoint_fingerprint(&self) -> u64 {
        self.draft.total.iter().fold(0u64, |sum, &c| sum.wrapping_add(self.basis.fingerprint(c)))
    }

    /// A 64-bit name of the start as it is written: products, factors and terms in their order.
    #[inline]
    pub fn start_fingerprint(&self) -> u64 {
        let mut h = 0u64;
        for &p in &self.draft.products {
            for &f in self.draft.factors(p) {
                for &c in self.draft.raw(f) {
                    h = mix(h.rotate_left(5) ^ c.coeff.cast_unsigned() ^ self.basis.mixed[usize::from(c.rank)]);
                }
                h = h.wrapping_add(0x632b_e59b_d9b4_e019);
            }
            h = h.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        }
        h
    }

    /// The space.
    pub fn space(&self) -> &Space {
        &self.space
    }

    /// One polynomial from the stream; `false` if a cap sends it back.
    fn attempt(&mut self) -> bool {
        self.draft.clear();
        let all: [u8; MAX_VARS] = [0, 1, 2, 3, 4, 5, 6, 7];
        let mut xs = all;
        let mut taking_part = self.vars;
        if self.space.variables == Variables::Uniform {
            taking_part = self.stream.between(1, self.vars as u64) as usize;
            self.stream.choose(&mut xs[..self.vars], taking_part);
        }
        let mdeg = self.stream.between(1, u64::from(self.space.degree.polynomial)) as u32;
        let products = self.space.products;
        let nprod = self.stream.between(u64::from(products.min), u64::from(products.max));
        let mut tries = 0;
        while (self.draft.products.len() as u64) < nprod {
            let mark = (self.draft.raw.len(), self.draft.simple.len(), self.draft.factors.len());
            let Err(broken) = self.build_product(&mut xs[..taking_part], mdeg) else {
                tries = 0;
                continue;
            };
            self.broken[broken as usize] += 1;
            tries += 1;
            if self.space.retry == Retry::Polynomial || tries > PATIENCE {
                self.next.clear();
                self.total.drain(&mut self.next);
                return false;
            }
            self.draft.raw.truncate(mark.0);
            self.draft.simple.truncate(mark.1);
            self.draft.factors.truncate(mark.2);
        }
        self.total.drain(&mut self.draft.total);
        true
    }

    /// Algorithm 1. On success the product is part of the draft and of the total.
    fn build_product(&mut self, xs: &mut [u8], mdeg: u32) -> Result<(), Broken> {
        let lo = self.vars_fac.min(self.vars_prod);
        let nvar = (self.stream.between(lo, self.vars_prod) as usize).min(xs.len());
        if nvar < xs.len() {
            self.stream.choose(xs, nvar);
        }
        let xs = &mut xs[..nvar];
        let factors = self.space.factors;
        let nfac = self.stream.between(u64::from(factors.min), u64::from(factors.max));
        let (max_terms, max_coeff) = (self.space.terms.product, self.space.coeff.product.cast_signed());
        let (mut rdegree, mut rterms, mut rcoeff) = (mdeg, max_terms, max_coeff);
        let first = self.draft.factors.len() as u32;
        for j in 0..nfac {
            let mut tries = 0;
            loop {
                let mark = (self.draft.raw.len(), self.draft.simple.len());
                let degree = self.build_factor(xs, rdegree, rterms, rcoeff);
                let largest = self.multiply(j == 0);
                let broken = if largest > max_coeff {
                    Broken::ProductCoefficient
                } else if self.next.len() > max_terms as usize {
                    Broken::ProductTerms
                } else {
                    std::mem::swap(&mut self.current, &mut self.next);
                    rdegree -= degree;
                    rterms = max_terms / self.current.len() as u32;
                    rcoeff = max_coeff / largest;
                    break;
                };
                tries += 1;
                if self.space.retry != Retry::Factor || tries > PATIENCE {
                    return Err(broken);
                }
                self.broken[broken as usize] += 1;
                self.draft.raw.truncate(mark.0);
                self.draft.simple.truncate(mark.1);
                self.draft.factors.pop();
            }
            // A minimum above the paper's 2 is kept: the factors that are left are constants.
            if rdegree == 0 && (factors.min <= 2 || j + 1 >= u64::from(factors.min)) {
                break;
            }
        }
        let limit = self.space.coeff.polynomial.cast_signed();
        if self.current.iter().any(|c| self.total.coeff(c.rank) + c.coeff > limit) {
            return Err(Broken::PolynomialCoefficient);
        }
        for c in &self.current {
            self.total.add(c.rank, c.coeff);
        }
        let draft = &mut self.draft;
        let from = draft.expanded.len() as u32;
        draft.expanded.extend_from_slice(&self.current);
        self.stream.shuffle(&mut draft.factors[first as usize..]);
        draft.products.push(ProductSpan {
            factors: (first, draft.factors.len() as u32),
            expanded: (from, draft.expanded.len() as u32),
        });
        Ok(())
    }

    /// Algorithm 2. Appends a factor to the draft, its terms in order and collected; returns its degree.
    fn build_factor(&mut self, xs: &mut [u8], rdegree: u32, rterms: u32, rcoeff: i64) -> u32 {
        let nvar = (self.stream.between(1, self.vars_fac) as usize).min(xs.len());
        if nvar < xs.len() {
            self.stream.choose(xs, nvar);
        }
        let (least, most) = (self.space.min_terms, self.space.terms.factor.min(rterms));
        let nterms = self.stream.between(u64::from(least), u64::from(most.max(least)));
        let max_degree = u64::from(self.space.degree.factor.min(rdegree));
        let max_coeff = self.space.coeff.factor.min(rcoeff.cast_unsigned());
        let draft = &mut self.draft;
        let first = draft.raw.len();
        for _ in 0..nterms {
            let d = self.stream.between(0, max_degree) as usize;
            let coeff = self.stream.between(1, max_coeff).cast_signed();
            let rank = if nvar == 1 {
                self.basis.power(usize::from(xs[0]), d)
            } else {
                let pick = |rank, _| self.basis.times(rank, usize::from(xs[self.stream.below(nvar as u64) as usize]));
                (0..d).fold(self.basis.one(), pick)
            };
            // Insertion keeps like terms in the order in which they were drawn.
            draft.raw.push(Cell { coeff, rank });
            let mut k = draft.raw.len() - 1;
            while k > first && draft.raw[k - 1].rank > rank {
                draft.raw.swap(k - 1, k);
                k -= 1;
            }
        }
        let from = draft.simple.len();
        for &cell in &draft.raw[first..] {
            match draft.simple[from..].last_mut() {
                Some(last) if last.rank == cell.rank => last.coeff += cell.coeff,
                _ => draft.simple.push(cell),
            }
        }
        draft.factors.push(FactorSpan {
            raw: (first as u32, draft.raw.len() as u32),
            simple: (from as u32, draft.simple.len() as u32),
        });
        // Both term orders put the highest degree first.
        u32::from(self.basis.degrees[usize::from(draft.raw[first].rank)])
    }

    /// `next` = `current` · (the last factor), or the factor itself for the first one. Returns the largest coefficient.
    fn multiply(&mut self, is_first: bool) -> i64 {
        let span = *self.draft.factors.last().expect("a factor was just built");
        let factor = &self.draft.simple[span.simple.0 as usize..span.simple.1 as usize];
        self.next.clear();
        if is_first {
            self.next.extend_from_slice(factor);
            return factor.iter().map(|c| c.coeff).max().unwrap_or(0);
        }
        self.basis.multiply(&self.current, factor, &mut self.product);
        self.product.drain(&mut self.next)
    }

    /// Collects, multiplies and adds the terms of the draft anew. No number grows by its sign, so all of them fit.
    fn compute(&mut self) {
        let draft = &mut self.draft;
        draft.simple.clear();
        draft.expanded.clear();
        draft.total.clear();
        for product in &mut draft.products {
            for (j, factor) in
                draft.factors[product.factors.0 as usize..product.factors.1 as usize].iter_mut().enumerate()
            {
                let from = draft.simple.len();
                for alike in draft.raw[factor.raw.0 as usize..factor.raw.1 as usize].chunk_by(|a, b| a.rank == b.rank) {
                    let coeff = alike.iter().map(|c| c.coeff).sum();
                    if coeff != 0 {
                        draft.simple.push(Cell { coeff, rank: alike[0].rank });
                    }
                }
                factor.simple = (from as u32, draft.simple.len() as u32);
                self.next.clear();
                if j == 0 {
                    self.next.extend_from_slice(&draft.simple[from..]);
                } else {
                    self.basis.multiply(&self.current, &draft.simple[from..], &mut self.product);
                    self.product.drain_signed(&mut self.next);
                }
                std::mem::swap(&mut self.current, &mut self.next);
            }
            let from = draft.expanded.len() as u32;
            draft.expanded.extend_from_slice(&self.current);
            product.expanded = (from, draft.expanded.len() as u32);
            self.current.iter().for_each(|c| self.total.add(c.rank, c.coeff));
        }
        self.total.drain_signed(&mut draft.total);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(toml: &str, vars: usize) -> String {
        let space = Space::from_toml(toml).unwrap();
        Polynomials::new(&space, vars, Style::default(), 1, Purpose::Train).unwrap_err().to_string()
    }

    #[test]
    fn a_space_that_dead_locks_names_its_cap() {
        // Three products of at least one term each cannot share the two monomials x and 1 with coefficients of 1.
        let toml = "[space]\ncoeff = { polynomial = 1, product = 1, factor = 1 }\n\
                    degree = { polynomial = 1, factor = 1 }\nmax = { products = 3, factors = 2 }\nretry = \"product\"";
        let sentence = refusal(&toml.replace("products = 3", "products = 12"), 1);
        assert!(sentence.contains("coeff.polynomial = 1 is in the way"), "{sentence}");
        let sentence = refusal("[space]\ndegree = { polynomial = 255, factor = 3 }", 8);
        assert!(sentence.contains("degree.polynomial = 255 is too large"), "{sentence}");
    }

    #[test]
    fn random_access_does_not_depend_on_the_order() {
        let space = Space::named("medium_terms").unwrap();
        let mut a = Polynomials::new(&space, 2, Style::default(), 1, Purpose::Train).unwrap();
        let mut b = Polynomials::new(&space, 2, Style::default(), 1, Purpose::Train).unwrap();
        let forwards: Vec<State> = (0..50).map(|i| (a.draw(i), a.state(Notation::Infix)).1).collect();
        let backwards: Vec<State> = (0..50).rev().map(|i| (b.draw(i), b.state(Notation::Infix)).1).collect();
        assert!(forwards.iter().eq(backwards.iter().rev()));
        assert_eq!(a.endpoint_fingerprint(), forwards[49].value(Style::default().order).unwrap().fingerprint());
    }
}
