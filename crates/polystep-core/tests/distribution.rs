//! What is drawn is drawn as Algorithms 1 and 2 say: by known probabilities where there are some, else against the two algorithms
//! written down a second time, line by line as the paper has them, on maps instead of ranks.
//!
//! The tolerance is five standard deviations. Streams are pinned, so a test that passes once passes always.

use std::collections::BTreeMap;

use polystep_core::stream::{Stream, Streams};
use polystep_core::{Monomial, Product, Purpose, Sampler, Space, State, Task};

type Counts = BTreeMap<(&'static str, u64), u64>;
type Terms = Vec<(u64, Vec<u32>)>;
type Map = BTreeMap<Vec<u32>, u64>;

/// Products of factors of terms.
type Drawn = Vec<Vec<Terms>>;

fn sampled(space: &Space, vars: usize, n: u64) -> Vec<Drawn> {
    let mut sampler = Sampler::new(&Task::new(space.clone(), vars), 8, Purpose::Test).unwrap();
    let exponents = |m: Monomial| (0..vars).map(|v| u32::from(m.exponent(v))).collect();
    let factors = |p: &Product| {
        p.0.iter().map(|f| f.0.iter().map(|t| (t.coeff.unsigned_abs(), exponents(t.monomial))).collect()).collect()
    };
    let products = |state: &State| state.products().iter().map(factors).collect();
    (0..n).map(|index| products(sampler.proof(index).start())).collect()
}

/// No draw is ever rejected here, so numbers of products and terms, and coefficients, are uniform; and a product ends after
/// one factor if that has the whole degree mdeg: Σ over mdeg = 1, 2, 3 of 1/9 · mean over n = 1, 2, 3 terms of 1 − (mdeg/(mdeg+1))ⁿ.
#[test]
fn no_backtrack_is_uniform() {
    let space = Space::named("no_backtrack").unwrap();
    for vars in [1, 2] {
        let drawn = sampled(&space, vars, 20_000);
        let products: Vec<&Vec<Terms>> = drawn.iter().flatten().collect();
        let factors: Vec<&Terms> = products.iter().copied().flatten().collect();
        let terms: Vec<&(u64, Vec<u32>)> = factors.iter().copied().flatten().collect();
        let near = |what: &str, count: usize, of: usize, p: f64| {
            let (share, n) = (count as f64 / of as f64, of as f64);
            // The products of a polynomial share its mdeg: up to three times the variance of independent ones.
            let deviation = (3.0 * p * (1.0 - p) / n).sqrt();
            assert!((share - p).abs() < 5.0 * deviation, "{vars} variables, {what}: {share:.4}, not {p:.4}");
        };
        near("two products", drawn.iter().filter(|p| p.len() == 2).count(), drawn.len(), 0.5);
        for n in 1..=3 {
            near("terms", factors.iter().filter(|f| f.len() == n).count(), factors.len(), 1.0 / 3.0);
        }
        for c in 1..=5 {
            near("coefficient", terms.iter().filter(|t| t.0 == c).count(), terms.len(), 0.2);
        }
        let whole = |mdeg: f64, n: i32| 1.0 - (mdeg / (mdeg + 1.0)).powi(n);
        let alone: f64 = [1.0, 2.0, 3.0].map(|d| (whole(d, 1) + whole(d, 2) + whole(d, 3)) / 27.0).iter().sum();
        near("one factor", products.iter().filter(|p| p.len() == 1).count(), products.len(), alone);
    }
}

/// Algorithm 2, BuildFactor.
fn build_factor(s: &mut Stream, space: &Space, vars: usize, rdegree: u32, rterms: u64, rcoeff: u64) -> Terms {
    let mut cvars: Vec<usize> = (0..vars).collect();
    s.shuffle(&mut cvars);
    cvars.truncate(s.between(1, vars as u64) as usize);
    let nterms = s.between(1, rterms.min(space.terms.factor.into()));
    let mut term = |_| {
        let degree = s.between(0, rdegree.min(space.degree.factor).into());
        let coeff = s.between(1, rcoeff.min(space.coeff.factor));
        let mut exponents = vec![0; vars];
        (0..degree).for_each(|_| exponents[cvars[s.below(cvars.len() as u64) as usize]] += 1);
        (coeff, exponents)
    };
    (0..nterms).map(&mut term).collect()
}

/// Algorithm 1, BuildProduct; none if a cap fails.
fn build_product(s: &mut Stream, space: &Space, vars: usize, mdeg: u32) -> Option<(Vec<Terms>, Map)> {
    let (max_terms, max_coeff) = (u64::from(space.terms.product), space.coeff.product);
    let nfac = s.between(2, space.factors.max.into());
    let (mut rdegree, mut rterms, mut rcoeff) = (mdeg, max_terms, max_coeff);
    let mut cprod = Map::from([(vec![0; vars], 1)]);
    let mut fseq = Vec::new();
    for _ in 0..nfac {
        let factor = build_factor(s, space, vars, rdegree, rterms, rcoeff);
        let mut product = Map::new();
        for (a, c) in &cprod {
            for (d, b) in &factor {
                *product.entry(a.iter().zip(b).map(|(i, j)| i + j).collect()).or_default() += c * d;
            }
        }
        cprod = product;
        let largest = cprod.values().copied().max()?;
        if largest > max_coeff || cprod.len() as u64 > max_terms {
            return None;
        }
        rdegree -= factor.iter().map(|t| t.1.iter().sum::<u32>()).max()?;
        (rterms, rcoeff) = (max_terms / cprod.len() as u64, max_coeff / largest);
        fseq.push(factor);
        if rdegree == 0 {
            break;
        }
    }
    s.shuffle(&mut fseq);
    Some((fseq, cprod))
}

/// A polynomial; a product that breaks a cap, its own or the sum's, is drawn again.
fn build_polynomial(s: &mut Stream, space: &Space, vars: usize) -> Drawn {
    let mdeg = s.between(1, space.degree.polynomial.into()) as u32;
    let nprod = s.between(2, space.products.max.into()) as usize;
    let (mut products, mut sum) = (Drawn::new(), Map::new());
    while products.len() < nprod {
        let Some((product, value)) = build_product(s, space, vars, mdeg) else { continue };
        let mut total = sum.clone();
        value.into_iter().for_each(|(m, c)| *total.entry(m).or_default() += c);
        if total.values().all(|&c| c <= space.coeff.polynomial) {
            sum = total;
            products.push(product);
        }
    }
    products
}

/// One count for each polynomial, so that counts are independent.
fn count(polynomial: &Drawn, counts: &mut Counts) {
    let factors = || polynomial.iter().flatten();
    let terms = || factors().flatten();
    let degree = |t: &(u64, Vec<u32>)| t.1.iter().sum::<u32>();
    let like = |f: &&Terms| f.iter().enumerate().any(|(i, t)| f[..i].iter().any(|u| u.1 == t.1));
    // What is left for the next factor of max_terms / |terms(cprod)| shows in products of several long factors.
    let long = |p: &&Vec<Terms>| p.iter().filter(|f| f.len() > 2 && !like(f)).count() > 1;
    let first = &polynomial[0][0];
    let variables = (0..first[0].1.len()).filter(|&v| first.iter().any(|t| t.1[v] > 0));
    for (what, value) in [
        ("products", polynomial.len() as u64),
        ("factors", factors().count() as u64),
        ("terms", terms().count() as u64),
        ("sum of coefficients", terms().map(|t| t.0).sum::<u64>() / 4),
        ("sum of degrees", terms().map(degree).sum::<u32>().into()),
        ("largest degree", terms().map(degree).max().unwrap_or(0).into()),
        ("factors with like terms", factors().filter(like).count() as u64),
        ("products of long factors", polynomial.iter().filter(long).count() as u64),
        ("terms of the first factor", first.len() as u64),
        ("degree of the first factor", first.iter().map(degree).max().unwrap_or(0).into()),
        ("variables of the first factor", variables.count() as u64),
    ] {
        *counts.entry((what, value)).or_default() += 1;
    }
}

#[test]
fn the_sampler_is_the_papers_algorithms() {
    const N: u64 = 10_000;
    for (key, vars) in [("small_coeff", 1), ("medium_coeff", 2), ("medium_degree", 3), ("medium_terms", 2)] {
        let space = Space::named(key).unwrap();
        let (mut ours, mut theirs) = (Counts::new(), Counts::new());
        sampled(&space, vars, N).iter().for_each(|p| count(p, &mut ours));
        let streams = Streams::new(1, Purpose::Test, "a second sampler");
        (0..N).for_each(|i| count(&build_polynomial(&mut streams.at(i), &space, vars), &mut theirs));
        let keys: std::collections::BTreeSet<_> = ours.keys().chain(theirs.keys()).collect();
        for key_value in keys {
            let [a, b] = [&ours, &theirs].map(|c| c.get(key_value).copied().unwrap_or(0) as f64);
            // Of two equal distributions the difference has a variance of at most a + b.
            assert!((a - b).abs() <= 5.0 * (a + b).sqrt(), "{key} {vars} {key_value:?}: {a} and {b} of {N}");
        }
    }
}
