//! `polystep estimate --refused`: how much of what training draws each guard refuses.
//!
//! Polynomials of the training stream are drawn once, and their endpoints are looked up in the guard of each scope. A refused polynomial
//! is drawn again in training, so the share is also how much more training draws than it learns from.

use polystep_core::{Guard, GuardScope, Polynomials, Purpose, Space, SpaceError, Style};
use rayon::prelude::*;
use serde::Serialize;

use crate::failure::Result;
use crate::say;
use crate::table::table;

/// Draws that one thread makes at a time.
const PART: u64 = 10_000;

/// One line of `--json`.
#[derive(Serialize)]
struct Line<'a> {
    config: &'a str,
    vars: usize,
    draws: u64,
    seed: u64,
    own: u64,
    all: u64,
    long: u64,
}

/// Prints, for each space and number of variables, the share that each guard refuses.
pub fn print(spaces: &[Space], vars: &[usize], draws: u64, seed: u64, json: bool) -> Result<()> {
    let mut rows = Vec::new();
    for &vars in vars {
        for space in spaces {
            let [own, all, long] = refused(space, vars, draws, seed)?;
            let line = Line { config: &space.key, vars, draws, seed, own, all, long };
            if json {
                say!("{}", serde_json::to_string(&line)?)?;
                continue;
            }
            let share = |refused: u64| format!("{:.3}", 100.0 * refused as f64 / draws as f64);
            rows.push([space.key.clone(), vars.to_string(), share(own), share(all), share(long)]);
        }
    }
    if json {
        return Ok(());
    }
    say!("Training polynomials that each guard refuses, in percent of {draws} draws (seed {seed})")?;
    say!("{}", table(1, ["config", "vars", "own", "all", "long"], rows))
}

/// How many of the first training polynomials the guards own, all and long refuse.
fn refused(space: &Space, vars: usize, draws: u64, seed: u64) -> Result<[u64; 3]> {
    let mut guards = Vec::new();
    for scope in GuardScope::ALL {
        let mut guard = Guard::of(scope)?;
        if !scope.always_holds(space, vars) {
            guard.extend(space, vars)?;
        }
        guards.push(guard);
    }
    let part = |first: u64| -> std::result::Result<[u64; 3], SpaceError> {
        let mut polynomials = Polynomials::new(space, vars, Style::default(), seed, Purpose::Train)?;
        let mut refused = [0; 3];
        for index in first..(first + PART).min(draws) {
            polynomials.draw(index);
            let endpoint = polynomials.endpoint_fingerprint();
            for (count, guard) in refused.iter_mut().zip(&guards) {
                *count += u64::from(guard.contains(endpoint));
            }
        }
        Ok(refused)
    };
    let sum = |a: [u64; 3], b: [u64; 3]| Ok([a[0] + b[0], a[1] + b[1], a[2] + b[2]]);
    (0..draws.div_ceil(PART)).into_par_iter().map(|n| part(n * PART)).try_reduce(|| [0; 3], sum).map_err(Into::into)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The wider guard refuses more, and a sampler that draws again counts as many refusals of the first draws.
    #[test]
    fn a_wider_guard_refuses_more() {
        let space = Space::named("small_coeff").unwrap();
        let [own, all, long] = refused(&space, 1, 20_001, 1).unwrap();
        assert!(0 < own && own < all && all < long, "{own} {all} {long}");
        let guard = Guard::standard().unwrap();
        let mut polynomials = Polynomials::new(&space, 1, Style::default(), 1, Purpose::Train).unwrap();
        let mut met = 0;
        for index in 0..20_001 {
            polynomials.draw(index);
            met += u64::from(guard.contains(polynomials.endpoint_fingerprint()));
        }
        assert_eq!(all, met);
    }
}
