//! How large a problem space is (§ "Problem Space Size Estimation", Table "colide").
//!
//! Two sets S1, S2 are drawn; if the space had X equally likely members, they would share |S1|·|S2|/X. The estimate is
//! |S1|·|S2|/|S1∩S2| over *distinct* members, for equations (starts as they are written) and endpoints. Members are kept as
//! 64-bit fingerprints: among 10^7 of them a false match is expected 10^-6 times.

use rayon::prelude::*;

use crate::notation::Style;
use crate::sample::Polynomials;
use crate::space::{Space, SpaceError};
use crate::stream::Purpose;

/// What two draws had in common.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Overlap {
    /// Distinct members of the first draw.
    pub first: u64,
    /// Distinct members of the second.
    pub second: u64,
    /// Members of both.
    pub shared: u64,
}

impl Overlap {
    /// |S1|·|S2|/|S1∩S2|; `None` if nothing is shared.
    pub fn estimate(self) -> Option<f64> {
        (self.shared > 0).then(|| self.first as f64 * self.second as f64 / self.shared as f64)
    }
}

/// The estimated size of a problem space.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SpaceSize {
    /// Polynomials per draw.
    pub draws: u64,
    /// Starts as they are written.
    pub equations: Overlap,
    /// Endpoints.
    pub endpoints: Overlap,
}

/// Polynomials that one task of the thread pool draws.
const BLOCK: usize = 1 << 14;

/// Estimates a space from two draws of `draws` polynomials. `progress` is told how many more were drawn.
pub fn estimate(
    space: &Space,
    vars: usize,
    seed: u64,
    draws: u64,
    progress: &(dyn Fn(u64) + Sync),
) -> Result<SpaceSize, SpaceError> {
    // Settles once whether the space can be sampled.
    Polynomials::new(space, vars, Style::default(), seed, Purpose::Train)?;
    let half = |first: u64| -> Result<(Vec<u64>, Vec<u64>), SpaceError> {
        let mut equations = vec![0u64; draws as usize];
        let mut endpoints = vec![0u64; draws as usize];
        let blocks = equations.par_chunks_mut(BLOCK).zip(endpoints.par_chunks_mut(BLOCK)).enumerate();
        blocks.try_for_each_init(
            || Polynomials::new(space, vars, Style::default(), seed, Purpose::Train),
            |polynomials, (block, (equations, endpoints))| {
                let polynomials = polynomials.as_mut().map_err(|e| e.clone())?;
                for (i, (equation, endpoint)) in equations.iter_mut().zip(endpoints.iter_mut()).enumerate() {
                    polynomials.draw(first + (block * BLOCK + i) as u64);
                    *equation = polynomials.start_fingerprint();
                    *endpoint = polynomials.endpoint_fingerprint();
                }
                progress(equations.len() as u64);
                Ok::<_, SpaceError>(())
            },
        )?;
        Ok((equations, endpoints))
    };
    let (equations1, endpoints1) = half(0)?;
    let (equations2, endpoints2) = half(draws)?;
    Ok(SpaceSize { draws, equations: overlap(equations1, equations2), endpoints: overlap(endpoints1, endpoints2) })
}

/// Counts distinct and shared members by sorting both sides.
fn overlap(mut a: Vec<u64>, mut b: Vec<u64>) -> Overlap {
    rayon::join(|| a.par_sort_unstable(), || b.par_sort_unstable());
    rayon::join(|| a.dedup(), || b.dedup());
    let (mut i, mut j, mut shared) = (0, 0, 0);
    while i < a.len() && j < b.len() {
        shared += u64::from(a[i] == b[j]);
        let (x, y) = (a[i], b[j]);
        i += usize::from(x <= y);
        j += usize::from(y <= x);
    }
    Overlap { first: a.len() as u64, second: b.len() as u64, shared }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distinct_members_are_counted_once() {
        let overlap = overlap(vec![5, 1, 5, 2], vec![2, 9, 5, 5, 5]);
        assert_eq!(overlap, Overlap { first: 3, second: 3, shared: 2 });
        assert_eq!(overlap.estimate(), Some(4.5));
    }

    #[test]
    fn the_estimate_does_not_depend_on_threads() {
        let space = Space::named("small_coeff").unwrap();
        let size = estimate(&space, 1, 1, 40_000, &|_| {}).unwrap();
        let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
        assert_eq!(pool.install(|| estimate(&space, 1, 1, 40_000, &|_| {})), Ok(size));
        // Small draws meet the likely polynomials only, so the estimate is a lower bound that grows with the draws.
        let estimates = [size.equations, size.endpoints].map(|o| o.estimate().unwrap_or(0.0));
        assert!((1e6..130e6).contains(&estimates[0]) && (1e5..11e6).contains(&estimates[1]), "{size:?}");
    }
}
